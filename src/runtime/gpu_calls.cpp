// The import module `gpu`: who am I, device time, blocks of the device heap, debug printing.
#include "runtime/system.h"

namespace gpurun::rt {
namespace {

// Blocks of the device heap that a guest has: an array of these, by number from 1 on.
struct GuestBlock {
    Handle block;
    u32 size;
};

constexpr u32 max_guest_blocks = 4096;  // then alloc gives 0

GuestBlock* guest_block(const Call& call, u32 number) {
    if (number == 0 || number > call.me->guest_block_count) return nullptr;
    GuestBlock* found = at_handle<GuestBlock>(call.p, call.me->guest_blocks) + (number - 1);
    return found->block == 0 ? nullptr : found;
}

u32 alloc_block(const Call& call, u32 size) {
    ProcessBlock* me = call.me;
    if (size == 0) return 0;
    GuestBlock* all = at_handle<GuestBlock>(call.p, me->guest_blocks);
    u32 number = 0;
    while (number < me->guest_block_count && all[number].block != 0) number++;
    u64 used = me->guest_block_count * sizeof(GuestBlock);
    if (number == me->guest_block_count) {
        if (number == max_guest_blocks) return 0;
        if (me->guest_blocks == 0 || block_size(used) != block_size(used + sizeof(GuestBlock))) {
            Handle grown = take_copy(call.p, used + sizeof(GuestBlock),
                                     reinterpret_cast<const u8*>(all), used);
            if (grown == 0) return 0;
            if (me->guest_blocks != 0) give_block(call.p, me->guest_blocks, used);
            me->guest_blocks = grown;
            all = at_handle<GuestBlock>(call.p, grown);
        }
        me->guest_block_count++;
        all[number] = {0, 0};
    }
    Handle block = take_zeroed(call.p, size);
    if (block == 0) return 0;
    all[number] = {block, size};
    return number + 1;
}

void free_block(const Call& call, u32 number) {
    GuestBlock* block = guest_block(call, number);
    if (block == nullptr) return;
    give_block(call.p, block->block, block->size);
    block->block = 0;
}

// The same number with another size; 0, and nothing changed, if there is no memory.
u32 realloc_block(const Call& call, u32 number, u32 size) {
    GuestBlock* block = guest_block(call, number);
    if (block == nullptr) return number == 0 ? alloc_block(call, size) : 0;
    if (size == 0) {
        free_block(call, number);
        return 0;
    }
    u32 kept = size < block->size ? size : block->size;
    Handle grown = take_copy(call.p, size, at_handle<u8>(call.p, block->block), kept);
    if (grown == 0) return 0;
    give_block(call.p, block->block, block->size);
    *block = {grown, size};
    return number;
}

// How many bytes were copied between a block, from `offset` on, and the guest's memory.
u32 copy_block(Call& call, bool is_read) {
    u32 number = call.i32(), offset = call.i32(), address = call.i32(), count = call.i32();
    GuestBlock* block = guest_block(call, number);
    if (block == nullptr || !in_bounds(offset, count, block->size) ||
        call.in(address, count) == nullptr)
        return 0;
    u8* bytes = at_handle<u8>(call.p, block->block) + offset;
    if (is_read) {
        call.r.chore = {call.out(address, count), bytes, count, 0};
    } else {
        call.r.chore = {bytes, call.in(address, count), count, 0};
    }
    return count;
}

void debug(const Call& call, DebugKind kind, u64 value, const u8* text) {
    DebugRecord* record = next_debug_record(call);
    if (record == nullptr) return;
    record->value = value;
    for (u32 i = 0; text != nullptr && i < value && i < debug_text_bytes; i++)
        record->text[i] = text[i];
    record->kind = kind;
}

Outcome give(Call& call, u32 result) {
    word(call.r.fp, 0) = result;
    return call.done();
}

}  // namespace

Outcome call_gpu(Call& call, SystemCall which) {
    switch (which) {
        case SystemCall::instance_id: return give(call, call.me->id);
        case SystemCall::instance_count: return give(call, system_of(call.p).process_count);
        case SystemCall::lane_id: return give(call, lane_number());
        case SystemCall::time: {
            set<u64>(call.r.fp, 0, monotonic_ns(call.p));
            return call.done();
        }
        case SystemCall::alloc: return give(call, alloc_block(call, call.i32()));
        case SystemCall::realloc: {
            u32 number = call.i32(), size = call.i32();
            return give(call, realloc_block(call, number, size));
        }
        case SystemCall::free: free_block(call, call.i32()); return call.done();
        case SystemCall::read: return give(call, copy_block(call, true));
        case SystemCall::write: return give(call, copy_block(call, false));
        case SystemCall::debug_i32: debug(call, DebugKind::i32, call.i32(), nullptr); break;
        case SystemCall::debug_i64: debug(call, DebugKind::i64, call.i64(), nullptr); break;
        case SystemCall::debug_f32: debug(call, DebugKind::f32, call.i32(), nullptr); break;
        case SystemCall::debug_f64: debug(call, DebugKind::f64, call.i64(), nullptr); break;
        case SystemCall::debug_bool:
            debug(call, DebugKind::boolean, call.i32() != 0, nullptr);
            break;
        default: {  // debug_str
            u32 at = call.i32(), length = call.i32();
            const u8* text = call.in(at, length);
            if (text != nullptr) debug(call, DebugKind::text, length, text);
            break;
        }
    }
    return call.done();
}

void free_guest_blocks(const Process& p, ProcessBlock* me) {
    GuestBlock* all = at_handle<GuestBlock>(p, me->guest_blocks);
    for (u32 i = 0; i < me->guest_block_count; i++)
        if (all[i].block != 0) give_block(p, all[i].block, all[i].size);
    if (me->guest_blocks != 0)
        give_block(p, me->guest_blocks, me->guest_block_count * sizeof(GuestBlock));
    me->guest_blocks = me->guest_block_count = 0;
}

}  // namespace gpurun::rt
