// Loads and stores words of the mailbox. Each says which access of the device it pairs with.
#include "host/mailbox.h"

#include <algorithm>
#include <atomic>

#include "abi/ring.h"
#include "base/check.h"

namespace gpurun::host {
namespace {

static_assert(std::atomic_ref<u64>::is_always_lock_free);

template <class T>
T load_acquire(T& from) {
    return std::atomic_ref<T>(from).load(std::memory_order_acquire);
}
template <class T>
void store_release(T& to, T value) {
    std::atomic_ref<T>(to).store(value, std::memory_order_release);
}

// Returns how many bytes a message of the kind has at least, or nullopt if it is not for the host.
std::optional<u32> least_payload(MessageKind kind) {
    switch (kind) {
        case MessageKind::program_ready: return sizeof(ProgramNumber);
        case MessageKind::spawned: return sizeof(SpawnAnswer);
        case MessageKind::ended: return sizeof(EndedProcess);
        case MessageKind::output:
        case MessageKind::taken: return sizeof(StreamBytes);
        case MessageKind::pong: return sizeof(Ping);
        case MessageKind::want_block: return sizeof(BlockRequest);
        case MessageKind::record: return sizeof(DebugRecord);
        case MessageKind::idle:
        case MessageKind::broken: return 0;
        default: return std::nullopt;
    }
}

}  // namespace

MailboxEnd::MailboxEnd(Mailbox& mailbox)
    : mailbox_(mailbox),
      in_head_(load_acquire(mailbox.in_head)),
      in_tail_(mailbox.in_tail),
      out_head_(mailbox.out_head) {
    payload_.reserve(max_message);
}

Result<bool> MailboxEnd::send(MessageKind kind, std::span<const u8> first,
                              std::span<const u8> rest) {
    const u64 payload = first.size() + rest.size();
    CHECK(payload <= max_message);
    if (is_in_broken_) return damaged_mailbox("the ring to the device");
    RingRoom room = ring_room(in_head_, in_tail_, in_ring_bytes, payload);
    if (!room.fits) {
        const u64 head = load_acquire(mailbox_.in_head);  // pairs with the device's store of it
        if (!ring_can_be(head, in_tail_, in_ring_bytes) || in_tail_ - head > in_tail_ - in_head_) {
            is_in_broken_ = true;
            return damaged_mailbox("the ring to the device");
        }
        in_head_ = head;
        room = ring_room(in_head_, in_tail_, in_ring_bytes, payload);
        if (!room.fits) return false;
    }
    u8* ring = mailbox_.in_ring;
    auto put = [&](u64 at, MessageKind what, u64 size) {
        const MessageHead head = message_head(what, u32(size));
        std::memcpy(ring + at, &head, sizeof head);
    };
    if (room.skip != 0) put(room.skip_at, MessageKind::skip, room.skip - sizeof(MessageHead));
    put(room.at, kind, payload);
    u8* to = ring + room.at + sizeof(MessageHead);
    if (!first.empty()) std::memcpy(to, first.data(), first.size());
    if (!rest.empty()) std::memcpy(to + first.size(), rest.data(), rest.size());
    in_tail_ = room.tail;
    store_release(mailbox_.in_tail, in_tail_);  // pairs with the mailbox warp's load
    return true;
}

Result<std::optional<Message>> MailboxEnd::take() {
    using Answer = std::optional<Message>;
    if (is_out_broken_) return damaged_mailbox("the ring to the host");
    const u64 tail = load_acquire(mailbox_.out_tail);  // pairs with the mailbox warp's store
    const u8* ring = mailbox_.out_ring;
    const RingNext next = ring_next(out_head_, tail, out_ring_bytes, [&](u64 at) {
        MessageHead head;
        std::memcpy(&head, ring + at, sizeof head);
        return head;
    });
    if (next.state == RingState::empty) return Answer();
    const std::optional<u32> least = least_payload(next.what.kind);
    if (next.state == RingState::broken || !least || next.what.size < *least) {
        is_out_broken_ = true;
        return damaged_mailbox(next.state == RingState::broken ? "the ring to the host"
                               : !least                        ? "a message of no kind for the host"
                                                               : "a message that is too short");
    }
    payload_.assign(ring + next.at, ring + next.at + next.what.size);
    out_head_ = next.head;
    store_release(mailbox_.out_head, out_head_);  // pairs with the mailbox warp's load
    return Answer(Message{next.what.kind, payload_});
}

u32 MailboxEnd::bell() const { return load_acquire(mailbox_.bell); }
void MailboxEnd::set_stop(u32 stop) { store_release(mailbox_.stop, stop); }
void MailboxEnd::set_share(u32 percent) { store_release(mailbox_.share, percent); }

std::optional<MachineStats> MailboxEnd::stats() const {
    constexpr usize count = sizeof(MachineStats) / sizeof(u64);
    u64* from = reinterpret_cast<u64*>(&mailbox_.stats);
    static_assert(offsetof(MachineStats, sequence) == 0);
    for (u32 tries = 0; tries < 100; tries++) {
        u64 copy[count];
        copy[0] = load_acquire(from[0]);
        if (copy[0] & 1) continue;
        for (usize i = 1; i < count; i++)
            copy[i] = std::atomic_ref<u64>(from[i]).load(std::memory_order_acquire);
        if (load_acquire(from[0]) != copy[0]) continue;
        MachineStats stats;
        std::memcpy(&stats, copy, sizeof stats);
        return stats;
    }
    return std::nullopt;
}

}  // namespace gpurun::host
