// Writes the folder of --out.
#include "out_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "attempt.h"
#include "endings.h"
#include "interrupt.h"
#include "json.h"
#include "output.h"
#include "write_file.h"

namespace gpurun::tool {
namespace {

struct EndingSummary {
    const char* word;
    u32 exit_code;  // what gpu-run's would be if it were the only process
};

EndingSummary ending_of(const api::Process& process) {
    switch (process.ending()) {
        case GPURUN_RETURNED: return {"exit", 0};
        case GPURUN_EXITED: return {"exit", process.exit_code()};
        case GPURUN_TRAPPED: return {"trap", exit_trap};
        case GPURUN_EXCEPTION: return {"exception", exit_trap};
        case GPURUN_NO_FUEL: return {"out of fuel", exit_trap};
        case GPURUN_BLOCKED: return {"deadlock", exit_trap};
        case GPURUN_STOPPED: return {"interrupted", u32(interrupted_code())};
        case GPURUN_FAILED: return {"failed", exit_input};
        default: return {"timeout", exit_timeout};
    }
}

// {"process":3,"ending":"trap","exit_code":134,"trap":"unreachable","function":"f","offset":42}
std::string result_line(u32 number, const api::Process& process) {
    EndingSummary ending = ending_of(process);
    JsonObject line;
    line.add_count("process", number);
    line.add_text("ending", ending.word);
    line.add_count("exit_code", ending.exit_code);
    if (!process.values().empty()) line.add_text("results", describe(process));
    if (process.ending() == GPURUN_TRAPPED) line.add_text("trap", process.message());
    if (std::vector<api::Frame> frames = process.frames(); !frames.empty()) {
        line.add_text("function", frames[0].function);
        line.add_count("offset", frames[0].offset);
    }
    return line.line() + "\n";
}

}  // namespace

Result<void> prepare_out(const std::string& folder) {
    auto refuse = [&](const std::string& why) { return Error{"--out " + folder + ": " + why}; };
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) return refuse(problem.message());
    bool is_empty = std::filesystem::is_empty(folder, problem);
    if (problem) return refuse(problem.message());
    if (!is_empty) return refuse("is not empty; remove what is there, or name another folder");
    if (access(folder.c_str(), W_OK | X_OK) != 0) return refuse(std::strerror(errno));
    return {};
}

Result<void> store_out(const std::string& folder, const api::Result& result,
                       const std::vector<OutGroup>& groups) {
    std::vector<const api::Process*> endings(result.size());
    const Patience patience;
    bool is_whole = true;
    for (const OutGroup& group : groups) {
        for (u32 id : group.processes) {
            std::string name = folder + "/" + std::to_string(id);
            is_whole &=
                TRY(write_output("--out ", name + ".stdout", group.first.output(), patience));
            is_whole &=
                TRY(write_output("--out ", name + ".stderr", group.first.error(), patience));
            TRY(attempt([&] { result[id].store_files(name); }));
            endings[id] = &group.first;
        }
    }
    if (!is_whole)
        say(interruption() + " while outputs were stored; the rest is left out", Tone::bad);
    std::string lines;
    for (u32 id = 0; id < endings.size(); id++) lines += result_line(id, *endings[id]);
    return write_file("--out ", folder + "/results.jsonl", lines);
}

}  // namespace gpurun::tool
