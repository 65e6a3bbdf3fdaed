// Reads the commands of a script.
#include "text/script.h"

#include "base/format.h"
#include "text/cursor.h"
#include "text/module_assembler.h"

namespace gpurun::text {

namespace {

using Kind = Token::Kind;
using wasm::Heap;

struct CommandWord {
    const char* word;
    Command::Kind kind;
};
constexpr CommandWord command_words[] = {
    {"module", Command::Kind::module},
    {"module definition", Command::Kind::module_definition},
    {"module instance", Command::Kind::module_instance},
    {"register", Command::Kind::register_},
    {"action", Command::Kind::action},
    {"assert_return", Command::Kind::assert_return},
    {"assert_trap", Command::Kind::assert_trap},
    {"assert_exhaustion", Command::Kind::assert_exhaustion},
    {"assert_exception", Command::Kind::assert_exception},
    {"assert_suspension", Command::Kind::assert_suspension},
    {"assert_malformed", Command::Kind::assert_malformed},
    {"assert_malformed_custom", Command::Kind::assert_malformed_custom},
    {"assert_invalid", Command::Kind::assert_invalid},
    {"assert_invalid_custom", Command::Kind::assert_invalid_custom},
    {"assert_unlinkable", Command::Kind::assert_unlinkable},
    {"thread", Command::Kind::thread},
    {"wait", Command::Kind::wait},
};

struct HeapWord {
    const char* word;
    Heap heap;
};
constexpr HeapWord heap_words[] = {
    {"any", Heap::any},           {"eq", Heap::eq},         {"i31", Heap::i31},
    {"struct", Heap::struct_},    {"array", Heap::array},   {"none", Heap::none},
    {"func", Heap::func},         {"nofunc", Heap::nofunc}, {"extern", Heap::extern_},
    {"noextern", Heap::noextern}, {"exn", Heap::exn},       {"noexn", Heap::noexn},
};

struct ValueWord {
    const char* word;
    ScriptValue::Kind kind;
};
constexpr ValueWord value_words[] = {
    {"i32.const", ScriptValue::Kind::i32},         {"i64.const", ScriptValue::Kind::i64},
    {"f32.const", ScriptValue::Kind::f32},         {"f64.const", ScriptValue::Kind::f64},
    {"v128.const", ScriptValue::Kind::v128},       {"ref.null", ScriptValue::Kind::ref_null},
    {"ref.extern", ScriptValue::Kind::ref_extern}, {"ref.host", ScriptValue::Kind::ref_host},
    {"ref.func", ScriptValue::Kind::ref_func},     {"ref.any", ScriptValue::Kind::ref_any},
    {"ref.eq", ScriptValue::Kind::ref_eq},         {"ref.i31", ScriptValue::Kind::ref_i31},
    {"ref.struct", ScriptValue::Kind::ref_struct}, {"ref.array", ScriptValue::Kind::ref_array},
    {"ref.exn", ScriptValue::Kind::ref_exn},       {"either", ScriptValue::Kind::either},
};

template <class Row, usize size>
const Row* find(const Row (&table)[size], std::string_view word) {
    for (const Row& row : table) {
        if (word == row.word) return &row;
    }
    return nullptr;
}

class ScriptParser {
public:
    explicit ScriptParser(const Tokens& tokens)
        : tokens_(tokens), in_(tokens, 0, tokens.size() - 1) {}

    bool run(Script& script) {
        // Fields without a module around them are a script of one module.
        if (in_.is(Kind::left) && in_.is(Kind::keyword, 1) && is_field(in_.text(1))) {
            Command& command = script.commands.emplace_back();
            command.line = in_.peek().position.line;
            command.module.emplace();
            assemble_text(*command.module, 0, tokens_.size() - 1);
            return true;
        }
        commands(script.commands, 0);
        if (!in_.at_end()) in_.unexpected();
        return !in_.failed();
    }
    const SyntaxError& error() const { return in_.error(); }

private:
    static bool is_field(std::string_view word) {
        for (std::string_view field : {"type", "rec", "import", "func", "table", "memory", "global",
                                       "tag", "export", "start", "elem", "data"}) {
            if (word == field) return true;
        }
        return false;
    }

    void commands(std::vector<Command>& out, u32 depth) {
        while (in_.is(Kind::left) && !in_.failed()) {
            Command command = this->command(depth);
            if (!in_.failed()) out.push_back(std::move(command));
        }
    }

    Command command(u32 depth) {
        Command out;
        out.line = in_.peek().position.line;
        if (in_.is_keyword("invoke", 1) || in_.is_keyword("get", 1)) {
            out.kind = Command::Kind::action;
            out.action = action();
            return out;
        }
        u32 left = in_.at();
        in_.take();
        const CommandWord* row = in_.is(Kind::keyword) ? find(command_words, in_.text()) : nullptr;
        if (!row || row->kind == Command::Kind::action) {
            in_.unexpected();
            return out;
        }
        in_.take();
        out.kind = row->kind;
        switch (row->kind) {
            case Command::Kind::module: module_command(out, left); return out;
            case Command::Kind::register_:
                out.name = in_.expect_name();
                out.target = optional_id();
                break;
            case Command::Kind::assert_return:
                out.action = action();
                while (in_.is(Kind::left)) out.results.push_back(value(true, 0));
                break;
            case Command::Kind::assert_trap:
                if (in_.is_left("module")) {
                    out.module = module();
                } else {
                    out.action = action();
                }
                out.message = in_.expect_string();
                break;
            case Command::Kind::assert_exception: out.action = action(); break;
            case Command::Kind::assert_exhaustion:
            case Command::Kind::assert_suspension:
                out.action = action();
                out.message = in_.expect_string();
                break;
            case Command::Kind::thread: thread(out, depth); break;
            case Command::Kind::wait: out.name = in_.expect_id(); break;
            default: out.module = module(); out.message = in_.expect_string();
        }
        in_.expect_right();
        return out;
    }

    // After "(module": a module, a definition, or an instance of one.
    void module_command(Command& out, u32 left) {
        if (in_.accept_keyword("instance")) {
            out.kind = Command::Kind::module_instance;
            out.name = optional_id();
            out.target = optional_id();
            return in_.expect_right();
        }
        if (in_.is_keyword("definition")) out.kind = Command::Kind::module_definition;
        in_.move_to(left);
        out.module = module();
    }

    // "(module" definition? id? then fields, or "binary" or "quote" with strings.
    ScriptModule module() {
        ScriptModule out;
        if (!in_.is_left("module")) {
            if (in_.is(Kind::left)) in_.take();
            in_.unexpected();
            return out;
        }
        u32 close = in_.peek().link;
        if (close >= tokens_.size() - 1) {
            in_.fail(in_.peek(), "unexpected token: end of text, the module is not closed");
            return out;
        }
        in_.take();
        in_.take();
        in_.accept_keyword("definition");
        u32 begin = in_.at();
        out.name = optional_id();
        if (in_.is_keyword("binary") || in_.is_keyword("quote")) {
            out.kind =
                in_.is_keyword("binary") ? ScriptModule::Kind::binary : ScriptModule::Kind::quote;
            in_.take();
            std::string contents;
            while (in_.is(Kind::string)) tokens_.append_string(in_.take(), contents);
            in_.expect_right();
            if (out.kind == ScriptModule::Kind::quote) {
                assemble_quote(out, contents);
            } else {
                out.bytes.assign(contents.begin(), contents.end());
            }
        } else {
            assemble_text(out, begin, close);
            in_.move_to(close);
            in_.expect_right();
        }
        return out;
    }

    void assemble_text(ScriptModule& out, u32 begin, u32 end) {
        ModuleAssembler assembler(tokens_, begin, end);
        if (assembler.run()) {
            keep(out, assembler.take_result());
        } else {
            keep(out, assembler.error());
        }
    }

    void assemble_quote(ScriptModule& out, std::string_view source) {
        Assembled result;
        SyntaxError error;
        if (assemble_source(source, result, error)) {
            keep(out, std::move(result));
        } else {
            keep(out, error);
        }
    }

    static void keep(ScriptModule& out, Assembled result) {
        out.bytes = std::move(result.bytes);
        out.lines = std::move(result.lines);
    }
    static void keep(ScriptModule& out, const SyntaxError& error) {
        out.error = error.message;
        out.error_position = error.position;
    }

    std::string optional_id() { return in_.is(Kind::id) ? in_.expect_id() : std::string(); }

    Action action() {
        Action out;
        if (in_.accept_left("get")) {
            out.kind = Action::Kind::get;
        } else if (!in_.accept_left("invoke")) {
            if (in_.is(Kind::left)) in_.take();
            in_.unexpected();
            return out;
        }
        out.module = optional_id();
        out.field = in_.expect_name();
        while (out.kind == Action::Kind::invoke && in_.is(Kind::left)) {
            out.arguments.push_back(value(false, 0));
        }
        in_.expect_right();
        return out;
    }

    ScriptValue value(bool is_expected, u32 depth) {
        ScriptValue out;
        in_.take();
        const ValueWord* row = in_.is(Kind::keyword) ? find(value_words, in_.text()) : nullptr;
        if (!row) {
            in_.unexpected();
            return out;
        }
        const Token& word = in_.take();
        out.kind = row->kind;
        switch (out.kind) {
            case ScriptValue::Kind::i32: out.bits[0] = expect_integer(in_, 32); break;
            case ScriptValue::Kind::i64: out.bits[0] = expect_integer(in_, 64); break;
            case ScriptValue::Kind::f32:
                out.bits[0] = expect_float(in_, 32, is_expected ? out.nan : nullptr);
                break;
            case ScriptValue::Kind::f64:
                out.bits[0] = expect_float(in_, 64, is_expected ? out.nan : nullptr);
                break;
            case ScriptValue::Kind::v128: {
                Vector vector = expect_vector(in_, is_expected);
                out.shape = vector.shape;
                for (u32 i = 0; i < 2; i++) out.bits[i] = vector.bits[i];
                for (u32 i = 0; i < 4; i++) out.nan[i] = vector.nan[i];
                break;
            }
            case ScriptValue::Kind::ref_null:
                if (in_.is(Kind::right)) break;
                if (const HeapWord* heap = find(heap_words, in_.text())) {
                    in_.take();
                    out.heap = heap->heap;
                } else {
                    in_.unexpected();
                }
                break;
            case ScriptValue::Kind::either:
                if (!is_expected) in_.unexpected(word);
                if (depth == max_either_nesting) in_.fail(word, "alternatives nest too deeply");
                while (in_.is(Kind::left)) out.alternatives.push_back(value(true, depth + 1));
                break;
            default:
                if (in_.is(Kind::natural))
                    out.number = in_.expect_u32();
                else if (!is_expected)
                    in_.unexpected();
        }
        in_.expect_right();
        return out;
    }

    // "(thread" id ("(shared (module" id "))")* command*
    void thread(Command& out, u32 depth) {
        if (depth == max_thread_nesting) return in_.fail(in_.peek(), "threads nest too deeply");
        out.name = in_.expect_id();
        while (in_.accept_left("shared")) {
            if (!in_.accept_left("module")) return in_.unexpected();
            out.shared.push_back(in_.expect_id());
            in_.expect_right();
            in_.expect_right();
        }
        commands(out.commands, depth + 1);
    }

    const Tokens& tokens_;
    Cursor in_;
};

std::string float_text(u64 bits, u32 width, Nan nan) {
    if (nan == Nan::canonical) return "nan:canonical";
    if (nan == Nan::arithmetic) return "nan:arithmetic";
    u32 fraction_bits = width == 32 ? 23 : 52;
    u64 fraction = bits & ((u64{1} << fraction_bits) - 1);
    u64 exponent_mask = width == 32 ? 0xff : 0x7ff;
    if ((bits >> fraction_bits & exponent_mask) == exponent_mask && fraction) {
        const char* sign = bits >> (width - 1) & 1 ? "-" : "";
        return format("%snan:0x%llx", sign, (unsigned long long)fraction);
    }
    if (width == 32) return format("%a", double(__builtin_bit_cast(float, u32(bits))));
    return format("%a", __builtin_bit_cast(double, bits));
}

std::string vector_text(const ScriptValue& value) {
    std::string text = to_string(value.shape);
    u32 lanes = lane_count(value.shape), width = 128 / lanes;
    for (u32 lane = 0; lane < lanes; lane++) {
        u64 bits = value.bits[lane * width / 64] >> (lane * width % 64);
        if (width < 64) bits &= (u64{1} << width) - 1;
        text += value.shape >= Shape::f32x4 ? " " + float_text(bits, width, value.nan[lane])
                                            : format(" 0x%llx", (unsigned long long)bits);
    }
    return text;
}

}  // namespace

std::string ScriptValue::to_string() const {
    std::string text = "(";
    for (const ValueWord& row : value_words) {
        if (row.kind == kind) text += row.word;
    }
    switch (kind) {
        case Kind::i32: text += format(" %d", s32(u32(bits[0]))); break;
        case Kind::i64: text += format(" %lld", (long long)bits[0]); break;
        case Kind::f32: text += " " + float_text(bits[0], 32, nan[0]); break;
        case Kind::f64: text += " " + float_text(bits[0], 64, nan[0]); break;
        case Kind::v128: text += " " + vector_text(*this); break;
        case Kind::either:
            for (const ScriptValue& value : alternatives) text += " " + value.to_string();
            break;
        default:
            for (const HeapWord& row : heap_words) {
                if (heap == row.heap) text += std::string(" ") + row.word;
            }
            if (number) text += format(" %u", *number);
    }
    return text + ")";
}

const char* to_string(Command::Kind kind) {
    for (const CommandWord& row : command_words) {
        if (row.kind == kind) return row.word;
    }
    return "";
}

Result<Script> parse_script(std::string_view source, std::string_view name) {
    if (source.size() > max_source_bytes) {
        return Error{
            format("source too large: %zu bytes, at most %zu", source.size(), max_source_bytes)};
    }
    Tokens tokens(source);
    ScriptParser parser(tokens);
    Script script;
    if (parser.run(script)) return script;
    return Error{to_string(parser.error(), name)};
}

}  // namespace gpurun::text
