// wasmtime as an oracle: the same calls in another engine, with its NaNs made canonical.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "outcome.h"
#include "wasm/module.h"

namespace gpurun {

class Oracle {
public:
    // `library` is what scripts/find-wasmtime prints.
    static Result<std::unique_ptr<Oracle>> open(const std::string& library);
    virtual ~Oracle() = default;
    // The outcome of the instantiation, and of each call if that went well; fewer if its stack
    // ended. `imports` is a module that exports what the other imports, under the import's number,
    // and the global `seen`. An Error: it does not take the module.
    virtual Result<std::vector<Outcome>> run(const wasm::Module& module,
                                             const wasm::Module& imports,
                                             std::span<const Call> calls) = 0;
};

}  // namespace gpurun
