// Writes the folder of --out.
#include "out_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "endings.h"
#include "interrupt.h"
#include "json.h"
#include "output.h"
#include "write_file.h"

namespace gpurun::tool {
namespace {

using engine::Completion;

struct Ending {
    const char* word;
    u32 exit_code;  // what gpu-run's would be if it were the only process
};

Ending ending_of(const Completion& completion) {
    switch (completion.kind) {
        case Completion::Kind::returned: return {"exit", 0};
        case Completion::Kind::exited: return {"exit", completion.exit_code};
        case Completion::Kind::trapped: return {"trap", exit_trap};
        case Completion::Kind::uncaught_exception: return {"exception", exit_trap};
        case Completion::Kind::out_of_fuel: return {"out of fuel", exit_trap};
        case Completion::Kind::blocked: return {"deadlock", exit_trap};
        case Completion::Kind::stopped: break;
    }
    return was_interrupted() ? Ending{"interrupted", exit_interrupted}
                             : Ending{"timeout", exit_timeout};
}

// {"process":3,"ending":"trap","exit_code":134,"trap":"unreachable","function":"f","offset":42}
std::string result_line(u32 process, const Completion& completion) {
    Ending ending = ending_of(completion);
    JsonObject line;
    line.add_count("process", process);
    line.add_text("ending", ending.word);
    line.add_count("exit_code", ending.exit_code);
    if (!completion.results.empty()) line.add_text("results", describe(completion));
    if (completion.kind == Completion::Kind::trapped) line.add_text("trap", completion.to_string());
    if (!completion.backtrace.empty()) {
        line.add_text("function", completion.backtrace[0].function);
        line.add_count("offset", completion.backtrace[0].wasm_offset);
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

Result<void> store_out(const std::string& folder, const engine::BurstReport& report, u32 job,
                       const std::vector<OutGroup>& groups) {
    std::vector<const Completion*> endings(report.processes(job));
    for (const OutGroup& group : groups) {
        for (u32 id : group.processes) {
            std::string name = folder + "/" + std::to_string(id);
            TRY(write_file("--out ", name + ".stdout", group.output));
            TRY(write_file("--out ", name + ".stderr", group.error));
            TRY(report.store_files(id, name, job));
            endings[id] = &group.completion;
        }
    }
    std::string lines;
    for (u32 id = 0; id < endings.size(); id++) lines += result_line(id, *endings[id]);
    return write_file("--out ", folder + "/results.jsonl", lines);
}

}  // namespace gpurun::tool
