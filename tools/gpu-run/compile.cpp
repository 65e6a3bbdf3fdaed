// gpu-run compile: makes machine code of modules before they run, to keep or to ship, or shows what
// is made of one.
#include "commands.h"
#include "engine/compiled.h"
#include "input_file.h"
#include "output.h"
#include "write_file.h"

namespace gpurun::tool {
namespace {

Result<std::string> compile(const std::string& file, const std::string& what) {
    auto module = TRY(load_input(file));
    if (what == "ir") return engine::emit(*module, engine::Emitted::ir);
    if (what == "asm") return engine::emit(*module, engine::Emitted::assembly);
    if (what == "ptx") return engine::emit(*module, engine::Emitted::ptx);
    return file + ": " + TRY(engine::compile_for_later(module, file)) + "\n";
}

// Those of --target: of the CPU, of NVIDIA's GPUs, or all.
std::vector<codegen::Target> targets_of(const std::string& name) {
    std::vector<codegen::Target> chosen;
    for (codegen::Target target : codegen::targets) {
        const bool is_cpu = target == codegen::Target::host;
        if (name == "all" || name == (is_cpu ? "cpu" : "cuda")) chosen.push_back(target);
    }
    return chosen;
}

Result<std::string> make_package(const CompileOptions& options) {
    TRY(check_writable("-o ", options.out));
    auto module = TRY(load_input(options.files[0]));
    std::string cpu = options.cpu, done;
    if (cpu.empty()) cpu = codegen::common_cpu();
    if (cpu == "native") cpu = codegen::this_cpu();
    const std::vector<u8> bytes =
        TRY(engine::make_package(*module, targets_of(options.target), cpu, done));
    TRY(write_file("-o ", options.out,
                   {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    return options.out + ": " + std::to_string(bytes.size()) + " bytes; " + done;
}

// What is wrong with how it was called. Empty: nothing.
std::string check(const CompileOptions& options) {
    const std::string& emitted = options.emitted;
    if (!emitted.empty() && emitted != "ir" && emitted != "asm" && emitted != "ptx")
        return "--emit takes ir, asm or ptx, not \"" + emitted + "\"";
    if (targets_of(options.target).empty())
        return "--target takes cpu, cuda or all, not \"" + options.target + "\"";
    if (!emitted.empty() && !options.out.empty())
        return "--emit prints what is made; -o makes a file to run";
    if (!options.out.empty() && options.files.size() != 1)
        return "-o takes one module, and makes one file of it";
    if (options.out.empty() && (options.target != "all" || !options.cpu.empty()))
        return "--target and --cpu are for a file to ship: -o FILE";
    return "";
}

}  // namespace

int compile_files(const CompileOptions& options) {
    if (std::string problem = check(options); !problem.empty()) return usage_error(problem);
    if (!options.out.empty()) {
        Result<std::string> made = make_package(options);
        if (!made) return input_error(made.error().to_string());
        note(*made);
        return finish_output(0);
    }
    int code = 0;
    for (const std::string& file : options.files) {
        Result<std::string> text = compile(file, options.emitted);
        if (text)
            print(*text);
        else
            code = input_error(text.error().to_string());
    }
    return finish_output(code);
}

}  // namespace gpurun::tool
