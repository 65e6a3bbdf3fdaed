// Prints names, types and constant expressions. Instructions are in print_instr.cpp.
#include "wasm/print.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/utf8.h"
#include "wasm/decode.h"

namespace gpurun::wasm {
namespace {

bool is_id_char(char c) {
    if (c <= ' ' || c == 0x7f) return false;  // char is signed: so are bytes beyond ASCII
    return std::string_view("\"(),;[]{}").find(c) == std::string_view::npos;
}

}  // namespace

void append_number(std::string& out, s64 value) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_hex(std::string& out, u64 value, u32 digits) {
    char text[16];
    char* end = std::to_chars(text, text + sizeof text, value, 16).ptr;
    out += "0x";
    for (u32 i = u32(end - text); i < digits; i++) out += '0';
    out.append(text, end);
}

void append_quoted(std::string& out, std::string_view bytes) {
    static constexpr char hex[] = "0123456789abcdef";
    bool is_text = is_utf8(bytes);
    out += '"';
    for (char c : bytes) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (u8(c) < 0x20 || c == 0x7f || (u8(c) >= 0x80 && !is_text)) {
            out += '\\';
            out += hex[u8(c) >> 4];
            out += hex[u8(c) & 15];
        } else {
            out += c;
        }
    }
    out += '"';
}

void append_identifier(std::string& out, std::string_view name) {
    out += '$';
    if (!name.empty() && std::all_of(name.begin(), name.end(), is_id_char)) {
        out += name;
    } else {
        append_quoted(out, name);
    }
}

// Finds names of functions: that of the name section, else of the first export, else of the import.
// A name that another function has gets the function's index added.
Printer::Printer(const Module& module) : module_(module) {
    func_names_.resize(module.funcs.size());
    auto offer = [&](u32 func, std::string_view name) {
        if (func < func_names_.size() && func_names_[func].empty())
            append_identifier(func_names_[func], name);
    };
    for (const auto& [func, name] : module.names.funcs) offer(func, name);
    for (const Export& item : module.exports)
        if (item.kind == ExternKind::func) offer(item.index, item.name);
    for (const Import& import : module.imports)
        if (import.kind == ExternKind::func) offer(import.index, import.module + "." + import.name);

    std::unordered_set<std::string> taken;
    for (u32 i = 0; i < func_names_.size(); i++) {
        std::string& name = func_names_[i];
        if (name.empty()) {
            append_number(name, i);
        } else if (!taken.insert(name).second) {
            name += '.';
            append_number(name, i);
        }
    }

    type_indices_.resize(module.types.size());
    for (u32 i = u32(module.type_ids.size()); i-- > 0;) type_indices_[module.type_ids[i]] = i;
}

void Printer::heap(std::string& out, u32 heap) const {
    if (heap < u32(Heap::first_abstract)) {
        append_number(out, type_index(heap));
    } else {
        out += module_.types.heap_name(heap);
    }
}

void Printer::type(std::string& out, ValType type) const {
    if (!type.is_concrete()) {
        out += module_.types.name(type);
        return;
    }
    out += type.is_nullable() ? "(ref null " : "(ref ";
    heap(out, type.heap());
    out += ')';
}

void Printer::signature(std::string& out, const FuncType& type) const {
    auto list = [&](const char* word, const std::vector<ValType>& types) {
        if (types.empty()) return;
        out += word;
        for (ValType t : types) {
            out += ' ';
            this->type(out, t);
        }
        out += ')';
    };
    list(" (param", type.params);
    list(" (result", type.results);
}

void Printer::limits(std::string& out, const Limits& limits) const {
    if (limits.is_64) out += "i64 ";
    append_number(out, s64(limits.min));
    if (limits.max) {
        out += ' ';
        char digits[24];  // a maximum may have all 64 bits
        out.append(digits, std::to_chars(digits, digits + sizeof digits, *limits.max).ptr);
    }
    if (limits.is_shared) out += " shared";
}

void Printer::global_type(std::string& out, const GlobalType& global) const {
    if (global.is_mutable) out += "(mut ";
    type(out, global.type);
    if (global.is_mutable) out += ')';
}

void Printer::defined_type(std::string& out, u32 index) const {
    const SubType& type = module_.types[module_.type_ids[index]];
    bool is_sub = !type.is_final || type.super != SubType::no_super;
    if (is_sub) out += type.is_final ? "(sub final " : "(sub ";
    if (type.super != SubType::no_super) {
        append_number(out, type_index(type.super));
        out += ' ';
    }
    auto field = [&](const FieldType& f) { global_type(out, {f.type, f.is_mutable}); };
    switch (type.kind) {
        case TypeKind::func:
            out += "(func";
            signature(out, type.func);
            break;
        case TypeKind::struct_:
            out += "(struct";
            for (const FieldType& f : type.fields) {
                out += " (field ";
                field(f);
                out += ')';
            }
            break;
        case TypeKind::array:
            out += "(array ";
            field(type.fields[0]);
            break;
    }
    out += is_sub ? "))" : ")";
}

void Printer::const_expr(std::string& out, ConstExpr expr) const {
    InstrReader reader(module_.bytes, expr.begin, expr.end);
    BodyPrinter body(*this);
    Instr instr;
    for (bool is_first = true; reader.next(instr) && instr.op != Op::end; is_first = false) {
        if (!is_first) out += ' ';
        body.instr(out, instr);
    }
}

}  // namespace gpurun::wasm
