// Arguments and environment, clocks, random numbers, the end of a process, and the module gpu.
#include "fixture.h"
#include "host/harvest.h"

namespace gpurun::test {
namespace {

class Calls : public WasiTest {
protected:
    // What args_get or environ_get gives, after what its _sizes_get says.
    std::vector<std::string> strings(Caller& g, SystemCall get, SystemCall sizes) {
        constexpr u32 pointers = 0x801, bytes = 0x1001;
        EXPECT_EQ(g.call(sizes, {Caller::result + 1, Caller::result + 5}), Errno::success);
        u32 count = g.load<u32>(Caller::result + 1), size = g.load<u32>(Caller::result + 5);
        g.put(bytes, std::string(size + 1, '#'));
        EXPECT_EQ(g.call(get, {pointers, bytes}), Errno::success);
        EXPECT_EQ(g.bytes(bytes + size, 1), "#");
        std::vector<std::string> all;
        u32 total = 0;
        for (u32 i = 0; i < count; i++) {
            u32 at = g.load<u32>(pointers + i * 4);
            EXPECT_EQ(at, bytes + total);
            all.push_back(reinterpret_cast<const char*>(g.memory() + at));
            total += u32(all.back().size()) + 1;
        }
        EXPECT_EQ(total, size);
        return all;
    }
    std::vector<std::string> arguments(Caller& g) {
        return strings(g, SystemCall::args_get, SystemCall::args_sizes_get);
    }
};

TEST_F(Calls, ArgumentsAndEnvironment) {
    options.arguments = {"program", "", "two words", "{}", "caf\xc3\xa9"};
    options.environment = {"A=1", "B=", "N={}"};
    EXPECT_EQ(arguments(guest()), options.arguments);
    EXPECT_EQ(strings(guest(), SystemCall::environ_get, SystemCall::environ_sizes_get),
              options.environment);
    Caller& g = guest();
    for (u32 bad : {Caller::memory_size - 2, ~0u, ~0u - 3}) {
        for (SystemCall which : {SystemCall::args_sizes_get, SystemCall::environ_sizes_get,
                                 SystemCall::args_get, SystemCall::environ_get}) {
            EXPECT_EQ(g.call(which, {bad, Caller::buffer}), Errno::fault);
            EXPECT_EQ(g.call(which, {Caller::buffer, bad}), Errno::fault);
        }
    }
}

TEST_F(Calls, NoArgumentsAtAll) {
    EXPECT_EQ(arguments(guest()), (std::vector<std::string>{}));
    EXPECT_EQ(strings(guest(), SystemCall::environ_get, SystemCall::environ_sizes_get),
              (std::vector<std::string>{}));
}

TEST_F(Calls, NumberedArguments) {
    options.arguments = {"p", "{}", "in-{}.txt", "{}{}", "{", "}", "{ }", "{{}}"};
    options.environment = {"N={}"};
    options.has_numbered_arguments = true;
    options.process_count = 2'000'000'000;
    for (u32 id : {0u, 9u, 10u, 4096u, 1'999'999'999u}) {
        Caller g(system(), id);
        std::string n = std::to_string(id);
        EXPECT_EQ(arguments(g), (std::vector<std::string>{"p", n, "in-" + n + ".txt", n + n, "{",
                                                          "}", "{ }", "{" + n + "}"}));
        EXPECT_EQ(strings(g, SystemCall::environ_get, SystemCall::environ_sizes_get),
                  options.environment);
    }
}

TEST_F(Calls, InputsOfItsOwn) {
    std::string large = pattern(3 * file_block + 5);
    std::vector<host::ProcessInput> inputs = {{100, {"p", "{}", ""}, shared_bytes("first")},
                                              {7, {}, {}},
                                              {102, {"p"}, shared_bytes("")},
                                              {103, {"p", "last"}, shared_bytes(large)}};
    options.arguments = {"not", "these"};
    options.input = std::make_shared<std::vector<u8>>(bytes_of("of all"));
    options.inputs = inputs;
    options.process_count = u32(inputs.size());
    const std::string expected[] = {"first", "of all", "", large};
    std::vector<u8> base(system().data(), system().data() + system().header().base_end);
    for (u32 id = 0; id < inputs.size(); id++) {
        Caller g(system(), id);
        EXPECT_EQ(arguments(g), inputs[id].arguments);
        EXPECT_EQ(g.call_raw(SystemCall::instance_id, {}), inputs[id].number);
        std::string data;
        EXPECT_EQ(g.read(0, 60'000, data), Errno::success);
        EXPECT_EQ(data, expected[id]);
        EXPECT_EQ(g.read(0, 10, data), Errno::success);
        EXPECT_EQ(data, "");
    }
    EXPECT_EQ(
        std::memcmp(base.data() + sizeof(SystemHeader), system().data() + sizeof(SystemHeader),
                    base.size() - sizeof(SystemHeader)),
        0);
}

TEST_F(Calls, Clocks) {
    Caller& g = guest();
    auto time = [&](u32 id) {
        EXPECT_EQ(g.call(SystemCall::clock_time_get, {id, 1000, Caller::result + 1}),
                  Errno::success);
        return g.load<u64>(Caller::result + 1);
    };
    u64 real = time(clock_realtime), monotonic = time(clock_monotonic);
    EXPECT_GE(real, system().header().realtime);
    EXPECT_LT(real - system().header().realtime, 60'000'000'000u);
    EXPECT_GE(monotonic, system().header().monotonic);
    for (u32 i = 0; i < 100; i++) {
        u64 now = time(clock_monotonic);
        EXPECT_GE(now, monotonic);
        monotonic = now;
    }
    usleep(2000);
    EXPECT_GE(time(clock_monotonic), monotonic + 2'000'000);
    EXPECT_GE(time(clock_realtime), real + 2'000'000);
    for (u32 id : {clock_process, clock_thread}) EXPECT_GE(time(id), monotonic);
    for (u32 id : {clock_realtime, clock_monotonic, clock_process, clock_thread}) {
        EXPECT_EQ(g.call(SystemCall::clock_res_get, {id, Caller::result}), Errno::success);
        EXPECT_GT(g.load<u64>(Caller::result), 0u);
        EXPECT_LE(g.load<u64>(Caller::result), 1'000'000u);
        for (u32 at : {Caller::memory_size - 7, ~0u, ~0u - 7}) {
            EXPECT_EQ(g.call(SystemCall::clock_res_get, {id, at}), Errno::fault);
            EXPECT_EQ(g.call(SystemCall::clock_time_get, {id, 0, at}), Errno::fault);
        }
    }
    for (u32 id : {4u, ~0u}) {
        EXPECT_EQ(g.call(SystemCall::clock_res_get, {id, Caller::result}), Errno::inval);
        EXPECT_EQ(g.call(SystemCall::clock_time_get, {id, 0, Caller::result}), Errno::inval);
    }
}

// ---- random_get ----------------------------------------------------------------------

std::string random_bytes(Caller& g, u32 count) {
    EXPECT_EQ(g.call(SystemCall::random_get, {Caller::buffer + 1, count}), Errno::success);
    return g.bytes(Caller::buffer + 1, count);
}

std::string from_hex(std::string_view text) {
    std::string bytes;
    for (usize i = 0; i + 1 < text.size(); i += 2)
        bytes += char(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
    return bytes;
}

// RFC 8439, 2.3.2 and A.1 (first and second).
TEST_F(Calls, RandomIsChaCha20) {
    u32* key = system().header().random_key;
    std::memset(key, 0, 32);
    {
        Caller g(system(), 0);
        EXPECT_EQ(random_bytes(g, 64),
                  from_hex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
                           "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"));
        EXPECT_EQ(random_bytes(g, 64),
                  from_hex("9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
                           "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"));
    }
    for (u8 i = 0; i < 32; i++) reinterpret_cast<u8*>(key)[i] = i;
    Caller g(system(), 0x4a000000);
    g.me().random_counter = u64{0x09000000} << 32 | 1;
    EXPECT_EQ(random_bytes(g, 64),
              from_hex("10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
                       "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"));
}

TEST_F(Calls, RandomIsRepeatableWithASeed) {
    options.seed = 42;
    std::string first, other, later;
    {
        first = random_bytes(guest(), 5000);
        later = random_bytes(guest(), 5000);
        Caller g(system(), 1);
        other = random_bytes(g, 5000);
    }
    EXPECT_NE(first, later);
    EXPECT_NE(first, other);
    System same(options), different([&] {
        SystemOptions changed = options;
        changed.seed = 43;
        return changed;
    }());
    Caller a(same), b(different);
    EXPECT_EQ(random_bytes(a, 5000), first);
    EXPECT_NE(random_bytes(b, 5000), first);
    options.seed.reset();
    System c_system(options), d_system(options);
    Caller c(c_system), d(d_system);
    EXPECT_NE(random_bytes(c, 32), random_bytes(d, 32));
    // All bits come.
    u32 ones = 0;
    for (char byte : first) ones += u32(__builtin_popcount(u8(byte)));
    EXPECT_NEAR(ones, 20'000, 600);
}

TEST_F(Calls, RandomOfAllSizes) {
    Caller& g = guest();
    for (u32 size : {0u, 1u, 63u, 64u, 65u, 4096u, 4097u, 60'000u}) {
        g.put(Caller::buffer, std::string(size + 2, '#'));
        random_bytes(g, size);
        EXPECT_EQ(g.bytes(Caller::buffer, 1), "#");
        EXPECT_EQ(g.bytes(Caller::buffer + size + 1, 1), "#");
    }
    EXPECT_GT(g.turns(), 10u);  // in pieces, so that others have their turn
    for (u32 at : {Caller::memory_size - 9, ~0u})
        EXPECT_EQ(g.call(SystemCall::random_get, {at, 10}), Errno::fault);
    EXPECT_EQ(g.call(SystemCall::random_get, {0, ~0u}), Errno::fault);
    EXPECT_EQ(g.call(SystemCall::random_get, {Caller::memory_size, 0}), Errno::success);
}

// ---- the end -------------------------------------------------------------------------

TEST_F(Calls, ExitAndRaise) {
    for (u32 code : {0u, 1u, 3u, 255u, 256u, ~0u}) {
        Caller g(system());
        g.call(SystemCall::proc_exit, {code});
        EXPECT_EQ(g.state(), ThreadState::exited);
        EXPECT_EQ(g.me().exit_code, code);
    }
    for (u32 signal = 0; signal < 40; signal++) {
        Caller g(system());
        Errno error = g.call(SystemCall::proc_raise, {signal});
        bool is_ignored = signal == 0 || signal == 16 || signal == 17 || signal == 22 ||
                          signal == 27;  // chld, cont, urg, winch
        if (signal > 30 || is_ignored) {
            EXPECT_EQ(g.state(), ThreadState::finished) << signal;
            EXPECT_EQ(error, is_ignored ? Errno::success : Errno::inval);
        } else {
            EXPECT_EQ(g.state(), ThreadState::exited) << signal;
            EXPECT_EQ(g.me().exit_code, 128 + signal);
        }
    }
    EXPECT_EQ(guest().call(SystemCall::sched_yield, {}), Errno::success);
}

// ---- the module gpu ----------------------------------------------------------------------

TEST_F(Calls, WhoAmI) {
    options.process_count = 77;
    Caller g(system(), 5);
    EXPECT_EQ(g.call_raw(SystemCall::instance_id, {}), 5u);
    EXPECT_EQ(g.call_raw(SystemCall::instance_count, {}), 77u);
    EXPECT_EQ(g.call_raw(SystemCall::lane_id, {}), 0u);
    g.call_raw(SystemCall::time, {});
    u64 first = g.result_i64();
    EXPECT_GE(first, system().header().monotonic);
    g.call_raw(SystemCall::time, {});
    EXPECT_GE(g.result_i64(), first);
}

TEST_F(Calls, GuestBlocks) {
    Caller& g = guest();
    auto alloc = [&](u32 size) { return g.call_raw(SystemCall::alloc, {size}); };
    auto write = [&](u32 block, u32 offset, u32 at, u32 count) {
        return g.call_raw(SystemCall::write, {block, offset, at, count});
    };
    auto read = [&](u32 block, u32 offset, u32 at, u32 count) {
        return g.call_raw(SystemCall::read, {block, offset, at, count});
    };
    u64 in_use = system().header().in_use;
    u32 a = alloc(100), b = alloc(70'000);
    EXPECT_EQ(a, 1u);
    EXPECT_EQ(b, 2u);
    EXPECT_EQ(alloc(0), 0u);
    for (u32 size : {1u << 30, 0x7fffffffu, 0x80000000u, ~0u}) EXPECT_EQ(alloc(size), 0u);
    // Zero at first.
    g.put(Caller::buffer, std::string(100, '#'));
    EXPECT_EQ(read(a, 0, Caller::buffer, 100), 100u);
    EXPECT_EQ(g.bytes(Caller::buffer, 100), std::string(100, '\0'));
    std::string data = pattern(70'000);
    g.put(Caller::buffer, data);
    EXPECT_EQ(write(b, 0, Caller::buffer, 70'000), 70'000u);
    EXPECT_EQ(write(a, 90, Caller::buffer, 10), 10u);
    EXPECT_EQ(read(b, 69'990, Caller::buffer, 10), 10u);
    EXPECT_EQ(g.bytes(Caller::buffer, 10), data.substr(69'990));
    EXPECT_EQ(read(a, 90, Caller::buffer, 10), 10u);
    EXPECT_EQ(g.bytes(Caller::buffer, 10), data.substr(0, 10));
    // Whatever does not fit is nothing.
    for (auto [block, offset, at, count] :
         {std::tuple<u32, u32, u32, u32>{a, 91, Caller::buffer, 10},
          {a, 101, Caller::buffer, 0},
          {a, ~0u, Caller::buffer, 1},
          {a, 0, Caller::buffer, ~0u},
          {a, 0, Caller::memory_size - 9, 10},
          {a, 0, ~0u, 10},
          {0, 0, Caller::buffer, 10},
          {3, 0, Caller::buffer, 10},
          {~0u, 0, Caller::buffer, 10}}) {
        EXPECT_EQ(read(block, offset, at, count), 0u);
        EXPECT_EQ(write(block, offset, at, count), 0u);
    }
    // Larger and smaller.
    auto realloc = [&](u32 block, u32 size) {
        return g.call_raw(SystemCall::realloc, {block, size});
    };
    EXPECT_EQ(realloc(b, 80'000), b);
    EXPECT_EQ(read(b, 69'990, Caller::buffer, 20), 20u);
    EXPECT_EQ(g.bytes(Caller::buffer, 20), data.substr(69'990) + std::string(10, '\0'));
    EXPECT_EQ(realloc(b, 10), b);
    EXPECT_EQ(read(b, 0, Caller::buffer, 11), 0u);
    EXPECT_EQ(realloc(b, ~0u), 0u);
    EXPECT_EQ(read(b, 0, Caller::buffer, 10), 10u);
    EXPECT_EQ(g.bytes(Caller::buffer, 10), data.substr(0, 10));
    EXPECT_EQ(realloc(3, 10), 0u);
    EXPECT_EQ(realloc(0, 10), 3u);  // as alloc
    EXPECT_EQ(realloc(3, 0), 0u);   // as free
    EXPECT_EQ(read(3, 0, Caller::buffer, 1), 0u);
    // Freed twice, and what was never there.
    for (u32 block : {a, a, 0u, 99u, ~0u}) g.call_raw(SystemCall::free, {block});
    EXPECT_EQ(read(a, 0, Caller::buffer, 1), 0u);
    EXPECT_EQ(alloc(64), a);
    g.call_raw(SystemCall::free, {a});
    g.call_raw(SystemCall::free, {b});
    // Up to a limit, and all of it goes when the process ends.
    u32 last = 0;
    for (u32 i = 0; i < 4096; i++) last = alloc(1);
    EXPECT_EQ(last, 4096u);
    EXPECT_EQ(alloc(1), 0u);
    EXPECT_GT(system().header().in_use, in_use);
    g.end();
    EXPECT_EQ(system().header().in_use, 0u);
}

// The records that the host has not taken, as it reads them.
std::vector<DebugRecord> debug_records(std::span<const u8> memory) {
    SystemHeader header;
    std::memcpy(&header, memory.data(), sizeof header);
    std::vector<DebugRecord> records(header.debug_count - header.debug_taken);
    for (u64 i = 0; i < records.size(); i++) {
        const u64 place = (header.debug_taken + i) % header.debug_capacity;
        const u64 at = (u64{header.debug} << handle_shift) + place * sizeof(DebugRecord);
        std::memcpy(&records[i], memory.data() + at, sizeof(DebugRecord));
        EXPECT_EQ(records[i].turn, header.debug_taken + i + 1);
    }
    return records;
}

TEST_F(Calls, Debug) {
    options.debug_capacity = 16;
    Caller g(system(), 3);
    g.call_raw(SystemCall::debug_i32, {u32(-5)});
    g.call_raw(SystemCall::debug_i64, {u64(-6)});
    g.call_raw(SystemCall::debug_f32, {0x3fc00000});
    g.call_raw(SystemCall::debug_f64, {0x3ff8000000000000});
    g.call_raw(SystemCall::debug_bool, {7});
    Text text = g.text("hello");
    g.call_raw(SystemCall::debug_str, {text.at, text.length});
    g.call_raw(SystemCall::debug_str, {~0u, 10});  // not there: nothing
    text = g.text(std::string(300, 'x'));
    g.call_raw(SystemCall::debug_str, {text.at, text.length});
    g.call_raw(SystemCall::debug_str, {0, 0});
    std::vector<DebugRecord> records = debug_records(system().used());
    ASSERT_EQ(records.size(), 8u);
    const std::pair<DebugKind, u64> expected[] = {
        {DebugKind::i32, u32(-5)},    {DebugKind::i64, u64(-6)},
        {DebugKind::f32, 0x3fc00000}, {DebugKind::f64, 0x3ff8000000000000},
        {DebugKind::boolean, 1},      {DebugKind::text, 5},
        {DebugKind::text, 300},       {DebugKind::text, 0}};
    for (u32 i = 0; i < 8; i++) {
        EXPECT_EQ(records[i].process, 3u);
        EXPECT_EQ(records[i].kind, expected[i].first);
        EXPECT_EQ(records[i].value, expected[i].second) << i;
    }
    EXPECT_EQ(std::string(reinterpret_cast<char*>(records[5].text), 5), "hello");
    EXPECT_EQ(records[6].text[debug_text_bytes - 1], 'x');
}

// A call waits while more than half of the places are taken.
TEST_F(Calls, DebugWaitsForTheHost) {
    options.debug_capacity = 4;
    Caller g(system(), 3);
    for (u32 i = 0; i < 3; i++) g.call_raw(SystemCall::debug_i32, {i});
    EXPECT_EQ(g.turns(), 1u);
    EXPECT_EQ(debug_records(system().used()).size(), 3u);
    g.call_raw(SystemCall::debug_i32, {3});
    EXPECT_EQ(g.turns(), 2u);
    std::vector<DebugRecord> records = debug_records(system().used());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].value, 3u);
}

TEST_F(Calls, DebugThatNobodyWants) {
    guest().call_raw(SystemCall::debug_i32, {1});
    EXPECT_EQ(system().header().debug_count, 0u);
}

}  // namespace
}  // namespace gpurun::test
