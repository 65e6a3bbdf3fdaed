// Reads bytes and LEB128 numbers from a range of the module's bytes. The first error sticks:
// from then on every read yields zero and `at_end` holds, so that callers may check once.
#pragma once

#include "base/ints.h"

namespace gpurun::wasm {

class BinaryReader {
public:
    BinaryReader(const u8* bytes, u32 begin, u32 end)
        : base_(bytes), at_(bytes + begin), end_(bytes + end) {}

    u32 position() const { return u32(at_ - base_); }
    u32 end() const { return u32(end_ - base_); }
    u32 left() const { return u32(end_ - at_); }
    bool at_end() const { return at_ == end_; }
    const u8* data() const { return at_; }
    u8 peek() const { return at_ < end_ ? *at_ : 0; }

    bool ok() const { return !error_; }
    const char* error() const { return error_; }  // the suite's wording
    u32 error_offset() const { return error_offset_; }

    void fail(const char* what) { fail(what, position()); }
    [[gnu::cold]] void fail(const char* what, u32 offset) {
        if (error_) return;
        error_ = what;
        error_offset_ = offset;
        at_ = end_;
    }

    u8 byte() {
        if (at_ < end_) [[likely]]
            return *at_++;
        fail("unexpected end");
        return 0;
    }

    // Reads a little-endian number, for floats and vectors.
    template <class T>
    T fixed() {
        if (left() < sizeof(T)) {
            fail("unexpected end");
            return 0;
        }
        T value;
        __builtin_memcpy(&value, at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }

    void skip(u32 count, const char* what = "unexpected end") {
        if (count > left()) return fail(what);
        at_ += count;
    }

    u32 leb_u32() {
        if (at_ < end_ && *at_ < 0x80) [[likely]]
            return *at_++;
        return u32(leb_slow<32, false>());
    }
    u64 leb_u64() {
        if (at_ < end_ && *at_ < 0x80) [[likely]]
            return *at_++;
        return leb_slow<64, false>();
    }
    s32 leb_s32() { return s32(leb_signed<32>()); }
    s64 leb_s33() { return leb_signed<33>(); }
    s64 leb_s64() { return leb_signed<64>(); }

private:
    template <u32 bits>
    s64 leb_signed() {
        if (at_ < end_ && *at_ < 0x80) [[likely]]
            return s64(u64(*at_++) << 57) >> 57;
        return s64(leb_slow<bits, true>());
    }

    // Reads a LEB128 number of at most ceil(bits / 7) bytes. The unused bits of the last byte
    // repeat the sign.
    template <u32 bits, bool is_signed>
    [[gnu::noinline]] u64 leb_slow() {
        constexpr u32 last_shift = (bits - 1) / 7 * 7, last_bits = bits - last_shift;
        const u32 start = position();
        u64 value = 0;
        for (u32 shift = 0;; shift += 7) {
            if (at_ == end_) {
                fail("unexpected end");
                return 0;
            }
            u8 byte = *at_++;
            value |= u64(byte & 0x7f) << shift;
            if (shift == last_shift) {
                if (byte & 0x80) {
                    fail("integer representation too long", start);
                    return 0;
                }
                u32 sign_and_rest = byte >> (last_bits - (is_signed ? 1 : 0));
                u32 all_ones = 0x7f >> (last_bits - 1);
                if (sign_and_rest != 0 && !(is_signed && sign_and_rest == all_ones)) {
                    fail("integer too large", start);
                    return 0;
                }
            }
            if (!(byte & 0x80)) {
                u32 read = shift + 7;
                return is_signed && read < 64 ? u64(s64(value << (64 - read)) >> (64 - read))
                                              : value;
            }
        }
    }

    const u8* base_;
    const u8* at_;
    const u8* end_;
    const char* error_ = nullptr;
    u32 error_offset_ = 0;
};

}  // namespace gpurun::wasm
