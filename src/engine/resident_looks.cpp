// Looks at a machine that is parked: dumps processes that a fault ended, samples stacks of those
// that ran, and finds where those were that a stop ends.
#include <algorithm>
#include <cstddef>
#include <ranges>

#include "base/format.h"
#include "base/threads.h"
#include "engine/resident.h"

namespace gpurun::engine {
namespace {

using std::chrono::steady_clock;

// How often stacks are sampled. Parking and launching again takes about a millisecond.
constexpr std::chrono::milliseconds look_every(10);

Error damaged(const char* what) { return {format("the machine's memory is damaged: %s", what)}; }

// Reads a memory, or returns an Error if the range is not in it. The machine wrote the numbers.
Result<void> read_checked(device::SystemMemory& memory, u64 offset, std::span<u8> bytes,
                          const char* what) {
    if (bytes.size() > memory.size() || offset > memory.size() - bytes.size()) return damaged(what);
    return memory.read(offset, bytes);
}

template <class T>
Result<T> read_entry(device::SystemMemory& memory, u64 table, u64 index, const char* what) {
    T entry;
    TRY(read_checked(memory, table + index * sizeof(T),
                     {reinterpret_cast<u8*>(&entry), sizeof entry}, what));
    return entry;
}

// A task of a parked machine: its words, and the memories of its process.
class TaskMemory final : public device::ProcessMemory {
public:
    TaskMemory(device::SystemMemory& pages, const TaskEntry& task, const ProcessEntry& process)
        : pages_(pages), words_at_(task.words_at), bytes_at_(process.bytes_at) {}

    Result<void> read_words(u32 index, std::span<u32> words) override {
        return read_checked(pages_, words_at_ + u64(index) * sizeof(u32),
                            {reinterpret_cast<u8*>(words.data()), words.size_bytes()},
                            "words of a process");
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        return read_checked(pages_, bytes_at_ + offset, bytes, "memories of a process");
    }

private:
    device::SystemMemory& pages_;
    u64 words_at_, bytes_at_;
};

}  // namespace

Result<MachineHeader> Resident::read_header() {
    const SystemHeader system = TRY(read_value<SystemHeader>(system_->memory(), 0));
    return read_entry<MachineHeader>(system_->memory(), system.machine, 0, "its tables");
}

Result<Resident::SeenTask> Resident::read_task(const MachineHeader& header, u32 index) {
    SeenTask seen;
    seen.task = TRY(read_entry<TaskEntry>(system_->memory(), header.tasks, index, "a task"));
    seen.process = TRY(read_entry<ProcessEntry>(system_->memory(), header.processes,
                                                seen.task.process, "a process"));
    std::lock_guard lock(mutex_);
    if (seen.process.program >= programs_.size()) return damaged("the program of a process");
    seen.program = programs_[seen.process.program].get();
    return seen;
}

// ---- dumps -------------------------------------------------------------------------

// Dumps the process of a task. A failure is reported with the dumps, and nothing else fails.
void Resident::dump(const MachineHeader& header, u32 index) {
    {
        std::lock_guard lock(mutex_);
        if (!dump_folder_ || dumps_.problem || dumps_.written >= max_dumps) return;
    }
    Result<void> written = guarded([&]() -> Result<void> {
        SeenTask seen = TRY(read_task(header, index));
        TaskMemory memory(*pages_, seen.task, seen.process);
        const u32 program = seen.process.program;
        TRY(dump_folder_->add_module(program, seen.program->file, *seen.program->module));
        std::unique_lock lock(mutex_);
        const ProcessSnapshot state = TRY(seen.program->made.store->capture(memory));
        lock.unlock();
        const bool is_child = seen.process.parent != host_parent;
        return dump_folder_->write(is_child ? seen.process.pid : seen.process.request, state,
                                   memory, program);
    });
    std::lock_guard lock(mutex_);
    if (written)
        dumps_.written++;
    else
        dumps_.problem = std::move(written).error();
}

// Dumps the processes that wait for it, and lets them end.
Result<void> Resident::look_at_faults() {
    std::vector<BlockRequest> shown;
    {
        std::lock_guard lock(taking_);
        shown.swap(shown_);
    }
    if (shown.empty()) return {};
    const MachineHeader header = TRY(read_header());
    for (const BlockRequest& request : shown) {
        dump(header, request.task);
        BlockAnswer answer{};
        answer.task = request.task;
        answer.block = request.block;
        TRY(post(MessageKind::block, answer));
    }
    std::unique_lock lock(mutex_);
    const bool is_enough = dumps_.problem || dumps_.written >= max_dumps;
    lock.unlock();
    if (!is_enough) return {};
    const SystemHeader system = TRY(read_value<SystemHeader>(system_->memory(), 0));
    return write_value<u32>(system_->memory(),
                            system.machine + offsetof(MachineHeader, shows_faults), 0);
}

// Dumps the processes whose requests the machine could not send before it was stopped.
void Resident::look_at_last_faults() {
    if (!dump_folder_) return;
    Result<void> looked = guarded([&]() -> Result<void> {
        const MachineHeader header = TRY(read_header());
        const RunQueue& queue = header.host_requests;
        for (u32 ticket = queue.head; s32(queue.tail - ticket) > 0; ticket++) {
            const u32 index = u32(
                TRY(read_entry<u64>(*pages_, queue.slots_at, ticket & queue.mask, "its requests")));
            const SeenTask seen = TRY(read_task(header, index));
            const Handle call = seen.task.call != 0 ? seen.task.call : seen.process.block;
            const auto state = TRY(read_entry<CallState>(system_->memory(), offset_of(call), 0,
                                                         "a call of a process"));
            if (state.request == Request::show) dump(header, index);
        }
        return {};
    });
    std::lock_guard lock(mutex_);
    if (!looked && !dumps_.problem) dumps_.problem = std::move(looked).error();
}

DumpReport Resident::dumps() {
    std::lock_guard lock(mutex_);
    return dumps_;
}

// ---- what was stopped --------------------------------------------------------------

// Returns the frames of a process's first thread, or none if it has not begun or has ended.
Result<std::vector<Frame>> Resident::frames_of_process(const MachineHeader& header, u32 pid) {
    constexpr usize max_frames = 100, max_threads = 100;
    if (header.process_count == 0) return damaged("its processes");
    const auto process = TRY(read_entry<ProcessEntry>(system_->memory(), header.processes,
                                                      pid % header.process_count, "a process"));
    std::optional<SeenTask> first;
    u32 next = process.pid == pid ? process.first_task : 0;
    for (usize i = 0; i < max_threads && next != 0; i++) {
        SeenTask seen = TRY(read_task(header, next - 1));
        next = seen.task.next_of_process;
        if (!first || seen.task.tid < first->task.tid) first = std::move(seen);
    }
    if (!first || first->task.is_fresh) return std::vector<Frame>();
    TaskMemory memory(*pages_, first->task, first->process);
    std::lock_guard lock(mutex_);
    return frames_of(*first->program,
                     TRY(first->program->made.store->stack_positions(memory, max_frames)));
}

// Finds where processes are that the host has started and that a stop will end. Those for which
// that fails are left out.
void Resident::look_at_stopped() {
    constexpr usize most = 1000;  // nobody should wait for more
    (void)guarded([&]() -> Result<void> {
        std::unique_lock lock(mutex_);
        const std::map<u32, u32> pids = pids_;
        lock.unlock();
        const MachineHeader header = TRY(read_header());
        for (const auto& [request, pid] : pids | std::views::take(most)) {
            std::vector<Frame> frames = TRY(frames_of_process(header, pid));
            lock.lock();
            stopped_frames_[request] = std::move(frames);
            lock.unlock();
        }
        return {};
    });
}

// ---- the profile -------------------------------------------------------------------

// Parks the machine to sample stacks when it is time for that. Returns when that is, or nothing if
// there is no profile.
std::optional<steady_clock::time_point> Resident::ask_for_look() {
    if (!run_.is_profiled || is_looking_ || is_stopping_ || wants_pause_) return {};
    const auto now = steady_clock::now();
    {
        std::lock_guard lock(mutex_);
        if (is_idle_) return {};
    }
    if (next_look_ == steady_clock::time_point()) next_look_ = now + look_every;
    if (now < next_look_) return next_look_;
    is_looking_ = true;
    look_began_ = now;
    mailbox_->set_stop(stop_park);
    return {};
}

// Samples stacks of tasks that were on lanes when the machine parked for that.
Result<void> Resident::look_at_stacks() {
    if (!is_looking_) return {};
    is_looking_ = false;
    const MachineHeader header = TRY(read_header());
    std::vector<TaskEntry> tasks(std::min(header.tasks_used, header.task_count - 1));
    TRY(read_checked(system_->memory(), header.tasks + sizeof(TaskEntry),
                     {reinterpret_cast<u8*>(tasks.data()), tasks.size() * sizeof(TaskEntry)},
                     "its tasks"));
    std::vector<u32> running;
    for (u32 i = 0; i < tasks.size(); i++)
        if (tasks[i].was_on_lane && tasks[i].state == TaskState::ready) running.push_back(i + 1);
    const device::Sampled chosen = device::choose_sampled(running.size(), looks_++);
    for (usize i = chosen.first; i < running.size(); i += chosen.step) {
        SeenTask seen = TRY(read_task(header, running[i]));
        TaskMemory memory(*pages_, seen.task, seen.process);
        std::lock_guard lock(mutex_);
        TRY(seen.program->sampler.look(*seen.program->made.store, memory, chosen.step));
    }
    const auto now = steady_clock::now();
    next_look_ = now + device::sample_pause(look_every, now - look_began_);
    return {};
}

std::vector<StackSample> Resident::samples() {
    std::lock_guard lock(mutex_);
    MergedSamples all;
    for (const auto& program : programs_)
        if (program->made.store)
            all.add(program->sampler.samples(*program->made.store),
                    programs_.size() > 1 ? program->name : "");
    return all.samples();
}

}  // namespace gpurun::engine
