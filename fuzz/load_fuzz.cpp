// Any bytes either load or are refused with a message; what loads has lines of a source, or none.
#include "wasm/module.h"
#include "wasm/source_line.h"

using namespace gpurun;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size) {
    auto module = wasm::load(wasm::Bytes(data, data + size));
    if (!module || (*module)->funcs.empty()) return 0;
    const wasm::Func& last = (*module)->funcs.back();
    (void)wasm::source_line(**module, last.code);
    return 0;
}
