// Reads the state of a process, writes it to files, and reads those back.
#include "engine/dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/format.h"
#include "engine/load.h"
#include "engine/store.h"
#include "host/files.h"

namespace gpurun::engine {
namespace {

constexpr const char* first_line = "gpu-run dump 1";
constexpr std::string_view module_line =
    "module ";  // comes next, with the module's number if not 0

Error file_error(const std::string& path) { return {path + ": " + host::reason(errno)}; }

Result<host::File> create_file(const std::string& path) {
    host::File file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file) return file_error(path);
    return file;
}

Result<void> write_at(const host::File& file, const std::string& path, u64 at,
                      std::span<const u8> bytes) {
    while (!bytes.empty()) {
        ssize_t count = pwrite(file.get(), bytes.data(), bytes.size(), off_t(at));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return file_error(path);
        at += u64(count);
        bytes = bytes.subspan(usize(count));
    }
    return {};
}

Result<void> write_file(const std::string& path, std::span<const u8> bytes) {
    host::File file = TRY(create_file(path));
    TRY(write_at(file, path, 0, bytes));
    if (!file.close()) return file_error(path);
    return {};
}

// Returns the file name of the module of that number, below the folder of all dumps.
std::string module_name(u32 number) {
    return number == 0 ? "/module.wasm" : format("/module.%u.wasm", number);
}

Result<void> make_folder(const std::string& path) {
    std::error_code problem;
    std::filesystem::create_directories(path, problem);
    if (problem) return Error{path + ": " + problem.message()};
    return {};
}

std::string words_text(std::span<const u32> words) {
    std::string text;
    for (u32 word : words) text += format(" %x", word);
    return text;
}

std::string ending_text(ThreadState state, u32 trap) {
    switch (state) {
        case ThreadState::trapped: return std::string("trap: ") + to_string(Trap(trap));
        case ThreadState::uncaught: return "uncaught exception";
        case ThreadState::out_of_fuel: return "out of fuel";
        default: return "stopped";
    }
}

// Writes the pieces of a memory that are not zero; the rest of the file is a hole.
Result<void> write_memory(const std::string& path, const ProcessSnapshot::Memory& memory,
                          device::ProcessMemory& process) {
    constexpr u64 piece = u64{1} << 20;
    host::File file = TRY(create_file(path));
    if (ftruncate(file.get(), off_t(memory.size)) != 0) return file_error(path);
    std::vector<u8> buffer(std::min(piece, memory.size));
    for (u64 at = 0; at < memory.size; at += piece) {
        std::span<u8> part(buffer.data(), std::min(piece, memory.size - at));
        TRY(process.read_bytes(memory.base + at, part));
        if (std::ranges::all_of(part, [](u8 byte) { return byte == 0; })) continue;
        TRY(write_at(file, path, at, part));
    }
    if (!file.close()) return file_error(path);
    return {};
}

}  // namespace

// ---- from a process ----------------------------------------------------------------

Result<ProcessSnapshot> Store::capture(device::ProcessMemory& memory) {
    auto read_word_pair = [&](u32 index) -> Result<u64> {
        u32 words[2];
        TRY(memory.read_words(index, words));
        return code_pair(words[0], words[1]);
    };
    ProcessSnapshot state;
    u32 thread[thread_words];
    TRY(memory.read_words(current_.at, thread));
    state.ending = ending_text(ThreadState(thread[thread_state]), thread[thread_trap]);
    const Instance& instance = *instances_.back();

    std::unordered_map<u32, u32> frame_slots;  // of functions: recursion asks again and again
    auto add = [&](u32 position, u32 fp) -> Result<void> {
        const LoadedCode* code = find_code(position);
        std::optional<engine::Frame> frame = frame_at(position);
        if (!code || !frame) return {};
        if (state.frames.size() == max_dumped_frames) {
            state.more_frames++;
            return {};
        }
        ProcessSnapshot::Frame& added = state.frames.emplace_back();
        added.wasm_offset = frame->wasm_offset;
        if (code->module != instance.module_) {
            added.runtime = frame->function;
            return {};
        }
        added.func = frame->func;
        auto [slots, is_new] = frame_slots.try_emplace(frame->func);
        if (is_new) slots->second = map_of(*code, frame->func).frame_slots;
        u32 end = std::min(thread[thread_stack_end], fp + slots->second);
        added.slots.resize(fp < end ? end - fp : 0);
        return memory.read_words(fp, added.slots);
    };
    TRY(add(thread[thread_pc], thread[thread_fp]));
    for (u32 at = thread[thread_rp]; at < thread[thread_stack_end]; at += record_words) {
        u32 record[record_words];
        TRY(memory.read_words(at, record));
        if (!(record[record_pc] & handler_bit) && record[record_pc] > ret_position)
            TRY(add(record[record_pc] - 1, record[record_fp]));
    }
    for (const Extern& global : instance.globals_) {
        std::vector<u32>& words = state.globals.emplace_back(translate::words_of(global.value));
        TRY(memory.read_words(global.at, words));
    }
    for (const Extern& item : instance.memories_)
        state.memories.push_back({TRY(read_word_pair(item.at + memory_base)),
                                  TRY(read_word_pair(item.at + memory_bytes))});
    return state;
}

// ---- to files ----------------------------------------------------------------------

Result<DumpFolder> DumpFolder::make(const std::string& folder) {
    DumpFolder made;
    made.folder_ = folder;
    TRY(make_folder(folder));
    return made;
}

Result<DumpFolder> DumpFolder::make(const std::string& folder, const std::string& file,
                                    const wasm::Module& module) {
    DumpFolder made = TRY(make(folder));
    TRY(made.add_module(0, file, module));
    return made;
}

Result<void> DumpFolder::add_module(u32 number, const std::string& file,
                                    const wasm::Module& module) {
    if (files_.contains(number)) return {};
    TRY(write_file(folder_ + module_name(number), module.bytes));
    files_[number] = file;
    std::ranges::replace(files_[number], '\n', ' ');
    return {};
}

Result<void> DumpFolder::write(u32 process, const ProcessSnapshot& state,
                               device::ProcessMemory& memory, u32 module) const {
    const std::string folder = folder_ + "/" + std::to_string(process);
    TRY(make_folder(folder));
    for (usize i = 0; i < state.memories.size(); i++)
        TRY(write_memory(folder + "/memory." + std::to_string(i), state.memories[i], memory));
    std::string text = std::string(first_line) + "\n";
    if (module != 0) text.append(module_line).append(std::to_string(module)) += '\n';
    text += "file " + files_.at(module) + format("\nprocess %u\nending ", process) + state.ending +
            "\n";
    for (const ProcessSnapshot::Frame& frame : state.frames) {
        if (frame.func)
            text += format("frame %u %x", *frame.func, frame.wasm_offset) +
                    words_text(frame.slots) + "\n";
        else
            text += "runtime " + frame.runtime + "\n";
    }
    if (state.more_frames) text += format("more %llu\n", (unsigned long long)state.more_frames);
    for (const std::vector<u32>& words : state.globals) text += "global" + words_text(words) + "\n";
    for (const ProcessSnapshot::Memory& item : state.memories)
        text += format("memory %llu\n", (unsigned long long)item.size);
    return write_file(folder + "/state", {reinterpret_cast<const u8*>(text.data()), text.size()});
}

// ---- and back ----------------------------------------------------------------------

namespace {

template <class T>
std::optional<T> parse_number(std::string_view text, int base) {
    T number = 0;
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    bool is_good = problem == std::errc() && end == text.data() + text.size();
    return is_good ? std::optional(number) : std::nullopt;
}

class StateReader {
public:
    explicit StateReader(Dump& dump) : dump_(dump) {}

    Result<void> read(const std::string& path, std::string_view text) {
        for (u32 number = 1; !text.empty(); number++) {
            std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(text.size(), line.size() + 1));
            bool is_good = number == 1 ? line == first_line : take(line);
            if (!is_good && number == 1) return Error{path + ": not a dump of gpu-run"};
            if (!is_good)
                return Error{format("%s:%u: a line that no dump has", path.c_str(), number)};
        }
        const wasm::Module& module = *dump_.module;
        if (dump_.state.globals.size() != module.globals.size() ||
            dump_.state.memories.size() != module.memories.size())
            return Error{path + ": does not fit the module beside it, or is cut off"};
        return {};
    }

private:
    bool take(std::string_view line) {
        std::string_view kind = line.substr(0, line.find(' '));
        std::string_view rest = line.substr(std::min(line.size(), kind.size() + 1));
        ProcessSnapshot& state = dump_.state;
        if (kind == "file") dump_.file = rest;
        if (kind == "ending") state.ending = rest;
        if (kind == "file" || kind == "ending") return true;
        if (kind == "process" || kind == "more" || kind == "memory" || kind == "module") {
            std::optional<u64> number = parse_number<u64>(rest, 10);
            if (!number) return false;
            if (kind == "process") dump_.process = u32(*number);
            if (kind == "more") state.more_frames = *number;
            if (kind == "memory") state.memories.push_back({0, *number});
            return true;
        }
        if (kind == "runtime") {
            state.frames.emplace_back().runtime = rest;
            return true;
        }
        return kind == "frame" ? take_frame(rest) : kind == "global" && take_global(rest);
    }

    bool take_frame(std::string_view text) {
        ProcessSnapshot::Frame& frame = dump_.state.frames.emplace_back();
        std::optional<u32> func = parse_number<u32>(next(text), 10),
                           offset = parse_number<u32>(next(text), 16);
        const wasm::Module& module = *dump_.module;
        if (!func || !offset || *func < module.imported_funcs || *func >= module.funcs.size())
            return false;
        frame.func = *func;
        frame.wasm_offset = *offset;
        return take_words(text, frame.slots);
    }

    bool take_global(std::string_view text) {
        usize number = dump_.state.globals.size();
        std::vector<u32>& words = dump_.state.globals.emplace_back();
        const wasm::Module& module = *dump_.module;
        return take_words(text, words) && number < module.globals.size() &&
               words.size() == translate::words_of(module.globals[number].type.type);
    }

    static bool take_words(std::string_view text, std::vector<u32>& words) {
        while (!text.empty()) {
            std::optional<u32> word = parse_number<u32>(next(text), 16);
            if (!word) return false;
            words.push_back(*word);
        }
        return true;
    }

    static std::string_view next(std::string_view& text) {
        std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        return word;
    }

    Dump& dump_;
};

// Returns the number of the module that a state belongs to.
u32 module_of(std::string_view state) {
    state.remove_prefix(std::min(state.size(), state.find('\n') + 1));
    if (!state.starts_with(module_line)) return 0;
    state.remove_prefix(module_line.size());
    return parse_number<u32>(state.substr(0, state.find('\n')), 10).value_or(0);
}

}  // namespace

Result<Dump> read_dump(const std::string& folder) {
    Dump dump;
    dump.folder = folder;
    const std::string path = folder + "/state";
    if (access(path.c_str(), F_OK) != 0 && access((folder + "/module.wasm").c_str(), F_OK) == 0)
        return Error{folder + ": choose one of the processes in it, such as " + folder + "/0"};
    const std::vector<u8> bytes = TRY(read_file(path));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    dump.module = TRY(load_file(folder + "/.." + module_name(module_of(text))));
    TRY(StateReader(dump).read(path, text));
    return dump;
}

Result<std::vector<u8>> read_dumped_memory(const Dump& dump, u32 memory, u64 address, u64 size) {
    const u64 all = dump.state.memories[memory].size;
    size = address < all ? std::min(size, all - address) : 0;
    std::string path = dump.folder + "/memory." + std::to_string(memory);
    host::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return file_error(path);
    std::vector<u8> bytes;
    while (bytes.size() < size) {
        u8 piece[4096];
        usize wanted = std::min<u64>(sizeof piece, size - bytes.size());
        ssize_t got = pread(file.get(), piece, wanted, off_t(address + bytes.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return file_error(path);
        if (got == 0) return Error{path + ": is shorter than the memory it is of"};
        bytes.insert(bytes.end(), piece, piece + got);
    }
    return bytes;
}

}  // namespace gpurun::engine
