// Images of modules, from the cache where they have been made before.
#pragma once

#include "codegen/codegen.h"

namespace gpurun::engine {

// `code` is the module's, with or without charges for fuel.
Result<codegen::Image> compiled(const wasm::Module& module, const translate::Code& code,
                                codegen::Target target, bool is_metered);

}  // namespace gpurun::engine
