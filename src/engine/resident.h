// A resident machine from the host's side: boots it, brings it programs, asks it for processes and
// moves the bytes of their streams. One thread sleeps until the machine has something to say;
// nothing here looks into the machine's memory while it runs. For what has to be seen there the
// machine parks: files that are synced, processes that a fault ended, stacks for the profile.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "abi/machine.h"
#include "abi/wasi.h"
#include "device/device.h"
#include "engine/burst.h"
#include "host/console.h"
#include "host/mailbox.h"

namespace gpurun::engine {

// How a process ended that the host asked for.
struct ProcessEnding {
    u32 request = 0;
    std::optional<wasi::Errno> refusal;  // it never began; then the rest is not there
    bool is_stopped = false;             // the machine was stopped before; but for frames no more
                                         // is known
    u32 pid = 0, program = 0;
    Ending ending = Ending::exited;
    u32 code = 0;                               // exit code, trap or signal
    std::vector<Frame> frames;                  // of a fault or a stop, innermost first
    u64 started = 0, ended = 0, time_used = 0;  // ns of the device's clock; on lanes
};

// What became of Run::dump.
struct DumpReport {
    u32 written = 0;               // max_dumps at the most
    u64 faults = 0;                // processes that a fault ended, as far as the host was told
    std::optional<Error> problem;  // what kept states from being written
};

struct ResidentStats {
    MachineStats machine{};
    u64 launches = 0;                          // since boot
    double seconds = 0, host_cpu_seconds = 0;  // since boot; of this whole program
    std::map<std::string, u64> driver_calls;
};

class Resident {
public:
    using Deadline = std::optional<std::chrono::steady_clock::time_point>;
    // How long there is a stream: as long as the machine, or until the process that is spawned with
    // it and all that inherited it have closed it.
    enum class Use { always, once };

    // The numbers of a process's standard streams, of open_input and open_output.
    using Ends = std::array<std::optional<u32>, 3>;

    // Boots it, with what is of machines in a run; files and seed are those of all processes. What
    // the first process changes in writable directories is written back, unless the run is of many.
    // The device outlives it and is used for nothing else meanwhile.
    static Result<std::unique_ptr<Resident>> make(device::Device& device, const Run& run);
    Resident(const Resident&) = delete;
    Resident& operator=(const Resident&) = delete;
    ~Resident();

    // Brings programs, with their limits, tiers and who may stop that. Returns their numbers here;
    // there they go by their names. Any thread, as all below.
    // Where machine code cannot be loaded beside a kernel that runs, the machine parks meanwhile,
    // once for all of them and for those that other threads bring at that time. An Error: some of
    // them may be there.
    Result<std::vector<u32>> load(std::span<const Job> programs);
    Result<u32> load(const Job& program);
    std::string name_of(u32 program);  // empty: there is none of that number
    // Asks for a process of a program, with the arguments, environment, priority and fuel of a run:
    // less fuel than the program's, or another if that has some. Returns a number that comes back
    // in its ending.
    Result<u32> spawn(u32 program, const Run& run, const Ends& streams = {});
    // Ends a process, if the signal does that; 0: all there are.
    Result<void> kill(u32 pid, u32 signal);
    // The process of a request, once it has begun and until its ending was taken.
    std::optional<u32> pid_of(u32 request);
    // There and back.
    Result<std::chrono::nanoseconds> ping();

    // A stream that processes write to. `write` is called by threads of the machine, one at a time;
    // false: nobody reads it any more, and it is not called again.
    Result<u32> open_output(std::function<Result<bool>(std::string_view bytes)> write, Use use);
    // One that they read: these bytes; or what `read` brings, called by a thread of its own ahead
    // of what is read, as host::Streams has it.
    Result<u32> open_input(std::vector<u8> bytes, Use use);
    Result<u32> open_input(decltype(host::Streams::read) read, Use use);

    // The next ending that nobody has taken yet. Nothing: `deadline` came first, or `stop`.
    Result<std::optional<ProcessEnding>> next_ending(Deadline deadline,
                                                     const std::atomic<bool>* stop = nullptr);
    // Whether no process is left; all they wrote has come then. False: `deadline` came first, or
    // `stop`.
    Result<bool> wait_idle(Deadline deadline, const std::atomic<bool>* stop = nullptr);

    ResidentStats stats();
    DumpReport dumps();
    // The stacks that processes were seen with so far, all together. If there are several programs
    // their names are the outermost functions.
    std::vector<StackSample> samples();
    // Parks it, whatever it does, and writes back what the first process and those that share its
    // files changed. Then only what was taken from it is left.
    Result<void> stop();

private:
    struct Outgoing {
        MessageKind kind;
        std::vector<u8> head;
        std::shared_ptr<const std::vector<u8>> body;  // of which
        u64 begin = 0, size = 0;
    };
    struct LoadedProgram {
        std::string name, file;
        std::shared_ptr<const wasm::Module> module;
        Template made;
        Sampler sampler;
        std::optional<u64> fuel;
        bool is_answered = false;
        u32 error = 0;  // Errno
    };
    // One that is being brought.
    struct Loading {
        Job wanted;
        device::RunControl control;  // who may stop it
        device::Tier tier = device::Tier::interp;
        std::unique_ptr<LoadedProgram> program = {};
        ProgramInfo info = {};
        std::optional<Result<device::Burst>> made = {};  // its template as a burst of one
        u64 size = 0;                                    // of what is sent
    };
    struct Stream {
        // Output:
        std::function<Result<bool>(std::string_view bytes)> write;
        // Input: what is there yet to be sent, and how much went and was read.
        std::deque<std::vector<u8>> waiting;
        u64 front_used = 0;  // of the first
        u64 waiting_bytes = 0, sent = 0, taken = 0;
        Use use = Use::always;
        bool is_input = false, is_ended = false;
        bool is_begun = false;    // a process has it
        bool is_closed = false;   // the host's end
        bool has_reader = false;  // a thread that calls `read` for it
    };
    // A thread that brings input, as long as its stream is open and `read` has more.
    struct Reader {
        std::thread thread;
        std::shared_ptr<Stream> stream;
    };

    Resident(device::Device& device, const Run& run) : device_(device), run_(run) {}
    Result<void> boot();
    Result<void> begin();
    Result<std::unique_lock<std::mutex>> pause();
    void resume();
    Result<device::Tier> choose_tier(const Job& job, const device::RunControl& control);
    Result<device::Burst> make_program(Loading& loading);
    void take_in(std::span<Loading* const> all) noexcept;
    Result<u32> send_program(Loading& loading);
    Result<void> send_program(u32 number, ProgramInfo& info,
                              const std::shared_ptr<std::vector<u8>>& blob);
    Result<MachineHeader> lay_out_tables(const device::MachineShape& shape, SystemHeader& system);
    Result<void> make_pages();

    Result<u32> ask_for(u32 program, const Run& run, const Ends& streams);
    Result<void> post(Outgoing message);
    template <class T>
    Result<void> post(MessageKind kind, const T& head) {
        const u8* bytes = reinterpret_cast<const u8*>(&head);
        return post({kind, std::vector<u8>(bytes, bytes + sizeof head), nullptr, 0, 0});
    }
    Result<bool> send(const Outgoing& message);
    Result<void> flush();

    void pump();
    Result<void> take_messages();
    Result<void> handle(const host::Message& message);
    Result<void> handle_output(const host::Message& message);
    Result<void> handle_record(const DebugRecord& record);
    std::vector<Frame> frames_of(const LoadedProgram& program, const std::vector<u32>& positions);
    Result<void> handle_taken(const StreamBytes& taken);
    Result<void> send_block(const BlockRequest& wanted);
    Result<void> sync_files();
    Result<MachineHeader> read_header();
    // A task of the machine while it is parked.
    struct SeenTask {
        TaskEntry task;
        ProcessEntry process;
        LoadedProgram* program;
    };
    Result<SeenTask> read_task(const MachineHeader& header, u32 index);
    void dump(const MachineHeader& header, u32 task);
    Result<void> look_at_faults();
    void look_at_last_faults();
    void look_at_stopped();
    Result<std::vector<Frame>> frames_of_process(const MachineHeader& header, u32 pid);
    std::optional<std::chrono::steady_clock::time_point> ask_for_look();
    Result<void> look_at_stacks();
    Result<void> feed();
    Result<bool> feed(u32 number, Stream& stream);
    Result<bool> goes_on();
    void read_input(Stream& stream, const decltype(host::Streams::read)& read);
    void end_reader(std::list<Reader>::iterator reader);
    void join_readers();
    Result<u32> add_stream(std::shared_ptr<Stream> stream);
    Result<void> close(u32 number, Stream& stream);
    void fail(Error error) noexcept;
    bool is_calling_back() const;
    void add_stopped();
    Result<bool> await_park();
    Result<void> write_back();
    // `ready` is asked with the lock held. An Error: the machine is gone.
    template <class Ready>
    Result<bool> wait_for(Deadline deadline, const std::atomic<bool>* stop, Ready ready);

    device::Device& device_;
    const Run run_;
    std::optional<System> system_;
    std::unique_ptr<device::SystemMemory> pages_;
    u64 page_bytes_ = 0;
    std::unique_ptr<device::MachineRunner> machine_;
    std::optional<host::MailboxEnd> mailbox_;
    std::thread thread_;
    // The thread's.
    std::optional<DumpFolder> dump_folder_;
    bool is_looking_ = false;  // the machine parks, or is parked, for the profile
    std::chrono::steady_clock::time_point look_began_, next_look_;
    u64 looks_ = 0;
    enum : u32 { unlaunched, launched, not_launched };
    std::atomic<u32> launch_ = unlaunched;  // what the thread waits for
    std::mutex loading_;                    // whoever has it takes in all programs that are ready
    std::chrono::steady_clock::time_point booted_;
    double cpu_at_boot_ = 0;

    // Whoever takes messages handles them, so that they stay in their order.
    std::mutex taking_;
    std::optional<Error> taking_failed_;       // there will be no more
    std::vector<BlockRequest> syncs_, shown_;  // for when it has parked

    // Its own: who sends. What waits for room goes before what comes later.
    std::mutex sending_;
    std::deque<Outgoing> unsent_;
    std::atomic<bool> has_unsent_ = false;
    bool is_begun_ = false;  // it was launched: when there was something to send
    bool is_gone_ = false;   // nobody is there to send to
    std::optional<MachineStats> last_stats_;

    // The rest.
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Error> failure_;
    std::vector<std::unique_ptr<LoadedProgram>> programs_;
    std::vector<Loading*> ready_;  // to be taken in; of threads that want to have `loading_`
    std::vector<std::shared_ptr<Stream>> streams_;
    std::set<u32> inputs_;                      // whose ends are open here
    std::map<u64, u32> closing_;                // by the ping behind their last message
    std::vector<u32> free_streams_;             // whose numbers may be used again
    std::list<Reader> readers_, done_readers_;  // the latter only have to be joined
    u32 abandoned_ = 0;                         // of readers_: those whose streams are closed
    std::map<u32, u32> pids_;                   // by request
    std::deque<ProcessEnding> endings_;
    u32 next_request_ = 0;
    std::map<u32, std::vector<u32>> unanswered_;  // requests, and their streams
    bool is_idle_ = true;
    DumpReport dumps_;
    std::map<u32, std::vector<u32>> fault_positions_;   // by pid, until the host is told of its end
    std::map<u32, std::vector<Frame>> stopped_frames_;  // by request
    std::map<u64, std::chrono::steady_clock::time_point> pongs_;
    u64 next_ping_ = 1;
    std::atomic<bool> is_stopping_ = false, is_stopped_ = false;
    std::atomic<bool> wants_pause_ = false;
    bool is_paused_ = false;
    std::atomic<u64> launches_ = 0;
};

template <class Ready>
Result<bool> Resident::wait_for(Deadline deadline, const std::atomic<bool>* stop, Ready ready) {
    constexpr std::chrono::milliseconds look(20);  // at the stop request
    std::unique_lock lock(mutex_);
    for (;;) {
        if (ready()) return true;
        if (is_calling_back()) return Error{"a callback for output cannot wait for its machine"};
        if (failure_) return *failure_;
        if (is_stopping_) return Error{"the machine was stopped"};
        if (stop && stop->load(std::memory_order_relaxed)) return false;
        const auto now = std::chrono::steady_clock::now();
        if (deadline && now >= *deadline) return false;
        if (!deadline && !stop) {
            changed_.wait(lock);
            continue;
        }
        const auto next = now + look;
        changed_.wait_until(lock, !stop ? *deadline : deadline ? std::min(*deadline, next) : next);
    }
}

}  // namespace gpurun::engine
