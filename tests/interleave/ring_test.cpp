// The rings of the mailbox: what one end writes the other reads, once and in order, however the two
// take turns; and whatever a hostile end writes, the other stays within its ring.
#include "abi/ring.h"

#include <cstddef>
#include <cstring>

#include "runtime/platform/platform.h"
#include "scenarios.h"

namespace gpurun::test {
namespace {

using namespace rt;

constexpr u64 ring_bytes = 64;
constexpr u32 messages = 5;

struct Ring {
    u64 head, tail;
    alignas(16) u8 bytes[ring_bytes];
    u32 read[messages], read_count;
    u32 refusals;
};

// Of different sizes, so that they end where the ring does, and before.
constexpr u32 payload_of(u32 number) { return 4 + number % 3 * 8; }

void put(Ring& s, u64 at, const void* from, usize count) {
    REQUIRE(at + count <= ring_bytes);
    std::memcpy(s.bytes + at, from, count);
}
template <bool shares_stores>
void write_all(Ring& s) {
    u64 head = 0, tail = 0;
    for (u32 number = 0; number < messages;) {
        RingRoom room = ring_room(head, tail, ring_bytes, payload_of(number));
        if (!room.fits) {
            if (shares_stores) store_mapped(&s.tail, tail);
            s.refusals = 1;
            head = load_mapped(&s.head);
            REQUIRE(ring_can_be(head, tail, ring_bytes));
            room = ring_room(head, tail, ring_bytes, payload_of(number));
            if (!room.fits) {
                pause();
                continue;
            }
        }
        if (room.skip != 0) {
            const MessageHead skip =
                message_head(MessageKind::skip, u32(room.skip - sizeof(MessageHead)));
            put(s, room.skip_at, &skip, sizeof skip);
        }
        const MessageHead what = message_head(MessageKind::output, payload_of(number));
        put(s, room.at, &what, sizeof what);
        const u32 content = 100 + number;
        put(s, room.at + sizeof what, &content, sizeof content);
        tail = room.tail;
        number++;
        if (!shares_stores || number == messages) store_mapped(&s.tail, tail);
    }
}
void read_all(Ring& s) {
    u64 head = 0;
    while (s.read_count < messages) {
        const u64 tail = load_mapped(&s.tail);
        const RingNext next = ring_next(head, tail, ring_bytes, [&](u64 at) {
            MessageHead what;
            REQUIRE(at + sizeof what <= ring_bytes);
            std::memcpy(&what, s.bytes + at, sizeof what);
            return what;
        });
        REQUIRE(next.state != RingState::broken);
        if (next.state == RingState::empty) {
            // A skip may have been passed: the place is the writer's.
            if (next.head != head) store_mapped(&s.head, head = next.head);
            pause();
            continue;
        }
        REQUIRE(next.what.size == payload_of(s.read_count));
        std::memcpy(&s.read[s.read_count], s.bytes + next.at, 4);
        REQUIRE(s.read[s.read_count] == 100 + s.read_count);
        s.read_count++;
        head = next.head;
        store_mapped(&s.head, head);
    }
}
void all_were_read(Ring& s) { REQUIRE(s.read_count == messages && s.head == s.tail); }

EXPLORING_TEST(Ring, BringsAllInOrder) {
    for (auto writer : {write_all<false>, write_all<true>}) {
        ExploreOptions options;
        options.stops_after_writes = true;
        check("5 messages through 64 bytes",
              Scenario<Ring>{.begin = {},
                             .actors = {writer, read_all},
                             .at_end = all_were_read,
                             .watched = offsetof(Ring, read),
                             .host = 1 << 1},
              options, {.preemptions = 4, .stale_loads = 2});
    }
}

// ---- hostile ends ------------------------------------------------------------------

TEST(Ring, ABadIndexIsSeen) {
    for (u64 head : {0, 16, 48, 64, 112})
        for (u64 tail : {0, 8, 16, 17, 64, 80, 128, 1 << 20}) {
            const bool can_be = tail - head <= ring_bytes && tail % message_unit == 0;
            EXPECT_EQ(ring_can_be(head, tail, ring_bytes), can_be) << head << " " << tail;
            EXPECT_TRUE(can_be || ring_next(head, tail, ring_bytes, [](u64) {
                                      return MessageHead{};
                                  }).state == RingState::broken);
        }
    EXPECT_FALSE(ring_can_be(64, 48, ring_bytes));
    EXPECT_FALSE(ring_can_be(~u64{0} - 15, ~u64{0} - 15 + 80, ring_bytes));
}

// Whatever stands in the ring: a reader gets a message that lies in what was written, or none.
TEST(Ring, ABadMessageIsSeen) {
    const u32 sizes[] = {0, 1, 15, 16, 17, 32, 47, 48, 49, 64, max_message, max_message + 1, ~0u};
    const MessageKind kinds[] = {MessageKind::skip, MessageKind::output, MessageKind(999)};
    u32 got = 0, broken = 0;
    for (u64 base : {u64{0}, ~u64{0} - 127})
        for (u64 from = 0; from < ring_bytes; from += message_unit)
            for (u64 count = 0; count <= ring_bytes; count += message_unit)
                for (u32 size : sizes)
                    for (MessageKind kind : kinds)
                        for (u16 version : {u16(0), u16(message_version), u16(77)}) {
                            const u64 head = base + from, tail = head + count;
                            u32 looks = 0;
                            RingNext next = ring_next(head, tail, ring_bytes, [&](u64 at) {
                                looks++;
                                EXPECT_LE(at + sizeof(MessageHead), ring_bytes);
                                return MessageHead{size, kind, version, 0};
                            });
                            EXPECT_LE(looks, 2u);
                            if (next.state != RingState::message) {
                                broken += next.state == RingState::broken;
                                continue;
                            }
                            got++;
                            EXPECT_EQ(version, message_version);
                            EXPECT_LE(next.at + next.what.size, ring_bytes);
                            EXPECT_GT(next.head - head, next.what.size);
                            EXPECT_LE(next.head - head, count);
                        }
    EXPECT_GT(got, 100u);
    EXPECT_GT(broken, 1000u);
}

// A reader that claims to have read what it cannot have does not make the writer write elsewhere.
TEST(Ring, AWriterStaysInside) {
    for (u64 tail = 0; tail <= 2 * ring_bytes; tail += message_unit)
        for (u64 head = 0; head <= tail; head += message_unit)
            for (u64 payload : {0, 1, 16, 17, 48, 49, 64, 1 << 20}) {
                if (!ring_can_be(head, tail, ring_bytes)) continue;
                RingRoom room = ring_room(head, tail, ring_bytes, payload);
                if (!room.fits) continue;
                EXPECT_LE(room.at + sizeof(MessageHead) + payload, ring_bytes);
                EXPECT_TRUE(room.skip == 0 || room.skip_at + room.skip == ring_bytes);
                EXPECT_TRUE(ring_can_be(head, room.tail, ring_bytes));
            }
}

}  // namespace
}  // namespace gpurun::test
