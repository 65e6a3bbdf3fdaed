// A resident launch with the scheduler in it, as the host's side sees it: it answers, parks, goes
// on, and ends; with memory near all that the device has. On the device that GPURUN_DEVICE names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "device/device.h"
#include "host/mailbox.h"
#include "host/system_base.h"

namespace gpurun::device {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

double microseconds_since(steady_clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count();
}

struct ResidentTest : testing::Test {
    std::unique_ptr<Device> device;
    std::unique_ptr<SystemMemory> system, pages;
    std::unique_ptr<MachineRunner> machine;
    std::optional<host::MailboxEnd> mailbox;
    MachineShape shape;

    void SetUp() override {
        const char* id = std::getenv("GPURUN_DEVICE");
        auto opened = open_device(id ? id : "cpu");
        ASSERT_TRUE(opened) << opened.error().to_string();
        device = std::move(*opened);
        auto known = device->machine_shape();
        ASSERT_TRUE(known) << known.error().to_string();
        shape = *known;
    }

    // Tables for a few processes behind an empty file system.
    Result<void> boot(u64 page_bytes) {
        constexpr u64 alignment = 64 << 10;
        constexpr u32 processes = 64;
        host::SystemOptions options;
        options.arena_size = 64 << 20;
        const host::SystemBase system_base = TRY(host::SystemBase::make(options));
        SystemHeader base = system_base.fresh_header();
        MachineHeader header{};
        u64 end = base.base_end;
        auto take = [&](u64 count, u64 size) {
            u64 at = (end + alignment - 1) / alignment * alignment;
            end = at + count * size;
            return at;
        };
        base.machine = take(1, sizeof header);
        header.programs = take(max_programs, sizeof(ProgramEntry));
        header.processes = take(processes, sizeof(ProcessEntry));
        header.tasks = take(processes, sizeof(TaskEntry));
        header.deadlines = take(processes, sizeof(u64));
        header.buckets = take(wait_buckets, sizeof(WaitBucket));
        header.warps = take(shape.warps, sizeof(WarpEntry));
        header.host_streams = take(max_host_streams, sizeof(Handle));
        base.base_end = base.bump = take(0, 0);
        header.process_count = header.task_count = processes;
        header.warp_count = shape.warps;
        header.lanes = shape.lanes;
        header.slice_ns = 2'000'000;
        header.share = 100;
        PageHeader page_header{};
        page_header.pages = page_bytes >> page_shift;
        page_header.first_page = ((sizeof page_header + page_header.pages) >> page_shift) + 1;
        system = TRY(device->make_system(options.arena_size));
        pages = TRY(device->make_system(page_bytes));
        auto write = [](SystemMemory& to, u64 at, const auto& value) {
            return to.write(at, {reinterpret_cast<const u8*>(&value), sizeof value});
        };
        TRY(system->write(0, system_base.bytes()));
        TRY(write(*system, 0, base));
        TRY(write(*system, base.machine, header));
        TRY(write(*pages, 0, page_header));
        machine = TRY(device->make_machine(*system, *pages));
        mailbox.emplace(machine->mailbox());
        mailbox->set_share(100);
        return machine->launch();
    }
    void boot_or_fail(u64 page_bytes = 64 << 20) {
        Result<void> booted = boot(page_bytes);
        ASSERT_TRUE(booted) << booted.error().to_string();
    }

    // There and back.
    void ping(u64 number) {
        const auto limit = steady_clock::now() + 20s;
        ASSERT_TRUE(mailbox->send(MessageKind::ping, Ping{number}));
        for (;;) {
            const u32 bell = mailbox->bell();
            for (;;) {
                auto message = mailbox->take();
                ASSERT_TRUE(message) << message.error().to_string();
                if (!*message) break;
                if ((*message)->kind != MessageKind::pong) continue;
                ASSERT_EQ((*message)->as<Ping>().number, number);
                return;
            }
            ASSERT_LT(steady_clock::now(), limit);
            ASSERT_TRUE(machine->wait(bell, limit));
        }
    }
    void show_pings(const char* what) {
        std::vector<double> times;
        for (u64 i = 0; i < 300; i++) {
            std::this_thread::sleep_for(3ms);  // the bell does not ring more often
            const auto begin = steady_clock::now();
            ASSERT_NO_FATAL_FAILURE(ping(i));
            times.push_back(microseconds_since(begin));
        }
        std::ranges::sort(times);
        std::printf("%s: a ping takes %.0f us, the 99th percentile %.0f us\n", what,
                    times[times.size() / 2], times[times.size() * 99 / 100]);
    }
    void wait_until_parked() {
        const auto begin = steady_clock::now();
        for (;;) {
            Result<bool> parked = machine->has_parked();
            ASSERT_TRUE(parked) << parked.error().to_string();
            if (*parked) break;
            ASSERT_LT(steady_clock::now() - begin, 10s);
            ASSERT_TRUE(machine->wait(mailbox->bell(), begin + 10s));
        }
    }
};

TEST_F(ResidentTest, Answers) {
    boot_or_fail();
    show_pings("asleep");
    machine->set_spin(1ms);
    show_pings("spinning");
}

TEST_F(ResidentTest, ParksAndGoesOn) {
    boot_or_fail();
    double longest = 0;
    for (u64 i = 0; i < 20; i++) {
        ping(i);
        const auto begin = steady_clock::now();
        mailbox->set_stop(stop_park);
        wait_until_parked();
        longest = std::max(longest, microseconds_since(begin));
        mailbox->set_stop(stop_none);
        Result<void> launched = machine->launch();
        ASSERT_TRUE(launched) << launched.error().to_string();
    }
    ping(20);
    std::printf("parks in %.1f ms at the most\n", longest / 1000);
}

TEST_F(ResidentTest, EndsWithItsOwner) {
    boot_or_fail();
    const auto begin = steady_clock::now();
    machine.reset();
    std::printf("ends in %.1f ms\n", microseconds_since(begin) / 1000);
    EXPECT_LT(steady_clock::now() - begin, 4s);
}

// Page memory as large as it may be.
TEST_F(ResidentTest, HasMostOfTheMemory) {
    const DeviceInfo& info = device->info();
    const u64 room = info.reserves_lazily ? info.memory_total : info.memory_free - (64 << 20);
    boot_or_fail(room >> 21 << 21);
    ping(1);
    u8 byte = 1;
    machine.reset();
    ASSERT_TRUE(pages->read(pages->size() - 1, {&byte, 1}));
    EXPECT_EQ(byte, 0);
}

TEST_F(ResidentTest, CallsFewDriverFunctionsWhileItRuns) {
    boot_or_fail();
    auto before = device->driver_calls();
    for (u64 i = 0; i < 100; i++) ping(i);
    std::vector<std::string> called;
    for (auto& [name, count] : device->driver_calls())
        if (count != before[name]) called.push_back(name);
    EXPECT_THAT(called, testing::IsSubsetOf(std::vector<std::string>{
                            "cuStreamWaitValue32_v2", "cuEventRecord", "cuEventSynchronize"}));
}

}  // namespace
}  // namespace gpurun::device
