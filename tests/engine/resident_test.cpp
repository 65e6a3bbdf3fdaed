// The host's side of a resident machine, with a device that is played here: one that answers as it
// should, one that parks by itself, one that is slow, and ones that lie.
#include "engine/resident.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "../host/peer.h"
#include "../host/tree.h"
#include "engine/images.h"
#include "text/assemble.h"
#include "wasm/decode.h"

namespace gpurun::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Peer;

template <class T>
T as(const std::string& payload) {
    T value{};
    EXPECT_GE(payload.size(), sizeof value);
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
}

// What the played device does with a message. False: it parks.
using Script = std::function<bool(Peer& peer, MessageKind kind, const std::string& payload)>;

class FakeMachineRunner final : public device::MachineRunner {
public:
    explicit FakeMachineRunner(Script script) : script_(std::move(script)), peer_(mailbox_) {}
    ~FakeMachineRunner() override {
        std::atomic_ref(mailbox_.stop).store(stop_park);
        if (thread_.joinable()) thread_.join();
    }
    Mailbox& mailbox() override { return mailbox_; }
    Result<void> launch() override {
        if (thread_.joinable()) thread_.join();
        has_parked_ = false;
        thread_ = std::thread([this] {
            while (!peer_.is_stopped()) {
                auto message = peer_.take();
                if (message && !script_(peer_, message->first, message->second)) break;
                if (!message) std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
            has_parked_ = true;
        });
        return {};
    }
    Result<void> wait(u32 seen, std::optional<steady_clock::time_point> deadline) override {
        while (std::atomic_ref(mailbox_.bell).load() == seen && !woken_.exchange(false) &&
               !has_parked_ && (!deadline || steady_clock::now() < *deadline))
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        return {};
    }
    void set_answer(std::function<void()>) override {}
    void set_spin(std::chrono::microseconds) override {}
    void wake() override { woken_ = true; }
    Result<NativeEntries> use_native(std::span<const device::NativePart>, u64) override {
        return Error{"not here"};
    }
    Result<bool> has_parked() override { return has_parked_.load(); }

private:
    Mailbox mailbox_{};
    Script script_;
    Peer peer_;
    std::atomic<bool> woken_ = false, has_parked_ = true;
    std::thread thread_;
};

class FakeDevice final : public device::Device {
public:
    explicit FakeDevice(Script script)
        : script_(std::move(script)), cpu_(std::move(*device::open_device("cpu"))) {}
    const device::DeviceInfo& info() const override { return cpu_->info(); }
    const device::Usage& usage() const override { return cpu_->usage(); }
    std::map<std::string, u64> driver_calls() const override { return {{"cuNothing", 3}}; }
    device::KernelCounts kernel_counts() const override { return {}; }
    Result<void> prepare(device::Mode) override { return {}; }
    std::function<void()> kernel_assembler(device::Mode, Layout) const override { return {}; }
    Result<std::unique_ptr<device::SystemMemory>> make_system(u64 size) override {
        return cpu_->make_system(size);
    }
    Result<std::unique_ptr<device::Space>> make_space(const device::Sizes& sizes) override {
        return cpu_->make_space(sizes);
    }
    codegen::Target target(device::Mode, Layout) const override { return codegen::Target::host; }
    Result<std::shared_ptr<const device::NativeCode>> load_native(
        const codegen::Image&, codegen::Target, const device::NativeCode*) override {
        return Error{"not here"};
    }
    bool takes_late_native() const override { return false; }
    bool loads_beside_machine() const override { return true; }
    device::Assembler assembler(codegen::Target) const override { return {}; }
    Result<device::MachineShape> machine_shape() override { return device::MachineShape{6, 32}; }
    Result<std::unique_ptr<device::MachineRunner>> make_machine(
        device::SystemMemory& system, device::SystemMemory& pages) override {
        SystemHeader header;
        EXPECT_TRUE(system.read(0, {reinterpret_cast<u8*>(&header), sizeof header}));
        EXPECT_TRUE(system.read(header.machine, {reinterpret_cast<u8*>(&machine), sizeof machine}));
        EXPECT_TRUE(pages.read(0, {reinterpret_cast<u8*>(&page_header), sizeof page_header}));
        EXPECT_EQ(header.bump, header.base_end);
        EXPECT_EQ(header.base_end % (64 << 10), 0u);
        EXPECT_LT(header.base_end, header.size);
        return std::unique_ptr<device::MachineRunner>(new FakeMachineRunner(script_));
    }
    Result<device::BurstOutcome> run_burst(std::span<const device::Burst>,
                                           const device::RunControl&) override {
        return Error{"not here"};
    }

    MachineHeader machine{};
    PageHeader page_header{};

private:
    Script script_;
    std::unique_ptr<device::Device> cpu_;
};

// Answers as a machine does on which every process ends at once with its number of arguments.
bool behave(Peer& peer, MessageKind kind, const std::string& payload) {
    switch (kind) {
        case MessageKind::program_end:
            peer.send(MessageKind::program_ready, as<ProgramNumber>(payload));
            return true;
        case MessageKind::spawn: {
            const auto request = as<SpawnRequest>(payload);
            const u32 pid = request.request + 100;
            peer.send(MessageKind::spawned, SpawnAnswer{request.request, 0, pid, 0});
            if (request.streams[1] != 0) {
                peer.send(MessageKind::output, StreamBytes{request.streams[1], 0, 0},
                          payload.substr(sizeof request));
                peer.send(MessageKind::output, StreamBytes{request.streams[1], 0, 0});
            }
            peer.send(MessageKind::ended,
                      EndedProcess{request.request, pid, Ending::exited, request.argument_count, 0,
                                   request.program, 1000, 3000, 500});
            peer.send(MessageKind::idle, Ping{0});
            return true;
        }
        case MessageKind::ping: peer.send(MessageKind::pong, as<Ping>(payload)); return true;
        default: return true;
    }
}

std::shared_ptr<const wasm::Module> module(const char* text) {
    auto assembled = text::assemble(text, "test");
    EXPECT_TRUE(assembled);
    return std::move(*wasm::load(std::move(assembled->bytes)));
}
const char* const nothing = R"((module (memory 3) (data (i32.const 70000) "x")
    (func (export "_start"))))";

Run small_run() {
    engine::Run run;
    run.limits.system_bytes = u64{256} << 20;
    run.machine.memory_bytes = u64{64} << 20;
    run.machine.processes = 100;
    return run;
}

Resident::Deadline soon() { return steady_clock::now() + std::chrono::seconds(20); }

TEST(Resident, LaysOutItsTables) {
    FakeDevice device(behave);
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine) << machine.error().to_string();
    const MachineHeader& header = device.machine;
    EXPECT_EQ(header.process_count, 100u);
    EXPECT_EQ(header.task_count, 100u);
    EXPECT_EQ(header.warp_count, 6u);
    EXPECT_EQ(header.lanes, 32u);
    EXPECT_EQ(header.share, 100u);
    EXPECT_GT(header.slice_ns, 0u);
    EXPECT_GE(header.tasks - header.processes, 100 * sizeof(ProcessEntry));
    EXPECT_GE(header.deadlines - header.tasks, 100 * sizeof(TaskEntry));
    EXPECT_EQ(device.page_header.pages, (64u << 20) >> page_shift);
    EXPECT_GE(device.page_header.first_page << page_shift,
              sizeof(PageHeader) + device.page_header.pages);
}

TEST(Resident, BringsProgramsInPieces) {
    std::string blob;
    ProgramInfo info{};
    u32 pieces = 0;
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        if (kind == MessageKind::program) info = as<ProgramInfo>(payload);
        if (kind == MessageKind::program_data) {
            EXPECT_EQ(as<ProgramData>(payload).offset, blob.size());
            blob += payload.substr(sizeof(ProgramData));
            pieces++;
        }
        return behave(peer, kind, payload);
    });
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine);
    auto number = (*machine)->load({{module(nothing), "nothing"}, {}});
    ASSERT_TRUE(number) << number.error().to_string();
    EXPECT_EQ(std::string(reinterpret_cast<char*>(info.name), info.name_length), "nothing");
    EXPECT_EQ(blob.size(), info.code_bytes + info.template_words * 4 + info.template_bytes);
    EXPECT_EQ(info.memory_bytes, 3u << 16);
    EXPECT_EQ(info.template_bytes, 70008u);
    EXPECT_EQ(blob[blob.size() - 8], 'x');
    EXPECT_EQ(info.stack_end - info.stack, resident_stack_slots);
    EXPECT_GT(info.most_frame_slots, 0u);
    EXPECT_EQ(info.thread_entry, 0u);
    EXPECT_GE(pieces, 2u);
    EXPECT_FALSE((*machine)->load({{module(nothing), "nothing"}, {}}));
}

TEST(Resident, KnowsWhereThreadsBegin) {
    ProgramInfo info{};
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        if (kind == MessageKind::program) info = as<ProgramInfo>(payload);
        return behave(peer, kind, payload);
    });
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine);
    const Program threads{module(R"((module
        (import "wasi" "thread-spawn" (func (param i32) (result i32)))
        (import "env" "memory" (memory 1 4 shared))
        (func (export "wasi_thread_start") (param i32 i32))
        (func (export "_start"))))"),
                          "threads"};
    auto number = (*machine)->load({threads, {}});
    ASSERT_TRUE(number) << number.error().to_string();
    EXPECT_GT(info.thread_entry, 0u);
    EXPECT_EQ(info.memory_bytes, 1u << 16);
}

TEST(Resident, ProcessesComeAndGo) {
    FakeDevice device(behave);
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    Resident& machine = **made;
    const u32 program = *machine.load({{module(nothing), "nothing"}, {}});
    EXPECT_TRUE(*machine.wait_idle(soon()));
    for (u32 i = 0; i < 10'000; i++) {
        engine::Run run;
        run.arguments.assign(i % 7, "a");
        ASSERT_TRUE(machine.spawn(program, run));
    }
    for (u32 i = 0; i < 10'000; i++) {
        auto ended = machine.next_ending(soon());
        ASSERT_TRUE(ended && *ended) << i;
        ASSERT_EQ((*ended)->request, i);
        ASSERT_EQ((*ended)->pid, i + 100);
        ASSERT_EQ((*ended)->code, 1 + i % 7);  // its name comes first
    }
    EXPECT_TRUE(*machine.wait_idle(soon()));
    EXPECT_GT(machine.ping()->count(), 0);
    EXPECT_EQ(machine.stats().driver_calls.at("cuNothing"), 3u);
    EXPECT_TRUE(machine.stop());
    EXPECT_FALSE(machine.spawn(program, {}));
    EXPECT_FALSE(machine.ping());
}

TEST(Resident, NumbersOfStreamsAreUsedAgain) {
    FakeDevice device(behave);
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    Resident& machine = **made;
    const u32 program = *machine.load({{module(nothing), "nothing"}, {}});
    for (u32 i = 0; i < 3 * max_host_streams; i++) {
        std::string taken;
        engine::Run run;
        run.program_name = std::to_string(i);
        auto stream = machine.open_output(
            [&](std::string_view bytes) -> Result<bool> {
                taken += bytes;
                return true;
            },
            Resident::Use::once);
        ASSERT_TRUE(stream) << i;
        ASSERT_TRUE(machine.spawn(program, run, {std::nullopt, *stream}));
        ASSERT_TRUE(machine.next_ending(soon()));
        ASSERT_EQ(taken, std::to_string(i) + '\0');
    }
}

// Input goes as far as there is room at the device's end, and no further.
TEST(Resident, InputHasCredit) {
    std::string received;
    u64 taken = 0, most = 0;
    std::atomic<bool> has_ended = false;
    u32 stream = 0;
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        switch (kind) {
            case MessageKind::spawn: {
                const auto request = as<SpawnRequest>(payload);
                stream = request.streams[0];
                peer.send(MessageKind::spawned, SpawnAnswer{request.request, 0, 1, 0});
                return true;
            }
            case MessageKind::input:
                EXPECT_EQ(as<StreamBytes>(payload).stream, stream);
                received += payload.substr(sizeof(StreamBytes));
                most = std::max(most, received.size() - taken);
                if (received.size() - taken > 50'000) {
                    taken += 40'000;
                    peer.send(MessageKind::taken, StreamBytes{stream, 0, taken});
                }
                return true;
            case MessageKind::input_end: has_ended = true; return true;
            default: return behave(peer, kind, payload);
        }
    });
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    Resident& machine = **made;
    const u32 program = *machine.load({{module(nothing), "nothing"}, {}});
    std::vector<u8> input(1'000'000);
    for (usize i = 0; i < input.size(); i++) input[i] = u8(i * 7 + i / 1000);
    const u32 number = *machine.open_input(input, Resident::Use::once);
    ASSERT_TRUE(machine.spawn(program, {}, {number}));
    const auto end = soon();
    while (!has_ended && steady_clock::now() < *end) std::this_thread::yield();
    ASSERT_TRUE(has_ended);
    ASSERT_EQ(received.size(), input.size());
    EXPECT_TRUE(std::ranges::equal(input, received, {}, {}, [](char c) { return u8(c); }));
    EXPECT_LE(most, pipe_bytes);
    EXPECT_TRUE(machine.stop());
}

TEST(Resident, IsLaunchedAgainWhereItParks) {
    std::atomic<u32> messages = 0;
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        behave(peer, kind, payload);
        return ++messages % 5 != 0;  // parks after every fifth
    });
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    Resident& machine = **made;
    const u32 program = *machine.load({{module(nothing), "nothing"}, {}});
    for (u32 i = 0; i < 100; i++) {
        ASSERT_TRUE(machine.spawn(program, {}));
        auto ended = machine.next_ending(soon());
        ASSERT_TRUE(ended && *ended) << i;
    }
    EXPECT_GT(machine.stats().launches, 10u);
    EXPECT_TRUE(machine.stop());
}

// The CPU, but as if nothing could be loaded while a machine runs.
class ParkingDevice final : public device::Device {
public:
    const device::DeviceInfo& info() const override { return cpu_->info(); }
    const device::Usage& usage() const override { return cpu_->usage(); }
    std::map<std::string, u64> driver_calls() const override { return {}; }
    device::KernelCounts kernel_counts() const override { return {}; }
    Result<void> prepare(device::Mode) override { return {}; }
    std::function<void()> kernel_assembler(device::Mode, Layout) const override { return {}; }
    Result<std::unique_ptr<device::SystemMemory>> make_system(u64 size) override {
        return cpu_->make_system(size);
    }
    Result<std::unique_ptr<device::Space>> make_space(const device::Sizes& sizes) override {
        return cpu_->make_space(sizes);
    }
    codegen::Target target(device::Mode, Layout) const override { return codegen::Target::host; }
    Result<std::shared_ptr<const device::NativeCode>> load_native(
        const codegen::Image& image, codegen::Target target,
        const device::NativeCode* beside) override {
        EXPECT_TRUE(machine == nullptr || *machine->has_parked());
        loaded++;
        std::this_thread::sleep_for(while_loading);
        return cpu_->load_native(image, target, beside);
    }
    bool takes_late_native() const override { return false; }
    bool loads_beside_machine() const override { return false; }
    device::Assembler assembler(codegen::Target) const override { return {}; }
    Result<device::MachineShape> machine_shape() override { return cpu_->machine_shape(); }
    Result<std::unique_ptr<device::MachineRunner>> make_machine(
        device::SystemMemory& system, device::SystemMemory& pages) override {
        auto made = cpu_->make_machine(system, pages);
        if (made) machine = made->get();
        return made;
    }
    Result<device::BurstOutcome> run_burst(std::span<const device::Burst>,
                                           const device::RunControl&) override {
        return Error{"not here"};
    }

    device::MachineRunner* machine = nullptr;
    u32 loaded = 0;
    milliseconds while_loading{0};

private:
    std::unique_ptr<device::Device> cpu_ = std::move(*device::open_device("cpu"));
};

struct Wanted {
    Program program;
    engine::Run run;
    operator Job() const { return {program, run}; }
};

// Goes round a loop so often.
Wanted loop_program(const std::string& name, u32 rounds, device::Tier tier) {
    const std::string text =
        "(module (memory 1) (func (export \"_start\") (local i32)"
        "  (local.set 0 (i32.const " +
        std::to_string(rounds) +
        "))"
        "  (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))";
    Wanted wanted{{module(text.c_str()), name}, {}};
    wanted.program.images = std::make_shared<Images>(wanted.program.module);
    wanted.run.tier = tier;
    return wanted;
}

TEST(Resident, ParksForMachineCode) {
    ParkingDevice device;
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine) << machine.error().to_string();
    auto load = [&](const char* name, u32 rounds, device::Tier tier) {
        const Wanted program = loop_program(name, rounds, tier);
        auto number = (*machine)->load(program);
        EXPECT_TRUE(number) << number.error().to_string();
        return number ? *number : 0;
    };
    // The first is there before the launch; the others come while processes run.
    const u32 first = load("first", 200'000'000, device::Tier::native);
    EXPECT_EQ((*machine)->stats().launches, 1u);
    ASSERT_TRUE((*machine)->spawn(first, {}));
    ASSERT_TRUE((*machine)->spawn(load("interpreted", 1000, device::Tier::interp), {}));
    EXPECT_EQ((*machine)->stats().launches, 1u);
    ASSERT_TRUE((*machine)->spawn(load("second", 1000, device::Tier::alternate), {}));
    EXPECT_EQ((*machine)->stats().launches, 2u);
    // There is none of it, and nothing else here makes some.
    ASSERT_TRUE((*machine)->spawn(load("automatic", 999, device::Tier::automatic), {}));
    EXPECT_EQ((*machine)->stats().launches, 2u);
    EXPECT_EQ(device.loaded, 2u);
    for (u32 i = 0; i < 4; i++) {
        auto ending = (*machine)->next_ending(soon());
        ASSERT_TRUE(ending && *ending);
        EXPECT_EQ((*ending)->ending, Ending::exited);
        EXPECT_EQ((*ending)->code, 0u);
    }
    EXPECT_TRUE((*machine)->stop());
}

TEST(Resident, ParksOnceForSeveral) {
    ParkingDevice device;
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine) << machine.error().to_string();
    auto programs = [&](const std::string& name) {
        std::vector<Wanted> all;
        for (u32 i = 0; i < 3; i++)
            all.push_back(loop_program(name + std::to_string(i), 2000 + i, device::Tier::native));
        all.push_back(loop_program(name + "interpreted", 1000, device::Tier::interp));
        return all;
    };
    auto jobs = [](const std::vector<Wanted>& all) {
        return std::vector<Job>(all.begin(), all.end());
    };
    // Before the launch, and while a process runs.
    for (u32 launches : {1u, 2u}) {
        const std::vector<Wanted> all = programs(std::to_string(launches) + "-");
        auto numbers = (*machine)->load(jobs(all));
        ASSERT_TRUE(numbers) << numbers.error().to_string();
        EXPECT_EQ(device.loaded, 3 * launches);
        EXPECT_EQ((*machine)->stats().launches, launches);
        for (u32 number : *numbers) ASSERT_TRUE((*machine)->spawn(number, {}));
    }
    EXPECT_EQ((*machine)->name_of(6), "2-2");
    for (u32 i = 0; i < 8; i++) {
        auto ending = (*machine)->next_ending(soon());
        ASSERT_TRUE(ending && *ending);
        EXPECT_EQ((*ending)->ending, Ending::exited);
    }
    // Of several that cannot be loaded none is.
    std::vector<Wanted> wrong = programs("3-");
    wrong[1].program.module = module("(module (func (export \"_start\") (param i32)))");
    wrong[1].program.images = std::make_shared<Images>(wrong[1].program.module);
    EXPECT_FALSE((*machine)->load(jobs(wrong)));
    EXPECT_EQ((*machine)->name_of(8), "");
    EXPECT_TRUE((*machine)->ping());
    EXPECT_TRUE((*machine)->stop());
}

// While one thread has the machine parked, those that others bring become ready: one pause more is
// for all of them.
TEST(Resident, ParksOnceForSeveralThreads) {
    constexpr u32 threads = 4;
    ParkingDevice device;
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine) << machine.error().to_string();
    ASSERT_TRUE((*machine)->ping());
    EXPECT_EQ((*machine)->stats().launches, 1u);
    device.while_loading = milliseconds(300);
    std::vector<std::thread> loaders;
    for (u32 i = 0; i < threads; i++)
        loaders.emplace_back([&, i] {
            const Wanted program = loop_program(std::to_string(i), 2000 + i, device::Tier::native);
            auto number = (*machine)->load(program);
            ASSERT_TRUE(number) << number.error().to_string();
            EXPECT_TRUE((*machine)->spawn(*number, {}));
        });
    for (std::thread& loader : loaders) loader.join();
    EXPECT_EQ(device.loaded, threads);
    EXPECT_GT((*machine)->stats().launches, 1u);
    EXPECT_LT((*machine)->stats().launches, 1 + threads);
    for (u32 i = 0; i < threads; i++) {
        auto ending = (*machine)->next_ending(soon());
        ASSERT_TRUE(ending && *ending);
        EXPECT_EQ((*ending)->ending, Ending::exited);
    }
    EXPECT_TRUE((*machine)->stop());
}

TEST(Resident, StopsWhileProgramsAreLoaded) {
    ParkingDevice device;
    auto machine = Resident::make(device, small_run());
    ASSERT_TRUE(machine) << machine.error().to_string();
    ASSERT_TRUE((*machine)->ping());
    device.while_loading = milliseconds(20);
    std::atomic<u32> refused = 0;
    std::vector<std::thread> loaders;
    for (u32 i = 0; i < 3; i++)
        loaders.emplace_back([&, i] {
            for (u32 k = 0; k < 1000 && refused == 0; k++) {
                const Wanted program = loop_program(std::to_string(i) + "-" + std::to_string(k),
                                                    1000, device::Tier::native);
                if (!(*machine)->load(program)) refused++;
            }
        });
    std::this_thread::sleep_for(milliseconds(200));
    EXPECT_TRUE((*machine)->stop());
    for (std::thread& loader : loaders) loader.join();
    EXPECT_GT(refused, 0u);
}

// Nothing is lost while the rings are full, in either direction.
TEST(Resident, ASlowDeviceLosesNothing) {
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        if (kind == MessageKind::spawn && as<SpawnRequest>(payload).request % 100 == 0)
            std::this_thread::sleep_for(milliseconds(2));
        return behave(peer, kind, payload);
    });
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    Resident& machine = **made;
    const u32 program = *machine.load({{module(nothing), "nothing"}, {}});
    engine::Run run;
    run.program_name = std::string(20'000, 'x');
    std::atomic<u64> bytes = 0;
    const u32 output = *machine.open_output(
        [&](std::string_view taken) -> Result<bool> {
            bytes += taken.size();
            return true;
        },
        Resident::Use::always);
    for (u32 i = 0; i < 500; i++) ASSERT_TRUE(machine.spawn(program, run, {std::nullopt, output}));
    for (u32 i = 0; i < 500; i++) {
        auto ended = machine.next_ending(soon());
        ASSERT_TRUE(ended && *ended && (*ended)->request == i) << i;
    }
    EXPECT_EQ(bytes, 500u * 20'001);
}

TEST(Resident, WhatTheMachineRefusesIsAnEnding) {
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        if (kind == MessageKind::spawn)
            peer.send(MessageKind::spawned, SpawnAnswer{as<SpawnRequest>(payload).request,
                                                        u32(wasi::Errno::again), 0, 0});
        else
            behave(peer, kind, payload);
        return true;
    });
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    const u32 program = *(*made)->load({{module(nothing), "nothing"}, {}});
    ASSERT_TRUE((*made)->spawn(program, {}));
    auto ended = (*made)->next_ending(soon());
    ASSERT_TRUE(ended && *ended);
    EXPECT_EQ((*ended)->refusal, wasi::Errno::again);
    EXPECT_TRUE(*(*made)->wait_idle(soon()));
}

DebugRecord record_of(u32 process, const FaultEnding& fault) {
    DebugRecord record{};
    record.process = process;
    record.kind = DebugKind::ended;
    std::memcpy(record.text, &fault, sizeof fault);
    return record;
}

// Whatever a device says that cannot be ends the machine, and nothing else.
TEST(Resident, LiesAreErrors) {
    const std::function<void(Peer&)> lies[] = {
        [](Peer& peer) { peer.send(MessageKind::spawned, SpawnAnswer{77, 0, 1, 0}); },
        [](Peer& peer) { peer.send(MessageKind::program_ready, ProgramNumber{9, 0}); },
        [](Peer& peer) {
            peer.send(MessageKind::ended, EndedProcess{1, 1, Ending::exited, 0, 0, 200, 0, 0, 0});
        },
        [](Peer& peer) { peer.send(MessageKind::output, StreamBytes{0, 0, 0}, "x"); },
        [](Peer& peer) { peer.send(MessageKind::output, StreamBytes{5000, 0, 0}, "x"); },
        [](Peer& peer) { peer.send(MessageKind::taken, StreamBytes{1, 0, 5}); },
        [](Peer& peer) { peer.send(MessageKind::spawn, SpawnRequest{}); },
        [](Peer& peer) { peer.send(MessageKind(500), Ping{}); },
        [](Peer& peer) { peer.send(MessageKind::broken, Ping{}); },
        [](Peer& peer) {
            const FaultEnding fault{u32(Ending::trapped), 1, 0, 1, max_fault_frames + 1, {}};
            peer.send(MessageKind::record, record_of(1, fault));
        },
        [](Peer& peer) {
            peer.send(MessageKind::record, record_of(1, {u32(Ending::trapped), 1, 77, 1, 1, {}}));
        },
    };
    for (const auto& lie : lies) {
        FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
            if (kind != MessageKind::ping) return behave(peer, kind, payload);
            lie(peer);
            return true;
        });
        auto made = Resident::make(device, small_run());
        ASSERT_TRUE(made);
        const u32 program = *(*made)->load({{module(nothing), "nothing"}, {}});
        EXPECT_FALSE((*made)->ping()) << &lie - lies;
        EXPECT_FALSE((*made)->spawn(program, {}));
        EXPECT_FALSE((*made)->next_ending(soon()));
        (void)(*made)->stop();
    }
}

// A trap's position, those of its frames, or a block that is not there is an answer, not an end.
TEST(Resident, NumbersAreChecked) {
    std::string answer;
    std::atomic<bool> has_answer = false;
    FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
        if (kind == MessageKind::spawn) {
            const auto request = as<SpawnRequest>(payload);
            peer.send(MessageKind::spawned, SpawnAnswer{request.request, 0, 1, 0});
            peer.send(MessageKind::want_block, BlockRequest{5, 0xfffffff0, 12});
            const FaultEnding fault{u32(Ending::trapped), 99999, 0, 0, 2, {0xffffffff, 0x7ffffff0}};
            peer.send(MessageKind::record, record_of(1, fault));
            peer.send(MessageKind::ended, EndedProcess{request.request, 1, Ending::trapped, 99999,
                                                       0xffffffff, 0, 0, 0, 0});
            return true;
        }
        if (kind == MessageKind::block) {
            answer = payload;
            has_answer = true;
        }
        return behave(peer, kind, payload);
    });
    auto made = Resident::make(device, small_run());
    ASSERT_TRUE(made);
    const u32 program = *(*made)->load({{module(nothing), "nothing"}, {}});
    ASSERT_TRUE((*made)->spawn(program, {}));
    auto ended = (*made)->next_ending(soon());
    ASSERT_TRUE(ended && *ended);
    EXPECT_TRUE((*ended)->frames.empty());
    const auto end = soon();
    while (!has_answer && steady_clock::now() < *end) std::this_thread::yield();
    EXPECT_NE(as<BlockAnswer>(answer).error, 0u);
    EXPECT_EQ(as<BlockAnswer>(answer).task, 5u);
}

// A task that shows a process which cannot be is answered too, and the machine goes on. What kept
// the host from a dump is told, if it wants any.
TEST(Resident, ShownProcessesAreChecked) {
    test::Folder folder;
    for (const bool is_dumped : {true, false}) {
        std::atomic<u32> answers = 0;
        FakeDevice device([&](Peer& peer, MessageKind kind, const std::string& payload) {
            if (kind == MessageKind::spawn) {
                for (u32 task : {0xfffffff0u, 5u})
                    peer.send(MessageKind::want_block, BlockRequest{task, 0, whole_process});
            }
            if (kind == MessageKind::block) {
                EXPECT_EQ(as<BlockAnswer>(payload).block, whole_process);
                answers++;
            }
            return behave(peer, kind, payload);
        });
        engine::Run run = small_run();
        if (is_dumped) run.dump = folder.path() / "dump";
        auto made = Resident::make(device, run);
        ASSERT_TRUE(made);
        EXPECT_EQ(device.machine.shows_faults, u32(is_dumped));
        const u32 program = *(*made)->load({{module(nothing), "nothing"}, {}});
        ASSERT_TRUE((*made)->spawn(program, {}));
        const auto end = soon();
        while (answers < 2 && steady_clock::now() < *end) std::this_thread::yield();
        EXPECT_EQ(answers, 2u);
        EXPECT_GT((*made)->stats().launches, 1u);
        EXPECT_EQ((*made)->dumps().problem.has_value(), is_dumped);
        EXPECT_EQ((*made)->dumps().written, 0u);
        EXPECT_TRUE((*made)->ping());
        EXPECT_TRUE((*made)->stop());
    }
}

}  // namespace
}  // namespace gpurun::engine
