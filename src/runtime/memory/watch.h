// Watching over the runtime's own writes (gpu-run --poison): every block of a process's words and
// every memory has a canary behind it, and what nobody has taken yet must still be zero.
#pragma once

#include "runtime/memory/state.h"

namespace gpurun::rt {

// How far beyond what is in use is looked at.
inline constexpr u32 watched_heap_words = 1 << 12;
inline constexpr u64 watched_bytes = 16 << 10;

inline void verify_memory(const Process& p, const u32* record, u32 id) {
    const u8* base = p.bytes + get<u64>(record, memory_base);
    u64 size = get<u64>(record, memory_bytes), capacity = get<u64>(record, memory_capacity);
    RUNTIME_CHECK(size <= capacity, id, u32(size >> page_bits));
    u64 end = capacity - size > watched_bytes ? size + watched_bytes : capacity;
    for (u64 i = size; i < end; i += 8) RUNTIME_CHECK(load_bytes<u64>(base + i) == 0, id, u32(i));
    for (u64 i = 0; i < canary_bytes; i += 8)
        RUNTIME_CHECK(load_bytes<u64>(base + capacity + i) == canary_pattern, id, u32(i));
}

// Nobody may have written where nothing is. The lists end: every link is lower than the last.
inline void verify_process(const Process& p, u32 id) {
    u32 last = max_words;
    for (u32 at = word(p.words, process_canaries); at != 0; at = word(p.words, at + 1)) {
        RUNTIME_CHECK(at < last, id, at);
        RUNTIME_CHECK(word(p.words, at) == (canary_word ^ at), id, at);
        last = at;
    }
    last = max_words;
    for (u32 at = word(p.words, process_memories); at != 0; at = word(p.words, at + memory_next)) {
        RUNTIME_CHECK(at < last, id, at);
        verify_memory(p, word_at(p.words, at), id);
        last = at;
    }
    u32 next = word(p.words, process_heap_next), end = word(p.words, process_heap_end);
    RUNTIME_CHECK(next <= end, id, next);
    if (end - next > watched_heap_words) end = next + watched_heap_words;
    for (u32 i = next; i < end; i++) RUNTIME_CHECK(word(p.words, i) == 0, id, i);
}

// For the test of the watch itself.
inline void spoil_canary(const Process& p) { word(p.words, word(p.words, process_canaries)) = 0; }

}  // namespace gpurun::rt
