// The fields of a module: first their indices and ids, then their contents.
#include "text/module_assembler.h"

#include <algorithm>

#include "base/format.h"
#include "text/encode.h"

namespace gpurun::text {

using wasm::ExternKind;

namespace {

constexpr u64 page_size = 65536;
constexpr u8 funcref_code = 0x70;

struct ExternWord {
    std::string_view word;
    ExternKind kind;
    const char* definition;  // as "import after …" calls it
};
constexpr ExternWord extern_words[] = {
    {"func", ExternKind::func, "function"},   {"table", ExternKind::table, "table"},
    {"memory", ExternKind::memory, "memory"}, {"global", ExternKind::global, "global"},
    {"tag", ExternKind::tag, "tag"},
};

const ExternWord* find_extern(std::string_view word) {
    for (const ExternWord& row : extern_words) {
        if (row.word == word) return &row;
    }
    return nullptr;
}

}  // namespace

void Section::append(const Section& other) {
    u32 base = u32(bytes.size());
    for (const auto& [offset, position] : other.lines) lines.emplace_back(base + offset, position);
    put_bytes(bytes, other.bytes);
}

ModuleAssembler::ModuleAssembler(const Tokens& tokens, u32 begin, u32 end)
    : in_(tokens, begin, end), tokens_(tokens) {
    const std::vector<Annotation>& all = tokens.annotations();
    auto is_before = [](const Annotation& a, u32 at) { return a.at < at; };
    auto first = std::lower_bound(all.begin(), all.end(), begin, is_before);
    auto last = std::lower_bound(first, all.end(), end + 1, is_before);
    first_annotation_ = usize(first - all.begin());
    taken_.resize(usize(last - first));
}

bool ModuleAssembler::run() {
    if (in_.is(Kind::id)) module_name_ = tokens_.id(in_.take());
    if (const Annotation* annotation = take_annotation(Annotation::Kind::name)) {
        module_name_ = name_annotation(*annotation);
        if (take_annotation(Annotation::Kind::name)) {
            in_.fail_at(annotation->position, "@name annotation: multiple module");
        }
    }
    declare_fields();
    if (!in_.failed()) define_types();
    for (const Field& field : fields_) {
        if (in_.failed()) break;
        in_.move_to(field.at);
        define_field(field.keyword);
    }
    if (uses_data_) put_u32(sections_[data_count].bytes, data_space_.count);
    if (!in_.failed()) check_annotations();
    return !in_.failed();
}

// First pass.

void ModuleAssembler::declare_fields() {
    custom_annotations();
    while (!in_.at_end()) {
        u32 at = in_.at();
        u32 close = in_.peek().link;
        in_.expect(Kind::left);
        const Token& word = in_.expect(Kind::keyword);
        if (in_.failed()) return;
        std::string_view keyword = tokens_.text(word);
        bool is_type = keyword == "type" || keyword == "rec";
        (is_type ? type_fields_ : fields_).push_back({keyword, at});
        declare_field(word);
        if (in_.failed()) return;
        if (tokens_[close].kind == Kind::end) return unclosed_field(at);
        in_.move_to(close);
        in_.expect_right();
        custom_annotations();
    }
}

// What made it unclosed may well be a token that is none.
void ModuleAssembler::unclosed_field(u32 at) {
    while (tokens_[at].kind != Kind::error && tokens_[at].kind != Kind::end) at++;
    in_.unexpected(tokens_[at]);
}

void ModuleAssembler::declare_field(const Token& word) {
    std::string_view keyword = tokens_.text(word);
    if (keyword == "type") {
        bind(type_space_, type_space_.count++);
    } else if (keyword == "rec") {
        while (in_.is_left("type")) {
            u32 close = in_.peek().link;
            in_.take();
            in_.take();
            bind(type_space_, type_space_.count++);
            in_.move_to(close);
            in_.expect_right();
        }
        if (!in_.is(Kind::right)) in_.unexpected();
    } else if (keyword == "import") {
        in_.expect_name();
        in_.expect_name();
        in_.expect(Kind::left);
        const Token& kind = in_.peek();
        if (const ExternWord* row = find_extern(in_.text())) {
            in_.take();
            IndexSpace& space = space_of(row->kind);
            check_import_order(word);
            bind(space, space.count++);
        } else {
            in_.unexpected(kind);
        }
    } else if (const ExternWord* row = find_extern(keyword)) {
        declare_extern(row->kind, row->definition, word);
    } else if (keyword == "elem") {
        bind(elem_space_, elem_space_.count++);
    } else if (keyword == "data") {
        bind(data_space_, data_space_.count++);
    } else if (keyword != "export" && keyword != "start") {
        in_.unexpected(word);
    }
}

void ModuleAssembler::declare_extern(ExternKind kind, const char* definition, const Token& word) {
    IndexSpace& space = space_of(kind);
    bind(space, space.count++);
    while (in_.is_left("export")) in_.move_to(in_.peek().link + 1);
    if (in_.is_left("import")) return check_import_order(word);
    if (!first_definition_) first_definition_ = definition;
    // A table or a memory may bring its segment with it.
    if (in_.is_keyword("i32") || in_.is_keyword("i64")) in_.take();
    if (kind == ExternKind::table && !in_.is(Kind::natural)) elem_space_.count++;
    if (kind == ExternKind::memory && in_.is_left("data")) data_space_.count++;
}

void ModuleAssembler::check_import_order(const Token& word) {
    if (first_definition_) in_.fail(word, std::string("import after ") + first_definition_);
}

IndexSpace& ModuleAssembler::space_of(ExternKind kind) {
    switch (kind) {
        case ExternKind::func: return func_space_;
        case ExternKind::table: return table_space_;
        case ExternKind::memory: return memory_space_;
        case ExternKind::global: return global_space_;
        case ExternKind::tag: break;
    }
    return tag_space_;
}

// Second pass.

void ModuleAssembler::define_field(std::string_view keyword) {
    in_.take();
    in_.take();
    if (keyword == "import") {
        import_field();
    } else if (keyword == "export") {
        export_field();
    } else if (keyword == "start") {
        start_field();
    } else if (keyword == "elem") {
        elem_field();
    } else if (keyword == "data") {
        data_field();
    } else if (const ExternWord* row = find_extern(keyword)) {
        extern_field(row->kind);
    }
    in_.expect_right();
}

void ModuleAssembler::skip_id() { in_.accept(Kind::id); }

void ModuleAssembler::import_field() {
    Section& section = sections_[import];
    put_string(section.bytes, in_.expect_name());
    put_string(section.bytes, in_.expect_name());
    in_.expect(Kind::left);
    const ExternWord* row = find_extern(in_.text());
    in_.take();
    if (!row) return;
    skip_id();
    import_description(row->kind);
    in_.expect_right();
}

void ModuleAssembler::import_description(ExternKind kind) {
    Section& section = sections_[import];
    section.count++;
    section.bytes.push_back(u8(kind));
    u32 number = next_[u32(kind)]++;
    switch (kind) {
        case ExternKind::func: {
            IndexSpace locals{"local", 0, {}, {}};
            put_u32(section.bytes, type_index(type_use(&locals)));
            if (!locals.names.empty()) local_names_.emplace_back(number, std::move(locals.names));
            return;
        }
        case ExternKind::table: return table_type(section.bytes, address_type());
        case ExternKind::memory: return memory_type(section.bytes, address_type());
        case ExternKind::global: return global_type(section.bytes);
        case ExternKind::tag: return tag_type(section.bytes);
    }
}

void ModuleAssembler::extern_field(ExternKind kind) {
    skip_id();
    u32 number = next_[u32(kind)];
    while (in_.accept_left("export")) {
        put_export(in_.expect_name(), kind, number);
        in_.expect_right();
    }
    if (in_.accept_left("import")) {
        Section& section = sections_[import];
        put_string(section.bytes, in_.expect_name());
        put_string(section.bytes, in_.expect_name());
        in_.expect_right();
        return import_description(kind);
    }
    next_[u32(kind)]++;
    switch (kind) {
        case ExternKind::func: return func_field(number);
        case ExternKind::table: return table_field(number);
        case ExternKind::memory: return memory_field(number);
        case ExternKind::global: {
            Section& section = sections_[global];
            section.count++;
            global_type(section.bytes);
            return expression(section);
        }
        case ExternKind::tag: sections_[tag].count++; return tag_type(sections_[tag].bytes);
    }
}

void ModuleAssembler::func_field(u32 number) {
    current_func_ = number;
    locals_ = {"local", 0, {}, {}};
    Section& declarations = sections_[function];
    declarations.count++;
    put_u32(declarations.bytes, type_index(type_use(&locals_)));

    Section body;
    local_declarations(body.bytes);
    function_body(body);
    if (!locals_.names.empty()) local_names_.emplace_back(number, std::move(locals_.names));

    Section& section = sections_[code];
    section.count++;
    put_u32(section.bytes, u32(body.bytes.size()));
    section.append(body);
}

// Runs of locals of one type are declared together.
void ModuleAssembler::local_declarations(Bytes& out) {
    Bytes runs, last, next;
    u32 run_count = 0, length = 0;
    auto finish_run = [&] {
        if (length == 0) return;
        put_u32(runs, length);
        put_bytes(runs, last);
        run_count++;
        length = 0;
    };
    auto add = [&] {
        next.clear();
        val_type(next);
        if (next != last) finish_run();
        std::swap(next, last);
        length++;
        locals_.count++;
    };
    while (in_.accept_left("local")) {
        if (in_.is(Kind::id)) {
            bind(locals_, locals_.count);
            add();
        } else {
            while (is_val_type()) add();
        }
        in_.expect_right();
    }
    finish_run();
    put_u32(out, run_count);
    put_bytes(out, runs);
}

void ModuleAssembler::table_field(u32 number) {
    Section& section = sections_[table];
    section.count++;
    bool is_64 = address_type();
    if (!in_.is(Kind::natural)) return table_with_elements(number, is_64);
    Bytes type_bytes;
    table_type(type_bytes, is_64);
    if (in_.is(Kind::right)) return put_bytes(section.bytes, type_bytes);
    section.bytes.push_back(0x40);
    section.bytes.push_back(0);
    put_bytes(section.bytes, type_bytes);
    expression(section);
}

// reftype "(elem" …: the table is as long as its segment.
void ModuleAssembler::table_with_elements(u32 number, bool is_64) {
    ElemList list;
    ref_type(list.type);
    if (!in_.accept_left("elem")) {
        if (in_.is(Kind::left)) in_.take();
        return in_.unexpected();
    }
    if (in_.is_index()) {
        elem_indices(list, list.type != Bytes{funcref_code});
    } else {
        elem_expressions(list);
    }
    in_.expect_right();

    Bytes& out = sections_[table].bytes;
    put_bytes(out, list.type);
    out.push_back(is_64 ? 5 : 1);
    put_u32(out, list.entries.count);
    put_u32(out, list.entries.count);
    put_elem(SegmentMode::active, number, zero_offset(is_64), list);
}

void ModuleAssembler::memory_field(u32 number) {
    Section& section = sections_[memory];
    section.count++;
    bool is_64 = address_type();
    if (!in_.accept_left("data")) return memory_type(section.bytes, is_64);
    std::string contents = data_strings();
    in_.expect_right();
    u64 pages = (contents.size() + page_size - 1) / page_size;
    section.bytes.push_back(is_64 ? 5 : 1);
    put_u64(section.bytes, pages);
    put_u64(section.bytes, pages);
    put_data(SegmentMode::active, number, zero_offset(is_64), contents);
}

bool ModuleAssembler::address_type() {
    if (in_.accept_keyword("i64")) return true;
    in_.accept_keyword("i32");
    return false;
}

void ModuleAssembler::limits(Bytes& out, bool is_64, bool may_be_shared) {
    // Numbers beyond the address type are well-formed: they fail validation.
    u64 min = in_.expect_u64(), max = 0;
    bool has_max = in_.is(Kind::natural);
    if (has_max) max = in_.expect_u64();
    bool is_shared = may_be_shared && in_.accept_keyword("shared");
    out.push_back(u8(has_max) | u8(is_shared) << 1 | u8(is_64) << 2);
    put_u64(out, min);
    if (has_max) put_u64(out, max);
}

void ModuleAssembler::table_type(Bytes& out, bool is_64) {
    Bytes bounds;
    limits(bounds, is_64, false);
    ref_type(out);
    put_bytes(out, bounds);
}

void ModuleAssembler::memory_type(Bytes& out, bool is_64) { limits(out, is_64, true); }

void ModuleAssembler::global_type(Bytes& out) {
    bool is_mutable = in_.accept_left("mut");
    val_type(out);
    out.push_back(is_mutable);
    if (is_mutable) in_.expect_right();
}

void ModuleAssembler::tag_type(Bytes& out) {
    IndexSpace names{"local", 0, {}, {}};
    u32 type_number = type_index(type_use(&names));
    out.push_back(0);
    put_u32(out, type_number);
}

void ModuleAssembler::put_export(std::string_view name, ExternKind kind, u32 number) {
    Section& section = sections_[export_];
    section.count++;
    put_string(section.bytes, name);
    section.bytes.push_back(u8(kind));
    put_u32(section.bytes, number);
}

void ModuleAssembler::export_field() {
    std::string name = in_.expect_name();
    in_.expect(Kind::left);
    const ExternWord* row = in_.is(Kind::keyword) ? find_extern(in_.text()) : nullptr;
    if (!row) return in_.unexpected();
    in_.take();
    u32 number = index(space_of(row->kind));
    in_.expect_right();
    put_export(name, row->kind, number);
}

void ModuleAssembler::start_field() {
    Section& section = sections_[start];
    if (section.count++) return in_.fail(in_.peek(), "multiple start sections");
    put_u32(section.bytes, index(func_space_));
}

void ModuleAssembler::elem_field() {
    skip_id();
    if (in_.accept_keyword("declare"))
        return put_elem(SegmentMode::declarative, 0, {}, elem_list(false));
    bool is_active = in_.is_index() || in_.is_left("table");
    u32 table_number = is_active ? segment_target("table", table_space_) : 0;
    is_active |= in_.is(Kind::left) && !in_.is_left("ref") && !in_.is_left("item");
    if (!is_active) return put_elem(SegmentMode::passive, 0, {}, elem_list(false));
    Section offset = offset_expression();
    put_elem(SegmentMode::active, table_number, offset, elem_list(true));
}

// "(table x)" or "(memory x)"; older texts have a bare index.
u32 ModuleAssembler::segment_target(std::string_view keyword, const IndexSpace& space) {
    if (!in_.accept_left(keyword)) return optional_index(space);
    u32 number = index(space);
    in_.expect_right();
    return number;
}

ModuleAssembler::ElemList ModuleAssembler::elem_list(bool may_omit_func) {
    ElemList list;
    list.type = {funcref_code};
    if (in_.accept_keyword("func") || (may_omit_func && !is_ref_type())) {
        elem_indices(list, false);
    } else {
        list.type.clear();
        ref_type(list.type);
        elem_expressions(list);
    }
    return list;
}

// Function indices, or the expressions that they are short for.
void ModuleAssembler::elem_indices(ElemList& list, bool as_expressions) {
    list.is_indices = !as_expressions;
    Section& entries = list.entries;
    for (; in_.is_index(); entries.count++) {
        if (as_expressions) entries.bytes.push_back(u8(wasm::op_info(Op::ref_func).code));
        put_u32(entries.bytes, index(func_space_));
        if (as_expressions) entries.bytes.push_back(u8(wasm::op_info(Op::end).code));
    }
}

void ModuleAssembler::elem_expressions(ElemList& list) {
    list.is_indices = false;
    for (; in_.is(Kind::left); list.entries.count++) {
        if (in_.accept_left("item")) {
            expression(list.entries);
            in_.expect_right();
        } else {
            folded_expression(list.entries);
        }
    }
}

// The flags: 1 passive or declarative; 2 declarative, or active with a table; 4 expressions.
void ModuleAssembler::put_elem(SegmentMode mode, u32 table_number, const Section& offset,
                               const ElemList& list) {
    Section& section = sections_[element];
    section.count++;
    bool is_active = mode == SegmentMode::active;
    bool is_short =
        is_active && table_number == 0 && (list.is_indices || list.type == Bytes{funcref_code});
    u32 flags = is_active ? (is_short ? 0 : 2) : (mode == SegmentMode::passive ? 1 : 3);
    put_u32(section.bytes, flags | (list.is_indices ? 0 : 4));
    if (flags == 2) put_u32(section.bytes, table_number);
    if (is_active) section.append(offset);
    if (flags != 0) {
        if (list.is_indices)
            section.bytes.push_back(0);
        else
            put_bytes(section.bytes, list.type);
    }
    put_u32(section.bytes, list.entries.count);
    section.append(list.entries);
}

// "(offset" instructions ")", or one folded instruction.
Section ModuleAssembler::offset_expression() {
    Section offset;
    if (in_.accept_left("offset")) {
        expression(offset);
        in_.expect_right();
    } else {
        folded_expression(offset);
    }
    return offset;
}

Section ModuleAssembler::zero_offset(bool is_64) {
    Section offset;
    u16 const_code = wasm::op_info(is_64 ? Op::i64_const : Op::i32_const).code;
    offset.bytes = {u8(const_code), 0, u8(wasm::op_info(Op::end).code)};
    return offset;
}

void ModuleAssembler::data_field() {
    skip_id();
    bool is_active = in_.is(Kind::left) || in_.is_index();
    u32 memory_number = segment_target("memory", memory_space_);
    Section offset;
    if (is_active) offset = offset_expression();
    put_data(is_active ? SegmentMode::active : SegmentMode::passive, memory_number, offset,
             data_strings());
}

std::string ModuleAssembler::data_strings() {
    std::string contents;
    while (in_.is(Kind::string)) tokens_.append_string(in_.take(), contents);
    return contents;
}

void ModuleAssembler::put_data(SegmentMode mode, u32 memory_number, const Section& offset,
                               std::string_view contents) {
    Section& section = sections_[data];
    section.count++;
    if (mode == SegmentMode::passive) {
        section.bytes.push_back(1);
    } else {
        section.bytes.push_back(memory_number ? 2 : 0);
        if (memory_number) put_u32(section.bytes, memory_number);
        section.append(offset);
    }
    put_string(section.bytes, contents);
}

}  // namespace gpurun::text
