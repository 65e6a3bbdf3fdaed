// Where processes run: the CPU, or a GPU. The host reads and writes a process's memory by index,
// never by pointer.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/burst.h"
#include "abi/layout.h"
#include "abi/machine.h"
#include "abi/system.h"
#include "base/result.h"
#include "codegen/codegen.h"
#include "codegen/quick.h"

namespace gpurun::device {

// How threads run.
enum class Tier : u8 {
    interp,
    native,     // machine code where there is some
    automatic,  // the interpreter; machine code once there is some
    alternate,  // both, in turns at every suspension point: to test that
    early,      // automatic, but as if machine code came after the first instructions: to test that
    partial,    // native, but every other function is interpreted where machine code comes piece by
                // piece, and that is made as for lanes of a warp; some of those have quick code: to
                // test all that
    quick,      // quick code of all functions, and nothing better: to test that
};

// An image as a device has loaded it, and the position of the code that it is machine code of.
class NativeCode {
public:
    virtual ~NativeCode() = default;
};
struct NativePart {
    std::shared_ptr<const NativeCode> code;
    u32 begin = 0;
};
// Makes functions of a module that were compiled as quick code usable on the CPU.
std::shared_ptr<const NativeCode> use_quick_code(
    std::shared_ptr<const codegen::QuickCode> code,
    std::vector<codegen::QuickCode::Function> functions);
// Does the long part of loading an image beforehand, so that loading is quick. Any thread may call
// it, whatever runs on the device, and even after the device is gone.
using Assembler = std::function<void(const codegen::Image& image)>;

// What threads did since the last look at them, from which follows what is worth compiling.
struct Activity {
    u32 position = 0;  // where a thread stands; 0: nothing is known
    std::vector<u32>
        missed;      // functions without machine code that machine code called, some of them
    u64 misses = 0;  // and how many there were
};

struct DeviceInfo {
    std::string id;  // "cpu", "cuda:0"
    std::string name;
    std::string driver;       // version, or empty
    u32 capability = 0;       // 75 is 7.5; 0 on the CPU
    u32 multiprocessors = 0;  // cores on the CPU
    u32 lanes = 0;            // that can be resident at once
    u32 warp_lanes = 1;       // that run in lockstep
    u32 block_lanes = 1;      // that a multiprocessor is given at a time
    u64 memory_total = 0, memory_free = 0;
    bool has_watchdog = false;
    bool reserves_lazily = false;  // untouched memory costs nothing
    bool has_layouts = false;      // memories of a burst lie as Burst::layout says
};

// Memory of a device that the host has taken over to read it.
struct TakenMemory {
    std::span<const u8> bytes;
    std::shared_ptr<const void> keeper = {};  // of the bytes
};

// System memory (abi/system.h): all zero at first.
class SystemMemory {
public:
    virtual ~SystemMemory() = default;
    virtual u64 size() const = 0;
    virtual Result<void> write(u64 offset, std::span<const u8> bytes) = 0;
    virtual Result<void> read(u64 offset, std::span<u8> bytes) = 0;
    // Reads `count` numbers, each `stride` bytes behind the one before, that a process may write
    // meanwhile. What it wrote before them can be read then.
    virtual Result<std::vector<u64>> load_shared(u64 offset, u64 stride, u64 count) = 0;
    // Writes a number that a process may read meanwhile. What was read before it can be
    // overwritten.
    virtual Result<void> store_shared(u64 offset, u64 value) = 0;
    // Gives the first `size` bytes to the host, without a copy where none is needed. Nothing but
    // the destructor may be called afterwards.
    virtual Result<TakenMemory> take(u64 size) = 0;
};

// How much a Space reserves, and what it runs with.
struct Sizes {
    u64 code_words = 0;
    u64 words = 0;
    u64 bytes = 0;
    bool is_watched = false;         // runtime/memory/watch.h: checked after every run
    SystemMemory* system = nullptr;  // of the same device; outlives the space
    Tier tier = Tier::interp;
};

// How a run may be interrupted and observed.
struct RunControl {
    const std::atomic<bool>* stop = nullptr;
    std::optional<std::chrono::steady_clock::time_point> deadline;
    // A run returns after that time, still ready. That is not counted as a stop.
    std::chrono::microseconds slice{0};
    // Called from time to time, by one thread at a time, with how many processes of a burst have
    // ended at least. May be empty.
    std::function<void(u64 ended)> progress = {};
    // Called from time to time while processes of a burst run, on devices with layouts, with how
    // many have not begun. Once it returns true, those never do. Empty: all begin.
    std::function<bool(u64 left)> is_enough = {};

    bool wants_stop() const {
        return (stop && stop->load(std::memory_order_relaxed)) ||
               (deadline && std::chrono::steady_clock::now() >= *deadline);
    }
};

// The memory of a process that stands still. Callers keep ranges inside the sizes.
class ProcessMemory {
public:
    virtual ~ProcessMemory() = default;
    virtual Result<void> read_words(u32 index, std::span<u32> words) = 0;
    virtual Result<void> read_bytes(u64 offset, std::span<u8> bytes) = 0;
};

// The memory of one process, with the code memory it runs from.
class Space : public ProcessMemory {
public:
    // All memory is zero at first. Callers keep ranges inside the sizes.
    virtual Result<void> write_code(u32 position, std::span<const u64> words) = 0;
    virtual Result<void> read_code(u32 position, std::span<u64> words) = 0;
    virtual Result<void> write_words(u32 index, std::span<const u32> words) = 0;
    virtual Result<void> write_bytes(u64 offset, std::span<const u8> bytes) = 0;
    // Lets threads run by more machine code from now on. They go on from where they stand.
    virtual Result<void> use_native(const NativePart& part) = 0;
    // Returns what a thread that stands still did since the last call. Empty where nobody compiles
    // functions one by one.
    virtual Activity activity(u32 thread) = 0;

    // Runs a thread until it ends, blocks or is interrupted; the latter leaves it `ready`.
    virtual Result<ThreadState> run(u32 thread, const RunControl& control) = 0;
    // Runs a thread as run() does, for at most `count` instructions of code.
    virtual Result<ThreadState> step(u32 thread, u64 count) = 0;
};

// A process of a burst that waits for the host, and its linear memories.
class WaitingProcess : public ProcessMemory {
public:
    virtual u32 id() const = 0;  // among those of its burst
    virtual Handle block() const = 0;
    virtual Result<void> write_bytes(u64 offset, std::span<const u8> bytes) = 0;
};

// A memory of a process that has not begun.
struct BurstMemory {
    u32 record = 0;        // word index
    std::vector<u8> data;  // what it begins with; the rest is zero
};

// Many processes of one template, each with arguments of its own, run to their end. Its words and
// memories are as large as they may get; a device may give a process less until it needs more
// (burst/slot_layout.h). Several bursts may be ranges of a larger one.
struct Burst {
    std::vector<u64> code;
    std::vector<u32> words;  // of one process, before it begins: all but the stack, which is last
    std::vector<BurstMemory> memories;
    u32 stack_slots = 0;
    u32 thread = 0;  // word index
    u32 processes = 0;
    u32 first = 0;  // number of the first process: more than 0 if it is a range of a larger burst
    u32 whole = 0;  // processes of that, which lanes and slots are shared out for; 0: no others
    u32 argument_words = 0, result_words = 0;
    std::vector<u32> arguments;      // argument_words for each process of the larger burst
    SystemMemory* system = nullptr;  // of the same device; each process begins there
    // Fulfils a process's request; the process goes on afterwards.
    std::function<Result<void>(WaitingProcess& process)> serve;
    // Looks at a process that trapped, if thread_is_looked_at says so in its words. Returns false
    // once enough have been seen.
    std::function<Result<bool>(WaitingProcess& process, u32 id)> look;
    // Looks at the stack of a process that ran just before and stands still. Called from time to
    // time, by one thread at a time. The process stands for `times` of them (choose_sampled).
    std::function<Result<void>(ProcessMemory& process, u32 times)> sample;
    std::vector<NativePart> native;
    // Machine code that was made while the burst runs. late_native() is called from time to time,
    // by one thread at a time.
    struct Late {
        std::vector<NativePart> parts;
        bool is_last = false;  // no more will come
    };
    std::function<Late(const Activity& activity)> late_native;
    Tier tier = Tier::interp;
    Layout layout = Layout::linear;  // the same for all parts of a launch; for GPUs
    bool is_watched = false;         // runtime/memory/watch.h: checked when a process ends
    u32 spoilt = ~u32{0};            // the process that fails its check, to test that

    u32 end() const { return first + processes; }
    u32 planned() const { return std::max(whole, processes); }
    // Returns the number of words of a process's result (abi/burst.h).
    u32 result_stride() const { return result_first + result_words; }
};

// Chooses which of `count` processes are looked at: every `step`th from `first` on, so that looking
// takes little time however many there are. Each `turn` chooses others.
struct Sampled {
    u32 first = 0, step = 1;
};
inline Sampled choose_sampled(u64 count, u64 turn) {
    constexpr u64 most = 64;
    const u64 step = std::max<u64>(1, (count + most - 1) / most);
    return {u32(turn % step), u32(step)};
}
// Returns how long processes run until everything parks for the next look at them: `least`, or a
// multiple of the time that the last look took.
inline std::chrono::nanoseconds sample_pause(std::chrono::nanoseconds least,
                                             std::chrono::nanoseconds took) {
    return std::max(least, 4 * took);
}

// Results of the processes of a burst, without those at its end that never began because of
// RunControl::is_enough.
struct BurstResults {
    u32 stride = 0;  // Burst::result_stride()
    std::vector<u32> words;
    std::span<const u32> of(u32 process) const {
        return {words.data() + usize(process) * stride, stride};
    }
};

struct BurstOutcome {
    std::vector<BurstResults> parts;
    double seconds = 0;                  // from launch to end
    double kernel_seconds = 0;           // without what it takes to launch, if the device tells
    std::optional<double> stop_seconds;  // from the request to stop to the end
    u32 slots = 0, launches = 0;
    bool has_outgrown = false;  // processes needed larger slots than they began in
    Layout layout = Layout::linear;
    double busy = 0;  // share of the lanes' time in which they had a process
};

// The number of warps of a resident launch, and of their lanes.
struct MachineShape {
    u32 warps = 0;  // service warps too (abi/machine.h)
    u32 lanes = 0;  // of each
};

// Drives a machine: launches it, waits for it, and wakes whoever waits. The host talks to the
// machine by way of its mailbox. One thread at a time drives it; any may call wake().
class MachineRunner {
public:
    virtual ~MachineRunner() = default;  // parks the machine first
    virtual Mailbox& mailbox() = 0;
    // Launches the machine, for the first time or after it has parked, which it does by itself
    // where the device has a watchdog. Leaves a request to stop in the mailbox as it is.
    virtual Result<void> launch() = 0;
    // Sleeps until the bell is no longer `seen`, somebody calls wake(), the launch has ended, or
    // `deadline`. A wake() that nobody waited for ends the next wait at once.
    virtual Result<void> wait(u32 seen,
                              std::optional<std::chrono::steady_clock::time_point> deadline) = 0;
    // Sets a function that is called as soon as the bell rings while wait() sleeps, where a thread
    // of this object wakes wait(): that thread calls it first. With an empty function, none is
    // called any more once this returns. Must not be called from that function.
    virtual void set_answer(std::function<void()> answer) = 0;
    // Sets how long wait() looks at the bell before it sleeps, which is 0 at first.
    virtual void set_spin(std::chrono::microseconds time) = 0;
    virtual void wake() = 0;
    // Returns where code of a program can be entered natively. Not to be called while the launch
    // runs, unless Device::loads_beside_machine().
    virtual Result<NativeEntries> use_native(std::span<const NativePart> parts, u64 code_words) = 0;
    // Returns true if the launch has ended, and before the first one, or an Error that says what
    // went wrong with it.
    virtual Result<bool> has_parked() = 0;
};

// What a device runs: a process alone, many to their end, or a machine.
enum class Mode : u8 { space, burst, machine };

// What a device has done so far. All 0 on the CPU, whose memory is the host's.
struct Usage {
    u64 launches = 0;                 // of kernels
    u64 bytes = 0, peak_bytes = 0;    // device memory that is allocated, and the most at once
    u64 bytes_in = 0, bytes_out = 0;  // copied to it and from it
};

// Counts of kernels of the runtime, and of machine code for GPUs, so far.
struct KernelCounts {
    u64 loaded = 0;     // kernels that were loaded
    u64 shipped = 0;    // of these, machine code that the binary carries
    u64 refused = 0;    // machine code that the binary carries and the driver did not load
    u64 assembled = 0;  // times that the driver assembled PTX, of kernels and of images
};

class Device {
public:
    virtual ~Device() = default;
    virtual const DeviceInfo& info() const = 0;
    virtual const Usage& usage() const = 0;
    // Returns how often this process called each function of the device's driver, by name. Empty on
    // the CPU.
    virtual std::map<std::string, u64> driver_calls() const = 0;
    // Returns counts that are all 0 on the CPU.
    virtual KernelCounts kernel_counts() const = 0;
    // Loads what runs of this thread need, so that it does not count against their time limits.
    // Assembling kernels takes seconds the first time.
    virtual Result<void> prepare(Mode mode) = 0;
    // Returns a function that does the long part of prepare(), or nothing if none is long. Any
    // thread may call it, even after the device is gone. For bursts it is about kernels of that
    // layout; prepare() loads those of linear ones.
    virtual std::function<void()> kernel_assembler(Mode mode, Layout layout) const = 0;
    virtual Result<std::unique_ptr<SystemMemory>> make_system(u64 size) = 0;
    virtual Result<std::unique_ptr<Space>> make_space(const Sizes& sizes) = 0;
    // Returns what images are compiled for that run in `mode`; bursts differ by their layout.
    virtual codegen::Target target(Mode mode, Layout layout) const = 0;
    // Loads an image that was compiled for `target`, one of this device's. `loaded` is an earlier
    // part of the module's image where machine code comes piece by piece, which it does on the CPU
    // alone, or null: the two call each other.
    virtual Result<std::shared_ptr<const NativeCode>> load_native(const codegen::Image& image,
                                                                  codegen::Target target,
                                                                  const NativeCode* loaded) = 0;
    // Returns true if machine code can come while something runs here: by Space::use_native() and
    // Burst::late_native.
    virtual bool takes_late_native() const = 0;
    // Returns true if images can be loaded, and memory be allocated, while a machine runs.
    virtual bool loads_beside_machine() const = 0;
    // Returns what does the long part of loading images for `target`, or nothing if none is long.
    virtual Assembler assembler(codegen::Target target) const = 0;
    // Returns the shape of a resident launch on this device. From then on info().memory_free is
    // what its system memory and page memory may take.
    virtual Result<MachineShape> machine_shape() = 0;
    // Makes the runner of a machine whose memory the host has written; both memories outlive it.
    virtual Result<std::unique_ptr<MachineRunner>> make_machine(SystemMemory& system,
                                                                SystemMemory& pages) = 0;
    // Runs all parts in one launch to the end of their processes.
    virtual Result<BurstOutcome> run_burst(std::span<const Burst> parts,
                                           const RunControl& control) = 0;
};

Result<std::unique_ptr<Space>> make_cpu_space(const Sizes& sizes);

// Opens a device by its name: "cpu", "cuda", "cuda:1", or "auto", which is a GPU if there is one.
Result<std::unique_ptr<Device>> open_device(std::string_view id);

// Returns the devices on this machine. `missing` says why there is no GPU, if there is none.
std::vector<DeviceInfo> list_devices(std::string& missing);

}  // namespace gpurun::device
