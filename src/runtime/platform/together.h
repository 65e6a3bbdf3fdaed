// Does chores with all lanes of a warp together.
//
// Where each lane runs a process, all lanes do one lane's chore after another. Where the warp runs
// one process, the first lane puts its chore into shared memory and meets the others; all do their
// part, and meet again. Meanwhile the others wait at the barrier, which costs nothing.
#pragma once

#include "abi/burst.h"
#include "runtime/platform/chore.h"

namespace gpurun::rt {

template <class T>
inline T load_aligned(const u8* p) {
    return *global(reinterpret_cast<const T*>(p));
}
// Reads a word that lies across two aligned ones.
inline u32 load_across(const u8* p) {
    const usize at = reinterpret_cast<usize>(p);
    const u32 shift = u32(at & 3) * 8;
    const auto* words = global(reinterpret_cast<const u32*>(at & ~usize{3}));
    return words[0] >> shift | words[1] << (32 - shift);
}

// Copies several elements per lane and step, whose loads overlap in time. In each step all lanes
// read before any writes, so the ranges may overlap as long as the steps go the right way.
template <class T, T (*load)(const u8*) = load_aligned<T>>
inline void copy_steps(u8* to, const u8* from, u64 count, bool is_backward) {
    constexpr u32 batch = 8;
    constexpr u64 row = warp_lanes * sizeof(T), step = batch * row;
    for (u64 done = 0; done < count; done += step) {
        u64 begin = !is_backward ? done : count > done + step ? count - done - step : 0;
        u64 end = is_backward ? count - done : count;
        T values[batch] = {};
        for (u32 i = 0; i < batch; i++) {
            u64 at = begin + i * row + lane_id() * sizeof(T);
            if (at < end) values[i] = load(from + at);
        }
        sync_warp();
        for (u32 i = 0; i < batch; i++) {
            u64 at = begin + i * row + lane_id() * sizeof(T);
            if (at < end) *global(reinterpret_cast<T*>(to + at)) = values[i];
        }
        sync_warp();
    }
}

// Does a chore; all lanes call it with the same one. Ends that do not lie on a boundary which both
// ranges share go first or last, by bytes.
inline void do_part(const Chore& chore) {
    u8* to = chore.to;
    const usize at = reinterpret_cast<usize>(to);
    const u64 count = chore.count;
    if (chore.from == nullptr) {
        u64 head = -at & 7, wide = u8(chore.value) * 0x0101010101010101ull;
        if (head > count) head = count;
        u64 body = (count - head) & ~u64{7};
        for (u64 i = lane_id(); i < head; i += warp_lanes) global(to)[i] = u8(chore.value);
        for (u64 i = lane_id() * 8; i < body; i += warp_lanes * 8)
            *global(reinterpret_cast<u64*>(to + head + i)) = wide;
        for (u64 i = head + body + lane_id(); i < count; i += warp_lanes)
            global(to)[i] = u8(chore.value);
        return;
    }
    const u8* from = chore.from;
    const bool is_backward = to > from && to < from + count;
    const usize difference = at ^ reinterpret_cast<usize>(from);
    const u64 unit = (difference & 7) == 0 ? 8 : 4;
    u64 head = -at & (unit - 1);
    if (head > count) head = count;
    const u64 body = (count - head) & ~(unit - 1), tail = count - head - body;
    copy_steps<u8>(to, from, is_backward ? 0 : head, false);
    if (is_backward) copy_steps<u8>(to + head + body, from + head + body, tail, true);
    if (unit == 8) copy_steps<u64>(to + head, from + head, body, is_backward);
    if (unit == 4 && (difference & 3) == 0)
        copy_steps<u32>(to + head, from + head, body, is_backward);
    if ((difference & 3) != 0)
        copy_steps<u32, load_across>(to + head, from + head, body, is_backward);
    if (is_backward) {
        copy_steps<u8>(to, from, head, true);
    } else {
        copy_steps<u8>(to + head + body, from + head + body, tail, false);
    }
}

inline void do_alone(const Chore& chore) {
    if (chore.from != nullptr) {
        copy_alone(chore.to, chore.from, chore.count);
    } else {
        fill_alone(chore.to, u8(chore.value), chore.count);
    }
}

inline constexpr u64 worth_help = 64;     // bytes
inline constexpr u32 chunk_steps = 4096;  // a multiple of 64: what a chunk takes of a quantum

#if GPURUN_SOLO

// The board, which has the chore, is at the start of the block's shared memory; the stack's window
// follows.
using SharedWord = __attribute__((address_space(3))) u32;
extern "C" __attribute__((address_space(3), aligned(16))) u32 gpurun_shared[];
using Board = __attribute__((address_space(3))) volatile Chore;
static_assert(sizeof(Chore) <= task_board_bytes);

inline Board* board() { return (Board*)gpurun_shared; }
inline SharedWord* window() { return gpurun_shared + task_board_bytes / 4; }

// Waits for all lanes of the warp. The wait ends because every lane but the first is in serve(),
// and the first comes here twice for each chore.
[[gnu::noinline]] inline void meet() { sync_warp(); }

inline void do_board() {
    do_part({(u8*)board()->to, (const u8*)board()->from, board()->count, board()->value});
}

// Does chores that the first lane puts on the board. All other lanes are in here until the first
// one puts a chore of no bytes there.
inline void serve() {
    for (;;) {
        meet();
        if (board()->count == 0) return;
        do_board();
        meet();
    }
}
inline void leave_others() {
    board()->count = 0;
    meet();
}

[[gnu::noinline]] inline void do_together(const Chore& chore) {
    board()->to = chore.to;
    board()->from = chore.from;
    board()->count = chore.count;
    board()->value = chore.value;
    meet();
    do_board();
    meet();
}

inline void do_chore(const Chore& chore) {
    if (chore.count > worth_help) {
        do_together(chore);
    } else if (chore.count > 0) {
        do_alone(chore);
    }
}
inline void do_chores(const Chore& chore) { do_chore(chore); }

#else

template <class T>
inline T* shuffle(T* pointer, u32 from_lane) {
    u64 bits = reinterpret_cast<u64>(pointer);
    return reinterpret_cast<T*>(u64(shuffle(u32(bits), from_lane)) |
                                u64(shuffle(u32(bits >> 32), from_lane)) << 32);
}

[[gnu::noinline]] inline void do_long_chores(const Chore& mine) {
    for (u32 left = ballot(mine.count > worth_help); left != 0; left &= left - 1) {
        u32 lane = lowest(left);
        do_part({shuffle(mine.to, lane), shuffle(mine.from, lane),
                 u64(shuffle(u32(mine.count), lane)), shuffle(mine.value, lane)});
    }
    sync_warp();
}

// Does the chore of a lane without help from the others.
inline void do_chore(const Chore& mine) {
    if (mine.count > 0) do_alone(mine);
}

// Does the chores of all lanes, which call it together, those without a chore with a count of 0. No
// chore is longer than 4 GiB. Where memories interleave each lane does its own: lanes in lockstep
// touch neighbouring words then.
inline void do_chores(const Chore& mine) {
    if (memories_interleave) {
        do_chore(mine);
        return sync_warp();
    }
    if (ballot(mine.count > worth_help) != 0) do_long_chores(mine);
    if (mine.count > 0 && mine.count <= worth_help) do_alone(mine);
    sync_warp();
}

#endif

}  // namespace gpurun::rt
