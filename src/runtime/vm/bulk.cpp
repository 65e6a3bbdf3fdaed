// Executes size, grow, fill, copy and init of memories and tables. Long operations do a chunk at a
// time and keep their progress in their operand slots.
#include "runtime/memory/state.h"

namespace gpurun::rt {
namespace {

u64 get_width(Slots fp, u32 slot, bool is_64) {
    return is_64 ? get<u64>(fp, slot) : get<u32>(fp, slot);
}
void set_width(Slots fp, u32 slot, bool is_64, u64 value) {
    if (is_64) {
        set<u64>(fp, slot, value);
    } else {
        set<u32>(fp, slot, u32(value));
    }
}

// The three operands of a long operation. They are written back as it proceeds, so that it can be
// interrupted and go on.
struct Range {
    Slots fp;
    u32 to_slot, from_slot, count_slot;
    u32 widths;
    u64 to, from, count;

    Range(Registers& r, u64 w, u32 width_flags)
        : fp(r.fp), to_slot(a_of(w)), from_slot(b_of(w)), count_slot(c_of(w)), widths(width_flags) {
        to = get_width(fp, to_slot, widths & width_to_64);
        from = get_width(fp, from_slot, widths & width_from_64);
        count = get_width(fp, count_slot, widths & width_count_64);
    }
    // Say that `done` elements at the front are done. copy_backward begins at the end, and so calls
    // neither.
    void advance_to(u64 done) { set_width(fp, to_slot, widths & width_to_64, to + done); }
    void advance_from(u64 done) { set_width(fp, from_slot, widths & width_from_64, from + done); }
    Outcome finish(Registers& r, u64 done, u32 length) {
        set_width(fp, count_slot, widths & width_count_64, count - done);
        if (done < count) return Outcome::chunk;
        r.pc += length;
        return Outcome::next;
    }
};

Outcome memory_grow(const Process& p, u32* thread, Registers& r, u64 w) {
    u32 at = word(r.instance, low_of(p.code[r.pc + 1]));
    u32* record = word_at(p.words, at);
    u64 pages = get<u64>(record, memory_bytes) >> page_bits;
    u64 delta = get_width(r.fp, b_of(w), c_of(w));
    u64 most = get<u64>(record, memory_max_pages),
        here = get<u64>(record, memory_capacity) >> page_bits;
    bool fits = pages <= most && delta <= most - pages;
    const u32 clipped = word(p.words, process_clipped);
    const bool is_held = (clipped & clipped_shared) && delta > 0;
    if (fits && (pages + delta > here || is_held)) {
        if (is_held || (clipped & clipped_memory)) {
            word(thread, thread_state) = u32(ThreadState::outgrown);
            return Outcome::leave;
        }
        fits = false;
    }
    if (fits) set<u64>(record, memory_bytes, (pages + delta) << page_bits);
    set_width(r.fp, a_of(w), c_of(w), fits ? pages : ~u64{0});
    load_memory_0(p, r);
    r.pc += 2;
    return Outcome::next;
}

Outcome memory_fill(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    Memory m = memory_at(p, word(r.instance, low_of(operands)));
    Range range(r, w, high_of(operands));
    if (!in_bounds(range.to, range.count, m.size)) return trap(r, Trap::memory_out_of_bounds);
    u64 done = smaller(range.count, chunk_bytes);
    mark_dirty(p, r, guest_at(m.base, range.to), done);
    r.chore = fill_guest(m.base, range.to, u8(range.from), done);
    range.advance_to(done);
    return range.finish(r, done, 2);
}

Outcome memory_copy(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    Memory to = memory_at(p, word(r.instance, low_of(operands)));
    Memory from = memory_at(p, word(r.instance, high_of(operands)));
    Range range(r, w, low_of(p.code[r.pc + 2]));
    if (!in_bounds(range.to, range.count, to.size) ||
        !in_bounds(range.from, range.count, from.size))
        return trap(r, Trap::memory_out_of_bounds);
    u64 done = smaller(range.count, chunk_bytes);
    mark_dirty(p, r, guest_at(to.base, range.to), range.count);
    if (to.base == from.base && range.to > range.from) {
        u64 rest = range.count - done;
        r.chore = copy_guest(to.base, range.to + rest, from.base, range.from + rest, done);
    } else {
        r.chore = copy_guest(to.base, range.to, from.base, range.from, done);
        range.advance_to(done);
        range.advance_from(done);
    }
    return range.finish(r, done, 3);
}

Outcome memory_init(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    const ModuleHeader& module = module_of(p, r.instance);
    Memory m = memory_at(p, word(r.instance, low_of(operands)));
    u32 segment = high_of(operands);
    SegmentInfo info = reinterpret_cast<const SegmentInfo*>(p.code + module.data)[segment];
    u64 size = word(r.instance, module.data_state + segment) ? 0 : info.size;
    Range range(r, w, low_of(p.code[r.pc + 2]));
    if (!in_bounds(range.to, range.count, m.size) || !in_bounds(range.from, range.count, size))
        return trap(r, Trap::memory_out_of_bounds);
    u64 done = smaller(range.count, chunk_bytes);
    mark_dirty(p, r, guest_at(m.base, range.to), done);
    r.chore = write_guest(m.base, range.to,
                          reinterpret_cast<const u8*>(p.code + info.at) + range.from, done);
    range.advance_to(done);
    range.advance_from(done);
    return range.finish(r, done, 3);
}

u32* table_at(const Process& p, const Registers& r, u32 at) {
    return word_at(p.words, word(r.instance, at));
}

Outcome table_grow(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    u32* table = table_at(p, r, low_of(operands));
    bool is_64 = high_of(operands);
    u64 delta = get_width(r.fp, c_of(w), is_64);
    u64 length = word(table, table_length);
    u64 limit = smaller(word(table, table_capacity), word(table, table_max));
    bool fits = length <= limit && delta <= limit - length;
    if (fits) {
        u32 value = word(r.fp, b_of(w)), elements = word(table, table_elements);
        for (u64 i = 0; i < delta; i++) word(p.words, elements + u32(length + i)) = value;
        word(table, table_length) = u32(length + delta);
    }
    set_width(r.fp, a_of(w), is_64, fits ? length : ~u64{0});
    r.pc += 2;
    return Outcome::next;
}

Outcome table_fill(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    const u32* table = table_at(p, r, low_of(operands));
    Range range(r, w, high_of(operands));
    if (!in_bounds(range.to, range.count, word(table, table_length)))
        return trap(r, Trap::table_out_of_bounds);
    u64 done = smaller(range.count, chunk_elements);
    u32 at = word(table, table_elements) + u32(range.to);
    for (u32 i = 0; i < done; i++) word(p.words, at + i) = u32(range.from);
    range.advance_to(done);
    return range.finish(r, done, 2);
}

Outcome table_copy(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    const u32* to = table_at(p, r, low_of(operands));
    const u32* from = table_at(p, r, high_of(operands));
    Range range(r, w, low_of(p.code[r.pc + 2]));
    if (!in_bounds(range.to, range.count, word(to, table_length)) ||
        !in_bounds(range.from, range.count, word(from, table_length)))
        return trap(r, Trap::table_out_of_bounds);
    u64 done = smaller(range.count, chunk_elements);
    u32 to_at = word(to, table_elements) + u32(range.to);
    u32 from_at = word(from, table_elements) + u32(range.from);
    if (to_at > from_at) {
        u32 rest = u32(range.count - done);
        for (u32 i = u32(done); i > 0; i--)
            word(p.words, to_at + rest + i - 1) = word(p.words, from_at + rest + i - 1);
    } else {
        for (u32 i = 0; i < done; i++) word(p.words, to_at + i) = word(p.words, from_at + i);
        range.advance_to(done);
        range.advance_from(done);
    }
    return range.finish(r, done, 3);
}

Outcome table_init(const Process& p, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    const u32* table = table_at(p, r, low_of(operands));
    ElemSegment segment(p, r.instance, high_of(operands));
    Range range(r, w, low_of(p.code[r.pc + 2]));
    if (!in_bounds(range.to, range.count, word(table, table_length)) ||
        !in_bounds(range.from, range.count, segment.size))
        return trap(r, Trap::table_out_of_bounds);
    u64 done = smaller(range.count, chunk_elements);
    u32 at = word(table, table_elements) + u32(range.to);
    for (u32 i = 0; i < done; i++) word(p.words, at + i) = segment.get(p, u32(range.from) + i);
    range.advance_to(done);
    range.advance_from(done);
    return range.finish(r, done, 3);
}

}  // namespace

Outcome run_bulk(const Process& p, u32* thread, Registers& r, u64 w) {
    u64 operands = p.code[r.pc + 1];
    u32 a = a_of(w), b = b_of(w), c = c_of(w);
    switch (CodeOp(op_of(w))) {
        case CodeOp::memory_size_x: {
            Memory m = memory_at(p, word(r.instance, low_of(operands)));
            set_width(r.fp, a, c, m.size >> page_bits);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::memory_grow: return memory_grow(p, thread, r, w);
        case CodeOp::memory_fill: return memory_fill(p, r, w);
        case CodeOp::memory_copy: return memory_copy(p, r, w);
        case CodeOp::memory_init: return memory_init(p, r, w);
        case CodeOp::data_drop: {
            word(r.instance, module_of(p, r.instance).data_state + imm_of(w)) = 1;
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::table_get: {
            const u32* table = table_at(p, r, low_of(operands));
            u64 index = get_width(r.fp, b, c);
            if (index >= word(table, table_length)) return trap(r, Trap::table_out_of_bounds);
            word(r.fp, a) = word(p.words, word(table, table_elements) + u32(index));
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::table_set: {
            const u32* table = table_at(p, r, low_of(operands));
            u64 index = get_width(r.fp, b, c);
            if (index >= word(table, table_length)) return trap(r, Trap::table_out_of_bounds);
            word(p.words, word(table, table_elements) + u32(index)) = word(r.fp, a);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::table_size: {
            set_width(r.fp, a, c, word(table_at(p, r, low_of(operands)), table_length));
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::table_grow: return table_grow(p, r, w);
        case CodeOp::table_fill: return table_fill(p, r, w);
        case CodeOp::table_copy: return table_copy(p, r, w);
        case CodeOp::table_init: return table_init(p, r, w);
        case CodeOp::elem_drop: {
            word(r.instance, module_of(p, r.instance).elem_state + 2 * imm_of(w)) = 0;
            r.pc += 1;
            return Outcome::next;
        }
        default: {  // elem_set
            u32 state = module_of(p, r.instance).elem_state + 2 * low_of(operands);
            word(p.words, word(r.instance, state + 1) + high_of(operands)) = word(r.fp, a);
            r.pc += 2;
            return Outcome::next;
        }
    }
}

}  // namespace gpurun::rt
