// The host's side of a resident launch on CUDA, with a driver that has no GPU: what ends a wait,
// parking, faults, and which driver functions are called while a kernel runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/cuda/cuda_device.h"
#include "fake_cuda.h"

namespace gpurun::device {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// What a message says that these kernels understand: mailbox().in_tail.
constexpr u64 leave = 1, fail = 2, ring_me = 3;

void ring(Mailbox* mailbox) {
    __atomic_store_n(&mailbox->bell, mailbox->bell + 1, __ATOMIC_RELEASE);
}

// Answers every message by the bell.
bool answer(const MachineParams& params) {
    auto* mailbox = reinterpret_cast<Mailbox*>(params.mailbox);
    const auto end = steady_clock::now() + std::chrono::nanoseconds(params.until);
    while (__atomic_load_n(&mailbox->stop, __ATOMIC_ACQUIRE) == stop_none) {
        u64 message = __atomic_load_n(&mailbox->in_tail, __ATOMIC_ACQUIRE);
        if (message == leave || message == fail) return message == leave;
        if (message != mailbox->in_head) {
            mailbox->in_head = message;
            ring(mailbox);
        }
        if (params.until != 0 && steady_clock::now() >= end) break;
        std::this_thread::sleep_for(100us);
    }
    return true;
}

// Does not do as it is told.
bool disobey(const MachineParams&) {
    for (;;) std::this_thread::sleep_for(1s);
}

struct CudaMachineTest : testing::Test {
    cuda::FakeGpu gpu;
    cuda::Driver driver;
    std::unique_ptr<CudaDevice> device;
    std::unique_ptr<MachineRunner> machine;

    CudaMachineTest() {
        cuda::FakeGpu::current() = &gpu;
        cuda::fill_in(driver);
    }
    ~CudaMachineTest() override {
        machine.reset();
        device.reset();
        EXPECT_EQ(gpu.stuck_calls, 0u);
    }
    void make(cuda::FakeKernel* run = answer) {
        device = std::make_unique<CudaDevice>(&driver, 0);
        Result<void> opened = device->open();
        ASSERT_TRUE(opened) << opened.error().to_string();
        Kernel kernel;
        kernel.function = reinterpret_cast<DriverHandle>(run);
        kernel.blocks_per_multiprocessor = 2;
        auto made = make_cuda_machine(*device, kernel, 0, 0);
        ASSERT_TRUE(made) << made.error().to_string();
        machine = std::move(*made);
    }
    void launch() {
        Result<void> launched = machine->launch();
        ASSERT_TRUE(launched) << launched.error().to_string();
    }
    u32 bell() const { return __atomic_load_n(&machine->mailbox().bell, __ATOMIC_ACQUIRE); }
    void send(u64 message) {
        __atomic_store_n(&machine->mailbox().in_tail, message, __ATOMIC_RELEASE);
    }
    void stop(u32 how) { __atomic_store_n(&machine->mailbox().stop, how, __ATOMIC_RELEASE); }
    double milliseconds_of_wait(u32 seen, std::optional<steady_clock::duration> limit) {
        auto begin = steady_clock::now();
        std::optional<steady_clock::time_point> deadline;
        if (limit) deadline = begin + *limit;
        EXPECT_TRUE(machine->wait(seen, deadline));
        return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
    }
    void wait_until_parked() {
        const auto limit = steady_clock::now() + 10s;
        while (!*machine->has_parked()) {
            ASSERT_LT(steady_clock::now(), limit);
            ASSERT_TRUE(machine->wait(bell(), limit));
        }
    }
    void exchange_messages(u32 count) {
        for (u32 i = 0; i < count; i++) {
            u32 seen = bell();
            u64 message = machine->mailbox().in_tail == ring_me ? ring_me + 1 : ring_me;
            send(message);
            while (bell() == seen) ASSERT_LT(milliseconds_of_wait(seen, 10s), 9000);
            ASSERT_EQ(machine->mailbox().in_head, message);
        }
    }
};

TEST_F(CudaMachineTest, FillsTheDeviceAndParks) {
    make();
    EXPECT_TRUE(*machine->has_parked());
    launch();
    EXPECT_FALSE(*machine->has_parked());
    EXPECT_FALSE(machine->launch());
    stop(stop_park);
    wait_until_parked();
    EXPECT_EQ(gpu.blocks, 6u);
    EXPECT_EQ(gpu.lanes, block_lanes);
    EXPECT_EQ(device->usage().launches, 1u);
}

TEST_F(CudaMachineTest, DestructionParks) {
    make();
    launch();
    machine.reset();
    EXPECT_EQ(gpu.pending, 0u);
}

TEST_F(CudaMachineTest, NeverLaunched) { make(); }

TEST_F(CudaMachineTest, BellEndsWait) {
    make();
    launch();
    exchange_messages(50);
    machine->set_spin(100us);
    exchange_messages(50);
}

TEST_F(CudaMachineTest, BellMayWrap) {
    make();
    machine->mailbox().bell = ~u32{0} - 5;
    launch();
    exchange_messages(20);
}

TEST_F(CudaMachineTest, BellOfADriverThatCannotWaitForIt) {
    driver.stream_wait_value.set(nullptr);
    make();
    launch();
    exchange_messages(20);
    (void)milliseconds_of_wait(bell(), 5ms);  // the listener is left with it
}

TEST_F(CudaMachineTest, BellOfADriverThatMayNotWaitForIt) {
    driver.stream_wait_value.set([](DriverHandle, DevicePointer, u32, unsigned) { return 801; });
    make();
    launch();
    exchange_messages(20);
}

TEST_F(CudaMachineTest, DeadlineEndsWait) {
    make();
    launch();
    double waited = milliseconds_of_wait(bell(), 50ms);
    EXPECT_GE(waited, 50);
    EXPECT_LT(waited, 5000);
    // The listener still sleeps; what it hears then is for the next wait.
    exchange_messages(10);
    machine->set_spin(10s);
    EXPECT_LT(milliseconds_of_wait(bell(), 10ms), 5000);
}

// Whoever waits finds it done; nobody does it once it is not wanted any more.
TEST_F(CudaMachineTest, TheBellIsAnsweredBeforeTheWaitEnds) {
    make();
    std::atomic<u32> answers = 0, answered = 0;
    machine->set_answer([&] {
        answers++;
        std::this_thread::sleep_for(1ms);
        answered = bell();
    });
    launch();
    u32 ended_early = 0;
    for (u32 i = 0; i < 20; i++) {
        const u32 seen = bell();
        std::thread waiting([&] {
            (void)milliseconds_of_wait(seen, 10s);
            ended_early += answered == seen;
        });
        std::this_thread::sleep_for(5ms);
        send(i % 2 == 0 ? ring_me : ring_me + 1);
        waiting.join();
        ASSERT_NE(bell(), seen);
    }
    EXPECT_GT(answers, 0u);
    EXPECT_LT(ended_early, 10u);  // by threads that came to wait when it had rung
    (void)milliseconds_of_wait(bell(), 2ms);
    send(leave);
    machine->set_answer({});
    const u32 before = answers;
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(answers, before);
}

TEST_F(CudaMachineTest, WakeEndsWait) {
    make();
    launch();
    machine->wake();
    EXPECT_LT(milliseconds_of_wait(bell(), 10s), 9000);
    EXPECT_GE(milliseconds_of_wait(bell(), 20ms), 20);
    std::thread other([&] {
        std::this_thread::sleep_for(20ms);
        machine->wake();
    });
    EXPECT_LT(milliseconds_of_wait(bell(), std::nullopt), 60000);
    other.join();
}

// Once it has parked nothing of it is in the way of what waits for all streams.
TEST_F(CudaMachineTest, ParksWithTheListenerAsleepAndGoesOn) {
    make();
    for (int i = 0; i < 5; i++) {
        launch();
        exchange_messages(3);
        (void)milliseconds_of_wait(bell(), 5ms);
        stop(stop_park);
        wait_until_parked();
        EXPECT_TRUE(device->make_system(64));  // and frees it
        stop(stop_none);
    }
    EXPECT_EQ(device->usage().launches, 5u);
}

TEST_F(CudaMachineTest, EndOfLaunchEndsWait) {
    make();
    launch();
    std::thread other([&] {
        std::this_thread::sleep_for(20ms);
        send(leave);
    });
    while (!*machine->has_parked()) (void)milliseconds_of_wait(bell(), std::nullopt);
    other.join();
}

TEST_F(CudaMachineTest, WatchdogIsHeeded) {
    gpu.watchdog = 1;
    make();
    launch();
    const auto begin = steady_clock::now();
    wait_until_parked();
    EXPECT_GE(steady_clock::now() - begin, 500ms);
    launch();
    exchange_messages(3);
}

TEST_F(CudaMachineTest, FaultEndsWaitAndIsTold) {
    make();
    launch();
    (void)milliseconds_of_wait(bell(), 5ms);
    send(fail);
    const auto limit = steady_clock::now() + 10s;
    Result<bool> parked = false;
    while (parked && !*parked && steady_clock::now() < limit) {
        Result<void> waited = machine->wait(bell(), limit);
        parked = machine->has_parked();
    }
    ASSERT_FALSE(parked);
    EXPECT_EQ(parked.error().message, "CUDA: running the resident kernel: it failed (FAKE_ERROR)");
    EXPECT_FALSE(machine->launch());
}

// Not for ever: the process can end.
TEST_F(CudaMachineTest, KernelThatDoesNotParkIsGivenUp) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto give_up = [&] {
        make(disobey);
        launch();
        (void)milliseconds_of_wait(bell(), 5ms);
        machine.reset();
        device.reset();
        u64 calls = driver.host_free.calls() + driver.memory_free.calls() +
                    driver.stream_destroy.calls() + driver.context_release.calls();
        _exit(calls == 0 ? 0 : 1);
    };
    const auto begin = steady_clock::now();
    EXPECT_EXIT(give_up(), testing::ExitedWithCode(0), "");
    EXPECT_LT(steady_clock::now() - begin, 60s);
}

// Nothing that waits for the kernel's end or for another stream.
TEST_F(CudaMachineTest, CallsFewDriverFunctionsWhileItRuns) {
    make();
    launch();
    auto before = device->driver_calls();
    exchange_messages(100);
    (void)milliseconds_of_wait(bell(), 5ms);
    machine->wake();
    (void)machine->has_parked();
    std::vector<std::string> called;
    for (auto& [name, count] : device->driver_calls())
        if (count != before[name]) called.push_back(name);
    EXPECT_THAT(called, testing::IsSubsetOf(std::vector<std::string>{
                            "cuStreamWaitValue32_v2", "cuEventRecord", "cuEventSynchronize"}));
    EXPECT_FALSE(called.empty());
    EXPECT_LE(device->driver_calls()["cuStreamWaitValue32_v2"],
              before["cuStreamWaitValue32_v2"] + 101);
}

}  // namespace
}  // namespace gpurun::device
