// A resident launch on the CPU: how it begins and parks, and what ends a wait. Its warps do next
// to nothing here.
#include "device/cpu/cpu_machine.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/platform/platform.h"

namespace gpurun::device {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr u32 warps = 4;
// What the warps here take for a message: mailbox().in_tail; and what they answer with.
constexpr u64 ring_me = 1, leave = 2;

struct Counts {
    u32 begun = 0, left = 0;
};

void run(const MachineParams& params, u32 warp, u8*) {
    auto* counts = reinterpret_cast<Counts*>(params.system);
    auto* mailbox = reinterpret_cast<Mailbox*>(params.mailbox);
    __atomic_fetch_add(&counts->begun, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&mailbox->stop, __ATOMIC_ACQUIRE) == stop_none) {
        u64 message = __atomic_load_n(&mailbox->in_tail, __ATOMIC_ACQUIRE);
        if (message == leave) break;
        if (warp == mailbox_warp && message != mailbox->in_head) {
            mailbox->in_head = message;
            rt::ring_bell(&mailbox->bell);
        }
        std::this_thread::sleep_for(100us);
    }
    __atomic_fetch_add(&counts->left, 1, __ATOMIC_RELAXED);
}

struct Fixture : testing::Test {
    Counts counts;
    std::unique_ptr<MachineRunner> machine =
        make_cpu_machine(reinterpret_cast<u8*>(&counts), nullptr, warps, run);
    Mailbox& mailbox = machine->mailbox();

    u32 bell() const { return __atomic_load_n(&mailbox.bell, __ATOMIC_ACQUIRE); }
    void send(u64 message) { __atomic_store_n(&mailbox.in_tail, message, __ATOMIC_RELEASE); }
    void launch() {
        Result<void> launched = machine->launch();
        ASSERT_TRUE(launched) << launched.error().to_string();
    }
    void wait_until_parked() {
        const auto limit = steady_clock::now() + 10s;
        while (!*machine->has_parked()) {
            ASSERT_LT(steady_clock::now(), limit);
            ASSERT_TRUE(machine->wait(bell(), limit));
        }
    }
    double milliseconds_of_wait(u32 seen, std::optional<steady_clock::duration> limit) {
        auto begin = steady_clock::now();
        std::optional<steady_clock::time_point> deadline;
        if (limit) deadline = begin + *limit;
        EXPECT_TRUE(machine->wait(seen, deadline));
        return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
    }
};
using CpuMachineTest = Fixture;

TEST_F(CpuMachineTest, LaunchesAllWarpsAndParks) {
    EXPECT_TRUE(*machine->has_parked());
    launch();
    EXPECT_FALSE(*machine->has_parked());
    EXPECT_FALSE(machine->launch());
    __atomic_store_n(&mailbox.stop, stop_park, __ATOMIC_RELEASE);
    wait_until_parked();
    machine.reset();
    EXPECT_EQ(counts.begun, warps);
    EXPECT_EQ(counts.left, warps);
}

TEST_F(CpuMachineTest, DestructionParks) {
    launch();
    machine.reset();
    EXPECT_EQ(counts.left, warps);
}

TEST_F(CpuMachineTest, GoesOnAfterItParked) {
    for (u32 times = 1; times <= 3; times++) {
        launch();
        __atomic_store_n(&mailbox.stop, stop_park, __ATOMIC_RELEASE);
        wait_until_parked();
        __atomic_store_n(&mailbox.stop, stop_none, __ATOMIC_RELEASE);
    }
    machine.reset();
    EXPECT_EQ(counts.begun, 3 * warps);
}

TEST_F(CpuMachineTest, ParksByItself) {
    launch();
    send(leave);
    wait_until_parked();
    send(0);
    launch();
    EXPECT_FALSE(*machine->has_parked());
}

TEST_F(CpuMachineTest, BellEndsWait) {
    launch();
    for (u32 i = 1; i <= 100; i++) {
        u32 seen = bell();
        machine->set_spin(i % 2 * 50us);
        send(ring_me + 2 * i);
        ASSERT_LT(milliseconds_of_wait(seen, 10s), 9000);
        ASSERT_NE(bell(), seen);
        ASSERT_EQ(mailbox.in_head, ring_me + 2 * i);
    }
}

TEST_F(CpuMachineTest, BellThatRangBeforeEndsWaitAtOnce) {
    launch();
    EXPECT_LT(milliseconds_of_wait(bell() - 1, 10s), 9000);
}

TEST_F(CpuMachineTest, DeadlineEndsWait) {
    launch();
    double waited = milliseconds_of_wait(bell(), 50ms);
    EXPECT_GE(waited, 50);
    EXPECT_LT(waited, 5000);
    EXPECT_LT(milliseconds_of_wait(bell(), -1s), 5000);
    machine->set_spin(1s);
    EXPECT_LT(milliseconds_of_wait(bell(), 10ms), 900);
}

TEST_F(CpuMachineTest, WakeEndsWait) {
    launch();
    int state = 0;
    for (int i = 1; i <= 50; i++) {
        std::atomic<bool> is_set = false;
        std::thread other([&] {
            state = i;
            is_set = true;
            machine->wake();
        });
        while (!is_set) ASSERT_LT(milliseconds_of_wait(bell(), std::nullopt), 60000);
        EXPECT_EQ(state, i);
        other.join();
        (void)milliseconds_of_wait(bell(), 0ms);  // the wake, if the flag was seen before it
    }
}

TEST_F(CpuMachineTest, WakeBeforeWaitIsKept) {
    launch();
    machine->wake();
    EXPECT_LT(milliseconds_of_wait(bell(), 10s), 9000);
    EXPECT_GE(milliseconds_of_wait(bell(), 20ms), 20);
}

TEST_F(CpuMachineTest, EndOfLaunchEndsWait) {
    launch();
    std::thread other([&] {
        std::this_thread::sleep_for(20ms);
        send(leave);
    });
    EXPECT_LT(milliseconds_of_wait(bell(), std::nullopt), 60000);
    EXPECT_TRUE(*machine->has_parked());
    other.join();
}

}  // namespace
}  // namespace gpurun::device
