// What a result answers. Nothing here changes it.
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
const T* find(const std::vector<T>& list, size_t index) {
    return index < list.size() ? &list[index] : nullptr;
}

const char* text(const std::string* found) { return found ? found->c_str() : nullptr; }

const gpurun::engine::Frame* find_frame(const gpurun_result* result, uint32_t process,
                                        size_t frame) {
    const Process* found = find(result, process);
    return found ? find(found->frames, frame) : nullptr;
}

Result<std::string> content_of(const gpurun_result& result, const gpurun::host::Change& change) {
    using gpurun::host::ChangeKind;
    const auto& arena = result.left->arena;
    if (change.kind == ChangeKind::write_file)
        return gpurun::host::contents(arena, change.node, result.left->image.get());
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
    return found && !found->message.empty() ? found->message.c_str() : nullptr;
}
bool gpurun_result_is_initialising(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found && found->is_initialising;
}

size_t gpurun_result_frame_count(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found ? found->frames.size() : 0;
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
    return found ? found->values.size() : 0;
}
gpurun_value gpurun_result_value(const gpurun_result* result, uint32_t process, size_t index) {
    const Process* found = find(result, process);
    const gpurun_value* value = found ? find(found->values, index) : nullptr;
    return value ? *value : gpurun_value{};
}
const char* gpurun_result_value_text(const gpurun_result* result, uint32_t process, size_t index) {
    const Process* found = find(result, process);
    return found ? text(find(found->value_texts, index)) : nullptr;
}

const char* gpurun_result_output(const gpurun_result* result, uint32_t process, int stream,
                                 size_t* size) {
    const Process* found = find(result, process);
    const std::string* bytes =
        found && (stream == 1 || stream == 2) ? &found->output[stream - 1] : nullptr;
    if (size) *size = bytes ? bytes->size() : 0;
    return text(bytes);
}

size_t gpurun_result_file_count(const gpurun_result* result, uint32_t process) {
    const Process* found = find(result, process);
    return found ? found->files.size() : 0;
}
gpurun_change gpurun_result_file_change(const gpurun_result* result, uint32_t process,
                                        size_t file) {
    using gpurun::host::ChangeKind;
    static_assert(uint32_t(ChangeKind::remove_file) == GPURUN_FILE_REMOVED &&
                  uint32_t(ChangeKind::remove_directory) == GPURUN_DIRECTORY_REMOVED &&
                  uint32_t(ChangeKind::make_directory) == GPURUN_DIRECTORY_MADE &&
                  uint32_t(ChangeKind::write_file) == GPURUN_FILE_WRITTEN &&
                  uint32_t(ChangeKind::make_symlink) == GPURUN_SYMLINK_MADE);
    const Process* found = find(result, process);
    const auto* change = found ? find(found->files, file) : nullptr;
    return change ? gpurun_change(change->kind) : GPURUN_FILE_REMOVED;
}
const char* gpurun_result_file_path(const gpurun_result* result, uint32_t process, size_t file) {
    const Process* found = find(result, process);
    return found ? text(find(found->paths, file)) : nullptr;
}

gpurun_error* gpurun_result_file_read(const gpurun_result* result, uint32_t process, size_t file,
                                      char** bytes, size_t* size) {
    return gpurun::api::guarded([&]() -> Result<void> {
        const Process* found = find(result, process);
        const auto* change = found ? find(found->files, file) : nullptr;
        if (!change || !bytes || !size)
            return Error{
                "gpurun_result_file_read wants a file that there is, and places for its "
                "bytes and their number"};
        std::string content = TRY(content_of(*result, *change));
        char* copy = static_cast<char*>(std::malloc(content.size() + 1));
        if (!copy) return Error{"there is no memory left"};
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
        if (!result->left || !found->block) return {};
        return gpurun::host::store(result->left->arena, found->block, *result->left->image, folder);
    });
}

const char* gpurun_result_file_problem(const gpurun_result* result) {
    return result && !result->file_problem.empty() ? result->file_problem.c_str() : nullptr;
}

size_t gpurun_result_debug_count(const gpurun_result* result) {
    return result ? result->debug.size() : 0;
}
const char* gpurun_result_debug(const gpurun_result* result, size_t index) {
    return result ? text(find(result->debug, index)) : nullptr;
}
uint64_t gpurun_result_debug_dropped(const gpurun_result* result) {
    return result ? result->debug_dropped : 0;
}
