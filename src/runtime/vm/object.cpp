// Executes instructions of references, structs and arrays.
#include "runtime/memory/state.h"
#include "runtime/vm/heap.h"

namespace gpurun::rt {
namespace {

u32 local_type(const Process& p, const u32* instance, u32 id) {
    return reinterpret_cast<const u32*>(p.code + module_of(p, instance).types)[id];
}

u32 kind_of(const Process& p, u32 type) {
    return reinterpret_cast<const TypeInfo*>(p.code + type)->kind;
}

// Returns true if a non-null reference is of `type` (code.h: abstract, or a local type id).
bool is_of_type(const Process& p, const Registers& r, u32 ref, u32 type) {
    switch (AbstractType(type)) {
        case AbstractType::any:
        case AbstractType::func:
        case AbstractType::extern_:
        case AbstractType::exn: return true;
        case AbstractType::bottom: return false;
        case AbstractType::i31: return is_i31(ref);
        case AbstractType::eq: return !is_host_value(ref);
        case AbstractType::struct_:
            return is_object(ref) && kind_of(p, word(p.words, object_index(ref))) == 1;
        case AbstractType::array:
            return is_object(ref) && kind_of(p, word(p.words, object_index(ref))) == 2;
        default: break;
    }
    u32 expected = local_type(p, r.instance, type);
    if (kind_of(p, expected) == 0) return is_subtype(p, function_of(p, ref).type, expected);
    return is_object(ref) && is_subtype(p, word(p.words, object_index(ref)), expected);
}

u32 sign_extend(u32 value, Storage storage) {
    switch (storage) {
        case Storage::s8: return u32(s32(s8(value)));
        case Storage::u8: return u8(value);
        case Storage::s16: return u32(s32(s16(value)));
        case Storage::u16: return u16(value);
        default: return value;
    }
}

// Moves a value of whole words between a slot and words of an object.
template <class To, class From>
void copy_value(To to, u32 to_at, From from, u32 from_at, Storage storage) {
    switch (storage) {
        case Storage::w64: return set<u64>(to, to_at, get<u64>(from, from_at));
        case Storage::w128: return set<V128>(to, to_at, get<V128>(from, from_at));
        default: return set<u32>(to, to_at, get<u32>(from, from_at));
    }
}

// The elements of an array. Packed ones lie four or two to a word.
struct Elements {
    u32* words;
    u32 first;
    Storage storage;

    Elements(const Process& p, u32 ref, Storage s)
        : words(p.words), first(object_index(ref) + array_first_element), storage(s) {}

    template <class To>
    void read(u32 i, To to, u32 slot) const {
        switch (storage) {
            case Storage::s8:
            case Storage::u8:
                word(to, slot) = sign_extend(word(words, first + i / 4) >> (i % 4 * 8), storage);
                return;
            case Storage::s16:
            case Storage::u16:
                word(to, slot) = sign_extend(word(words, first + i / 2) >> (i % 2 * 16), storage);
                return;
            default: copy_value(to, slot, words, first + i * storage_words(storage), storage);
        }
    }
    template <class From>
    void write(u32 i, From from, u32 slot) const {
        switch (storage) {
            case Storage::s8:
            case Storage::u8: return write_packed(first + i / 4, i % 4 * 8, 0xff, word(from, slot));
            case Storage::s16:
            case Storage::u16:
                return write_packed(first + i / 2, i % 2 * 16, 0xffff, word(from, slot));
            default: copy_value(words, first + i * storage_words(storage), from, slot, storage);
        }
    }
    void copy(u32 i, const Elements& from, u32 j) const {
        switch (storage) {
            case Storage::s8:
            case Storage::u8:
                return write_packed(first + i / 4, i % 4 * 8, 0xff,
                                    word(words, from.first + j / 4) >> (j % 4 * 8));
            case Storage::s16:
            case Storage::u16:
                return write_packed(first + i / 2, i % 2 * 16, 0xffff,
                                    word(words, from.first + j / 2) >> (j % 2 * 16));
            default: break;
        }
        u32 count = storage_words(storage);
        for (u32 k = 0; k < count; k++)
            word(words, first + i * count + k) = word(words, from.first + j * count + k);
    }
    void write_packed(u32 at, u32 shift, u32 mask, u32 value) const {
        u32& w = word(words, at);
        w = (w & ~(mask << shift)) | (value & mask) << shift;
    }
    // Writes an element that bytes of a data segment hold.
    void write_bytes(u32 i, const u8* from) const {
        switch (storage) {
            case Storage::s8:
            case Storage::u8: return write_packed(first + i / 4, i % 4 * 8, 0xff, *from);
            case Storage::s16:
            case Storage::u16:
                return write_packed(first + i / 2, i % 2 * 16, 0xffff, load_bytes<u16>(from));
            default: break;
        }
        u32 count = storage_words(storage);
        for (u32 k = 0; k < count; k++)
            word(words, first + i * count + k) = load_bytes<u32>(from + 4 * k);
    }
};

u64 element_words(Storage storage, u64 count) { return (count * storage_bytes(storage) + 3) / 4; }

u32 new_array(const Process& p, const Registers& r, u32 type, Storage storage, u32 count) {
    u32 object = allocate(p, array_first_element + element_words(storage, count));
    if (object == 0) return 0;
    word(p.words, object + object_type) = local_type(p, r.instance, type);
    word(p.words, object + array_length) = count;
    return object_ref(object);
}

u32 length_of(const Process& p, u32 ref) { return word(p.words, object_index(ref) + array_length); }

SegmentInfo data_segment(const Process& p, const u32* instance, u32 segment) {
    const ModuleHeader& module = module_of(p, instance);
    SegmentInfo info = reinterpret_cast<const SegmentInfo*>(p.code + module.data)[segment];
    if (word(instance, module.data_state + segment)) info.size = 0;
    return info;
}

// The count of a long operation over elements. It is kept in its slot, where it says what is left.
struct Count {
    StackWord& slot;
    u32 left, chunk;

    Count(Registers& r, u32 at) : slot(word(r.fp, at)), left(slot) {
        chunk = left < chunk_elements ? left : u32(chunk_elements);
    }
    Outcome finish(Registers& r, u32 length) {
        slot = left - chunk;
        if (chunk < left) return Outcome::chunk;
        r.pc += length;
        return Outcome::next;
    }
};

Outcome array_fill(const Process& p, Registers& r, u64 w) {
    u64 more = p.code[r.pc + 1];
    u32 array = word(r.fp, a_of(w));
    if (array == 0) return trap(r, Trap::null_array_reference);
    StackWord& index = word(r.fp, b_of(w));
    Count count(r, a_of(more));
    if (!in_bounds(index, count.left, length_of(p, array)))
        return trap(r, Trap::array_out_of_bounds);
    Elements elements(p, array, Storage(b_of(more)));
    for (u32 i = 0; i < count.chunk; i++) elements.write(index + i, r.fp, c_of(w));
    index += count.chunk;
    return count.finish(r, 2);
}

Outcome array_copy(const Process& p, Registers& r, u64 w) {
    u64 more = p.code[r.pc + 1];
    u32 array = word(r.fp, a_of(w)), from = word(r.fp, c_of(w));
    if (array == 0 || from == 0) return trap(r, Trap::null_array_reference);
    StackWord& index = word(r.fp, b_of(w));
    StackWord& from_index = word(r.fp, a_of(more));
    Count count(r, b_of(more));
    if (!in_bounds(index, count.left, length_of(p, array)) ||
        !in_bounds(from_index, count.left, length_of(p, from)))
        return trap(r, Trap::array_out_of_bounds);
    Elements to_elements(p, array, Storage(c_of(more))),
        from_elements(p, from, Storage(c_of(more)));
    if (array == from && index > from_index) {
        for (u32 i = count.left; i > count.left - count.chunk; i--)
            to_elements.copy(index + i - 1, from_elements, from_index + i - 1);
    } else {
        for (u32 i = 0; i < count.chunk; i++)
            to_elements.copy(index + i, from_elements, from_index + i);
        index += count.chunk;
        from_index += count.chunk;
    }
    return count.finish(r, 2);
}

Outcome array_init_data(const Process& p, Registers& r, u64 w) {
    u64 more = p.code[r.pc + 1];
    Storage storage = Storage(b_of(more));
    u32 array = word(r.fp, a_of(w)), size = storage_bytes(storage);
    if (array == 0) return trap(r, Trap::null_array_reference);
    StackWord& index = word(r.fp, b_of(w));
    StackWord& from = word(r.fp, c_of(w));
    Count count(r, a_of(more));
    SegmentInfo segment = data_segment(p, r.instance, low_of(p.code[r.pc + 2]));
    if (!in_bounds(index, count.left, length_of(p, array)))
        return trap(r, Trap::array_out_of_bounds);
    if (!in_bounds(from, u64(count.left) * size, segment.size))
        return trap(r, Trap::memory_out_of_bounds);
    Elements elements(p, array, storage);
    const u8* bytes = reinterpret_cast<const u8*>(p.code + segment.at) + from;
    for (u32 i = 0; i < count.chunk; i++) elements.write_bytes(index + i, bytes + usize(i) * size);
    index += count.chunk;
    from += count.chunk * size;
    return count.finish(r, 3);
}

Outcome array_init_elem(const Process& p, Registers& r, u64 w) {
    u64 more = p.code[r.pc + 1];
    u32 array = word(r.fp, a_of(w));
    if (array == 0) return trap(r, Trap::null_array_reference);
    StackWord& index = word(r.fp, b_of(w));
    StackWord& from = word(r.fp, c_of(w));
    Count count(r, a_of(more));
    ElemSegment segment(p, r.instance, low_of(p.code[r.pc + 2]));
    if (!in_bounds(index, count.left, length_of(p, array)))
        return trap(r, Trap::array_out_of_bounds);
    if (!in_bounds(from, count.left, segment.size)) return trap(r, Trap::table_out_of_bounds);
    u32 first = object_index(array) + array_first_element + index;
    for (u32 i = 0; i < count.chunk; i++) word(p.words, first + i) = segment.get(p, from + i);
    index += count.chunk;
    from += count.chunk;
    return count.finish(r, 3);
}

Outcome array_new_fixed(const Process& p, Registers& r, u64 w) {
    u64 more = p.code[r.pc + 1];
    Storage storage = Storage(low_of(p.code[r.pc + 2]));
    u32 count = high_of(more);
    u32 array = new_array(p, r, low_of(more), storage, count);
    if (array == 0) return trap(r, Trap::heap_exhausted);
    Elements elements(p, array, storage);
    for (u32 i = 0; i < count; i++) elements.write(i, r.fp, b_of(w) + i * storage_words(storage));
    word(r.fp, a_of(w)) = array;
    r.pc += 3;
    return Outcome::next;
}

}  // namespace

Outcome run_object(const Process& p, Registers& r, u64 w) {
    u64 more = p.code[r.pc + 1];
    u32 a = a_of(w), b = b_of(w), c = c_of(w);
    switch (CodeOp(op_of(w))) {
        case CodeOp::ref_func: {
            word(r.fp, a) = function_ref(word(r.instance, instance_number), imm_of(w));
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::ref_as_non_null: {
            if (word(r.fp, a) == 0) return trap(r, Trap::null_reference);
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::ref_test: {
            u32 ref = word(r.fp, b);
            word(r.fp, a) = ref == 0 ? c : is_of_type(p, r, ref, low_of(more));
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::ref_cast: {
            u32 ref = word(r.fp, a);
            if (ref == 0 ? c == 0 : !is_of_type(p, r, ref, low_of(more)))
                return trap(r, Trap::cast_failure);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::ref_i31: {
            word(r.fp, a) = word(r.fp, b) << 1 | 1;
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::i31_get_s:
        case CodeOp::i31_get_u: {
            u32 ref = word(r.fp, b);
            if (ref == 0) return trap(r, Trap::null_i31_reference);
            word(r.fp, a) = CodeOp(op_of(w)) == CodeOp::i31_get_s ? u32(s32(ref) >> 1) : ref >> 1;
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::struct_new:
        case CodeOp::struct_new_default: {
            u32 object = allocate(p, u64(struct_first_field) + c);
            if (object == 0) return trap(r, Trap::heap_exhausted);
            word(p.words, object + object_type) = local_type(p, r.instance, low_of(more));
            if (CodeOp(op_of(w)) == CodeOp::struct_new) {
                for (u32 i = 0; i < c; i++)
                    word(p.words, object + struct_first_field + i) = word(r.fp, b + i);
            }
            word(r.fp, a) = object_ref(object);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::struct_get: {
            u32 ref = word(r.fp, b);
            if (ref == 0) return trap(r, Trap::null_structure_reference);
            copy_value(r.fp, a, p.words, object_index(ref) + low_of(more), Storage(c));
            if (Storage(c) > Storage::w128) word(r.fp, a) = sign_extend(word(r.fp, a), Storage(c));
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::struct_set: {
            u32 ref = word(r.fp, b);
            if (ref == 0) return trap(r, Trap::null_structure_reference);
            copy_value(p.words, object_index(ref) + low_of(more), r.fp, a, Storage(c));
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::array_new_default: {
            u32 array = new_array(p, r, low_of(more), Storage(high_of(more)), word(r.fp, b));
            if (array == 0) return trap(r, Trap::heap_exhausted);
            word(r.fp, a) = array;
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::array_new_fixed: return array_new_fixed(p, r, w);
        case CodeOp::array_check_data: {
            u64 size = u64(word(r.fp, b)) * storage_bytes(Storage(high_of(more)));
            if (!in_bounds(word(r.fp, a), size, data_segment(p, r.instance, low_of(more)).size))
                return trap(r, Trap::memory_out_of_bounds);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::array_check_elem: {
            if (!in_bounds(word(r.fp, a), word(r.fp, b),
                           ElemSegment(p, r.instance, low_of(more)).size))
                return trap(r, Trap::table_out_of_bounds);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::array_get: {
            u32 ref = word(r.fp, b), index = word(r.fp, c);
            if (ref == 0) return trap(r, Trap::null_array_reference);
            if (index >= length_of(p, ref)) return trap(r, Trap::array_out_of_bounds);
            Elements(p, ref, Storage(low_of(more))).read(index, r.fp, a);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::array_set: {
            u32 ref = word(r.fp, b), index = word(r.fp, c);
            if (ref == 0) return trap(r, Trap::null_array_reference);
            if (index >= length_of(p, ref)) return trap(r, Trap::array_out_of_bounds);
            Elements(p, ref, Storage(low_of(more))).write(index, r.fp, a);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::array_len: {
            u32 ref = word(r.fp, b);
            if (ref == 0) return trap(r, Trap::null_array_reference);
            word(r.fp, a) = length_of(p, ref);
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::array_fill: return array_fill(p, r, w);
        case CodeOp::array_copy: return array_copy(p, r, w);
        case CodeOp::array_init_data: return array_init_data(p, r, w);
        default: return array_init_elem(p, r, w);
    }
}

}  // namespace gpurun::rt
