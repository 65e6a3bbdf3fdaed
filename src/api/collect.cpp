// From how processes ended to a result, which needs neither the device nor the engine any more.
#include "api/handles.h"
#include "engine/trace.h"

namespace gpurun::api {
namespace {

using engine::Completion;

gpurun_ending ending_of(Completion::Kind kind, bool is_stopped) {
    switch (kind) {
        case Completion::Kind::returned: return GPURUN_RETURNED;
        case Completion::Kind::exited: return GPURUN_EXITED;
        case Completion::Kind::trapped: return GPURUN_TRAPPED;
        case Completion::Kind::uncaught_exception: return GPURUN_EXCEPTION;
        case Completion::Kind::out_of_fuel: return GPURUN_NO_FUEL;
        case Completion::Kind::blocked: return GPURUN_BLOCKED;
        case Completion::Kind::stopped: break;
    }
    return is_stopped ? GPURUN_STOPPED : GPURUN_TIMED_OUT;
}

// "/data" and "a/b": "/data/a/b".
std::string guest_path(const host::Mount& mount, const std::string& path) {
    bool has_slash = !mount.guest_path.empty() && mount.guest_path.back() == '/';
    return mount.guest_path + (has_slash ? "" : "/") + path;
}

}  // namespace

void collect(Completion completion, bool is_stopped, u32 index, gpurun_result& result) {
    gpurun_result::Process& process = result.processes[index];
    process.ending = ending_of(completion.kind, is_stopped);
    process.exit_code = completion.exit_code;
    if (process.ending != GPURUN_RETURNED)
        collect_message(process.ending == GPURUN_TIMED_OUT ? "timeout" : completion.to_string(),
                        index, result);
    if (!completion.backtrace.empty()) result.frames[index] = std::move(completion.backtrace);
    process.values_at = result.values.size();
    process.value_count = u32(completion.results.size());
    for (const engine::Value& value : completion.results) result.values.push_back(to_c(value));
}

void collect_message(std::string message, u32 index, gpurun_result& result) {
    result.processes[index].message = &*result.messages.insert(std::move(message)).first;
}

void collect_output(int stream, std::string_view bytes, u32 index, gpurun_result& result) {
    gpurun_result::Process& process = result.processes[index];
    process.output_at[stream - 1] = result.bytes.size();
    process.output_size[stream - 1] = bytes.size();
    if (bytes.empty()) return;
    result.bytes += bytes;
    result.bytes += '\0';
}

void collect_records(const std::vector<DebugRecord>& records, gpurun_result& result) {
    for (const DebugRecord& record : records) result.debug.push_back(engine::to_string(record));
}

Result<void> collect_files(u32 index, gpurun_result& result) {
    const Handle block = result.processes[index].block;
    if (!result.snapshot || !block) return {};
    gpurun_result::Files files;
    files.changes = TRY(host::changes(result.snapshot->arena.bytes, block));
    for (const host::Change& change : files.changes)
        files.paths.push_back(
            guest_path(result.snapshot->base->mount(change.preopen), change.path));
    if (!files.changes.empty()) result.files[index] = std::move(files);
    return {};
}

}  // namespace gpurun::api
