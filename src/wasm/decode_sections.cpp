// Decodes the sections after the types: imports, declarations, exports, code and data.
#include <unordered_set>

#include "wasm/decode.h"
#include "wasm/limits.h"
#include "wasm/read_instr.h"

namespace gpurun::wasm {

namespace {

constexpr u8 table_with_init = 0x40;

}  // namespace

void Decoder::import_section() {
    u32 n = count("imports", max_imports);
    m_.imports.reserve(room(n, 4));
    for (u32 i = 0; i < n && in_.ok(); i++) {
        Import import;
        import.module = name();
        import.name = name();
        u32 offset = in_.position();
        u8 kind = in_.byte();
        import.kind = ExternKind(kind);
        switch (import.kind) {
            case ExternKind::func:
                import.index = m_.imported_funcs++;
                m_.funcs.push_back({func_type_id("a function")});
                break;
            case ExternKind::table:
                import.index = m_.imported_tables++;
                m_.tables.push_back({table_type(), {}});
                break;
            case ExternKind::memory:
                import.index = m_.imported_memories++;
                m_.memories.push_back(memory_type());
                break;
            case ExternKind::global:
                import.index = m_.imported_globals++;
                m_.globals.push_back({global_type(), {}});
                break;
            case ExternKind::tag:
                import.index = m_.imported_tags++;
                m_.tags.push_back({tag_type()});
                break;
            default: malformed(offset, "malformed import kind 0x%02x", kind);
        }
        m_.imports.push_back(std::move(import));
    }
}

void Decoder::function_section() {
    u32 n = count("functions", max_functions - m_.imported_funcs);
    m_.funcs.reserve(m_.funcs.size() + n);
    for (u32 i = 0; i < n && in_.ok(); i++) m_.funcs.push_back({func_type_id("a function")});
}

void Decoder::table_section() {
    u32 n = count("tables", max_tables);
    m_.tables.reserve(m_.tables.size() + room(n, 3));
    for (u32 i = 0; i < n && in_.ok(); i++) {
        Table table;
        u32 offset = in_.position();
        if (in_.peek() == table_with_init) {
            in_.byte();
            if (in_.byte() != 0) malformed(offset + 1, "malformed table: zero byte expected");
            table.type = table_type();
            table.init = const_expr(table.type.element, m_.imported_globals);
        } else {
            table.type = table_type();
            if (in_.ok() && !table.type.element.is_defaultable())
                invalid(offset, "type mismatch: a table of %s needs an initializer",
                        m_.types.name(table.type.element).c_str());
        }
        m_.tables.push_back(table);
    }
}

void Decoder::memory_section() {
    u32 n = count("memories", max_memories);
    m_.memories.reserve(m_.memories.size() + room(n, 2));
    for (u32 i = 0; i < n && in_.ok(); i++) m_.memories.push_back(memory_type());
}

void Decoder::tag_section() {
    u32 n = count("tags", max_tags);
    m_.tags.reserve(m_.tags.size() + room(n, 2));
    for (u32 i = 0; i < n && in_.ok(); i++) m_.tags.push_back({tag_type()});
}

// Decodes globals. A global's initializer may use the globals before it.
void Decoder::global_section() {
    u32 n = count("globals", max_globals);
    m_.globals.reserve(m_.globals.size() + room(n, 4));
    for (u32 i = 0; i < n && in_.ok(); i++) {
        GlobalType type = global_type();
        ConstExpr init = const_expr(type.type, u32(m_.globals.size()));
        m_.globals.push_back({type, init});
    }
}

void Decoder::export_section() {
    u32 n = count("exports", max_exports);
    m_.exports.reserve(room(n, 3));
    std::unordered_set<std::string_view> seen;
    for (u32 i = 0; i < n && in_.ok(); i++) {
        u32 start = in_.position();
        Export& item = m_.exports.emplace_back();
        item.name = name();
        u32 offset = in_.position();
        u8 kind = in_.byte();
        item.kind = ExternKind(kind);
        switch (item.kind) {
            case ExternKind::func:
                item.index = index("function", m_.funcs.size());
                if (in_.ok()) m_.funcs[item.index].is_declared = true;
                break;
            case ExternKind::table: item.index = index("table", m_.tables.size()); break;
            case ExternKind::memory: item.index = index("memory", m_.memories.size()); break;
            case ExternKind::global: item.index = index("global", m_.globals.size()); break;
            case ExternKind::tag: item.index = index("tag", m_.tags.size()); break;
            default: malformed(offset, "malformed export kind 0x%02x", kind);
        }
        // The views in `seen` stay valid, since enough was reserved for all entries.
        if (in_.ok() && !seen.insert(item.name).second)
            invalid(start, "duplicate export name \"%.100s\"", item.name.c_str());
    }
}

void Decoder::start_section() {
    u32 offset = in_.position();
    u32 func = index("function", m_.funcs.size());
    if (!in_.ok()) return;
    const FuncType& type = m_.func_type(func);
    if (!type.params.empty() || !type.results.empty())
        return invalid(offset, "start function %u must have neither parameters nor results", func);
    m_.start = func;
}

ConstExpr Decoder::const_expr(ValType type, u32 visible_globals) {
    ConstExpr expr;
    if (!in_.ok()) return expr;
    std::vector<u32> declared;
    if (!validator_.const_expr(in_.position(), in_.end(), type, visible_globals, expr, declared)) {
        fail(validator_.failure());
        return {};
    }
    in_.skip(expr.end - expr.begin);
    for (u32 func : declared) m_.funcs[func].is_declared = true;
    return expr;
}

void Decoder::elem_section() {
    u32 n = count("elem segments", max_segments);
    m_.elems.reserve(room(n, 2));
    for (u32 i = 0; i < n && in_.ok(); i++) {
        u32 start = in_.position();
        u32 flags = in_.leb_u32();
        if (flags > 7) return malformed(start, "malformed elements segment kind %u", flags);
        elem(m_.elems.emplace_back(), flags, start);
    }
}

// Flags: 1 = passive or declarative, 2 = declarative or with an explicit table,
// 4 = expressions instead of function indices.
void Decoder::elem(Elem& segment, u32 flags, u32 start) {
    const bool are_exprs = flags & 4;
    segment.mode = !(flags & 1)  ? SegmentMode::active
                   : (flags & 2) ? SegmentMode::declarative
                                 : SegmentMode::passive;
    if (segment.mode == SegmentMode::active) {
        if (flags & 2) segment.table = in_.leb_u32();
        check_index("table", segment.table, m_.tables.size(), start);
        if (!in_.ok()) return;
        bool is_64 = m_.tables[segment.table].type.limits.is_64;
        segment.offset = const_expr(is_64 ? ValType::i64 : ValType::i32, u32(m_.globals.size()));
    }
    segment.type = ValType::ref(Heap::func, are_exprs);
    if (flags & 3) {
        u32 offset = in_.position();
        if (are_exprs)
            segment.type = ref_type();
        else if (u8 kind = in_.byte(); kind != 0)
            malformed(offset, "malformed element kind: expected 0, got 0x%02x", kind);
    }
    if (!in_.ok()) return;
    if (segment.mode == SegmentMode::active) {
        ValType element = m_.tables[segment.table].type.element;
        if (!m_.types.matches(segment.type, element))
            return invalid(start, "type mismatch: table %u has elements of %s, got %s",
                           segment.table, m_.types.name(element).c_str(),
                           m_.types.name(segment.type).c_str());
    }
    elem_items(segment, are_exprs);
}

void Decoder::elem_items(Elem& segment, bool are_exprs) {
    u32 n = count("elements", max_segment_elements);
    segment.funcs.reserve(room(n, are_exprs ? 3 : 1));
    if (!are_exprs) {
        for (u32 i = 0; i < n && in_.ok(); i++) {
            u32 func = index("function", m_.funcs.size());
            if (in_.ok()) m_.funcs[func].is_declared = true;
            segment.funcs.push_back(func);
        }
        return;
    }
    segment.init.reserve(room(n, 2));
    for (u32 i = 0; i < n && in_.ok(); i++) {
        ConstExpr expr = const_expr(segment.type, u32(m_.globals.size()));
        segment.init.push_back(expr);
        InstrReader reader(m_.bytes, expr.begin, expr.end);
        Instr instr;
        bool is_lone_func = reader.next(instr) && instr.op == Op::ref_func;
        u32 func = instr.a;
        if (is_lone_func && reader.next(instr) && instr.op == Op::end)
            segment.funcs.push_back(func);
    }
    if (segment.funcs.size() == segment.init.size())
        segment.init = {};
    else
        segment.funcs = {};
}

void Decoder::data_count_section() {
    u32 offset = in_.position();
    data_count_ = in_.leb_u32();
    if (*data_count_ > max_segments)
        malformed(offset, "too many data segments: %u, the limit is %u", *data_count_,
                  max_segments);
}

void Decoder::code_section() {
    u32 offset = m_.code_begin = in_.position();
    u32 n = count("function bodies", max_functions);
    u32 declared = u32(m_.funcs.size()) - m_.imported_funcs;
    if (!in_.ok()) return;
    if (n > declared)  // fewer: check_sizes, once all sections are there
        return malformed(offset, "function and code section have inconsistent lengths: %u and %u",
                         declared, n);
    for (; bodies_ < n && in_.ok(); bodies_++) body(m_.funcs[m_.imported_funcs + bodies_]);
}

// Finds a body's parts; its instructions are read when it is validated.
void Decoder::body(Func& func) {
    u32 offset = in_.position();
    u32 size = in_.leb_u32();
    func.body = in_.position();
    in_.skip(size);
    if (!in_.ok()) return;
    if (size > max_function_bytes)
        return malformed(offset, "function body too large: %u bytes, the limit is %u", size,
                         max_function_bytes);
    func.end = in_.position();

    BinaryReader locals(m_.bytes.data(), func.body, func.end);
    u64 total = m_.types[func.type].func.params.size();
    u32 groups = locals.leb_u32();
    for (u32 i = 0; i < groups && locals.ok(); i++) {
        u32 at = locals.position();
        total += locals.leb_u32();
        if (locals.ok() && total > max_locals)
            return malformed(at, "too many locals: %llu, the limit is %u",
                             (unsigned long long)total, max_locals);
        s64 heap;
        bool nullable;
        read_val_type(locals, heap, nullable);
    }
    if (!locals.ok()) return fail(malformed_bytes(m_.bytes, locals));
    func.code = locals.position();
}

void Decoder::data_section() {
    u32 n = count("data segments", max_segments);
    m_.data.reserve(room(n, 2));
    for (u32 i = 0; i < n && in_.ok(); i++) {
        Data& segment = m_.data.emplace_back();
        u32 start = in_.position();
        u32 flags = in_.leb_u32();
        if (flags > 2) return malformed(start, "malformed data segment kind %u", flags);
        segment.mode = flags == 1 ? SegmentMode::passive : SegmentMode::active;
        if (segment.mode == SegmentMode::active) {
            if (flags == 2) segment.memory = in_.leb_u32();
            check_index("memory", segment.memory, m_.memories.size(), start);
            if (!in_.ok()) return;
            bool is_64 = m_.memories[segment.memory].limits.is_64;
            segment.offset =
                const_expr(is_64 ? ValType::i64 : ValType::i32, u32(m_.globals.size()));
        }
        u32 size = in_.leb_u32();
        segment.begin = in_.position();
        in_.skip(size);
        segment.end = in_.position();
    }
}

}  // namespace gpurun::wasm
