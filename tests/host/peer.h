// The device's end of a mailbox, played by a test.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "abi/machine.h"
#include "abi/ring.h"

namespace gpurun::test {

class Peer {
public:
    explicit Peer(Mailbox& mailbox) : mailbox_(mailbox) {}

    // False: there is no room.
    bool try_send(MessageKind kind, std::span<const u8> payload) {
        const RingRoom room = ring_room(std::atomic_ref(mailbox_.out_head).load(), out_tail_,
                                        out_ring_bytes, payload.size());
        if (!room.fits) return false;
        auto put = [&](u64 at, MessageKind what, u64 size) {
            MessageHead made = message_head(what, u32(size));
            std::memcpy(mailbox_.out_ring + at, &made, sizeof made);
        };
        if (room.skip) put(room.skip_at, MessageKind::skip, room.skip - sizeof(MessageHead));
        put(room.at, kind, payload.size());
        std::ranges::copy(payload, mailbox_.out_ring + room.at + sizeof(MessageHead));
        out_tail_ = room.tail;
        std::atomic_ref(mailbox_.out_tail).store(out_tail_);
        std::atomic_ref(mailbox_.bell).fetch_add(1);
        return true;
    }
    template <class T>
    void send(MessageKind kind, const T& value, std::string_view rest = "") {
        std::vector<u8> payload(sizeof value + rest.size());
        std::memcpy(payload.data(), &value, sizeof value);
        std::ranges::copy(rest, payload.begin() + sizeof value);
        while (!try_send(kind, payload)) std::this_thread::yield();
    }

    // Nothing: the ring is empty, or what is there cannot be.
    std::optional<std::pair<MessageKind, std::string>> take() {
        const u64 tail = std::atomic_ref(mailbox_.in_tail).load();
        RingNext next = ring_next(in_head_, tail, in_ring_bytes, [&](u64 at) {
            MessageHead head;
            std::memcpy(&head, mailbox_.in_ring + at, sizeof head);
            return head;
        });
        if (next.state != RingState::message) return std::nullopt;
        std::string payload(reinterpret_cast<char*>(mailbox_.in_ring + next.at), next.what.size);
        in_head_ = next.head;
        std::atomic_ref(mailbox_.in_head).store(in_head_);
        return std::pair(next.what.kind, payload);
    }
    bool is_stopped() const { return std::atomic_ref(mailbox_.stop).load() != stop_none; }

private:
    Mailbox& mailbox_;
    u64 in_head_ = 0, out_tail_ = 0;
};

}  // namespace gpurun::test
