// The commands that look at files without running them as programs: wast, validate, objdump.
#include <cstdio>

#include "commands.h"
#include "engine/load.h"
#include "engine/script_runner.h"

namespace gpurun::tool {

int input_error(const std::string& message) {
    std::fprintf(stderr, "gpu-run: %s\n", message.c_str());
    return 1;
}

int usage_error(const std::string& message) {
    std::fprintf(stderr, "gpu-run: %s\n", message.c_str());
    return 2;
}

int run_scripts(const std::vector<std::string>& files) {
    engine::ScriptReport total;
    u32 bad_files = 0;
    for (const std::string& file : files) {
        engine::ScriptOptions options;
        options.say = [](const std::string& message) { std::printf("%s\n", message.c_str()); };
        engine::ScriptReport report;
        Result<std::vector<u8>> source = engine::read_file(file);
        if (!source) {
            input_error(source.error().to_string());
            report.failed++;
        } else {
            std::string_view text(reinterpret_cast<const char*>(source->data()), source->size());
            Result<engine::ScriptReport> done = engine::run_script(text, file, options);
            if (done) {
                report = *done;
            } else {
                input_error(done.error().to_string());
                report.failed++;
            }
        }
        std::printf("%s: %u passed, %u failed\n", file.c_str(), report.passed, report.failed);
        total.passed += report.passed;
        total.failed += report.failed;
        bad_files += report.failed > 0;
    }
    if (files.size() > 1)
        std::printf("%zu files, %u with failures: %u passed, %u failed\n", files.size(), bad_files,
                    total.passed, total.failed);
    return total.failed == 0 ? 0 : 1;
}

int validate_files(const std::vector<std::string>& files) {
    int code = 0;
    for (const std::string& file : files) {
        auto module = engine::load_file(file);
        if (!module) code = input_error(module.error().to_string());
    }
    return code;
}

int dump_files(const std::vector<std::string>&, const ObjdumpOptions&) { return 0; }

}  // namespace gpurun::tool
