// A CUDA driver without a GPU: device memory is the host's, a stream is a thread, and a kernel is a
// function of this process. As strict as the real one is where it counts: what waits for all work
// to end is noticed if there is some.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "abi/machine.h"
#include "device/cuda/cuda_driver.h"

namespace gpurun::device::cuda {

inline constexpr Status invalid_context = 201, launch_failed = 719;

// What a cooperative launch runs. False: it ended by a fault.
using FakeKernel = bool(const MachineParams& params);

struct FakeGpu {
    std::mutex mutex;
    std::condition_variable has_changed;
    // The mutex's.
    u32 pending = 0;            // operations of all streams
    bool has_failed = false;    // for good
    u32 stuck_calls = 0;        // that would not have returned
    u32 blocks = 0, lanes = 0;  // of the latest launch
    int watchdog = 0;

    static FakeGpu*& current() {
        static FakeGpu* gpu = nullptr;
        return gpu;
    }
};

class FakeStream {
public:
    FakeStream() : thread_([this] { work(); }) {}
    ~FakeStream() {
        push(nullptr);
        thread_.join();
    }
    void push(std::function<void()> operation) {
        FakeGpu& gpu = *FakeGpu::current();
        std::lock_guard lock(gpu.mutex);
        operations_.push_back(std::move(operation));
        gpu.pending++;
        gpu.has_changed.notify_all();
    }
    bool is_idle() const { return operations_.empty(); }

private:
    void work() {
        FakeGpu& gpu = *FakeGpu::current();
        std::unique_lock lock(gpu.mutex);
        for (bool is_open = true; is_open;) {
            gpu.has_changed.wait(lock, [&] { return !operations_.empty(); });
            std::function<void()> operation = operations_.front();
            lock.unlock();
            if (operation) operation();
            is_open = operation != nullptr;
            lock.lock();
            operations_.pop_front();
            gpu.pending--;
            gpu.has_changed.notify_all();
        }
    }

    std::deque<std::function<void()>> operations_;
    std::thread thread_;
};

// The mutex's.
struct FakeEvent {
    u32 recorded = 0, reached = 0;
};

inline thread_local DriverHandle fake_context = nullptr;

inline bool has_failed() {
    FakeGpu& gpu = *FakeGpu::current();
    std::lock_guard lock(gpu.mutex);
    return gpu.has_failed;
}
inline Status status_of_context() {
    if (!fake_context) return invalid_context;
    return has_failed() ? launch_failed : 0;
}
// For what waits until the device is idle.
inline Status wait_for_all() {
    FakeGpu& gpu = *FakeGpu::current();
    std::unique_lock lock(gpu.mutex);
    if (!gpu.has_changed.wait_for(lock, std::chrono::seconds(2), [&] { return gpu.pending == 0; }))
        gpu.stuck_calls++;
    return 0;
}

inline void fill_in(Driver& driver) {
    driver.version = 12000;
    driver.device_name.set([](char* name, int length, int) -> Status {
        std::strncpy(name, "fake", usize(length));
        return 0;
    });
    driver.device_attribute.set([](int* value, int attribute, int) -> Status {
        switch (attribute) {
            case attribute_multiprocessors: *value = 3; break;
            case attribute_kernel_timeout: *value = FakeGpu::current()->watchdog; break;
            case attribute_lanes_per_multiprocessor: *value = 2048; break;
            case attribute_capability_major: *value = 8; break;
            default: *value = 0;
        }
        return 0;
    });
    driver.device_memory.set([](usize* bytes, int) -> Status {
        *bytes = usize{1} << 30;
        return 0;
    });
    driver.memory_info.set([](usize* free, usize* total) -> Status {
        *free = *total = usize{1} << 30;
        return 0;
    });
    driver.context_retain.set([](DriverHandle* context, int) -> Status {
        *context = FakeGpu::current();
        return 0;
    });
    driver.context_release.set([](int) -> Status { return wait_for_all(); });
    driver.context_set.set([](DriverHandle context) -> Status {
        fake_context = context;
        return 0;
    });
    driver.memory_alloc.set([](DevicePointer* pointer, usize bytes) -> Status {
        *pointer = reinterpret_cast<u64>(std::calloc(1, bytes));
        return 0;
    });
    driver.memory_free.set([](DevicePointer pointer) -> Status {
        wait_for_all();
        std::free(reinterpret_cast<void*>(pointer));
        return 0;
    });
    driver.host_alloc.set([](void** pointer, usize bytes, unsigned) -> Status {
        *pointer = std::malloc(bytes);
        return 0;
    });
    driver.host_free.set([](void* pointer) -> Status {
        wait_for_all();
        std::free(pointer);
        return 0;
    });
    driver.host_device_pointer.set([](DevicePointer* pointer, void* host, unsigned) -> Status {
        *pointer = reinterpret_cast<u64>(host);
        return 0;
    });
    driver.copy_to_device.set(
        [](DevicePointer to, const void* from, usize bytes, DriverHandle) -> Status {
            std::memcpy(reinterpret_cast<void*>(to), from, bytes);
            return 0;
        });
    driver.fill_bytes.set(
        [](DevicePointer to, unsigned char value, usize bytes, DriverHandle) -> Status {
            std::memset(reinterpret_cast<void*>(to), value, bytes);
            return 0;
        });
    driver.stream_create.set([](DriverHandle* stream, unsigned) -> Status {
        *stream = new FakeStream;
        return 0;
    });
    driver.stream_destroy.set([](DriverHandle stream) -> Status {
        delete static_cast<FakeStream*>(stream);
        return 0;
    });
    driver.stream_query.set([](DriverHandle stream) -> Status {
        FakeGpu& gpu = *FakeGpu::current();
        std::lock_guard lock(gpu.mutex);
        if (gpu.has_failed) return launch_failed;
        return static_cast<FakeStream*>(stream)->is_idle() ? 0 : not_ready;
    });
    driver.stream_synchronize.set([](DriverHandle stream) -> Status {
        FakeGpu& gpu = *FakeGpu::current();
        std::unique_lock lock(gpu.mutex);
        gpu.has_changed.wait(lock, [&] { return static_cast<FakeStream*>(stream)->is_idle(); });
        return gpu.has_failed ? launch_failed : 0;
    });
    driver.event_create.set([](DriverHandle* event, unsigned) -> Status {
        *event = new FakeEvent;
        return 0;
    });
    driver.event_destroy.set([](DriverHandle event) -> Status {
        delete static_cast<FakeEvent*>(event);
        return 0;
    });
    driver.event_record.set([](DriverHandle handle, DriverHandle stream) -> Status {
        FakeGpu& gpu = *FakeGpu::current();
        auto* event = static_cast<FakeEvent*>(handle);
        u32 number = 0;
        {
            std::lock_guard lock(gpu.mutex);
            number = ++event->recorded;
        }
        static_cast<FakeStream*>(stream)->push([&gpu, event, number] {
            std::lock_guard lock(gpu.mutex);
            event->reached = number;
            gpu.has_changed.notify_all();
        });
        return status_of_context();
    });
    driver.event_synchronize.set([](DriverHandle handle) -> Status {
        FakeGpu& gpu = *FakeGpu::current();
        auto* event = static_cast<FakeEvent*>(handle);
        {
            std::unique_lock lock(gpu.mutex);
            gpu.has_changed.wait(lock, [&] { return event->reached == event->recorded; });
        }
        return status_of_context();
    });
    driver.stream_wait_value.set([](DriverHandle stream, DevicePointer at, u32 value,
                                    unsigned) -> Status {
        static_cast<FakeStream*>(stream)->push([at, value] {
            while (s32(__atomic_load_n(reinterpret_cast<u32*>(at), __ATOMIC_ACQUIRE) - value) < 0 &&
                   !has_failed())
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        });
        return status_of_context();
    });
    driver.launch_cooperative.set([](DriverHandle function, unsigned blocks, unsigned, unsigned,
                                     unsigned lanes, unsigned, unsigned, unsigned,
                                     DriverHandle stream, void** params) -> Status {
        FakeGpu& gpu = *FakeGpu::current();
        {
            std::lock_guard lock(gpu.mutex);
            gpu.blocks = blocks;
            gpu.lanes = lanes;
        }
        MachineParams copy = *static_cast<const MachineParams*>(params[0]);
        auto* kernel = reinterpret_cast<FakeKernel*>(function);
        static_cast<FakeStream*>(stream)->push([&gpu, copy, kernel] {
            if (kernel(copy)) return;
            std::lock_guard lock(gpu.mutex);
            gpu.has_failed = true;
        });
        return status_of_context();
    });
    driver.error_name.set([](Status, const char** name) -> Status {
        *name = "FAKE_ERROR";
        return 0;
    });
    driver.error_text.set([](Status, const char** text) -> Status {
        *text = "it failed";
        return 0;
    });
}

}  // namespace gpurun::device::cuda
