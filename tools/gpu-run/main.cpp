// The command line: parses options once and calls the engine. Exit codes: the program's own,
// 1 bad input, 2 bad flags, 134 a trap.
#include <CLI/CLI.hpp>

#include "commands.h"

int main(int argc, char** argv) {
    using namespace gpurun::tool;
    CLI::App app("Runs WebAssembly programs.");
    app.name("gpu-run");
    app.set_version_flag("--version", "gpu-run " GPURUN_VERSION);
    app.prefix_command();
    app.footer(R"(Examples:
  gpu-run --invoke fac fac.wat 20      call an exported function, print its results
  gpu-run app.wasm                     run a program: its _start function
  gpu-run validate app.wasm            is it a valid module?
  gpu-run objdump app.wasm             what is in it, with the interpreter's code
  gpu-run wast test.wast               run a script of the official test suite's language)");

    RunOptions run;
    app.add_option("--invoke", run.invoke, "call this exported function instead of _start")->type_name("NAME");
    app.add_option("--fuel", run.fuel, "stop after that many instructions")->type_name("N");
    app.add_option("--timeout", run.timeout, "stop after that many seconds")->type_name("S");
    app.add_option("--stack", run.stack_slots, "call stack, in 4-byte slots")->type_name("N");
    app.add_option("--heap", run.heap_words, "object heap, in 4-byte words")->type_name("N");
    app.add_option("--memory", run.memory_bytes, "most bytes a memory may grow to (suffixes KiB, MiB, GiB)")
        ->transform(CLI::AsSizeValue(false))->type_name("SIZE");

    std::vector<std::string> files;
    auto add_files = [&](CLI::App* command) {
        command->add_option("files", files, "the files")->required()->type_name("FILE");
    };
    CLI::App* wast = app.add_subcommand("wast", "run scripts of the official test suite's language");
    add_files(wast);
    CLI::App* validate = app.add_subcommand("validate", "check modules without running them");
    add_files(validate);
    CLI::App* objdump = app.add_subcommand("objdump", "show a module's sections, functions and their code");
    ObjdumpOptions dump;
    objdump->add_flag("--headers", dump.only_headers, "sections, imports and exports only");
    objdump->add_option("--function", dump.function, "only this function, by index or name")->type_name("F");
    add_files(objdump);

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        app.exit(error);
        return 2;
    }
    if (*wast) return run_scripts(files);
    if (*validate) return validate_files(files);
    if (*objdump) return dump_files(files, dump);

    std::vector<std::string> rest = app.remaining();
    if (rest.empty()) return usage_error("no file given; gpu-run --help shows how to call it");
    if (rest[0].size() > 1 && rest[0][0] == '-')
        return usage_error("unknown option " + rest[0] + "; gpu-run --help lists them");
    run.file = rest[0];
    run.arguments.assign(rest.begin() + 1, rest.end());
    return run_file(run);
}
