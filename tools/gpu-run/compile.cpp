// gpu-run compile: makes machine code of modules before they run, or shows what is made of one.
#include "commands.h"
#include "engine/compiled.h"
#include "engine/load.h"
#include "output.h"

namespace gpurun::tool {
namespace {

Result<std::string> compile(const std::string& file, const std::string& what) {
    auto module = TRY(engine::load_file(file));
    if (what == "ir") return engine::emit(*module, engine::Emitted::ir);
    if (what == "asm") return engine::emit(*module, engine::Emitted::assembly);
    if (what == "ptx") return engine::emit(*module, engine::Emitted::ptx);
    return file + ": " + TRY(engine::compile_for_later(*module)) + "\n";
}

}  // namespace

int compile_files(const std::vector<std::string>& files, const std::string& what) {
    if (!what.empty() && what != "ir" && what != "asm" && what != "ptx")
        return usage_error("--emit takes ir, asm or ptx, not \"" + what + "\"");
    int code = 0;
    for (const std::string& file : files) {
        Result<std::string> text = compile(file, what);
        if (text)
            print(*text);
        else
            code = input_error(text.error().to_string());
    }
    return finish_output(code);
}

}  // namespace gpurun::tool
