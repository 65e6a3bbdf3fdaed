// Finds where a lane has the memory of its process, and reads and writes it there.
#include "burst/lane_process.h"

namespace gpurun::burst {

// Words of the lanes of a warp lie side by side, so those of all lanes are read.
Result<void> LaneProcess::read_words(u32 index, std::span<u32> words) {
    constexpr usize piece = 4096;
    std::vector<u32> all(std::min(piece, words.size()) * warp_lanes_);
    for (usize at = 0; at < words.size(); at += piece) {
        usize count = std::min(piece, words.size() - at);
        TRY(device_.copy_out(all.data(), word_at(index + u32(at)) - lane_ * 4,
                             count * warp_lanes_ * 4));
        for (usize i = 0; i < count; i++) words[at + i] = all[i * warp_lanes_ + lane_];
    }
    return {};
}

Result<void> LaneProcess::write_word(u32 index, u32 value) {
    return device_.copy_in(word_at(index), &value, sizeof value);
}

Result<void> LaneProcess::read_bytes(u64 offset, std::span<u8> bytes) {
    if (is_linear()) return device_.copy_out(bytes.data(), byte_at(offset), bytes.size());
    return for_rows(offset, bytes.size(), [&](u64 done, std::span<u8> rows, u64 within, u64 n) {
        for (u64 i = 0; i < n; i++) bytes[done + i] = rows[in_rows(within + i)];
        return false;
    });
}

Result<void> LaneProcess::write_bytes(u64 offset, std::span<const u8> bytes) {
    // The next process in this slot gets all of its memory anew.
    TRY(write_word(burst_.thread + thread_dirty, ~u32{0}));
    if (is_linear()) return device_.copy_in(byte_at(offset), bytes.data(), bytes.size());
    return for_rows(offset, bytes.size(), [&](u64 done, std::span<u8> rows, u64 within, u64 n) {
        for (u64 i = 0; i < n; i++) rows[in_rows(within + i)] = bytes[done + i];
        return true;
    });
}

// Calls `use(done, rows, within, count)` with the rows of bytes [offset + done, + count), of which
// the first is byte `within` of this lane's; writes the rows back if it returns true. The other
// lanes stand still.
template <class Use>
Result<void> LaneProcess::for_rows(u64 offset, u64 size, Use use) {
    constexpr u64 piece = u64{64} << 10;
    const u64 warp = slots_.bytes_at() + warp_ * warp_lanes_ * slots_.layout.bytes_per_process;
    for (u64 done = 0; done < size;) {
        const u64 first = (offset + done) / interleaved_granule,
                  within = (offset + done) % interleaved_granule,
                  count = std::min(size - done, piece - within);
        std::vector<u8> rows((within + count + interleaved_granule - 1) / interleaved_granule *
                             row_bytes());
        TRY(device_.copy_out(rows.data(), warp + first * row_bytes(), rows.size()));
        if (use(done, std::span<u8>(rows), within, count))
            TRY(device_.copy_in(warp + first * row_bytes(), rows.data(), rows.size()));
        TRY(device_.synchronize("reading interleaved memory"));
        done += count;
    }
    return {};
}

}  // namespace gpurun::burst
