// Lists sections, declarations and segments, in a table each.
#include "engine/objdump_headers.h"

#include <algorithm>

#include "wasm/reader.h"

namespace gpurun::engine {
namespace {

using wasm::append_hex;
using wasm::append_number;
using wasm::append_quoted;
using wasm::ExternKind;

constexpr u32 header_bytes = 8, custom_section = 0, start_section = 8;
constexpr u32 max_preview_bytes = 32, max_preview_items = 8;

const char* section_name(u32 id) {
    static constexpr const char* names[] = {"custom", "type",   "import",     "function", "table",
                                            "memory", "global", "export",     "start",    "elem",
                                            "code",   "data",   "data count", "tag"};
    return id < std::size(names) ? names[id] : "?";
}

class Headers {
public:
    Headers(const wasm::Printer& printer, std::string& out)
        : printer_(printer), module_(printer.module()), out_(out) {}

    void print() {
        sections();
        types();
        imports();
        functions();
        tables();
        memories();
        globals();
        tags();
        exports();
        start();
        elems();
        data();
        customs();
    }

private:
    // Writes a number in a column.
    void column(u64 number, usize width) { right(std::to_string(number), width); }
    void hex_column(u64 number, usize width) {
        std::string text;
        append_hex(text, number);
        right(text, width);
    }
    void right(const std::string& text, usize width) {
        if (text.size() < width) out_.append(width - text.size(), ' ');
        out_ += text;
    }
    void item(u32 index) {
        column(index, 6);
        out_ += "  ";
    }
    void number(u64 value) { out_ += std::to_string(value); }
    void end_line() { out_ += '\n'; }
    bool title(const char* name, usize count) {
        if (count > 0) (out_ += name) += ":\n";
        return count > 0;
    }
    void end_table() { out_ += '\n'; }

    void sections() {
        out_ += "sections:\n    id  name            offset      size     count\n";
        wasm::BinaryReader in(module_.bytes.data(), header_bytes, u32(module_.bytes.size()));
        while (!in.at_end()) {
            u32 id = in.byte(), size = in.leb_u32(), begin = in.position();
            in.skip(size);
            wasm::BinaryReader content(module_.bytes.data(), begin, begin + size);
            column(id, 6);
            out_ += "  ";
            out_ += section_name(id);
            out_.append(12 - std::string_view(section_name(id)).size(), ' ');
            hex_column(begin, 10);
            column(size, 10);
            if (id == custom_section) {
                out_ += "         -  ";
                u32 length = content.leb_u32();
                append_quoted(out_, {reinterpret_cast<const char*>(content.data()), length});
            } else if (id == start_section) {
                out_ += "         -";
            } else {
                column(content.leb_u32(), 10);
            }
            end_line();
        }
        end_table();
    }

    void types() {
        if (!title("types", module_.type_ids.size())) return;
        for (u32 i = 0; i < module_.type_ids.size(); i++) {
            item(i);
            printer_.defined_type(out_, i);
            end_line();
        }
        end_table();
    }

    void func_type(u32 type) {
        out_ += "(type ";
        number(printer_.type_index(type));
        out_ += ')';
        printer_.signature(out_, module_.types[type].func);
    }
    void table_type(const wasm::TableType& type) {
        printer_.limits(out_, type.limits);
        out_ += ' ';
        printer_.type(out_, type.element);
    }
    void extern_type(ExternKind kind, u32 index) {
        switch (kind) {
            case ExternKind::func: return func_type(module_.funcs[index].type);
            case ExternKind::table: return table_type(module_.tables[index].type);
            case ExternKind::memory: return printer_.limits(out_, module_.memories[index].limits);
            case ExternKind::global: return printer_.global_type(out_, module_.globals[index].type);
            case ExternKind::tag: return func_type(module_.tags[index].type);
        }
    }
    void extern_name(ExternKind kind, u32 index) {
        out_ += to_string(kind);
        out_ += ' ';
        number(index);
        if (kind == ExternKind::func && printer_.has_name(index)) printer_.func(out_ += ' ', index);
    }

    void imports() {
        if (!title("imports", module_.imports.size())) return;
        for (const wasm::Import& import : module_.imports) {
            out_ += "    ";
            append_quoted(out_, import.module);
            out_ += ' ';
            append_quoted(out_, import.name);
            out_ += ' ';
            extern_name(import.kind, import.index);
            out_ += ' ';
            extern_type(import.kind, import.index);
            end_line();
        }
        end_table();
    }

    void functions() {
        if (!title("functions", module_.funcs.size() - module_.imported_funcs)) return;
        out_ += " index      offset      size  name and type\n";
        for (u32 i = module_.imported_funcs; i < module_.funcs.size(); i++) {
            const wasm::Func& func = module_.funcs[i];
            column(i, 6);
            hex_column(func.body, 12);
            column(func.end - func.body, 10);
            out_ += "  ";
            if (printer_.has_name(i)) {
                printer_.func(out_, i);
                out_ += ' ';
            }
            func_type(func.type);
            end_line();
        }
        end_table();
    }

    void tables() {
        if (!title("tables", module_.tables.size() - module_.imported_tables)) return;
        for (u32 i = module_.imported_tables; i < module_.tables.size(); i++) {
            item(i);
            table_type(module_.tables[i].type);
            initializer(module_.tables[i].init);
        }
        end_table();
    }

    void memories() {
        if (!title("memories", module_.memories.size() - module_.imported_memories)) return;
        for (u32 i = module_.imported_memories; i < module_.memories.size(); i++) {
            item(i);
            printer_.limits(out_, module_.memories[i].limits);
            end_line();
        }
        end_table();
    }

    void initializer(wasm::ConstExpr init) {
        if (!init.empty()) printer_.const_expr(out_ += " = ", init);
        end_line();
    }

    void globals() {
        if (!title("globals", module_.globals.size() - module_.imported_globals)) return;
        for (u32 i = module_.imported_globals; i < module_.globals.size(); i++) {
            item(i);
            printer_.global_type(out_, module_.globals[i].type);
            initializer(module_.globals[i].init);
        }
        end_table();
    }

    void tags() {
        if (!title("tags", module_.tags.size() - module_.imported_tags)) return;
        for (u32 i = module_.imported_tags; i < module_.tags.size(); i++) {
            item(i);
            func_type(module_.tags[i].type);
            end_line();
        }
        end_table();
    }

    void exports() {
        if (!title("exports", module_.exports.size())) return;
        for (const wasm::Export& item : module_.exports) {
            out_ += "    ";
            append_quoted(out_, item.name);
            out_ += ' ';
            extern_name(item.kind, item.index);
            out_ += ' ';
            extern_type(item.kind, item.index);
            end_line();
        }
        end_table();
    }

    void start() {
        if (!module_.start) return;
        out_ += "start: ";
        extern_name(ExternKind::func, *module_.start);
        out_ += "\n\n";
    }

    // Writes the mode of a segment: "active in table 0 at i32.const 1, ".
    void mode(wasm::SegmentMode mode, const char* space, u32 index, wasm::ConstExpr offset) {
        if (mode == wasm::SegmentMode::passive) out_ += "passive, ";
        if (mode == wasm::SegmentMode::declarative) out_ += "declarative, ";
        if (mode != wasm::SegmentMode::active) return;
        out_ += "active in ";
        out_ += space;
        out_ += ' ';
        number(index);
        printer_.const_expr(out_ += " at ", offset);
        out_ += ", ";
    }

    void elems() {
        if (!title("elem segments", module_.elems.size())) return;
        for (u32 i = 0; i < module_.elems.size(); i++) {
            const wasm::Elem& elem = module_.elems[i];
            item(i);
            mode(elem.mode, "table", elem.table, elem.offset);
            number(elem.size());
            out_ += " of ";
            printer_.type(out_, elem.type);
            out_ += ':';
            for (u32 k = 0; k < std::min(elem.size(), max_preview_items); k++) {
                out_ += ' ';
                if (elem.init.empty()) {
                    printer_.func(out_, elem.funcs[k]);
                } else {
                    out_ += '(';
                    printer_.const_expr(out_, elem.init[k]);
                    out_ += ')';
                }
            }
            if (elem.size() > max_preview_items) out_ += " ...";
            end_line();
        }
        end_table();
    }

    void data() {
        if (!title("data segments", module_.data.size())) return;
        for (u32 i = 0; i < module_.data.size(); i++) {
            const wasm::Data& data = module_.data[i];
            u32 size = data.end - data.begin;
            item(i);
            mode(data.mode, "memory", data.memory, data.offset);
            number(size);
            append_hex(out_ += " bytes at ", data.begin);
            out_ += ": ";
            const char* bytes = reinterpret_cast<const char*>(module_.bytes.data() + data.begin);
            append_quoted(out_, {bytes, std::min(size, max_preview_bytes)});
            if (size > max_preview_bytes) out_ += "...";
            end_line();
        }
        end_table();
    }

    void customs() {
        if (!title("custom sections", module_.customs.size())) return;
        for (const wasm::CustomSection& section : module_.customs) {
            append_quoted(out_ += "    ", section.name);
            out_ += ' ';
            number(section.end - section.begin);
            append_hex(out_ += " bytes at ", section.begin);
            end_line();
        }
        end_table();
    }

    const wasm::Printer& printer_;
    const wasm::Module& module_;
    std::string& out_;
};

}  // namespace

void print_headers(const wasm::Printer& printer, std::string& out) {
    Headers(printer, out).print();
}

}  // namespace gpurun::engine
