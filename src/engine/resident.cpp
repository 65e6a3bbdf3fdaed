// Boots a machine, sends and takes messages, and runs the thread that handles them.
// (resident_programs.cpp has programs.)
#include "engine/resident.h"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "abi/ring.h"
#include "base/check.h"
#include "base/format.h"
#include "base/notes.h"
#include "base/threads.h"
#include "engine/images.h"
#include "engine/trace.h"
#include "host/harvest.h"

namespace gpurun::engine {
namespace {

using std::chrono::steady_clock;

constexpr u64 table_alignment = host::heap_alignment;
constexpr u64 slice_ns = 2'000'000;
constexpr std::chrono::milliseconds park_patience(5000);  // then the machine is given up

u64 align(u64 at, u64 to) { return (at + to - 1) / to * to; }

// Returns the time that this program has used, in user and system mode.
double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& time) {
        return double(time.tv_sec) + 1e-6 * double(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

u64 arena_bytes(const device::DeviceInfo& device) {
    constexpr u64 least = u64{1} << 30, most = u64{16} << 30;
    if (device.reserves_lazily) return std::min(u64{64} << 30, device.memory_total);
    return std::clamp(device.memory_free / 8, least, most) & ~(table_alignment - 1);
}

// Returns the strings with a NUL after each.
Result<std::string> joined(const std::vector<std::string>& strings, const char* what) {
    std::string all;
    for (const std::string& text : strings) {
        if (text.find('\0') != text.npos) return Error{format("%s with a NUL in it", what)};
        all += text;
        all += '\0';
    }
    return all;
}

}  // namespace

// ---- boot --------------------------------------------------------------------------

Result<std::unique_ptr<Resident>> Resident::make(device::Device& device, const Run& run) {
    if (!TRY(prepare(device, device::Mode::machine, run.stop_control())))
        return Error{"the machine was stopped before it began"};
    std::unique_ptr<Resident> made(new Resident(device, run));
    TRY(made->boot());
    return made;
}

// Places the machine's tables behind the base. Returns the header that says where they are.
Result<MachineHeader> Resident::lay_out_tables(const device::MachineShape& shape,
                                               SystemHeader& system) {
    const device::DeviceInfo& info = device_.info();
    MachineHeader header{};
    const u32 usual = info.reserves_lazily ? 16 << 10 : 128 << 10;
    header.process_count = run_.machine.processes ? run_.machine.processes : usual;
    header.task_count = run_.machine.threads ? run_.machine.threads : header.process_count;
    header.warp_count = shape.warps;
    header.lanes = shape.lanes;
    header.slice_ns = slice_ns;
    header.share = run_.machine.share;
    header.shows_faults = dump_folder_.has_value();
    u64 end = align(system.base_end, table_alignment);
    auto take = [&](u64 count, u64 size) {
        u64 at = end;
        end = align(end + count * size, table_alignment);
        return at;
    };
    system.machine = take(1, sizeof(MachineHeader));
    header.programs = take(max_programs, sizeof(ProgramEntry));
    header.processes = take(header.process_count, sizeof(ProcessEntry));
    header.tasks = take(header.task_count, sizeof(TaskEntry));
    header.deadlines = take(header.task_count, sizeof(u64));
    header.buckets = take(wait_buckets, sizeof(WaitBucket));
    header.warps = take(header.warp_count, sizeof(WarpEntry));
    header.host_streams = take(max_host_streams, sizeof(HostStream));
    system.base_end = system.bump = end;
    if (end > system.size)
        return Error{
            format("tables for %u processes take %llu MiB, there are %llu MiB of system "
                   "memory; ask for fewer",
                   header.process_count, (unsigned long long)(end >> 20),
                   (unsigned long long)(system.size >> 20))};
    return header;
}

Result<void> Resident::make_pages() {
    const device::DeviceInfo& info = device_.info();
    constexpr u64 slack = u64{64} << 20;  // what allocations are rounded up by
    const u64 used = system_->memory().size() + slack;
    const u64 left = info.memory_free - std::min(info.memory_free, used);
    // Takes half of the rest, so that others find some too.
    u64 bytes = info.reserves_lazily ? info.memory_total : left / 2;
    if (run_.machine.memory_bytes) bytes = run_.machine.memory_bytes;
    bytes &= ~(table_alignment - 1);
    PageHeader header{};
    header.pages = bytes >> page_shift;
    header.first_page =
        align(sizeof(PageHeader) + header.pages, u64{1} << page_shift) >> page_shift;
    if (header.first_page >= header.pages)
        return Error{
            format("%llu bytes are too few for programs and processes", (unsigned long long)bytes)};
    pages_ = TRY(device_.make_system(bytes));
    page_bytes_ = bytes;
    return write_value(*pages_, 0, header);
}

Result<void> Resident::boot() {
    // This comes first, since the free memory depends on it.
    const device::MachineShape shape = TRY(device_.machine_shape());
    const u32 share = run_.machine.share;
    if (share == 0 || share > 100)
        return Error{format("a share of %u%% is not from 1 to 100", share)};
    if (run_.dump) dump_folder_ = TRY(DumpFolder::make(*run_.dump));
    host::SystemOptions wanted =
        system_options(arena_bytes(device_.info()), run_, run_.stop_control());
    const u32 terminals = run_.streams.terminals(wanted.input != nullptr);
    wanted.environment = {};  // is each process's own, as is its input
    wanted.input = nullptr;
    // Larger files are loaded at the start too: a block of a cold file costs a message there and
    // back.
    wanted.warm_file = u64{16} << 20;
    wanted.warm_bytes = device_.info().capability != 0 ? u64{1} << 30 : u64{64} << 20;
    wanted.keeps_files =
        run_.many.processes == 0 && std::ranges::any_of(wanted.mounts, &host::Mount::is_writable);
    MachineHeader header{};
    u64 header_at = 0;
    auto place = [&](SystemHeader& system) -> Result<void> {
        header = TRY(lay_out_tables(shape, system));
        header_at = system.machine;
        return {};
    };
    system_ = TRY(System::make(device_, wanted, terminals, place));
    header.next_cold_block = system_->cold_blocks_begin();
    header.cold_blocks_end = system_->memory().size();
    TRY(write_value(system_->memory(), header_at, header));
    TRY(make_pages());
    machine_ = TRY(device_.make_machine(system_->memory(), *pages_));
    mailbox_.emplace(machine_->mailbox());
    mailbox_->set_share(share);
    machine_->set_spin(run_.machine.spin);
    // A failure is kept for the pump.
    machine_->set_answer([this] { (void)guarded([&] { return take_messages(); }); });
    booted_ = steady_clock::now();
    cpu_at_boot_ = cpu_seconds();
    return {};
}

// Launches the machine, with the first message: what programs need to have loaded before is loaded
// by then.
Result<void> Resident::begin() {
    if (is_begun_) return {};
    if (is_stopping_) return Error{"the machine was stopped"};
    // The thread is started first: a machine that is launched has one.
    launch_ = unlaunched;
    thread_ = TRY(start_thread("for the machine's messages", [this] {
        launch_.wait(unlaunched);
        if (launch_ == launched) pump();
    }));
    Result<void> begun = guarded([&] { return machine_->launch(); });
    launch_ = begun ? launched : not_launched;
    launch_.notify_all();
    if (!begun) {
        thread_.join();
        return begun;
    }
    launches_ = 1;
    is_begun_ = true;
    return {};
}

Resident::~Resident() {
    (void)guarded([&] { return stop(); });  // who wants to know of a failure has called stop()
}

Result<void> Resident::stop() {
    if (is_calling_back()) return Error{"a callback for output cannot stop its machine"};
    if (is_stopped_.exchange(true)) return {};
    {
        std::scoped_lock lock(sending_, mutex_);
        is_stopping_ = true;
        changed_.notify_all();
    }
    if (mailbox_) mailbox_->set_stop(stop_park);
    if (machine_) machine_->wake();
    if (thread_.joinable()) thread_.join();
    if (machine_) machine_->set_answer({});
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return readers_.empty(); });
    }
    join_readers();
    {
        std::lock_guard lock(sending_);
        is_gone_ = true;
        if (mailbox_) last_stats_ = mailbox_->stats();
    }
    // Threads that load programs have seen the stop by then, or will.
    std::lock_guard turn(loading_);
    // Files are written back however the machine ended, unless something still runs there.
    Result<bool> is_parked = guarded([&] { return await_park(); });
    machine_.reset();
    Result<void> written;
    if (!is_parked)
        written = is_parked.error();
    else if (*is_parked)
        written = guarded([&] { return write_back(); });
    if (failure_) written = *failure_;
    system_.reset();
    pages_.reset();
    add_stopped();
    return written;
}

// Adds endings for processes that the host has begun and that had none when the machine stopped.
void Resident::add_stopped() {
    std::lock_guard lock(mutex_);
    std::set<u32> requests;
    for (const auto& [request, pid] : pids_) requests.insert(request);
    for (const auto& [request, streams] : unanswered_) requests.insert(request);
    for (u32 request : requests) {
        ProcessEnding& stopped = endings_.emplace_back();
        stopped.request = request;
        stopped.is_stopped = true;
        if (auto frames = stopped_frames_.extract(request))
            stopped.frames = std::move(frames.mapped());
    }
    pids_.clear();
    unanswered_.clear();
}

// Waits until nothing runs any more. Returns false if there is no machine or it does not park.
Result<bool> Resident::await_park() {
    if (!machine_ || !mailbox_) return false;  // it was not even launched
    const auto give_up = steady_clock::now() + park_patience;
    for (;;) {
        const u32 bell = mailbox_->bell();
        if (TRY(machine_->has_parked())) return true;
        if (steady_clock::now() > give_up) return false;
        TRY(machine_->wait(bell, give_up));
    }
}

// Writes back changed files. The machine is parked, so the host can read its memory.
Result<void> Resident::write_back() {
    const Handle block = TRY(read_header()).kept_files;
    if (block == 0) return {};
    const SystemSnapshot snapshot = TRY(system_->finish(block));
    if (snapshot.files) return *snapshot.files;
    return {};
}

// ---- messages to the machine -------------------------------------------------------

Result<bool> Resident::send(const Outgoing& message) {
    std::span<const u8> body;
    if (message.body) body = std::span(*message.body).subspan(message.begin, message.size);
    return mailbox_->send(message.kind, message.head, body);
}

// Sends a message at once if there is room and no other waits; otherwise the thread sends it later.
Result<void> Resident::post(Outgoing message) {
    {
        std::lock_guard lock(sending_);
        if (is_gone_) return Error{"the machine was stopped"};
        TRY(begin());
        if (unsent_.empty() && TRY(send(message))) return {};
        unsent_.push_back(std::move(message));
        has_unsent_ = true;
        machine_->wake();
    }
    return {};
}

Result<void> Resident::flush() {
    std::lock_guard lock(sending_);
    while (!unsent_.empty() && TRY(send(unsent_.front()))) unsent_.pop_front();
    has_unsent_ = !unsent_.empty();
    return {};
}

// ---- processes ---------------------------------------------------------------------

std::string Resident::name_of(u32 program) {
    std::lock_guard lock(mutex_);
    return program < programs_.size() ? programs_[program]->name : "";
}

Result<u32> Resident::spawn(u32 program, const Run& run, const Ends& streams) {
    Result<u32> request = guarded([&] { return ask_for(program, run, streams); });
    if (request) return request;
    // The process was not started, so nobody will use these streams.
    std::lock_guard lock(mutex_);
    for (std::optional<u32> number : streams)
        if (number && *number < streams_.size() && streams_[*number]->use == Use::once)
            (void)close(*number, *streams_[*number]);
    return request;
}

Result<u32> Resident::ask_for(u32 program, const Run& run, const Ends& ends) {
    std::vector<std::string> given{run.program_name.value_or(name_of(program))};
    given.insert(given.end(), run.arguments.begin(), run.arguments.end());
    const std::string arguments = TRY(joined(given, "an argument")),
                      environment = TRY(joined(run.system.environment, "a variable"));
    SpawnRequest request{};
    std::vector<u32> streams;
    if (arguments.size() + environment.size() > max_message - sizeof request)
        return Error{
            format("arguments and environment of a process take %zu bytes, %zu is the "
                   "most",
                   arguments.size() + environment.size(), max_message - sizeof request)};
    request.program = program;
    request.argument_count = u32(given.size());
    request.argument_bytes = u32(arguments.size());
    request.environment_count = u32(run.system.environment.size());
    request.environment_bytes = u32(environment.size());
    request.priority = run.priority;
    request.fuel = run.limits.fuel.value_or(~u64{0});
    if (run.priority >= priorities) return Error{"a priority is 0, 1 or 2"};
    {
        std::lock_guard lock(mutex_);
        if (failure_) return *failure_;
        if (program >= programs_.size() || !programs_[program]->is_answered ||
            programs_[program]->error != 0)
            return Error{format("there is no program of number %u", program)};
        if (run.limits.fuel && !programs_[program]->fuel)
            return Error{"fuel is for processes of programs that were loaded with some"};
        for (u32 i = 0; i < 3; i++) {
            if (!ends[i]) continue;
            if (*ends[i] >= streams_.size())
                return Error{format("there is no stream of number %u", *ends[i])};
            // The process does not get a stream that has ended or that nobody reads.
            if (streams_[*ends[i]]->is_closed) continue;
            request.streams[i] = *ends[i] + 1;
            streams.push_back(*ends[i]);
        }
        request.request = next_request_++;
        unanswered_[request.request] = std::move(streams);
    }
    auto strings = std::make_shared<std::vector<u8>>(arguments.begin(), arguments.end());
    strings->insert(strings->end(), environment.begin(), environment.end());
    const u8* head = reinterpret_cast<const u8*>(&request);
    const u64 size = strings->size();
    Result<void> posted = guarded([&] {
        return post({MessageKind::spawn, std::vector<u8>(head, head + sizeof request),
                     std::move(strings), 0, size});
    });
    if (posted) return request.request;
    std::lock_guard lock(mutex_);
    unanswered_.erase(request.request);
    return posted.error();
}

Result<void> Resident::kill(u32 pid, u32 signal) {
    return post(MessageKind::kill, KillRequest{pid, signal});
}

std::optional<u32> Resident::pid_of(u32 request) {
    std::lock_guard lock(mutex_);
    auto found = pids_.find(request);
    return found == pids_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::chrono::nanoseconds> Resident::ping() {
    const auto begin = steady_clock::now();
    u64 number;
    {
        std::lock_guard lock(mutex_);
        number = next_ping_++;
    }
    TRY(post(MessageKind::ping, Ping{number}));
    TRY(wait_for({}, nullptr, [&] { return pongs_.contains(number); }));
    std::lock_guard lock(mutex_);
    return pongs_.extract(number).mapped() - begin;
}

// ---- the thread --------------------------------------------------------------------

void Resident::fail(Error error) noexcept {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    is_stopping_ = true;  // for those who read input
    changed_.notify_all();
}

// Parks the machine until resume(). If it was never launched, it is not launched either until the
// lock that is returned is released, since nobody can send anything.
Result<std::unique_lock<std::mutex>> Resident::pause() {
    std::unique_lock unlaunched(sending_);
    if (!is_begun_) return unlaunched;
    unlaunched.unlock();
    wants_pause_ = true;
    mailbox_->set_stop(stop_park);
    machine_->wake();
    TRY(wait_for({}, nullptr, [&] { return is_paused_; }));
    return unlaunched;
}

void Resident::resume() {
    if (!wants_pause_) return;
    std::lock_guard lock(mutex_);
    if (!is_stopping_) mailbox_->set_stop(stop_none);
    wants_pause_ = false;
    changed_.notify_all();
}

void Resident::pump() {
    constexpr std::chrono::microseconds retry(500);  // of what found no room
    std::optional<steady_clock::time_point> give_up;
    auto turn = [&]() -> Result<bool> {
        const u32 bell = mailbox_->bell();
        TRY(take_messages());
        TRY(feed());
        TRY(flush());
        join_readers();
        if (!TRY(goes_on())) return false;
        std::optional<steady_clock::time_point> deadline;
        if (has_unsent_) deadline = steady_clock::now() + retry;
        if (const auto look = ask_for_look())
            deadline = deadline ? std::min(*deadline, *look) : *look;
        if (is_stopping_ || wants_pause_) {
            if (!give_up) give_up = steady_clock::now() + park_patience;
            if (steady_clock::now() > *give_up) return Error{"the machine does not park"};
            deadline = deadline ? std::min(*deadline, *give_up) : *give_up;
        } else {
            give_up.reset();
        }
        TRY(machine_->wait(bell, deadline));
        return true;
    };
    for (;;) {
        Result<bool> done = guarded(turn);
        if (!done) return fail(std::move(done).error());
        if (!*done) return;
    }
}

// Launches a machine again that has parked by itself, or for a while. Returns false if it has
// ended.
Result<bool> Resident::goes_on() {
    if (!TRY(machine_->has_parked())) return true;
    TRY(take_messages());  // its last ones
    TRY(sync_files());
    TRY(look_at_faults());
    TRY(look_at_stacks());
    if (wants_pause_) {
        std::unique_lock lock(mutex_);
        is_paused_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !wants_pause_ || is_stopping_; });
        is_paused_ = false;
    }
    if (is_stopping_) {
        look_at_last_faults();
        look_at_stopped();
        return false;
    }
    // The machine may have parked for what was done just now. If it is to stay parked, another flag
    // says so.
    mailbox_->set_stop(stop_none);
    if (wants_pause_ || is_stopping_) mailbox_->set_stop(stop_park);
    launches_++;
    TRY(machine_->launch());
    return true;
}

Result<void> Resident::take_messages() {
    std::lock_guard lock(taking_);
    auto take_all = [&]() -> Result<void> {
        for (;;) {
            std::optional<host::Message> message = TRY(mailbox_->take());
            if (!message) return {};
            TRY(handle(*message));
        }
    };
    if (taking_failed_) return *taking_failed_;
    // After any failure a message may be lost, so it is final.
    Result<void> taken = guarded(take_all);
    if (taken) return taken;
    taking_failed_ = std::move(taken).error();
    return *taking_failed_;
}

Result<void> Resident::handle(const host::Message& message) {
    if (message.kind == MessageKind::output) return handle_output(message);
    if (message.kind == MessageKind::record) return handle_record(message.as<DebugRecord>());
    if (message.kind == MessageKind::want_block) {
        const auto wanted = message.as<BlockRequest>();
        if (has_bytes(wanted.block)) return send_block(wanted);
        (wanted.block == whole_process ? shown_ : syncs_).push_back(wanted);
        mailbox_->set_stop(stop_park);
        return {};
    }
    std::lock_guard lock(mutex_);
    switch (message.kind) {
        case MessageKind::program_ready: {
            const auto answer = message.as<ProgramNumber>();
            if (answer.number >= programs_.size())
                return host::damaged_mailbox("an unknown program");
            programs_[answer.number]->is_answered = true;
            programs_[answer.number]->error = answer.error;
            break;
        }
        case MessageKind::spawned: {
            const auto answer = message.as<SpawnAnswer>();
            auto request = unanswered_.extract(answer.request);
            if (!request) return host::damaged_mailbox("an unknown request");
            for (u32 number : request.mapped()) {
                Stream& stream = *streams_[number];
                // From now on a process has the stream.
                stream.is_begun |= answer.error == 0;
                if (answer.error != 0 && stream.use == Use::once) TRY(close(number, stream));
            }
            if (answer.error == 0) {
                pids_[answer.request] = answer.pid;
                is_idle_ = false;
            } else {
                ProcessEnding refused;
                refused.request = answer.request;
                refused.refusal = wasi::Errno(answer.error);
                endings_.push_back(refused);
            }
            break;
        }
        case MessageKind::ended: {
            const auto ended = message.as<EndedProcess>();
            if (ended.program >= programs_.size())
                return host::damaged_mailbox("an unknown program");
            ProcessEnding ending;
            ending.request = ended.request;
            ending.pid = ended.pid;
            ending.program = ended.program;
            ending.ending = ended.ending;
            ending.code = ended.code;
            if (ended.ending == Ending::trapped || ended.ending == Ending::out_of_fuel) {
                auto positions = fault_positions_.extract(ended.pid);
                ending.frames = frames_of(
                    *programs_[ended.program],
                    positions ? std::move(positions.mapped()) : std::vector<u32>{ended.trap_pc});
                dumps_.faults++;
            }
            ending.started = ended.started;
            ending.ended = ended.ended;
            ending.time_used = ended.time_used;
            pids_.erase(ended.request);
            endings_.push_back(std::move(ending));
            break;
        }
        case MessageKind::taken: TRY(handle_taken(message.as<StreamBytes>())); break;
        case MessageKind::pong: {
            const u64 number = message.as<Ping>().number;
            if (auto closed = closing_.extract(number))
                free_streams_.push_back(closed.mapped());
            else
                pongs_[number] = steady_clock::now();
            break;
        }
        case MessageKind::idle: is_idle_ = true; break;
        case MessageKind::broken: return Error{"the machine could not read its mailbox"};
        default: break;
    }
    changed_.notify_all();
    return {};
}

// Returns the frames that positions of a program's code belong to. The mutex is locked.
std::vector<Frame> Resident::frames_of(const LoadedProgram& program,
                                       const std::vector<u32>& positions) {
    std::vector<Frame> frames;
    for (u32 position : positions)
        if (std::optional<Frame> frame = program.made.store->frame_at(position))
            frames.push_back(std::move(*frame));
    return frames;
}

// Handles a record of a process. A child's fault is shown like that of a process that the host
// started, since its parent may not ask for it.
Result<void> Resident::handle_record(const DebugRecord& record) {
    if (record.kind != DebugKind::ended) {
        if (run_.take_line) run_.take_line(to_string(record));
        return {};
    }
    FaultEnding ended;
    std::memcpy(&ended, record.text, sizeof ended);
    std::lock_guard lock(mutex_);
    if (ended.program >= programs_.size()) return host::damaged_mailbox("an unknown program");
    if (ended.frame_count > max_fault_frames)
        return host::damaged_mailbox("more frames than a record has");
    std::vector<u32> positions(ended.positions, ended.positions + ended.frame_count);
    if (!ended.is_child) {
        fault_positions_[record.process] = std::move(positions);
        return {};
    }
    dumps_.faults++;
    const LoadedProgram& program = *programs_[ended.program];
    std::string text = format("%s, process %u: ", program.name.c_str(), record.process);
    if (Ending(ended.ending) == Ending::out_of_fuel)
        text += "out of fuel";
    else
        text += "trap: " + std::string(ended.code == 0 ? "an exception that nothing caught"
                                                       : to_string(Trap(ended.code)));
    const std::vector<Frame> frames = frames_of(program, positions);
    for (usize i = 0; i < frames.size(); i++) {
        if (i == max_fault_frames - 1) {
            text += "\n  ...";
            break;
        }
        std::string line =
            format("%4zu: %s (0x%x)", i, frames[i].function.c_str(), frames[i].wasm_offset);
        if (!frames[i].source.empty()) line += " at " + frames[i].source;
        std::ranges::replace(line, '\n', ' ');  // a module's names may have any characters
        text += "\n" + line;
    }
    note(text);
    return {};
}

// Sends a block of a cold file. Numbers come from the device, so they are checked in the host's own
// copy of the base before they are used.
Result<void> Resident::send_block(const BlockRequest& wanted) {
    BlockAnswer answer{};
    answer.task = wanted.task;
    answer.node = wanted.node;
    answer.block = wanted.block;
    auto bytes = [&]() -> Result<std::vector<u8>> {
        const Node node = TRY(host::node_at(system_->base().bytes(), wanted.node));
        if (node.kind != NodeKind::file || !(node.flags & node_is_cold))
            return Error{"not a file whose contents are with the host"};
        return system_->base().read_block(node.host_id, wanted.block);
    }();
    answer.error = bytes ? 0 : u32(wasi::Errno::io);
    auto body =
        std::make_shared<std::vector<u8>>(bytes ? std::move(*bytes) : std::vector<u8>(file_block));
    const u8* head = reinterpret_cast<const u8*>(&answer);
    return post({MessageKind::block, std::vector<u8>(head, head + sizeof answer), std::move(body),
                 0, file_block});
}

// Writes files through for tasks that wait for it. The machine is parked, so the host can read its
// memory.
Result<void> Resident::sync_files() {
    std::vector<BlockRequest> wanted;
    {
        std::lock_guard lock(taking_);
        wanted.swap(syncs_);
    }
    if (wanted.empty()) return {};
    const Handle kept_files = TRY(read_header()).kept_files;
    for (const BlockRequest& request : wanted) {
        BlockAnswer answer{};
        answer.task = request.task;
        answer.node = request.node;
        answer.block = request.block;
        if (kept_files != 0) {
            Result<void> written =
                sync_file(system_->memory(), kept_files, request.node, system_->base());
            if (!written) note(written.error().message);
            answer.error = written ? 0 : u32(wasi::Errno::io);
        }
        TRY(post(MessageKind::block, answer));
    }
    return {};
}

// ---- waiting -----------------------------------------------------------------------

Result<std::optional<ProcessEnding>> Resident::next_ending(Deadline deadline,
                                                           const std::atomic<bool>* stop) {
    using Answer = std::optional<ProcessEnding>;
    Answer taken;
    TRY(wait_for(deadline, stop, [&] {
        if (endings_.empty()) return false;
        taken = std::move(endings_.front());
        endings_.pop_front();
        return true;
    }));
    return taken;
}

Result<bool> Resident::wait_idle(Deadline deadline, const std::atomic<bool>* stop) {
    return wait_for(deadline, stop, [&] { return is_idle_ && unanswered_.empty(); });
}

ResidentStats Resident::stats() {
    ResidentStats stats;
    {
        std::lock_guard lock(sending_);
        if (!is_gone_) last_stats_ = mailbox_->stats();
        if (last_stats_) stats.machine = *last_stats_;
    }
    stats.machine.page_bytes = page_bytes_;  // known before the machine has said anything
    stats.launches = launches_;
    stats.seconds = std::chrono::duration<double>(steady_clock::now() - booted_).count();
    stats.host_cpu_seconds = cpu_seconds() - cpu_at_boot_;
    stats.driver_calls = device_.driver_calls();
    return stats;
}

}  // namespace gpurun::engine
