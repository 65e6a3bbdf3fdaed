// Any bytes either load or are refused with a message.
#include "wasm/module.h"

using namespace gpurun;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size) {
    (void)wasm::load(wasm::Bytes(data, data + size));
    return 0;
}
