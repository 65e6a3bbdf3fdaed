// What a result answers. Nothing here changes it.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "api/handles.h"

using gpurun::Error;
using gpurun::Result;
using Process = gpurun_result::Process;

namespace {

const Process* find(const gpurun_result* result, uint32_t process) {
    return result && process < result->processes.size() ? &result->processes[process] : nullptr;
}

template <class T>
const T* find(const std::unordered_map<gpurun::u32, T>& map, uint32_t process) {
    auto found = map.find(process);
    return found == map.end() ? nullptr : &found->second;
}

template <class T>
const T* element(const std::vector<T>& list, size_t index) {
    return index < list.size() ? &list[index] : nullptr;
}

const char* text(const std::string* found) { return found ? found->c_str() : nullptr; }

const std::vector<gpurun::engine::Frame>* find_frames(const gpurun_result* result,
                                                      uint32_t process) {
    return result ? find(result->frames, process) : nullptr;
}

const gpurun::engine::Frame* find_frame(const gpurun_result* result, uint32_t process,
                                        size_t frame) {
    const auto* frames = find_frames(result, process);
    return frames ? element(*frames, frame) : nullptr;
}

const gpurun_result::Files* find_files(const gpurun_result* result, uint32_t process) {
    return result ? find(result->files, process) : nullptr;
}

Result<std::string> content_of(const gpurun_result& result, const gpurun::host::Change& change) {
    using gpurun::host::ChangeKind;
    const auto& arena = result.snapshot->arena.bytes;
    if (change.kind == ChangeKind::write_file)
        return gpurun::host::contents(arena, change.node, result.snapshot->base.get());
    if (change.kind == ChangeKind::make_symlink) {
        gpurun::Node node = TRY(gpurun::host::node_at(arena, change.node));
        return std::string(TRY(gpurun::host::symlink_text(arena, node)));
    }
    return Error{change.path + " is no file that was written"};
}

}  // namespace

void gpurun_result_delete(gpurun_result* result) { delete result; }

uint32_t gpurun_result_processes(const gpurun_result* result) {
    return result ? uint32_t(result->processes.size()) : 0;
}
double gpurun_result_seconds(const gpurun_result* result) { return result ? result->seconds : 0; }
gpurun_layout gpurun_result_layout(const gpurun_result* result) {
    const bool is_linear = !result || result->layout.layout == gpurun::Layout::linear;
    return is_linear ? GPURUN_LAYOUT_LINEAR : GPURUN_LAYOUT_INTERLEAVED;
}
void gpurun_result_get_layout_choice(const gpurun_result* result, gpurun_layout_choice* choice) {
    if (!choice) return;
    *choice = {};
    if (!result) return;
    using Reason = gpurun::engine::LayoutChoice::Reason;
    switch (result->layout.reason) {
        case Reason::untried: choice->reason = GPURUN_LAYOUT_UNTRIED; break;
        case Reason::asked: choice->reason = GPURUN_LAYOUT_ASKED; break;
        case Reason::remembered: choice->reason = GPURUN_LAYOUT_REMEMBERED; break;
        case Reason::measured: choice->reason = GPURUN_LAYOUT_MEASURED; break;
    }
    choice->linear_rate = result->layout.rates.linear.per_second;
    choice->interleaved_rate = result->layout.rates.interleaved.per_second;
}
uint32_t gpurun_result_slots(const gpurun_result* result) { return result ? result->slots : 0; }
uint32_t gpurun_result_launches(const gpurun_result* result) {
    return result ? result->launches : 0;
}
double gpurun_result_lanes_busy(const gpurun_result* result) {
    return result ? result->lanes_busy : 0;
}
double gpurun_result_stop_seconds(const gpurun_result* result) {
    return result ? result->stop_seconds : 0;
}
uint64_t gpurun_result_system_bytes(const gpurun_result* result) {
    return result ? result->system_bytes : 0;
}

void gpurun_result_get_native(const gpurun_result* result, gpurun_native* native) {
    if (!native) return;
    *native = {};
    native->interpreted_seconds = -1;
    if (!result || !result->native.source) return;
    const gpurun::engine::NativeFacts& facts = result->native;
    switch (*facts.source) {
        using gpurun::engine::ImageSource;
        case ImageSource::compiled: native->source = GPURUN_IMAGE_COMPILED; break;
        case ImageSource::cache: native->source = GPURUN_IMAGE_CACHE; break;
        case ImageSource::file: native->source = GPURUN_IMAGE_FILE; break;
    }
    native->functions = facts.functions;
    native->interpreted = facts.interpreted;
    native->build_seconds = facts.seconds.build;
    native->optimise_seconds = facts.seconds.optimise;
    native->emit_seconds = facts.seconds.emit;
    if (facts.switched) native->interpreted_seconds = facts.switched->count();
}

gpurun_ending gpurun_result_ending(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found ? found->ending : GPURUN_STOPPED;
}
uint32_t gpurun_result_exit_code(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found ? found->exit_code : 0;
}
const char* gpurun_result_message(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found ? text(found->message) : nullptr;
}
bool gpurun_result_is_initialising(const gpurun_result* result, uint32_t process) {
    switch (gpurun_result_ending(result, process)) {
        case GPURUN_TRAPPED:
        case GPURUN_EXCEPTION:
        case GPURUN_NO_FUEL: return gpurun_result_frame_count(result, process) == 0;
        default: return false;
    }
}

size_t gpurun_result_frame_count(const gpurun_result* result, uint32_t process) {
    const auto* frames = find_frames(result, process);
    return frames ? frames->size() : 0;
}
const char* gpurun_result_frame_function(const gpurun_result* result, uint32_t process,
                                         size_t frame) {
    const auto* found = find_frame(result, process, frame);
    return found ? found->function.c_str() : nullptr;
}
uint64_t gpurun_result_frame_offset(const gpurun_result* result, uint32_t process, size_t frame) {
    const auto* found = find_frame(result, process, frame);
    return found ? found->wasm_offset : 0;
}
const char* gpurun_result_frame_source(const gpurun_result* result, uint32_t process,
                                       size_t frame) {
    const auto* found = find_frame(result, process, frame);
    return found && !found->source.empty() ? found->source.c_str() : nullptr;
}

size_t gpurun_result_value_count(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found ? found->value_count : 0;
}
gpurun_value gpurun_result_value(const gpurun_result* result, uint32_t process, size_t index) {
    if (index >= gpurun_result_value_count(result, process)) return {};
    return result->values[result->processes[process].values_at + index];
}

const char* gpurun_result_output(const gpurun_result* result, uint32_t process, int stream,
                                 size_t* size) {
    const Process* found = stream == 1 || stream == 2 ? find(result, process) : nullptr;
    if (found) {
        const auto& streams = result->spilled.streams;
        if (auto large = streams.find(gpurun::api::Spill::key(process, stream));
            large != streams.end()) {
            if (size) *size = large->second.size();
            return large->second.data();
        }
    }
    const size_t count = found ? found->output_size[stream - 1] : 0;
    if (size) *size = count;
    if (!found) return nullptr;
    return count > 0 ? result->bytes.data() + found->output_at[stream - 1] : "";
}

void gpurun_result_unload_output(const gpurun_result* result, uint32_t process) {
    if (result) result->spilled.unload(process);
}

size_t gpurun_result_file_count(const gpurun_result* result, uint32_t process) {
    const auto* files = find_files(result, process);
    return files ? files->changes.size() : 0;
}
gpurun_change gpurun_result_file_change(const gpurun_result* result, uint32_t process,
                                        size_t file) {
    using gpurun::host::ChangeKind;
    static_assert(uint32_t(ChangeKind::remove_file) == GPURUN_FILE_REMOVED &&
                  uint32_t(ChangeKind::remove_directory) == GPURUN_DIRECTORY_REMOVED &&
                  uint32_t(ChangeKind::make_directory) == GPURUN_DIRECTORY_MADE &&
                  uint32_t(ChangeKind::write_file) == GPURUN_FILE_WRITTEN &&
                  uint32_t(ChangeKind::make_symlink) == GPURUN_SYMLINK_MADE);
    const auto* files = find_files(result, process);
    const auto* change = files ? element(files->changes, file) : nullptr;
    return change ? gpurun_change(change->kind) : GPURUN_FILE_REMOVED;
}
const char* gpurun_result_file_path(const gpurun_result* result, uint32_t process, size_t file) {
    const auto* files = find_files(result, process);
    return files ? text(element(files->paths, file)) : nullptr;
}

gpurun_error* gpurun_result_file_read(const gpurun_result* result, uint32_t process, size_t file,
                                      char** bytes, size_t* size) {
    return gpurun::api::guarded([&]() -> Result<void> {
        const auto* files = find_files(result, process);
        const auto* change = files ? element(files->changes, file) : nullptr;
        if (!change || !bytes || !size)
            return Error{
                "gpurun_result_file_read wants a file that there is, and places for its "
                "bytes and their number"};
        std::string content = TRY(content_of(*result, *change));
        char* copy = static_cast<char*>(std::malloc(content.size() + 1));
        if (!copy) return Error{"out of memory"};
        std::memcpy(copy, content.c_str(), content.size() + 1);
        *bytes = copy;
        *size = content.size();
        return {};
    });
}
void gpurun_bytes_delete(char* bytes) { std::free(bytes); }

gpurun_error* gpurun_result_store_files(const gpurun_result* result, uint32_t process,
                                        const char* folder) {
    return gpurun::api::guarded([&]() -> Result<void> {
        const Process* found = find(result, process);
        if (!found || !folder)
            return Error{"gpurun_result_store_files wants a process that there is and a folder"};
        if (!result->snapshot || !found->block) return {};
        return gpurun::host::store(result->snapshot->arena.bytes, found->block,
                                   *result->snapshot->base, folder);
    });
}

const char* gpurun_result_file_problem(const gpurun_result* result) {
    return result && !result->file_problem.empty() ? result->file_problem.c_str() : nullptr;
}
uint32_t gpurun_result_dump_count(const gpurun_result* result) {
    return result ? result->dumps : 0;
}
uint64_t gpurun_result_fault_count(const gpurun_result* result) {
    if (!result) return 0;
    return result->machine_faults +
           uint64_t(std::ranges::count_if(result->processes, [](const Process& process) {
               return process.ending == GPURUN_TRAPPED || process.ending == GPURUN_EXCEPTION ||
                      process.ending == GPURUN_NO_FUEL;
           }));
}
const char* gpurun_result_dump_problem(const gpurun_result* result) {
    return result && !result->dump_problem.empty() ? result->dump_problem.c_str() : nullptr;
}

const char* gpurun_result_output_problem(const gpurun_result* result) {
    return result && !result->output_problem.empty() ? result->output_problem.c_str() : nullptr;
}

size_t gpurun_result_stack_count(const gpurun_result* result) {
    return result ? result->stacks.size() : 0;
}
uint64_t gpurun_result_stack_seen(const gpurun_result* result, size_t stack) {
    return stack < gpurun_result_stack_count(result) ? result->stacks[stack].count : 0;
}
size_t gpurun_result_stack_depth(const gpurun_result* result, size_t stack) {
    return stack < gpurun_result_stack_count(result) ? result->stacks[stack].functions.size() : 0;
}
const char* gpurun_result_stack_function(const gpurun_result* result, size_t stack, size_t index) {
    if (stack >= gpurun_result_stack_count(result)) return nullptr;
    return text(element(result->stacks[stack].functions, index));
}

size_t gpurun_result_debug_count(const gpurun_result* result) {
    return result ? result->debug.size() : 0;
}
const char* gpurun_result_debug(const gpurun_result* result, size_t index) {
    return result ? text(element(result->debug, index)) : nullptr;
}
uint64_t gpurun_result_debug_dropped(const gpurun_result* result) {
    return result ? result->debug_dropped : 0;
}
