// Reads structures of abi/system.h in a copy of system memory. The copy is not trusted: whatever it
// holds, the answer is a value or an Error with the byte offset, in time bounded by its size.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/system.h"
#include "base/ints.h"
#include "base/result.h"
#include "host/system_base.h"

namespace gpurun::host {

using Arena = std::span<const u8>;

inline Error broken(const char* what, u64 offset) {
    return Error{std::string("system memory is damaged: ") + what, offset};
}

inline u64 offset_of(Handle handle) { return u64{handle} << handle_shift; }

// Returns the bytes of `count` elements of `size` bytes, both below 2^32.
inline Result<Arena> bytes_at(Arena arena, u64 offset, u64 count, u64 size, const char* what) {
    if (offset > arena.size() || count * size > arena.size() - offset) return broken(what, offset);
    return arena.subspan(offset, count * size);
}

template <class T>
Result<T> value_at(Arena arena, u64 offset, const char* what) {
    Arena bytes = TRY(bytes_at(arena, offset, 1, sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

template <class T>
T element(Arena bytes, usize i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

Result<Node> node_at(Arena arena, Handle handle);

struct Name {
    std::string_view text;  // a name that a directory of the host can hold
    Handle node;
};
// Returns a directory's entries that are not removed, sorted by name. A name that comes twice is an
// Error.
Result<std::vector<Name>> names_in(Arena arena, Handle directory);

Result<std::string_view> symlink_text(Arena arena, const Node& node);

// The contents of a file or a stream, block by block.
class Content {
public:
    // Without a base, a cold file's missing blocks are an Error.
    static Result<Content> make(Arena arena, Handle handle, const SystemBase* system_base);

    const Node& node() const { return node_; }
    u64 size() const { return node_.size; }
    u64 block_count() const { return block_count_; }  // the rest is a hole
    // Returns the first block from `number` on that may not be a hole, or block_count().
    u64 next_block(u64 number) const;
    // Returns a block's bytes, those below size(), or none if it is a hole.
    Result<Arena> block(u64 number);

private:
    // Returns the handles of blocks that table `number` of a deep node has. Other nodes have one
    // table.
    Arena table(u64 number) const;
    Result<void> check_tables(u64 offset) const;

    Arena arena_;
    Node node_;
    Arena content_;  // Handle[]
    u64 blocks_a_table_ = 0;
    u64 block_count_ = 0;
    const SystemBase* system_base_ = nullptr;
    u32 host_id_ = 0;
    std::vector<u8> cold_;  // what was read of a cold file
    u64 cold_first_ = 0;
    u64 heap_end_ = 0;
};

}  // namespace gpurun::host
