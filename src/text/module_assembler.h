// The assembler's state for one module. Inside src/text only: assemble.h is the way in.
//
// Two passes over the tokens. The first gives every field its index and learns its $id; the
// second reads the types, then all other fields in the order of the text, and writes sections.
// Function types that are written in place are added behind the explicit ones as they occur.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ints.h"
#include "text/assemble.h"
#include "text/cursor.h"
#include "text/lexer.h"
#include "wasm/instr.h"
#include "wasm/module.h"

namespace gpurun::text {

using NameMap = std::vector<std::pair<u32, std::string>>;

// Indices of one kind, with the ids that stand for them.
struct IndexSpace {
    const char* what;  // as messages call it
    u32 count = 0;
    std::unordered_map<std::string_view, u32> ids;
    NameMap names;  // for the name section, sorted by index
};

struct Section {
    wasm::Bytes bytes;
    u32 count = 0;                                // entries
    std::vector<std::pair<u32, Position>> lines;  // offset in `bytes`

    void append(const Section& other);
};

// A function type as it is encoded: two vectors of value types.
struct Signature {
    wasm::Bytes params, results;
    u32 param_count = 0, result_count = 0;

    std::string key() const;  // both vectors as the binary format has them
};

class ModuleAssembler {
public:
    // tokens[begin, end) is what stands between "(module" and its ")".
    ModuleAssembler(const Tokens& tokens, u32 begin, u32 end);

    bool run();  // false: see error()
    const SyntaxError& error() const { return in_.error(); }
    Assembled take_result();

private:
    using Kind = Token::Kind;
    using Op = wasm::Op;
    using Bytes = wasm::Bytes;
    using ExternKind = wasm::ExternKind;
    using SegmentMode = wasm::SegmentMode;

    struct Field {
        std::string_view keyword;
        u32 at;  // its left parenthesis
    };

    struct Type {
        bool is_func = false;
        bool is_plain = false;  // final, without supertypes, not recursive
        u32 param_count = 0;
        std::string key;  // of a function type's signature
        IndexSpace fields{"field", 0, {}, {}};
    };

    enum SectionId : u8 {
        custom,
        type,
        import,
        function,
        table,
        memory,
        global,
        export_,
        start,
        element,
        code,
        data,
        data_count,
        tag,
        section_count
    };

    struct Custom {
        std::string name;
        Bytes contents;
        u32 place;  // position in the order of sections that it stands before
    };

    // module_assembler.cpp: fields
    struct ElemList {
        bool is_indices = true;
        Bytes type;
        Section entries;
    };
    void declare_fields();
    void declare_field(const Token& word);
    void unclosed_field(u32 at);
    void declare_extern(ExternKind kind, const char* definition, const Token& word);
    void check_import_order(const Token& word);
    IndexSpace& space_of(ExternKind kind);
    void define_field(std::string_view keyword);
    void skip_id();
    void import_field();
    void import_description(ExternKind kind);
    void extern_field(ExternKind kind);
    void func_field(u32 number);
    void local_declarations(Bytes& out);
    void table_field(u32 number);
    void table_with_elements(u32 number, bool is_64);
    void memory_field(u32 number);
    void export_field();
    void start_field();
    void elem_field();
    void data_field();
    u32 segment_target(std::string_view keyword, const IndexSpace& space);  // 0 if there is none
    bool address_type();                                                    // true: i64
    void limits(Bytes& out, bool is_64, bool may_be_shared);
    void table_type(Bytes& out, bool is_64);
    void memory_type(Bytes& out, bool is_64);
    void global_type(Bytes& out);
    void tag_type(Bytes& out);
    void put_export(std::string_view name, ExternKind kind, u32 number);
    ElemList elem_list(bool may_omit_func);
    void elem_indices(ElemList& list, bool as_expressions);
    void elem_expressions(ElemList& list);
    void put_elem(SegmentMode mode, u32 table_number, const Section& offset, const ElemList& list);
    Section offset_expression();
    Section zero_offset(bool is_64);
    std::string data_strings();
    void put_data(SegmentMode mode, u32 memory_number, const Section& offset,
                  std::string_view contents);

    // assemble_types.cpp
    struct TypeUse {
        u32 index = 0;
        bool is_explicit = false;  // (type x) was there
        Signature given;           // what was written in place
    };
    void define_types();
    void type_definition(Bytes& out, u32 type_number, bool is_alone);
    void note_implicit(u32 type_number);
    void sub_type(Bytes& out, u32 type_number);
    void composite_type(Bytes& out, u32 type_number);
    void struct_fields(Bytes& out, IndexSpace& space);
    void field_type(Bytes& out);
    bool is_val_type() const;
    void val_type(Bytes& out);
    bool is_ref_type() const;
    void ref_type(Bytes& out);
    s64 ref_type(bool& nullable);  // its heap type
    s64 heap_type();               // as Instr::heap has it
    // Where a parameter may have an id, it is ignored, or entered in `locals`.
    enum class ParamIds : u8 { none, ignored, bound };
    void signature(Signature& out, ParamIds ids, IndexSpace* locals);
    TypeUse type_use(IndexSpace* locals = nullptr);
    u32 type_index(const TypeUse& use);  // adds a type if there is none like it

    // assemble_body.cpp: instructions
    struct Frame {
        enum class Kind : u8 {
            body,  // up to a right parenthesis that is not ours
            block,
            if_,
            else_,
            try_,
            catch_,
            catch_all,     // not folded: up to `end`
            plain,         // "(i32.add": operands, then the instruction
            folded_block,  // "(block": instructions, then `end`
            condition,
            then,
            after_then,
            folded_else,  // "(if"
            before_do,
            do_,
            clauses,
            folded_catch,
            folded_catch_all,  // "(try"
            closing,           // "(if" or "(try" that can only end
            delegated,         // "(try" that needs no `end`
        };
        Kind kind;
        Position position;
        u32 pending = 0;  // plain, condition: where its bytes start in pending_
        bool has_catch = false;
        std::string_view id = {};  // condition: the label to come
        std::string hint = {};
    };
    struct Label {
        std::string_view id;
        u32 shadowed;  // place + 1 of the outer label of the same id; 0: none
    };
    void start_body();
    void function_body(Section& out);
    void expression(Section& out);         // instructions up to a right parenthesis, and `end`
    void folded_expression(Section& out);  // one folded instruction, and `end`
    void instructions(Section& out, bool only_one);
    void open_parenthesis();
    void open_folded(Op op, const Token& word);
    void open_clause();
    void close_parenthesis();
    void flat_instruction();
    void flat_block(Op op, const Token& word);
    void flat_else(const Token& word);
    void flat_catch(Op op, const Token& word);
    void flat_delegate(const Token& word);
    void flat_end(const Token& word);
    void close_block(Position position);
    void check_label_repeats();
    std::string take_hint();
    void emit(Position position, const Bytes& bytes, u32 from, const std::string& hint);
    void emit_op(Position position, Op op);
    void emit_op(Position position, Op op, u32 operand);
    std::string_view label_id();
    void push_label(std::string_view id);
    void pop_label();
    u32 label();
    void block_type(Bytes& out);
    void catch_clauses(Bytes& out);
    Op find_op();

    void plain_instruction(Bytes& out, Op op);

    // assemble_operands.cpp: what follows an opcode
    void operands(Bytes& out, Op op);
    void br_table(Bytes& out);
    u32 data_index();
    u32 optional_index(const IndexSpace& space);  // 0 if there is none
    bool has_two_indices() const;
    void two_or_none(Bytes& out, const IndexSpace& space);
    void memory_argument(Bytes& out, wasm::Imm imm);
    u64 keyed_number(std::string_view key, u64 otherwise);
    void shuffle_lanes(Bytes& out);
    void field_operands(Bytes& out);
    void select(Bytes& out);
    void cast_branch(Bytes& out);

    // assemble_names.cpp: ids, names and custom sections
    u32 index(const IndexSpace& space);
    void bind(IndexSpace& space, u32 index);  // an optional $id and (@name …) for it
    const Annotation* take_annotation(Annotation::Kind kind);  // that stands at the cursor
    usize annotations_here() const;
    std::string name_annotation(const Annotation& annotation);
    void custom_annotations();
    Custom parse_custom(const Annotation& annotation);
    void check_annotations();
    void put_names(Bytes& out) const;
    void put_branch_hints(Bytes& out) const;

    Cursor in_;
    const Tokens& tokens_;
    usize first_annotation_;
    std::vector<bool> taken_;  // the module's annotations, from the first one

    std::string module_name_;
    std::vector<Field> type_fields_, fields_;
    IndexSpace type_space_{"type", 0, {}, {}}, func_space_{"func", 0, {}, {}},
        table_space_{"table", 0, {}, {}}, memory_space_{"memory", 0, {}, {}},
        global_space_{"global", 0, {}, {}}, tag_space_{"tag", 0, {}, {}},
        elem_space_{"elem segment", 0, {}, {}}, data_space_{"data segment", 0, {}, {}};
    u32 next_[5] = {};  // by ExternKind: the index of the next one in the second pass
    const char* first_definition_ = nullptr;  // after which no import may follow
    std::vector<Type> types_;
    std::unordered_map<std::string, u32> type_by_key_;  // types that may be used implicitly
    u32 current_type_ = 0;                              // being read, if in_type_
    bool in_type_ = false;
    Section sections_[section_count];
    std::vector<Custom> customs_;
    std::vector<std::pair<u32, NameMap>> local_names_, label_names_;
    std::vector<std::pair<u32, NameMap>> hints_;  // by function: offset and payload
    bool uses_data_ = false;                      // by instructions, which need the data count

    // The body being read.
    IndexSpace locals_{"local", 0, {}, {}};
    std::vector<Label> labels_;
    std::unordered_map<std::string_view, u32> label_ids_;  // place + 1 of the innermost
    NameMap body_label_names_, body_hints_;
    u32 label_total_ = 0;  // labels seen so far in the body
    bool in_function_ = false;
    u32 current_func_ = 0;
    std::vector<Frame> frames_;
    Bytes pending_;  // instructions that wait for their operands
    Bytes scratch_;
    Section* out_ = nullptr;
};

// Assembles a whole source; false: see `error`.
bool assemble_source(std::string_view source, Assembled& result, SyntaxError& error);

}  // namespace gpurun::text
