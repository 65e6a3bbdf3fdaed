// Lists functions. objdump_headers.cpp lists what comes before them.
#include "engine/objdump.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "codegen/demangle.h"
#include "engine/names.h"
#include "engine/objdump_headers.h"
#include "translate/print.h"
#include "wasm/instr.h"
#include "wasm/print.h"

namespace gpurun::engine {
namespace {

using translate::FunctionCode;
using wasm::append_hex;
using wasm::append_number;

constexpr usize chunk_bytes = 1 << 16;  // what the sink gets at once, about

class Listing {
public:
    Listing(const wasm::Module& module, const wasm::Printer& printer, const TextSink& sink)
        : module_(module),
          printer_(printer),
          layout_(module),
          code_printer_(printer, layout_),
          sink_(sink) {
        for (usize size = module.bytes.size(); size > 0; size >>= 4) offset_digits_++;
    }

    void headers() {
        print_headers(printer_, out_);
        pass_on();
    }

    void function(u32 func) {
        const std::string name = module_.func_name(func), readable = codegen::demangled(name);
        if (readable != name) out_ += ";; " + readable + "\n";
        out_ += "func ";
        append_number(out_, func);
        if (printer_.has_name(func)) printer_.func(out_ += ' ', func);
        out_ += " (type ";
        append_number(out_, printer_.type_index(module_.funcs[func].type));
        out_ += ')';
        wasm::BodyPrinter body(printer_, func);
        body.declarations(out_);
        if (func < module_.imported_funcs) {
            out_ += ": imported\n";
            return;
        }
        std::optional<FunctionCode> code =
            translate::translate_function(module_, layout_, func, {});
        out_ += ": ";
        append_number(out_, module_.funcs[func].end - module_.funcs[func].body);
        out_ += " bytes of wasm, ";
        if (code) {
            append_number(out_, s64(code->words.size()));
            out_ += " words of code, ";
            append_number(out_, code->map.frame_slots);
            out_ += " slots\n";
        } else {
            out_ += "no code: its frame is too large\n";
        }
        instructions(func, body, code ? *code : FunctionCode());
        pass_on();
    }

    void instantiate() {
        std::optional<FunctionCode> code = translate::translate_instantiate(module_, layout_);
        if (!code) return;
        out_ += "instantiate: ";
        append_number(out_, s64(code->words.size()));
        out_ += " words of code\n";
        for (u32 position = 0; position < code->words.size();) code_line(*code, position);
    }

    void blank_line() { out_ += '\n'; }
    void pass_on(bool is_last = false) {
        if (!is_last && out_.size() < chunk_bytes) return;
        if (is_wanted_) is_wanted_ = sink_(out_);
        out_.clear();
    }
    bool is_wanted() const { return is_wanted_; }

private:
    // Lists instructions with their code. Lines are in the order of positions and, since
    // translation goes front to back, in the order of wasm offsets too.
    void instructions(u32 func, wasm::BodyPrinter& body, const FunctionCode& code) {
        u32 position = 0;
        if (!code.words.empty()) code_line(code, position);  // enter
        auto line = code.map.lines.begin();
        wasm::InstrReader reader(module_.bytes, module_.funcs[func].code, module_.funcs[func].end);
        wasm::Instr instr;
        while (is_wanted_ && reader.next(instr)) {
            out_ += "  ";
            append_hex(out_, instr.offset, offset_digits_);
            out_ += "  ";
            body.instr(out_, instr);
            out_ += '\n';
            while (line != code.map.lines.end() && line->wasm_offset <= instr.offset) ++line;
            u32 end = line == code.map.lines.end() ? u32(code.words.size()) : line->position;
            while (position < end) code_line(code, position);
            pass_on();
        }
    }

    void code_line(const FunctionCode& code, u32& position) {
        out_.append(offset_digits_ + 6, ' ');
        out_ += "| ";
        usize start = out_.size();
        append_number(out_, position);
        usize width = out_.size() - start;
        if (width < 4) out_.insert(start, 4 - width, ' ');
        out_ += "  ";
        code_printer_.instr(out_, code, position);
        out_ += '\n';
        position += translate::code_size(code.words[position]);
        pass_on();
    }

    const wasm::Module& module_;
    const wasm::Printer& printer_;
    translate::InstanceLayout layout_;
    translate::CodePrinter code_printer_;
    const TextSink& sink_;
    std::string out_;  // not yet passed on
    u32 offset_digits_ = 0;
    bool is_wanted_ = true;
};

Result<u32> find_function(const wasm::Module& module, const wasm::Printer& printer,
                          const std::string& name) {
    u32 index = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error == std::errc() && end == name.data() + name.size()) {
        if (index < module.funcs.size()) return index;
        return Error{format("there is no function %u: the module has %zu, counted from 0", index,
                            module.funcs.size())};
    }
    std::vector<std::string> names;
    for (u32 i = 0; i < module.funcs.size(); i++) {
        std::string known;
        printer.func(known, i);
        if (known == name || known == "$" + name) return i;
        if (codegen::demangled(module.func_name(i)) == name) return i;
        if (known[0] == '$') names.push_back(known.substr(1));
    }
    const wasm::Export* item = module.find_export(name);
    if (item && item->kind == wasm::ExternKind::func) return item->index;
    return Error{"there is no function " + quoted(name) + suggest(name, names)};
}

}  // namespace

Result<void> objdump(const wasm::Module& module, const ObjdumpOptions& options,
                     const TextSink& sink) {
    wasm::Printer printer(module);
    Listing listing(module, printer, sink);
    if (!options.function.empty()) {
        listing.function(TRY(find_function(module, printer, options.function)));
    } else {
        listing.headers();
        if (!options.headers_only) {
            for (u32 func = module.imported_funcs;
                 func < module.funcs.size() && listing.is_wanted(); func++) {
                listing.function(func);
                listing.blank_line();
            }
            listing.instantiate();
        }
    }
    listing.pass_on(true);
    return {};
}

}  // namespace gpurun::engine
