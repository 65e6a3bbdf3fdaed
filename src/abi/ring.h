// Where messages go in a ring of the mailbox (abi/machine.h), and where the next one is. Numbers
// only: both ends keep copies of the two indices, and load and store by means of their own.
//
// The writer asks ring_room with the head that it last saw, stores the skip if there is one, the
// MessageHead and the payload, and then, with release, the tail. Several messages may share one
// such store. The reader asks ring_next with the tail that it loaded with acquire, looks at the
// payload, and then stores the head with release: from there on the place is the writer's.
#pragma once

#include "abi/machine.h"

namespace gpurun {

// A message in the ring: its head and its payload, in whole units.
constexpr u64 message_span(u64 payload) {
    return (sizeof(MessageHead) + payload + message_unit - 1) & ~u64{message_unit - 1};
}

// Whether two indices can be those of a ring of `size` bytes, a power of two.
constexpr bool ring_can_be(u64 head, u64 tail, u64 size) {
    return tail - head <= size && head % message_unit == 0 && tail % message_unit == 0;
}

constexpr MessageHead message_head(MessageKind kind, u32 payload) {
    return {payload, kind, message_version, 0};
}

// Where a message is written.
struct RingRoom {
    bool fits;    // false: later, once the reader has gone on
    u64 skip_at;  // byte in the ring of a message of kind `skip`,
    u64 skip;     // and its bytes, MessageHead and all; 0: there is none
    u64 at;       // of the MessageHead
    u64 tail;     // afterwards
};
constexpr RingRoom ring_room(u64 head, u64 tail, u64 size, u64 payload) {
    const u64 span = message_span(payload), at = tail & (size - 1), left = size - at;
    const u64 skip = span <= left ? 0 : left;
    if (payload > max_message || size - (tail - head) < skip + span) return {};
    return {true, at, skip, skip == 0 ? at : 0, tail + skip + span};
}

enum class RingState : u32 { empty, message, broken };

// What is next to be read. `what` is the reader's own copy: the ring is not looked at again.
struct RingNext {
    RingState state;
    MessageHead what;
    u64 at;    // byte in the ring of the payload
    u64 head;  // afterwards
};
// load_head(byte in the ring) copies a MessageHead. It is called twice at the most: a skip leads to
// the ring's start, where there is none.
template <class LoadHead>
constexpr RingNext ring_next(u64 head, u64 tail, u64 size, LoadHead load_head) {
    const RingNext broken{RingState::broken, {}, 0, head};
    if (!ring_can_be(head, tail, size)) return broken;
    for (u32 tries = 0; tries < 2; tries++) {
        if (head == tail) return {RingState::empty, {}, 0, head};
        const u64 at = head & (size - 1);
        const MessageHead what = load_head(at);
        const u64 span = message_span(what.size);
        const bool is_skip = what.kind == MessageKind::skip;
        if (what.version != message_version || what.size > max_message || span > tail - head ||
            span > size - at || (is_skip && (at == 0 || span != size - at)))
            return broken;
        if (!is_skip) return {RingState::message, what, at + sizeof(MessageHead), head + span};
        head += span;
    }
    return broken;
}

}  // namespace gpurun
