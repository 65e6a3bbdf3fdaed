// Pipes between processes that block: whoever waits for bytes, for room or for the other end to
// close gets on, in whatever order both come; bytes come once and in order, and all memory is given
// back.
#include <cstring>

#include "small_machine.h"

namespace gpurun::test {
namespace {

constexpr u64 reads = wasi::right_fd_read, writes = wasi::right_fd_write;

struct Piped {
    SmallMachine m;
    Handle node;
    Descriptor ends[SmallMachine::entries];
    u32 got_count;
    u8 got[8];
    u32 errors[SmallMachine::entries];

    PipeBlock* pipe() { return pipe_of(m.machine().nobody(), node_at(m.machine().nobody(), node)); }

    void begin(u32 writers) {
        m.begin(1 + writers);
        m.heap_before = m.system.in_use;
        node = make_pipe(m.machine().nobody(), 1);
        REQUIRE(node != 0);
        for (u32 i = 1; i <= 1 + writers; i++) {
            ends[i].kind = DescriptorKind::stream;
            ends[i].node = node;
            ends[i].rights = i == 1 ? reads : writes;
            open_pipe(m.machine().nobody(), node, ends[i].rights);
        }
    }
    // Nearly full, with its end inside the buffer.
    void fill_up(u64 room) {
        PipeBlock* block = pipe();
        block->read = 40000;
        block->written = block->read + pipe_bytes - room;
        std::memset(at_handle<u8>(m.machine().nobody(), block->buffer), 'x', pipe_bytes);
    }

    // How many bytes went. The vector is at 0, the result at 8, the bytes at 16.
    u32 transfer(u32 i, bool is_write, u32 count) {
        const u32 vector[2] = {16, count};
        std::memcpy(m.memory[i], vector, sizeof vector);
        errors[i] = m.call(
            i, [&](Call& call) { return call_pipe_transfer(call, &ends[i], is_write, 0, 1, 8); });
        return errors[i] != 0 ? 0 : load_bytes<u32>(m.memory[i] + 8);
    }
    u32 read(u32 most) {
        const u32 count = transfer(1, false, most);
        REQUIRE(got_count + count <= sizeof got);
        std::memcpy(got + got_count, m.memory[1] + 16, count);
        got_count += count;
        return count;
    }
    void write(u32 i, const char* bytes) {
        const u32 count = u32(std::strlen(bytes));
        std::memcpy(m.memory[i] + 16, bytes, count);
        const u32 went = transfer(i, true, count);
        REQUIRE(errors[i] == u32(Errno::pipe) || went == count);
    }
    void close(u32 i) { close_pipe(m.machine().nobody(), node, ends[i].rights); }

    // Process 1 polls the pipe twice, as if it were several: how many events. Its descriptor is 0.
    u32 poll() {
        u8* memory = m.memory[1];
        std::memset(memory, 0, sizeof m.memory[1]);
        for (u32 i = 0; i < 2; i++) memory[i * 48 + 8] = wasi::event_fd_read;
        const u32 arguments[] = {0, 96, 2, 160};
        errors[1] = m.call(1, [&](Call& call) {
            std::memcpy(m.words[1] + SmallMachine::frame_at, arguments, sizeof arguments);
            return call_poll(call, SystemCall::poll_oneoff);
        });
        return load_bytes<u32>(memory + 160);
    }
    void begin_polled() {
        m.begin(2);
        m.heap_before = m.system.in_use;
        node = make_pipe(m.machine().nobody(), 1);
        ends[2] = {DescriptorKind::stream, node, 0, writes, 0, 0, 0};
        open_pipe(m.machine().nobody(), node, writes);
        u32 fd;
        const Process nobody = m.machine().nobody();
        const Owner owner = owner_of(nobody, m.block_of(1));
        add_descriptor(
            owner,
            {DescriptorKind::stream, node, 0, reads | wasi::right_poll_fd_readwrite, 0, 0, 0}, fd);
        REQUIRE(fd == 0);
    }
    void close_polled() {
        const Process nobody = m.machine().nobody();
        close_descriptor(owner_of(nobody, m.block_of(1)), 0);
    }

    void all_is_given_back() {
        m.nothing_waits();
        REQUIRE(m.system.in_use == m.heap_before);
    }
};

void read_to_the_end(Piped& s) {
    while (s.read(4) != 0) {
    }
    s.close(1);
}
void read_once(Piped& s) {
    REQUIRE(s.read(4) == 4);
    s.close(1);
}
void do_not_read(Piped& s) { s.close(1); }
void write_ab_c(Piped& s) {
    s.write(2, "ab");
    s.write(2, "c");
    s.close(2);
}
template <u32 i>
void write_two(Piped& s) {
    s.write(i, i == 2 ? "ab" : "cd");
    s.close(i);
}
void write_four(Piped& s) {
    s.write(2, "abcd");
    s.close(2);
}

EXPLORING_TEST(Pipe, BringsBytesAndItsEnd) {
    check("a write of 2 bytes, read to the end",
          Scenario<Piped>{.begin = [](Piped& s) { s.begin(1); },
                          .actors = {read_to_the_end, write_two<2>},
                          .at_end =
                              [](Piped& s) {
                                  REQUIRE(s.got_count == 2);
                                  REQUIRE(std::memcmp(s.got, "ab", 2) == 0);
                                  s.all_is_given_back();
                              },
                          .watched = SmallMachine::watched});
    check("writes of 2 and 1 bytes, read to the end, interrupted 3 times",
          Scenario<Piped>{.begin = [](Piped& s) { s.begin(1); },
                          .actors = {read_to_the_end, write_ab_c},
                          .at_end =
                              [](Piped& s) {
                                  REQUIRE(s.got_count == 3);
                                  REQUIRE(std::memcmp(s.got, "abc", 3) == 0);
                                  s.all_is_given_back();
                              },
                          .watched = SmallMachine::watched},
          interrupted(3));
}
EXPLORING_TEST(Pipe, WaitsForRoom) {
    check("a write of 4 bytes where 2 have room, and one read",
          Scenario<Piped>{.begin =
                              [](Piped& s) {
                                  s.begin(1);
                                  s.fill_up(2);
                              },
                          .actors = {read_once, write_four},
                          .at_end =
                              [](Piped& s) {
                                  REQUIRE(std::memcmp(s.got, "xxxx", 4) == 0);
                                  s.all_is_given_back();
                              },
                          .watched = SmallMachine::watched});
}
EXPLORING_TEST(Pipe, IsBrokenWhereNobodyReads) {
    check("a write that waits for room until the reader closes",
          Scenario<Piped>{.begin =
                              [](Piped& s) {
                                  s.begin(1);
                                  s.fill_up(2);
                              },
                          .actors = {do_not_read, write_four},
                          .at_end =
                              [](Piped& s) {
                                  REQUIRE(s.errors[2] == u32(Errno::pipe));
                                  s.all_is_given_back();
                              },
                          .watched = SmallMachine::watched});
}
void poll_to_the_end(Piped& s) {
    REQUIRE(s.poll() >= 1);  // it may come between the two
    s.close_polled();
}
void only_close(Piped& s) { s.close(2); }

EXPLORING_TEST(Pipe, WakesWhoPollsSeveral) {
    check("a write of 2 bytes to a pipe that is polled, interrupted 4 times",
          Scenario<Piped>{.begin = [](Piped& s) { s.begin_polled(); },
                          .actors = {poll_to_the_end, write_two<2>},
                          .at_end = [](Piped& s) { s.all_is_given_back(); },
                          .watched = SmallMachine::watched},
          interrupted(4));
    check("the only writer of a pipe that is polled closes",
          Scenario<Piped>{.begin = [](Piped& s) { s.begin_polled(); },
                          .actors = {poll_to_the_end, only_close},
                          .at_end = [](Piped& s) { s.all_is_given_back(); },
                          .watched = SmallMachine::watched});
}
// Whoever gets the memory of a pipe that is gone may do with it as it likes.
template <u32 i>
void use_and_leave(Piped& s) {
    const Process nobody = s.m.machine().nobody();
    if (i == 1)
        s.read(4);
    else
        s.write(i, "ab");
    s.close(i);
    take_zeroed(nobody, sizeof(PipeBlock));
    take_zeroed(nobody, sizeof(Node));
}
EXPLORING_TEST(Pipe, IsGivenBackByTheLast) {
    check("one reads, one writes, both close, and its memory is used again; interrupted 3 times",
          Scenario<Piped>{.begin =
                              [](Piped& s) {
                                  s.begin(1);
                                  s.m.header.no_words[process_canaries] = 1;
                              },
                          .actors = {use_and_leave<1>, use_and_leave<2>},
                          .at_end = [](Piped& s) { s.m.nothing_waits(); },
                          .watched = SmallMachine::watched},
          interrupted(3));
}
EXPLORING_TEST(Pipe, DoesNotTearWhatTwoWrite) {
    check("2 writers, interrupted twice",
          Scenario<Piped>{.begin = [](Piped& s) { s.begin(2); },
                          .actors = {read_to_the_end, write_two<2>, write_two<3>},
                          .at_end =
                              [](Piped& s) {
                                  REQUIRE(s.got_count == 4);
                                  REQUIRE(std::memcmp(s.got, "abcd", 4) == 0 ||
                                          std::memcmp(s.got, "cdab", 4) == 0);
                                  s.all_is_given_back();
                              },
                          .watched = SmallMachine::watched},
          interrupted(2), {.preemptions = 1});
}

}  // namespace
}  // namespace gpurun::test
