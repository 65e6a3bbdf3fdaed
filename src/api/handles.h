// What the handles of gpurun.h are. The rest of this folder is the functions on them, a file for
// each kind of handle.
#pragma once

#include <gpurun/gpurun.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "engine/burst.h"
#include "engine/host_function.h"
#include "engine/program.h"
#include "host/harvest.h"
#include "wasm/module.h"

struct gpurun_error {
    std::string message;
};

struct gpurun_device {
    std::unique_ptr<gpurun::device::Device> device;
    std::mutex running;
};

struct gpurun_devices {
    std::vector<gpurun::device::DeviceInfo> infos;
    std::string missing;
};

struct gpurun_module {
    std::shared_ptr<const gpurun::wasm::Module> module;
    std::string name;
};

struct gpurun_stop {
    std::shared_ptr<std::atomic<bool>> is_requested;
};

struct gpurun_call {
    gpurun::engine::HostCall& call;
};

struct gpurun_config {
    std::string function = "_start";
    std::vector<std::string> arguments, environment;
    std::optional<std::string> program_name;
    std::vector<gpurun::host::Mount> mounts;
    std::vector<gpurun::engine::HostFunction> functions;
    std::optional<std::vector<gpurun::u8>> input;
    gpurun_input input_callback = nullptr;
    void* input_data = nullptr;
    gpurun_output output_callback = nullptr;
    void* output_data = nullptr;
    bool inherits_streams = false;
    gpurun::u32 processes = 0, first_number = 0;
    // Processes with something of their own. Numbers are given when they run.
    std::vector<gpurun::host::ProcessInput> own;
    std::optional<gpurun::u32> stack_slots, heap_words;
    std::optional<gpurun::u64> memory_bytes, fuel, seed;
    std::optional<double> timeout;
    std::shared_ptr<std::atomic<bool>> stop;
    bool keeps_files = false;
    std::string problem;  // the first of what a setter was given and could not use
};

struct gpurun_result {
    struct Process {
        gpurun_ending ending = GPURUN_RETURNED;
        bool is_initialising = false;
        gpurun::u32 exit_code = 0;
        std::string message;
        std::vector<gpurun::engine::Frame> frames;
        std::vector<gpurun_value> values;
        std::vector<std::string> value_texts;
        std::string output[2];
        std::vector<gpurun::host::Change> files;
        std::vector<std::string> paths;  // of files, as the guest names them
        gpurun::Handle block = 0;        // in left.arena
    };
    std::vector<Process> processes;
    double seconds = 0;
    std::string file_problem;
    std::vector<std::string> debug;
    gpurun::u64 debug_dropped = 0;
    std::shared_ptr<const void> keeper;              // what `left` is part of
    const gpurun::engine::Leavings* left = nullptr;  // only where files are kept
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
    } catch (const std::exception& exception) {
        return make_error(exception.what());
    }
}

gpurun_value to_c(const engine::Value& value);
// An Error: it has no type that can be passed.
Result<engine::Value> from_c(const gpurun_value& value);
Result<wasm::ValType> type_from_c(gpurun_type type);

}  // namespace gpurun::api
