// Types: definitions, recursion groups, value types, and the uses of function types.
#include "base/format.h"
#include "text/encode.h"
#include "text/module_assembler.h"

namespace gpurun::text {

namespace {

struct TypeCode {
    std::string_view word;
    u8 code;
};

constexpr TypeCode number_types[] = {
    {"i32", 0x7f}, {"i64", 0x7e}, {"f32", 0x7d}, {"f64", 0x7c}, {"v128", 0x7b},
};
constexpr TypeCode packed_types[] = {{"i8", 0x78}, {"i16", 0x77}};
constexpr TypeCode heap_types[] = {
    {"func", 0x70},   {"extern", 0x6f},   {"any", 0x6e},   {"eq", 0x6d},
    {"i31", 0x6c},    {"struct", 0x6b},   {"array", 0x6a}, {"none", 0x71},
    {"nofunc", 0x73}, {"noextern", 0x72}, {"exn", 0x69},   {"noexn", 0x74},
};
// Short for (ref null heap).
constexpr TypeCode ref_types[] = {
    {"funcref", 0x70},     {"externref", 0x6f},     {"anyref", 0x6e},   {"eqref", 0x6d},
    {"i31ref", 0x6c},      {"structref", 0x6b},     {"arrayref", 0x6a}, {"nullref", 0x71},
    {"nullfuncref", 0x73}, {"nullexternref", 0x72}, {"exnref", 0x69},   {"nullexnref", 0x74},
};

constexpr u8 rec_code = 0x4e, sub_final_code = 0x4f, sub_code = 0x50, struct_code = 0x5f,
             array_code = 0x5e, func_code = 0x60, ref_null_code = 0x63, ref_code = 0x64;

template <usize size>
const TypeCode* find(const TypeCode (&table)[size], const Cursor& in) {
    if (!in.is(Token::Kind::keyword)) return nullptr;
    for (const TypeCode& row : table) {
        if (in.text() == row.word) return &row;
    }
    return nullptr;
}

// The number that a one-byte type code stands for where an index could stand as well.
constexpr s64 as_s33(u8 code) { return s64(code) - 0x80; }

}  // namespace

std::string Signature::key() const {
    wasm::Bytes bytes;
    put_u32(bytes, param_count);
    put_bytes(bytes, params);
    put_u32(bytes, result_count);
    put_bytes(bytes, results);
    return std::string(bytes.begin(), bytes.end());
}

void ModuleAssembler::define_types() {
    types_.resize(type_space_.count);
    u32 next = 0;
    Section& section = sections_[SectionId::type];
    for (const Field& field : type_fields_) {
        in_.move_to(field.at);
        section.count++;
        if (in_.accept_left("rec")) {
            Bytes group;
            u32 first = next;
            while (in_.is_left("type")) type_definition(group, next++, false);
            in_.expect_right();
            if (next - first != 1) {
                section.bytes.push_back(rec_code);
                put_u32(section.bytes, next - first);
            } else if (!in_.failed()) {
                note_implicit(first);
            }
            put_bytes(section.bytes, group);
        } else {
            type_definition(section.bytes, next++, true);
        }
        if (in_.failed()) return;
    }
}

void ModuleAssembler::type_definition(Bytes& out, u32 type_number, bool is_alone) {
    in_.take();
    in_.take();
    skip_id();
    current_type_ = type_number;
    in_type_ = true;
    Type& defined = types_[type_number];
    defined.is_plain = true;
    sub_type(out, type_number);
    in_type_ = false;
    in_.expect_right();
    if (is_alone && !in_.failed()) note_implicit(type_number);
}

// A function type that is alone in its group, final, without supertypes and not recursive can
// be meant by a type that is written in place.
void ModuleAssembler::note_implicit(u32 type_number) {
    const Type& defined = types_[type_number];
    if (defined.is_func && defined.is_plain) type_by_key_.emplace(defined.key, type_number);
}

void ModuleAssembler::sub_type(Bytes& out, u32 type_number) {
    if (!in_.accept_left("sub")) return composite_type(out, type_number);
    bool is_final = in_.accept_keyword("final");
    Bytes supers;
    u32 count = 0;
    for (; in_.is_index(); count++) put_u32(supers, index(type_space_));
    if (!is_final || count) {
        out.push_back(is_final ? sub_final_code : sub_code);
        put_u32(out, count);
        put_bytes(out, supers);
        types_[type_number].is_plain = false;
    }
    composite_type(out, type_number);
    in_.expect_right();
}

void ModuleAssembler::composite_type(Bytes& out, u32 type_number) {
    Type& defined = types_[type_number];
    if (in_.accept_left("func")) {
        out.push_back(func_code);
        Signature given;
        signature(given, ParamIds::ignored, nullptr);
        defined.is_func = true;
        defined.param_count = given.param_count;
        defined.key = given.key();
        out.insert(out.end(), defined.key.begin(), defined.key.end());
    } else if (in_.accept_left("struct")) {
        out.push_back(struct_code);
        struct_fields(out, defined.fields);
    } else if (in_.accept_left("array")) {
        out.push_back(array_code);
        field_type(out);
    } else {
        if (in_.is(Kind::left)) in_.take();
        return in_.unexpected();
    }
    in_.expect_right();
}

void ModuleAssembler::struct_fields(Bytes& out, IndexSpace& space) {
    Bytes fields;
    while (in_.accept_left("field")) {
        if (in_.is(Kind::id)) {
            bind(space, space.count);
            field_type(fields);
            space.count++;
        } else {
            while (!in_.is(Kind::right) && !in_.failed()) {
                field_type(fields);
                space.count++;
            }
        }
        in_.expect_right();
    }
    put_u32(out, space.count);
    put_bytes(out, fields);
}

void ModuleAssembler::field_type(Bytes& out) {
    bool is_mutable = in_.accept_left("mut");
    if (const TypeCode* row = find(packed_types, in_)) {
        out.push_back(row->code);
        in_.take();
    } else {
        val_type(out);
    }
    out.push_back(is_mutable);
    if (is_mutable) in_.expect_right();
}

bool ModuleAssembler::is_val_type() const { return find(number_types, in_) || is_ref_type(); }
bool ModuleAssembler::is_ref_type() const { return find(ref_types, in_) || in_.is_left("ref"); }

void ModuleAssembler::val_type(Bytes& out) {
    if (const TypeCode* row = find(number_types, in_)) {
        out.push_back(row->code);
        in_.take();
    } else {
        ref_type(out);
    }
}

void ModuleAssembler::ref_type(Bytes& out) {
    bool nullable = false;
    s64 heap = ref_type(nullable);
    if (nullable && heap < 0) return put_s64(out, heap);
    out.push_back(nullable ? ref_null_code : ref_code);
    put_s64(out, heap);
}

s64 ModuleAssembler::ref_type(bool& nullable) {
    nullable = true;
    if (const TypeCode* row = find(ref_types, in_)) {
        in_.take();
        return as_s33(row->code);
    }
    if (!in_.accept_left("ref")) {
        if (in_.is(Kind::left)) in_.take();
        in_.unexpected();
        return 0;
    }
    nullable = in_.accept_keyword("null");
    s64 heap = heap_type();
    in_.expect_right();
    return heap;
}

s64 ModuleAssembler::heap_type() {
    if (const TypeCode* row = find(heap_types, in_)) {
        in_.take();
        return as_s33(row->code);
    }
    u32 type_number = index(type_space_);
    if (in_type_ && type_number == current_type_) types_[current_type_].is_plain = false;
    return type_number;
}

void ModuleAssembler::signature(Signature& out, ParamIds ids, IndexSpace* locals) {
    while (in_.accept_left("param")) {
        if (ids != ParamIds::none && in_.is(Kind::id)) {
            if (ids == ParamIds::ignored)
                skip_id();
            else
                bind(*locals, locals->count++);
            val_type(out.params);
            out.param_count++;
        } else {
            for (; is_val_type(); out.param_count++) {
                val_type(out.params);
                if (locals) locals->count++;
            }
        }
        in_.expect_right();
    }
    while (in_.accept_left("result")) {
        for (; is_val_type(); out.result_count++) val_type(out.results);
        in_.expect_right();
    }
}

ModuleAssembler::TypeUse ModuleAssembler::type_use(IndexSpace* locals) {
    TypeUse use;
    const Token& token = in_.peek(2);
    if (in_.accept_left("type")) {
        use.is_explicit = true;
        use.index = index(type_space_);
        in_.expect_right();
    }
    const Token& begin = in_.peek();
    signature(use.given, locals ? ParamIds::bound : ParamIds::none, locals);
    if (in_.is_left("type") || in_.is_left("param")) in_.unexpected(in_.peek(1));  // out of order
    if (!use.is_explicit || in_.failed()) return use;

    bool is_known = use.index < types_.size();
    if (use.given.param_count || use.given.result_count) {
        if (!is_known) {
            in_.fail(token, "unknown type " + std::string(tokens_.text(token)));
        } else if (!types_[use.index].is_func || types_[use.index].key != use.given.key()) {
            in_.fail(begin, format("inline function type differs from type %u", use.index));
        }
    } else if (locals && is_known) {
        locals->count = types_[use.index].param_count;
    }
    return use;
}

u32 ModuleAssembler::type_index(const TypeUse& use) {
    if (use.is_explicit || in_.failed()) return use.index;
    std::string key = use.given.key();
    auto [found, is_new] = type_by_key_.emplace(key, u32(types_.size()));
    if (is_new) {
        Section& section = sections_[SectionId::type];
        section.count++;
        section.bytes.push_back(func_code);
        section.bytes.insert(section.bytes.end(), key.begin(), key.end());
        Type& added = types_.emplace_back();
        added.is_func = true;
        added.param_count = use.given.param_count;
        added.key = std::move(key);
    }
    return found->second;
}

}  // namespace gpurun::text
