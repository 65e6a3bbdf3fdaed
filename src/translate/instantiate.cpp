// Instantiation as code: a function that evaluates a module's initialisers, fills its tables
// and memories and calls its start function. It runs like any other, so traps, fuel and
// suspension in the middle of it need nothing of their own.
#include "translate/function_translator.h"

namespace gpurun::translate {

bool FunctionTranslator::translate_instantiate() {
    u32 entry = here();
    begin({});
    results_ = {};
    entry_ = entry;
    controls_.push_back({});
    emit(CodeOp::enter, 0, 0, 0);

    auto instr = [&](Op op, u32 a, u32 b = 0) {
        Instr i;
        i.op = op;
        i.a = a;
        i.b = b;
        translate_instr(i);
    };
    auto address_kind = [](const wasm::Limits& limits) {
        return limits.is_64 ? SlotKind::i64 : SlotKind::i32;
    };

    for (u32 i = module_.imported_globals; i < module_.globals.size(); i++) {
        translate_expression(module_.globals[i].init);
        instr(Op::global_set, i);
    }
    for (u32 i = 0; i < module_.tables.size(); i++) {
        const wasm::Table& table = module_.tables[i];
        if (table.init.empty()) continue;
        push_constant(address_kind(table.type.limits), 0);
        translate_expression(table.init);
        push_constant(address_kind(table.type.limits), table.type.limits.min);
        instr(Op::table_fill, i);
    }
    for (u32 i = 0; i < module_.elems.size(); i++) {
        const wasm::Elem& elem = module_.elems[i];
        if (!layout_.elem_is_evaluated[i] || elem.mode == wasm::SegmentMode::declarative) continue;
        for (u32 item = 0; item < elem.size(); item++) {
            if (elem.init.empty()) {
                ref_func(elem.funcs[item]);
            } else {
                translate_expression(elem.init[item]);
            }
            emit(CodeOp::elem_set, pop_slot());
            emit_pair(i, item);
        }
    }
    for (u32 i = 0; i < module_.elems.size(); i++) {
        const wasm::Elem& elem = module_.elems[i];
        if (elem.mode == wasm::SegmentMode::passive) continue;
        if (elem.mode == wasm::SegmentMode::active) {
            translate_expression(elem.offset);
            push_constant(SlotKind::i32, 0);
            push_constant(SlotKind::i32, elem.size());
            instr(Op::table_init, i, elem.table);
        }
        instr(Op::elem_drop, i);
    }
    for (u32 i = 0; i < module_.data.size(); i++) {
        const wasm::Data& data = module_.data[i];
        if (data.mode != wasm::SegmentMode::active) continue;
        translate_expression(data.offset);
        push_constant(SlotKind::i32, 0);
        push_constant(SlotKind::i32, data.end - data.begin);
        instr(Op::memory_init, i, data.memory);
        instr(Op::data_drop, i);
    }
    if (module_.start) instr(Op::call, *module_.start);
    emit(CodeOp::ret);
    return finish_function(entry);
}

bool FunctionTranslator::translate_beginning(std::optional<u32> initialize, u32 func,
                                             u32& instantiate_call) {
    const wasm::FuncType& type = module_.func_type(func);
    const u32 entry = here();
    begin(type.params);
    results_ = type.results;
    note_slot(words_of(results_));
    entry_ = entry;
    controls_.push_back({});
    emit(CodeOp::enter, 0, 0, 0);
    instantiate_call = emit_imm(CodeOp::call, top_slot_, 0);
    Instr call;
    call.op = Op::call;
    call.a = initialize.value_or(0);
    if (initialize) translate_instr(call);
    for (u32 i = 0; i < type.params.size(); i++) push_local(i);
    call.op = Op::return_call;
    call.a = func;
    translate_instr(call);
    return finish_function(entry);
}

}  // namespace gpurun::translate
