// A resident launch on an NVIDIA GPU: one cooperative kernel on a stream of its own, a mailbox in
// mapped host memory, and a doorbell. While the kernel runs, only those driver functions are called
// with which a thread sleeps until the bell's word has changed, or until the kernel's end. Any that
// frees memory or loads code would wait for that end.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/phases.h"
#include "device/cuda/cuda_device.h"

namespace gpurun::device {
namespace {

using std::chrono::steady_clock;

// How long to wait for a kernel that was told to park; it takes a fraction of that.
constexpr std::chrono::seconds patience(5);
// How long a launch runs where a display's watchdog ends kernels that take several seconds.
constexpr u64 watched_ns = 1'000'000'000;

// What a machine and its two threads share. The threads outlive the machine if a call of the driver
// does not return.
struct Signals {
    const Driver& driver;
    DriverHandle context = nullptr;
    DriverHandle bell_stream = nullptr, bell_event = nullptr, end_event = nullptr;
    u32* bell = nullptr;
    DevicePointer bell_at = 0;
    bool can_sleep = false;  // until the bell rings

    std::mutex mutex;
    std::condition_variable has_work;     // for the threads
    std::condition_variable has_changed;  // for whoever drives the machine
    // Guarded by the mutex.
    u32 threads = 0;
    std::function<void()> answer;
    bool is_answering = false;  // the listener, without the mutex
    bool is_asked = false;      // the listener sleeps until the bell is no longer `seen`, or will
    u32 seen = 0;
    bool is_woken = false;
    bool is_launched = false;  // the other thread sleeps until the launch has ended, or will
    bool is_ending = false;    // nobody is to listen any more
    bool has_ended = true;     // and nobody listens
    bool is_closing = false;   // the threads are to leave
    cuda::Status end_status = 0, bell_status = 0;

    explicit Signals(const Driver& of) : driver(of) {}

    u32 read_bell() const { return __atomic_load_n(bell, __ATOMIC_ACQUIRE); }

    // Rings the bell from the host. Only while no kernel runs, since the device expects no other
    // writer.
    void ring() { __atomic_store_n(bell, read_bell() + 1, __ATOMIC_RELEASE); }

    cuda::Status sleep_until_bell_is(u32 value) {
        constexpr unsigned or_greater = 0;  // by the difference: it may wrap
        cuda::Status status = driver.stream_wait_value(bell_stream, bell_at, value, or_greater);
        if (status == 0) status = driver.event_record(bell_event, bell_stream);
        return status == 0 ? driver.event_synchronize(bell_event) : status;
    }

    // Runs the listener thread, which sleeps on the bell when it is asked to. A ring while the host
    // is awake costs nothing then.
    void listen() {
        std::unique_lock lock = begin_thread();
        for (;;) {
            has_work.wait(lock, [&] { return is_asked || is_closing; });
            if (!is_asked) break;
            const u32 last = seen;
            lock.unlock();
            cuda::Status status = 0;
            if (can_sleep) status = sleep_until_bell_is(last + 1);
            // The driver cannot sleep on the bell, so this thread polls it.
            while (!can_sleep && read_bell() == last)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            lock.lock();
            is_asked = false;
            if (status != 0) bell_status = status;
            if (status == 0 && answer) answer_bell(lock);
            has_changed.notify_all();
        }
        end_thread();
    }

    void await_ends() {
        std::unique_lock lock = begin_thread();
        for (;;) {
            has_work.wait(lock, [&] { return is_launched || is_closing; });
            if (!is_launched) break;
            lock.unlock();
            cuda::Status status = driver.event_synchronize(end_event);
            lock.lock();
            is_launched = false;
            end_status = status;
            is_ending = true;
            // Calls that wait for all streams, such as freeing memory, would wait for the
            // listener's.
            if (is_asked) ring();
            if (status == 0) has_changed.wait_for(lock, patience, [&] { return !is_asked; });
            has_ended = true;
            has_changed.notify_all();
        }
        end_thread();
    }

private:
    // Calls the answer on this thread: waking another one for it would take about as long as the
    // bell itself.
    void answer_bell(std::unique_lock<std::mutex>& lock) {
        is_answering = true;
        const std::function<void()> now = answer;
        lock.unlock();
        now();
        lock.lock();
        is_answering = false;
    }

    std::unique_lock<std::mutex> begin_thread() {
        cuda::Status status = driver.context_set(context);
        std::unique_lock lock(mutex);
        if (status != 0) bell_status = status;
        threads++;
        has_changed.notify_all();
        return lock;
    }
    void end_thread() {
        threads--;
        has_changed.notify_all();
    }
};

class CudaMachineRunner final : public MachineRunner {
public:
    CudaMachineRunner(CudaDevice& device, const Kernel& kernel, DevicePointer system,
                      DevicePointer pages)
        : device_(device),
          driver_(device.driver()),
          kernel_(kernel),
          params_{system,
                  pages,
                  0,
                  device.info().has_watchdog ? watched_ns : 0,
                  device.native_stack_bytes(codegen::Target::cuda_machine),
                  0},
          signals_(std::make_shared<Signals>(driver_)) {}

    ~CudaMachineRunner() override {
        driver_.context_set(device_.context());
        if (!threads_.empty() && !end()) {
            device_.give_up();
            for (std::thread& thread : threads_) thread.detach();
            return;
        }
        for (std::thread& thread : threads_) thread.join();
        if (signals_->bell_event) driver_.event_destroy(signals_->bell_event);
        if (signals_->end_event) driver_.event_destroy(signals_->end_event);
        if (signals_->bell_stream) driver_.stream_destroy(signals_->bell_stream);
        if (stream_) driver_.stream_destroy(stream_);
        if (mailbox_) driver_.host_free(mailbox_);
    }

    Result<void> create() {
        constexpr unsigned portable = 1, device_mapped = 2;
        constexpr unsigned blocking_sync = 1, disable_timing = 2;
        Signals& s = *signals_;
        s.context = device_.context();
        TRY(check(driver_.context_set(s.context), "using the context"));
        void* memory = nullptr;
        TRY(check(driver_.host_alloc(&memory, sizeof(Mailbox), portable | device_mapped),
                  "allocating the mailbox"));
        mailbox_ = static_cast<Mailbox*>(memory);
        std::memset(memory, 0, sizeof(Mailbox));
        TRY(check(driver_.host_device_pointer(&params_.mailbox, memory, 0), "mapping the mailbox"));
        s.bell = &mailbox_->bell;
        s.bell_at = params_.mailbox + offsetof(Mailbox, bell);
        TRY(check(driver_.stream_create(&stream_, non_blocking_stream), "creating a stream"));
        TRY(check(driver_.stream_create(&s.bell_stream, non_blocking_stream), "creating a stream"));
        for (DriverHandle* event : {&s.bell_event, &s.end_event})
            TRY(check(driver_.event_create(event, blocking_sync | disable_timing),
                      "creating an event"));
        // Drivers before 11.7 cannot sleep on a word, and others may refuse. This first wait also
        // lets the driver set up what it needs for one before a kernel runs.
        s.can_sleep = driver_.stream_wait_value && s.sleep_until_bell_is(s.read_bell()) == 0;
        threads_.emplace_back([signals = signals_] { signals->listen(); });
        threads_.emplace_back([signals = signals_] { signals->await_ends(); });
        std::unique_lock lock(s.mutex);
        s.has_changed.wait(lock, [&] { return s.threads == threads_.size(); });
        return check(s.bell_status, "using the context");
    }

    Mailbox& mailbox() override { return *mailbox_; }

    Result<void> launch() override {
        Signals& s = *signals_;
        {
            std::lock_guard lock(s.mutex);
            if (!s.has_ended) return Error{"the machine is running already"};
        }
        PhaseTimer timer(Phase::run);
        TRY(check(driver_.context_set(s.context), "using the context"));
        // Another stream may still be writing the machine's memory.
        TRY(device_.synchronize("preparing the launch"));
        void* arguments[] = {&params_};
        TRY(check(driver_.launch_cooperative(kernel_.function, blocks(), 1, 1, block_lanes, 1, 1, 0,
                                             stream_, arguments),
                  "launching the resident kernel"));
        device_.count_launch();
        if (cuda::Status status = driver_.event_record(s.end_event, stream_); status != 0) {
            take_back();
            return check(status, "launching the resident kernel");
        }
        std::lock_guard lock(s.mutex);
        s.has_ended = s.is_ending = false;
        s.is_launched = true;
        s.has_work.notify_all();
        return {};
    }

    Result<void> wait(u32 seen, std::optional<steady_clock::time_point> deadline) override {
        Signals& s = *signals_;
        if (spin_.count() > 0) {
            auto end = steady_clock::now() + spin_;
            if (deadline && *deadline < end) end = *deadline;
            while (s.read_bell() == seen && steady_clock::now() < end) {
            }
        }
        std::unique_lock lock(s.mutex);
        auto is_over = [&] {
            return s.read_bell() != seen || s.is_woken || s.has_ended || s.bell_status != 0;
        };
        while (!is_over()) {
            if (!s.is_asked && !s.is_ending) {
                s.is_asked = true;
                s.seen = seen;
                s.has_work.notify_all();
            }
            if (!deadline) {
                s.has_changed.wait(lock);
            } else if (s.has_changed.wait_until(lock, *deadline) == std::cv_status::timeout) {
                break;
            }
        }
        s.is_woken = false;
        return device_.check_end(s.bell_status, "waiting for the bell");
    }

    void set_answer(std::function<void()> answer) override {
        std::unique_lock lock(signals_->mutex);
        signals_->answer = std::move(answer);
        if (!signals_->answer)
            signals_->has_changed.wait(lock, [&] { return !signals_->is_answering; });
    }

    void set_spin(std::chrono::microseconds time) override { spin_ = time; }

    void wake() override {
        std::lock_guard lock(signals_->mutex);
        signals_->is_woken = true;
        signals_->has_changed.notify_all();
    }

    Result<NativeEntries> use_native(std::span<const NativePart> parts, u64 code_words) override {
        TRY(check(driver_.context_set(signals_->context), "using the context"));
        native_.push_back(
            {{parts.begin(), parts.end()}, TRY(device_.upload_entries(parts, code_words))});
        return native_.back().entries.addresses;
    }

    Result<bool> has_parked() override {
        std::lock_guard lock(signals_->mutex);
        if (!signals_->has_ended) return false;
        TRY(device_.check_end(signals_->end_status, "running the resident kernel"));
        return true;
    }

private:
    struct Native {
        std::vector<NativePart> parts;
        UploadedEntries entries;
    };

    Result<void> check(cuda::Status status, const char* what) const {
        return driver_.check(status, what);
    }

    // Returns as many blocks as can be resident at once: with more, some would wait for the end of
    // others.
    u32 blocks() const {
        return kernel_.blocks_per_multiprocessor * device_.info().multiprocessors;
    }

    // Waits until a stream is empty. Returns false if that takes too long.
    bool drain(DriverHandle stream) const {
        const auto end = steady_clock::now() + patience;
        while (driver_.stream_query(stream) == cuda::not_ready) {
            if (steady_clock::now() >= end) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    }

    // Parks a launch whose end no thread would notice.
    void take_back() {
        const u32 stop = __atomic_exchange_n(&mailbox_->stop, stop_park, __ATOMIC_ACQ_REL);
        if (drain(stream_)) __atomic_store_n(&mailbox_->stop, stop, __ATOMIC_RELEASE);
    }

    // Parks the launch and ends the threads. Returns false if they do not end.
    bool end() {
        Signals& s = *signals_;
        __atomic_store_n(&mailbox_->stop, stop_park, __ATOMIC_RELEASE);
        std::unique_lock lock(s.mutex);
        bool has_ended = s.has_changed.wait_for(lock, patience, [&] { return s.has_ended; });
        s.is_closing = true;
        s.has_work.notify_all();
        if (!has_ended || !s.has_changed.wait_for(lock, patience, [&] { return s.threads == 0; }))
            return false;
        lock.unlock();
        // Both streams are usually empty now, unless the driver failed to wait for one of them.
        if (!drain(stream_)) return false;
        s.ring();
        return drain(s.bell_stream);
    }

    CudaDevice& device_;
    const Driver& driver_;
    const Kernel kernel_;
    MachineParams params_;
    std::shared_ptr<Signals> signals_;
    Mailbox* mailbox_ = nullptr;
    DriverHandle stream_ = nullptr;
    std::vector<Native> native_;  // of programs
    std::vector<std::thread> threads_;
    std::chrono::microseconds spin_{0};
};

}  // namespace

Result<std::unique_ptr<MachineRunner>> make_cuda_machine(CudaDevice& device, const Kernel& kernel,
                                                         DevicePointer system,
                                                         DevicePointer pages) {
    auto machine = std::make_unique<CudaMachineRunner>(device, kernel, system, pages);
    TRY(machine->create());
    return std::unique_ptr<MachineRunner>(std::move(machine));
}

Result<MachineShape> CudaDevice::machine_shape() {
    TRY(check(driver_.context_set(context_), "using the context"));
    const Kernel* kernel = TRY(native_kernel(codegen::Target::cuda_machine));
    // The driver takes local memory for all lanes that could ever be resident, at the launch, and
    // some for itself.
    const u32 stack =
        std::max(kernel->local_bytes, native_stack_bytes(codegen::Target::cuda_machine));
    const u64 free = TRY(free_memory()), local = u64(stack) * info_.lanes;
    info_.memory_free = free - std::min(free, local + free / 64);
    return MachineShape{
        kernel->blocks_per_multiprocessor * info_.multiprocessors * (block_lanes / warp_lanes),
        warp_lanes};
}

Result<std::unique_ptr<MachineRunner>> CudaDevice::make_machine(SystemMemory& system,
                                                                SystemMemory& pages) {
    PhaseTimer timer(Phase::prepare);
    TRY(check(driver_.context_set(context_), "using the context"));
    const Kernel* kernel = TRY(native_kernel(codegen::Target::cuda_machine));
    return make_cuda_machine(*this, *kernel, address_of(&system), address_of(&pages));
}

}  // namespace gpurun::device
