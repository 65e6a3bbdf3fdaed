// Any text either parses or is refused; what assembles is never malformed.
#include "base/check.h"
#include "text/assemble.h"
#include "text/script.h"
#include "wasm/module.h"

using namespace gpurun;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size) {
    std::string_view source(reinterpret_cast<const char*>(data), size);
    (void)text::parse_script(source, "input");
    if (auto module = text::assemble(source, "input")) {
        auto loaded = wasm::load_or_explain(std::move(module->bytes));
        auto* failure = std::get_if<wasm::LoadError>(&loaded);
        CHECK(!failure || !failure->is_malformed);
    }
    return 0;
}
