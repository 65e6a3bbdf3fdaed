// The device's ends of the two rings (abi/ring.h): reads and writes messages, rings the bell, and
// publishes statistics. Nothing of what it reads there is trusted.
#pragma once

#include "abi/ring.h"
#include "runtime/machine/tasks.h"
#include "runtime/mailbox/mailbox.h"

namespace gpurun::rt {

// All lanes of the mailbox warp take part.
class Rings {
protected:
    // While a lot happens the bell rings this often at the most: every ring costs the host a
    // wake-up.
    static constexpr u64 bell_every_ns = 8'000'000;
    static constexpr u32 most_bells = 16;  // that it may ring at once after a silence
    static constexpr u32 few_processes = 2;
    static constexpr u32 messages_a_turn = 64;

    Rings(const Machine& m, Mailbox& mailbox)
        : m_(m), p_(m.nobody()), mailbox_(mailbox), pulse_(m, mailbox_warp, 0) {}

    // Goes on where an earlier launch left the rings.
    void begin_rings() {
        in_head_ = load_mapped(&mailbox_.in_head);
        out_tail_ = load_mapped(&mailbox_.out_tail);
        out_head_ = load_mapped(&mailbox_.out_head);
        scratch_ = at_handle<u8>(p_, load_shared(&m_.header->scratch));
    }

    // ---- to the host

    // Writes a message whose payload is `head`, then bytes in two parts. Returns false if there is
    // no room now.
    template <class T>
    bool send(MessageKind kind, const T& head, Chore first = {}, Chore second = {}) {
        const u64 size = sizeof(T) + first.count + second.count;
        RingRoom room = ring_room(out_head_, out_tail_, out_ring_bytes, size);
        if (!room.fits) {
            out_head_ = shuffle(lane_id() == 0 ? load_mapped(&mailbox_.out_head) : u64{0}, 0);
            if (!ring_can_be(out_head_, out_tail_, out_ring_bytes)) is_broken_ = true;
            room = ring_room(out_head_, out_tail_, out_ring_bytes, size);
            if (!room.fits || is_broken_) return false;
        }
        u8* ring = mailbox_.out_ring;
        if (lane_id() == 0) {
            if (room.skip != 0)
                store_as(ring + room.skip_at,
                         message_head(MessageKind::skip, u32(room.skip - sizeof(MessageHead))));
            store_as(ring + room.at, message_head(kind, u32(size)));
            store_as(ring + room.at + sizeof(MessageHead), head);
        }
        u8* to = ring + room.at + sizeof(MessageHead) + sizeof(T);
        if (first.count != 0) do_part({to, first.from, first.count, 0});
        if (second.count != 0) do_part({to + first.count, second.from, second.count, 0});
        sync_warp();
        out_tail_ = room.tail;
        has_news_ = true;
        is_urgent_ |= is_answer(kind);
        return true;
    }
    // Returns true if there is room for a message with so many bytes of payload.
    bool has_room(u64 size) {
        if (ring_room(out_head_, out_tail_, out_ring_bytes, size).fits) return true;
        out_head_ = shuffle(lane_id() == 0 ? load_mapped(&mailbox_.out_head) : u64{0}, 0);
        is_broken_ |= !ring_can_be(out_head_, out_tail_, out_ring_bytes);
        return !is_broken_ && ring_room(out_head_, out_tail_, out_ring_bytes, size).fits;
    }
    template <class T>
    static void store_as(u8* to, const T& value) {
        const u8* from = reinterpret_cast<const u8*>(&value);
        static_assert(sizeof(T) % 8 == 0);
        for (u32 i = 0; i < sizeof(T); i += 8) {
            u64 piece;
            __builtin_memcpy(&piece, from + i, 8);
            *reinterpret_cast<u64*>(to + i) = piece;
        }
    }

    // Returns true for what the host waits for: as often as it asks. How processes come and go is
    // that while there are hardly any.
    bool is_answer(MessageKind kind) const {
        if (kind == MessageKind::spawned || kind == MessageKind::ended)
            return shuffle(lane_id() == 0 ? load_relaxed(&m_.header->alive) : 0, 0) <=
                   few_processes;
        return kind == MessageKind::pong || kind == MessageKind::program_ready ||
               kind == MessageKind::want_block;
    }

    // Lets the host read what was written, and rings the bell if it has been silent for a while.
    void publish(u64 now) {
        if (has_news_) {
            if (lane_id() == 0) store_mapped(&mailbox_.out_tail, out_tail_);
            has_news_ = false;
            must_ring_ = true;
        }
        // Every so often it may ring once more.
        const u64 earned = (now - last_earned_) / bell_every_ns;
        if (earned > 0) {
            bells_ = bells_ + earned < most_bells ? bells_ + u32(earned) : most_bells;
            last_earned_ += earned * bell_every_ns;
        }
        if (must_ring_ && (bells_ > 0 || is_urgent_)) {
            if (lane_id() == 0) ring_bell(&mailbox_.bell);
            must_ring_ = is_urgent_ = false;
            if (bells_ > 0) bells_--;
        }
        if (now - last_stats_ < stats_every_ns) return;
        last_stats_ = now;
        publish_stats();
        if (lane_id() == 0) store_relaxed(&m_.header->share, load_mapped(&mailbox_.share));
    }

    void publish_stats() {
        if (lane_id() == 0) {
            const u64* from = &m_.header->stats.now;
            u64* to = &mailbox_.stats.now;
            const u64 sequence = load_mapped(&mailbox_.stats.sequence);
            store_mapped(&mailbox_.stats.sequence, sequence + 1);
            for (u32 i = 0; i < sizeof(MachineStats) / 8 - 1; i++)
                store_mapped(to + i, load_relaxed(from + i));
            store_mapped(&mailbox_.stats.sequence, sequence + 2);
        }
        sync_warp();
    }

    // ---- from the host

    // Reads the payload, from where the host cannot change it any more. Returns false if it is not
    // of that size.
    template <class T>
    bool read(const MessageHead& head, u64 at, T& value) {
        if (head.size < sizeof(T)) {
            is_broken_ = true;
            return false;
        }
        do_part({scratch_, mailbox_.in_ring + at, head.size, 0});
        sync_warp();
        __builtin_memcpy(&value, scratch_, sizeof(T));
        sync_warp();
        return true;
    }

    const Machine& m_;
    const Process p_;
    Mailbox& mailbox_;
    Pulse pulse_;
    u8* scratch_ = nullptr;
    // Alike on all lanes.
    u64 in_head_ = 0, out_tail_ = 0, out_head_ = 0;
    u64 last_earned_ = 0, last_stats_ = 0;
    u32 bells_ = most_bells;
    bool has_news_ = false, must_ring_ = false, is_urgent_ = false, is_broken_ = false;
};

}  // namespace gpurun::rt
