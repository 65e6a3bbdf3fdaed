// The host's end of a machine's mailbox (abi/machine.h): writes messages and takes those of the
// device, by its own copies of the indices. Nothing here waits, and nothing that the device wrote
// is trusted: an impossible value is an Error, and the end stays unusable from then on.
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

// Returns the Error for an impossible value that the device wrote.
inline Error damaged_mailbox(const char* what) {
    return Error{std::string("the machine's mailbox is damaged: ") + what};
}

// A message from the device. The payload is a copy, valid until the next message is taken.
struct Message {
    MessageKind kind = MessageKind::skip;
    std::span<const u8> payload;

    // Returns the structure that the payload begins with. Its length has been checked.
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
    // Takes a mailbox that is new, or that another end has used.
    explicit MailboxEnd(Mailbox& mailbox);

    // Sends one message with both parts as its payload. Returns false if there is no room until the
    // device has read some. One thread at a time.
    Result<bool> send(MessageKind kind, std::span<const u8> first, std::span<const u8> rest = {});
    template <class T>
        requires std::is_trivially_copyable_v<T>
    Result<bool> send(MessageKind kind, const T& first, std::span<const u8> rest = {}) {
        return send(kind, std::span(reinterpret_cast<const u8*>(&first), sizeof first), rest);
    }
    // Returns the next message, if there is one. One thread at a time; another one may send
    // meanwhile.
    Result<std::optional<Message>> take();

    u32 bell() const;
    void set_stop(u32 stop);  // stop_* (abi/burst.h)
    void set_share(u32 percent);
    // Returns a consistent copy, or nullopt if the device kept writing it.
    std::optional<MachineStats> stats() const;

private:
    Mailbox& mailbox_;
    u64 in_head_, in_tail_;  // of the ring to the device: as last seen, and our own
    u64 out_head_;           // of the ring to the host
    bool is_in_broken_ = false, is_out_broken_ = false;
    std::vector<u8> payload_;
};

}  // namespace gpurun::host
