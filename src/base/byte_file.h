// The form of our own files: numbers of 64 bits, the least significant byte first; bytes and text
// after their length. Nothing that is read is trusted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ints.h"

namespace gpurun {

inline std::string_view as_text(std::span<const u8> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ByteWriter {
public:
    void number(u64 n) {
        for (u32 i = 0; i < 8; i++) bytes.push_back(u8(n >> (8 * i)));
    }
    void part(std::span<const u8> p) {
        number(p.size());
        bytes.insert(bytes.end(), p.begin(), p.end());
    }
    void text(std::string_view t) { part({reinterpret_cast<const u8*>(t.data()), t.size()}); }

    std::vector<u8> bytes;
};

// From the front; nothing and zeros once it has ended too early.
class ByteReader {
public:
    explicit ByteReader(std::span<const u8> bytes) : bytes_(bytes) {}
    u64 number() {
        u64 n = 0;
        std::span<const u8> taken = take(8);
        for (usize i = 0; i < taken.size(); i++) n |= u64(taken[i]) << (8 * i);
        return n;
    }
    std::span<const u8> part() { return take(number()); }
    std::string text() { return std::string(as_text(part())); }
    bool is_cut_off() const { return is_cut_off_; }
    bool is_at_end() const { return bytes_.empty(); }

private:
    std::span<const u8> take(u64 size) {
        is_cut_off_ |= size > bytes_.size();
        if (is_cut_off_) return {};
        std::span<const u8> taken = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return taken;
    }
    std::span<const u8> bytes_;
    bool is_cut_off_ = false;
};

}  // namespace gpurun
