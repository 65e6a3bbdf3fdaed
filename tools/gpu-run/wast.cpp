// gpu-run wast: runs scripts of the official suite's language and counts what passed.
#include "commands.h"
#include "engine/script_runner.h"
#include "input_file.h"
#include "output.h"

namespace gpurun::tool {
namespace {

// Whatever keeps the file from being read counts as one failure.
engine::ScriptReport run_script(const std::string& file, device::Device& device,
                                const RunOptions& run) {
    engine::ScriptOptions options;
    options.device = &device;
    options.is_watched = run.is_watched;
    if (run.tier == "native") options.tier = device::Tier::native;
    if (run.tier == "alternate") options.tier = device::Tier::alternate;
    if (run.tier == "early") options.tier = device::Tier::early;
    if (run.tier == "partial") options.tier = device::Tier::partial;
    if (run.tier == "quick") options.tier = device::Tier::quick;
    if (run.tier == "auto") options.tier = device::Tier::automatic;
    options.say = [](const std::string& message) { print(message + "\n"); };
    auto unreadable = [](const Error& error) {
        finish_output(0);  // in order, where both outputs go to one place
        say(error.to_string());
        return engine::ScriptReport{0, 1};
    };
    Result<std::vector<u8>> source = read_input(file);
    if (!source) return unreadable(source.error());
    std::string_view text(reinterpret_cast<const char*>(source->data()), source->size());
    Result<engine::ScriptReport> report = engine::run_script(text, file, options);
    return report ? *report : unreadable(report.error());
}

std::string counts(const engine::ScriptReport& report) {
    return std::to_string(report.passed) + " passed, " + std::to_string(report.failed) +
           " failed\n";
}

Result<std::unique_ptr<device::Device>> open_device(const std::string& id) {
    std::unique_ptr<device::Device> device = TRY(device::open_device(id));
    TRY(device->prepare(device::Mode::space));
    note_device(id, device->info().id, device->info().name);
    return device;
}

}  // namespace

int run_scripts(const std::vector<std::string>& files, const RunOptions& options, bool quiet) {
    Result<std::unique_ptr<device::Device>> device = open_device(options.device);
    if (!device) return input_error(device.error().to_string());
    engine::ScriptReport total;
    u32 bad_files = 0;
    for (const std::string& file : files) {
        engine::ScriptReport report = run_script(file, **device, options);
        if (!quiet || report.failed > 0) print(file + ": " + counts(report));
        total.passed += report.passed;
        total.failed += report.failed;
        bad_files += report.failed > 0;
    }
    if (files.size() > 1)
        print(std::to_string(files.size()) + " files, " + std::to_string(bad_files) +
              " with failures: " + counts(total));
    return finish_output(total.failed == 0 ? 0 : 1);
}

}  // namespace gpurun::tool
