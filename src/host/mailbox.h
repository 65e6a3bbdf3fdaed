// The host's end of a machine's mailbox (abi/machine.h): writes messages and takes those of the
// device, by copies of the indices of its own. Nothing here waits, and nothing that the device
// wrote is trusted: what cannot be is an Error, now and ever after.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/machine.h"
#include "base/ints.h"
#include "base/result.h"

namespace gpurun::host {

// Of what the device says and cannot be.
inline Error damaged_mailbox(const char* what) {
    return Error{std::string("the machine's mailbox is damaged: ") + what};
}

// What came from the device. The payload is a copy, there until the next is taken.
struct Message {
    MessageKind kind = MessageKind::skip;
    std::span<const u8> payload;

    // What the payload begins with; that it is that long was checked.
    template <class T>
    T as() const {
        T value;
        std::memcpy(&value, payload.data(), sizeof value);
        return value;
    }
    template <class T>
    std::span<const u8> after() const {
        return payload.subspan(sizeof(T));
    }
};

class MailboxEnd {
public:
    // The mailbox is as it was made, or as another end left it.
    explicit MailboxEnd(Mailbox& mailbox);

    // What follows each other in one message. False: there is no room until the device has read
    // some. One thread at a time.
    Result<bool> send(MessageKind kind, std::span<const u8> first, std::span<const u8> rest = {});
    template <class T>
        requires std::is_trivially_copyable_v<T>
    Result<bool> send(MessageKind kind, const T& first, std::span<const u8> rest = {}) {
        return send(kind, std::span(reinterpret_cast<const u8*>(&first), sizeof first), rest);
    }
    // The next message, if there is one. One thread at a time; another one may send meanwhile.
    Result<std::optional<Message>> take();

    u32 bell() const;
    void set_stop(u32 stop);  // stop_* (abi/burst.h)
    void set_share(u32 percent);
    // A consistent copy. Nothing: the device was writing it all the while.
    std::optional<MachineStats> stats() const;

private:
    Mailbox& mailbox_;
    u64 in_head_, in_tail_;  // of the ring to the device: as last seen, and our own
    u64 out_head_;           // of the ring to the host
    bool is_in_broken_ = false, is_out_broken_ = false;
    std::vector<u8> payload_;
};

}  // namespace gpurun::host
