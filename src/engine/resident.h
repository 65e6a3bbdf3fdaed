// Runs a resident machine from the host: boots it, sends it programs, starts processes and moves
// the bytes of their streams. One thread sleeps until the machine sends a message. Nothing here
// reads the machine's memory while it runs: the machine parks for files that are synced, for
// processes that a fault ended, and for stacks that are profiled.
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

// How a process ended that the host had started.
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

// How many states Run::dump has written.
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
    // How long a stream exists: as long as the machine, or until the process that is spawned with
    // it and all that inherited it have closed it.
    enum class Use { always, once };

    // The numbers of a process's standard streams, which open_input() and open_output() returned.
    using Ends = std::array<std::optional<u32>, 3>;

    // Boots a machine with the machine's options of a run; its files and seed are those of all
    // processes. What the first process changes in writable directories is written back, unless the
    // run is of many. The device outlives the machine and is used for nothing else meanwhile.
    static Result<std::unique_ptr<Resident>> make(device::Device& device, const Run& run);
    Resident(const Resident&) = delete;
    Resident& operator=(const Resident&) = delete;
    ~Resident();

    // Loads programs, each with its limits and tier, under the control of its run. Returns their
    // numbers here; on the machine they go by their names. Any thread may call this and all that
    // follows. Where machine code cannot be loaded beside a running kernel, the machine parks
    // meanwhile, once for all of them and for those that other threads load at that time. After an
    // Error some of them may be loaded.
    Result<std::vector<u32>> load(std::span<const Job> programs);
    Result<u32> load(const Job& program);
    std::string name_of(u32 program);  // empty: there is none of that number
    // Starts a process of a program, with the arguments, environment, priority and fuel of a run.
    // That fuel may be less than the program's, or another amount if the program has some. Returns
    // the number that its ending will have.
    Result<u32> spawn(u32 program, const Run& run, const Ends& streams = {});
    // Sends a signal to a process, or to all if `pid` is 0. Some signals end it.
    Result<void> kill(u32 pid, u32 signal);
    // Returns the pid of the process that a request started, from its beginning until its ending is
    // taken.
    std::optional<u32> pid_of(u32 request);
    // Returns how long a message takes to the machine and back.
    Result<std::chrono::nanoseconds> ping();

    // Opens a stream that processes write to. Threads of this object call `write`, one at a time.
    // If it returns false nobody reads the stream any more, and it is not called again.
    Result<u32> open_output(std::function<Result<bool>(std::string_view bytes)> write, Use use);
    // Open a stream that processes read: these bytes, or what `read` returns, which is as in
    // host::Streams. A thread of its own calls it, ahead of the processes.
    Result<u32> open_input(std::vector<u8> bytes, Use use);
    Result<u32> open_input(decltype(host::Streams::read) read, Use use);

    // Waits for the next ending that nobody has taken yet. Returns nullopt if `deadline` or `stop`
    // came first.
    Result<std::optional<ProcessEnding>> next_ending(Deadline deadline,
                                                     const std::atomic<bool>* stop = nullptr);
    // Waits until no process is left and all their output has come. Returns false if `deadline` or
    // `stop` came first.
    Result<bool> wait_idle(Deadline deadline, const std::atomic<bool>* stop = nullptr);

    ResidentStats stats();
    DumpReport dumps();
    // Returns all stacks that processes were seen with so far. If there are several programs, their
    // names are the outermost functions.
    std::vector<StackSample> samples();
    // Parks the machine, whatever it does, and writes back what the first process and those that
    // share its files changed. Afterwards only endings and samples can be asked for.
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
    // A program that is being loaded.
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
        // For output:
        std::function<Result<bool>(std::string_view bytes)> write;
        // For input: bytes that are still to be sent, and how many were sent and were read.
        std::deque<std::vector<u8>> waiting;
        u64 front_used = 0;  // of the first
        u64 waiting_bytes = 0, sent = 0, taken = 0;
        Use use = Use::always;
        bool is_input = false, is_ended = false;
        bool is_begun = false;    // a process has it
        bool is_closed = false;   // the host's end
        bool has_reader = false;  // a thread that calls `read` for it
    };
    // A thread that reads input, as long as its stream is open and `read` has more.
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
    // A task of the machine, as seen while that is parked.
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
    // Waits until `ready` returns true, which is called with the lock held. Returns an Error if the
    // machine is gone.
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
    // Used by the machine's thread alone.
    std::optional<DumpFolder> dump_folder_;
    bool is_looking_ = false;  // the machine parks, or is parked, for the profile
    std::chrono::steady_clock::time_point look_began_, next_look_;
    u64 looks_ = 0;
    enum : u32 { unlaunched, launched, not_launched };
    std::atomic<u32> launch_ = unlaunched;  // what the thread waits for
    std::mutex loading_;                    // whoever has it takes in all programs that are ready
    std::chrono::steady_clock::time_point booted_;
    double cpu_at_boot_ = 0;

    // Held while messages are taken and handled, so that they stay in order.
    std::mutex taking_;
    std::optional<Error> taking_failed_;       // there will be no more
    std::vector<BlockRequest> syncs_, shown_;  // for when it has parked

    // Held while messages are sent. Those that wait for room go before later ones.
    std::mutex sending_;
    std::deque<Outgoing> unsent_;
    std::atomic<bool> has_unsent_ = false;
    bool is_begun_ = false;  // it was launched: when there was something to send
    bool is_gone_ = false;   // nobody is there to send to
    std::optional<MachineStats> last_stats_;

    // Guards all that follows.
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
