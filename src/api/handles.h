// What the handles of gpurun.h are. The rest of this folder is the functions on them, a file for
// each kind of handle.
#pragma once

#include <gpurun/gpurun.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/spill.h"
#include "base/result.h"
#include "base/threads.h"
#include "device/device.h"
#include "engine/burst.h"
#include "engine/program.h"
#include "host/harvest.h"
#include "wasm/module.h"

struct gpurun_error {
    std::string message;
};

struct gpurun_device {
    std::unique_ptr<gpurun::device::Device> device;
    std::mutex running;
    bool has_machine = false;  // that lock's; then there is nothing else on it
};

struct gpurun_devices {
    std::vector<gpurun::device::DeviceInfo> infos;
    std::string missing;
};

struct gpurun_module : gpurun::engine::Program {};

struct gpurun_stop {
    std::shared_ptr<std::atomic<bool>> is_requested;
};

struct gpurun_call {
    gpurun::engine::HostCall& call;
};

// A configuration is the description of a run itself: setters write into what is handed down.
struct gpurun_config : gpurun::engine::Run {
    gpurun_config() { tier = gpurun::device::Tier::automatic; }
    std::string problem;  // the first of what a setter was given and could not use
};

struct gpurun_result {
    // Small: there may be millions. What few processes have stands in maps by their index.
    struct Process {
        const std::string* message = nullptr;  // in `messages`
        gpurun::u64 output_at[2] = {};         // in `bytes`, with a NUL after it
        gpurun::u64 output_size[2] = {};
        gpurun::u64 values_at = 0;  // in `values`
        gpurun::u32 value_count = 0;
        gpurun::u32 exit_code = 0;
        gpurun::Handle block = 0;  // in snapshot->arena
        gpurun_ending ending = GPURUN_RETURNED;
    };
    struct Files {
        std::vector<gpurun::host::Change> changes;
        std::vector<std::string> paths;  // as the guest names them
    };
    std::vector<Process> processes;
    std::set<std::string> messages;
    std::string bytes;
    gpurun::api::Spill::Mapped spilled;  // what is not in there
    std::vector<gpurun_value> values;
    std::unordered_map<gpurun::u32, std::vector<gpurun::engine::Frame>> frames;
    std::unordered_map<gpurun::u32, Files> files;
    double seconds = 0;
    std::string file_problem, dump_problem, output_problem;
    gpurun::u32 dumps = 0, slots = 1, launches = 0;
    gpurun::engine::LayoutChoice layout;
    double lanes_busy = 0, stop_seconds = -1;
    gpurun::u64 system_bytes = 0;
    gpurun::engine::NativeFacts native;
    std::vector<gpurun::engine::StackSample> stacks;
    gpurun::u64 machine_faults = 0;  // of a machine, whose processes are not here
    std::vector<std::string> debug;
    gpurun::u64 debug_dropped = 0;
    std::shared_ptr<const void> keeper;                        // what `snapshot` is part of
    const gpurun::engine::SystemSnapshot* snapshot = nullptr;  // only where files are kept
};

namespace gpurun::api {

gpurun_error* make_error(const std::string& message) noexcept;

// What `body` returns as an error of the interface. No exception leaves it: memory can run out
// wherever the standard library is used.
template <class Body>
gpurun_error* guarded(Body body) noexcept {
    try {
        Result<void> done = body();
        return done ? nullptr : make_error(done.error().to_string());
    } catch (...) {
        return make_error(caught_error().message);
    }
}

// While there is one this thread runs something on the device, or carries out a call of what runs
// there.
class Inside {
public:
    explicit Inside(const device::Device& device) : device_(device), outer_(innermost_) {
        innermost_ = this;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { innermost_ = outer_; }
    // An Error: this thread would wait for itself.
    static Result<void> check(const gpurun_device& device);

private:
    const device::Device& device_;
    const Inside* const outer_;
    static thread_local const Inside* innermost_;
};

// Whoever has it has the device to itself. After Inside::check.
class DeviceLock {
public:
    explicit DeviceLock(gpurun_device& device) : inside_(*device.device), lock_(device.running) {}

private:
    Inside inside_;
    std::lock_guard<std::mutex> lock_;
};

// ---- what a run gives to its result (collect.cpp) ----------------------------

// `is_stopped`: what did not end was asked to, rather than out of time.
void collect(engine::Completion completion, bool is_stopped, u32 index, gpurun_result& result);
void collect_message(std::string message, u32 index, gpurun_result& result);
void collect_output(int stream, std::string_view bytes, u32 index, gpurun_result& result);
void collect_records(const std::vector<DebugRecord>& records, gpurun_result& result);
// What the process changed; result.snapshot is where.
Result<void> collect_files(u32 index, gpurun_result& result);

// ---- values (value.cpp) ------------------------------------------------------------

gpurun_value to_c(const engine::Value& value);
// An Error: it has no type that can be passed.
Result<engine::Value> from_c(const gpurun_value& value);
Result<wasm::ValType> type_from_c(gpurun_type type);

}  // namespace gpurun::api
