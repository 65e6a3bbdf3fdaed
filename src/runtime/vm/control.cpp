// Executes calls beyond the module, tail calls, variables in their general form, and exceptions.
#include "runtime/memory/state.h"
#include "runtime/vm/heap.h"

namespace gpurun::rt {
namespace {

// Copies words in ascending order: where the ranges overlap, `to` must be below `from`.
template <class To, class From>
void copy_words(To to_base, u32 to, From from_base, u32 from, u32 count) {
    for (u32 i = 0; i < count; i++) word(to_base, to + i) = word(from_base, from + i);
}

void use_instance_of(const Process& p, Registers& r, u32 ref) {
    u32 instances = word(p.words, process_instances);
    u32* callee = word_at(p.words, word(p.words, instances + ref_instance(ref)));
    if (callee == r.instance) return;
    r.instance = callee;
    load_memory_0(p, r);
}

// Enters function `ref` with its slot 0 at fp. The record of the frame to return to has been
// written.
void enter_function(const Process& p, Registers& r, u32 ref) {
    use_instance_of(p, r, ref);
    r.pc = function_of(p, ref).entry;
}

// Writes the record of where a call from here returns to.
void write_record(const Process& p, const Registers& r, Slots record, u32 return_pc) {
    word(record, record_pc) = return_pc;
    word(record, record_fp) = index_of(p, r.fp);
    word(record, record_instance) = index_of(p.words, r.instance);
}

Outcome tail_call(const Process& p, Registers& r, u32 ref, u32 from, u32 count) {
    copy_words(r.fp, 0, r.fp, from, count);
    enter_function(p, r, ref);
    return Outcome::again;
}

// Returns the function that a table has at the index in `slot`, if it has the type that `operands`
// ask for. Traps otherwise and returns 0.
u32 indirect_callee(const Process& p, Registers& r, u64 operands, u32 slot, bool is_64) {
    const u32* table = word_at(p.words, word(r.instance, low_of(operands)));
    u64 index = is_64 ? get<u64>(r.fp, slot) : get<u32>(r.fp, slot);
    if (index >= word(table, table_length)) {
        r.trap = Trap::undefined_element;
        return 0;
    }
    u32 ref = word(p.words, word(table, table_elements) + u32(index));
    if (ref == 0) {
        r.trap = Trap::uninitialized_element;
        return 0;
    }
    u32 types = module_of(p, r.instance).types;
    u32 expected = reinterpret_cast<const u32*>(p.code + types)[high_of(operands)];
    if (is_subtype(p, function_of(p, ref).type, expected)) return ref;
    r.trap = Trap::indirect_call_type_mismatch;
    return 0;
}

// Unwinds to the newest handler. If there is none the thread ends, with its state as it was at the
// throw.
Outcome throw_exception(const Process& p, u32* thread, Registers& r, u32 exception) {
    word(thread, thread_exception) = exception;
    Slots end = slots_at(p, word(thread, thread_stack_end));
    for (Slots record = r.rp; distance(record, end) > 0; record = word_at(record, record_words)) {
        u32 target = word(record, record_pc);
        if (!(target & handler_bit)) continue;
        r.pc = target & ~handler_bit;
        r.fp = slots_at(p, word(record, record_fp));
        r.rp = word_at(record, record_words);
        u32* instance = word_at(p.words, word(record, record_instance));
        if (instance != r.instance) {
            r.instance = instance;
            load_memory_0(p, r);
        }
        return Outcome::again;
    }
    word(thread, thread_state) = u32(ThreadState::uncaught);
    return Outcome::leave;
}

Outcome throw_tag(const Process& p, u32* thread, Registers& r, u64 w) {
    u32 count = b_of(w);
    u32 object = allocate(p, exception_first_value + count);
    if (object == 0) return trap(r, Trap::heap_exhausted);
    word(p.words, object + object_type) = word(r.instance, low_of(p.code[r.pc + 1]));
    word(p.words, object + exception_size) = count;
    copy_words(p.words, object + exception_first_value, r.fp, a_of(w), count);
    return throw_exception(p, thread, r, object_ref(object));
}

// Calls `ref`, whose slot 0 is slot `base` of the current frame.
Outcome call_function(const Process& p, Registers& r, u32 ref, u32 base, u32 return_pc) {
    r.rp = below(r.rp, record_words);
    write_record(p, r, r.rp, return_pc);
    r.fp = word_at(r.fp, base);
    enter_function(p, r, ref);
    return Outcome::again;
}

Outcome far_copy(Registers& r, u32 to, u32 from, u32 count) {
    copy_words(r.fp, to, r.fp, from, count);
    r.pc += 1;
    return Outcome::next;
}

}  // namespace

// Calls an imported function. One that is nothing but a system call is carried out at once; it has
// no frame unless the call has to wait.
Outcome run_call_import(const Process& p, u32* thread, Registers& r, u64 w) {
    const u32 ref = word(r.instance, imm_of(w)), stub = system_stub(p, ref),
              entry = stub != 0 ? stub : function_of(p, ref).entry;
    const u64 enter = p.code[entry], system = p.code[entry + 1];
    const Slots rp = below(r.rp, record_words), fp = word_at(r.fp, a_of(w));
    if (CodeOp(op_of(system)) != CodeOp::system || distance(fp, rp) < s64(c_of(enter)))
        return call_function(p, r, ref, a_of(w), r.pc + 1);
    const Slots caller_fp = r.fp;
    const u32 return_pc = r.pc + 1;
    write_record(p, r, rp, return_pc);
    r.rp = rp;
    r.fp = fp;
    r.pc = entry + 1;
    const Outcome outcome = run_system(p, thread, r, system);
    if (outcome != Outcome::next) {
        use_instance_of(p, r, ref);
        return outcome;
    }
    r.rp = word_at(rp, record_words);
    r.fp = caller_fp;
    r.pc = return_pc;
    return Outcome::again;  // as behind any call: machine code may go on here
}

Outcome run_control(const Process& p, u32* thread, Registers& r, u64 w) {
    const u64* more = p.code + r.pc + 1;
    u32 a = a_of(w), b = b_of(w), c = c_of(w);
    switch (CodeOp(op_of(w))) {
        case CodeOp::unreachable: return trap(r, Trap::unreachable);
        case CodeOp::call_indirect: {
            u32 ref = indirect_callee(p, r, more[0], b, c);
            if (ref == 0) return Outcome::trap;
            return call_function(p, r, ref, a, r.pc + 2);
        }
        case CodeOp::call_ref: {
            u32 ref = word(r.fp, b);
            if (ref == 0) return trap(r, Trap::null_function_reference);
            return call_function(p, r, ref, a, r.pc + 2);
        }
        case CodeOp::return_call: {
            copy_words(r.fp, 0, r.fp, a, b);
            r.pc += low_of(more[0]);
            return Outcome::again;
        }
        case CodeOp::return_call_import:
            return tail_call(p, r, word(r.instance, low_of(more[0])), a, b);
        case CodeOp::return_call_indirect: {
            u32 ref = indirect_callee(p, r, more[0], a_of(more[1]), c);
            if (ref == 0) return Outcome::trap;
            return tail_call(p, r, ref, a, b);
        }
        case CodeOp::return_call_ref: {
            u32 ref = word(r.fp, c);
            if (ref == 0) return trap(r, Trap::null_function_reference);
            return tail_call(p, r, ref, a, b);
        }
        case CodeOp::copy_128: {
            set<V128>(r.fp, a, get<V128>(r.fp, b));
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::copy_words: {
            copy_words(r.fp, a, r.fp, b, c);
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::const_128: {
            V128 v = {{low_of(more[0]), high_of(more[0]), low_of(more[1]), high_of(more[1])}};
            set<V128>(r.fp, a, v);
            r.pc += 3;
            return Outcome::next;
        }
        case CodeOp::select_128: {
            u32 condition = word(r.fp, a_of(more[0]));
            set<V128>(r.fp, a, get<V128>(r.fp, condition ? b : c));
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::global_get_128: {
            set<V128>(r.fp, a, get<V128>(r.instance, imm_of(w)));
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::global_set_128: {
            set<V128>(r.instance, imm_of(w), get<V128>(r.fp, a));
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::global_get_imported: {
            copy_words(r.fp, a, p.words, word(r.instance, low_of(more[0])), b);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::global_set_imported: {
            copy_words(p.words, word(r.instance, low_of(more[0])), r.fp, a, b);
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::enter_far: {
            if (distance(r.fp, r.rp) < s64(imm_of(w))) {
                if (!(word(p.words, process_clipped) & clipped_stack))
                    return trap(r, Trap::call_stack_exhausted);
                word(thread, thread_state) = u32(ThreadState::outgrown);
                return Outcome::leave;
            }
            const u32 first = low_of(more[0]), count = high_of(more[0]);
            for (u32 i = 0; i < count; i++) word(r.fp, first + i) = 0;
            r.pc += 2;
            return Outcome::chunk;
        }
        case CodeOp::far_get_32: return far_copy(r, a, imm_of(w), 1);
        case CodeOp::far_get_64: return far_copy(r, a, imm_of(w), 2);
        case CodeOp::far_get_128: return far_copy(r, a, imm_of(w), 4);
        case CodeOp::far_set_32: return far_copy(r, imm_of(w), a, 1);
        case CodeOp::far_set_64: return far_copy(r, imm_of(w), a, 2);
        case CodeOp::far_set_128: return far_copy(r, imm_of(w), a, 4);
        case CodeOp::far_callee: {
            u32 ref = indirect_callee(p, r, more[0], b, c);
            if (ref == 0) return Outcome::trap;
            word(r.fp, a) = ref;
            r.pc += 2;
            return Outcome::next;
        }
        case CodeOp::call_far: {
            u32 ref = word(r.fp, b);
            if (ref == 0) return trap(r, Trap::null_function_reference);
            return call_function(p, r, ref, low_of(more[0]), r.pc + 2);
        }
        case CodeOp::try_begin: {
            r.rp = below(r.rp, record_words);
            write_record(p, r, r.rp, (r.pc + imm_of(w)) | handler_bit);
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::try_end: {
            r.rp = word_at(r.rp, imm_of(w) * record_words);
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::catch_tag: {
            u32 exception = object_index(word(thread, thread_exception));
            u32 tag = word(r.instance, low_of(more[0]));
            r.pc += word(p.words, exception + object_type) == tag ? 2 : imm_of(w);
            return Outcome::next;
        }
        case CodeOp::catch_values: {
            u32 exception = object_index(word(thread, thread_exception));
            copy_words(r.fp, a, p.words, exception + exception_first_value,
                       word(p.words, exception + exception_size));
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::catch_ref: {
            word(r.fp, a) = word(thread, thread_exception);
            r.pc += 1;
            return Outcome::next;
        }
        case CodeOp::throw_tag: return throw_tag(p, thread, r, w);
        case CodeOp::throw_ref: {
            u32 exception = word(r.fp, a);
            if (exception == 0) return trap(r, Trap::null_exception_reference);
            return throw_exception(p, thread, r, exception);
        }
        default:  // throw_again
            return throw_exception(p, thread, r, word(thread, thread_exception));
    }
}

}  // namespace gpurun::rt
