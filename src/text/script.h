// A .wast script as a list of commands: what to load, call and expect. Modules in it are turned
// into bytes here; nothing is decoded or run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ints.h"
#include "base/result.h"
#include "text/assemble.h"
#include "text/literal.h"
#include "wasm/module.h"
#include "wasm/types.h"

namespace gpurun::text {

inline constexpr u32 max_thread_nesting = 16;  // then "threads nest too deeply"
inline constexpr u32 max_either_nesting = 16;  // then "alternatives nest too deeply"

// An argument of an action, or what an assertion expects for one result. Only expectations have
// NaN patterns, references without a number, and alternatives.
struct ScriptValue {
    enum class Kind : u8 {
        i32,
        i64,
        f32,
        f64,         // bits[0]
        v128,        // bits: the low and the high half; `shape` says what its lanes are
        ref_null,    // of type `heap`; without one, any null
        ref_extern,  // the host's external reference `number`; without one, any but null
        ref_host,    // the host's reference `number`, internalised to (ref any)
        ref_func,
        ref_any,
        ref_eq,
        ref_i31,
        ref_struct,
        ref_array,
        ref_exn,  // any but null
        either,   // matches if one of `alternatives` does
    };

    Kind kind = Kind::i32;
    Shape shape = Shape::i8x16;
    // f32, f64: nan[0]; v128 of shape f32x4 or f64x2: one for each lane. Where it is not `none`,
    // the bits of that lane say nothing.
    Nan nan[4] = {Nan::none, Nan::none, Nan::none, Nan::none};
    u64 bits[2] = {0, 0};
    std::optional<wasm::Heap> heap;
    std::optional<u32> number;
    std::vector<ScriptValue> alternatives;

    std::string to_string() const;  // as a script writes it, such as "(i32.const 7)"
};

struct ScriptModule {
    enum class Kind : u8 { text, binary, quote };

    Kind kind = Kind::text;
    std::string name;   // its $id without the dollar; empty: none
    wasm::Bytes bytes;  // empty if there is an error
    // What the assembler said of a text or a quote: the message starts with the suite's wording.
    std::optional<std::string> error;
    Position error_position;  // in the script; for a quote, in the quoted text
    // Bytes of a text or a quote -> the script's (or the quoted text's) lines.
    std::vector<std::pair<u32, Position>> lines;
};

struct Action {
    enum class Kind : u8 { invoke, get };

    Kind kind = Kind::invoke;
    std::string module;  // $id without the dollar; empty: the latest instance
    std::string field;   // UTF-8, may hold zero bytes
    std::vector<ScriptValue> arguments;
};

struct Command {
    enum class Kind : u8 {
        module,             // module: instantiate it; it is the latest instance then
        module_definition,  // module: load it, do not instantiate
        module_instance,    // instantiate the definition `target` (or the latest) as `name`
        register_,          // make the instance `target` (or the latest) importable as `name`
        action,             // action
        assert_return,      // action, results
        assert_trap,        // action or module, message
        assert_exhaustion,  // action, message
        assert_exception,   // action
        assert_suspension,  // action, message
        assert_malformed,   // module, message
        assert_malformed_custom,
        assert_invalid,
        assert_invalid_custom,
        assert_unlinkable,
        thread,  // run `commands` in a thread `name` that sees only `shared`
        wait,    // wait for the thread `name`
    };

    Kind kind = Kind::module;
    u32 line = 0;
    std::string name, target;
    std::optional<ScriptModule> module;
    std::optional<Action> action;
    std::vector<ScriptValue> results;
    std::string message;  // the wording that a failure is expected to start with
    std::vector<std::string> shared;
    std::vector<Command> commands;
};

const char* to_string(Command::Kind kind);  // "assert_return"

struct Script {
    std::vector<Command> commands;
};

// Fails only where the script itself cannot be understood: an error inside a module is kept in
// its command. A source of module fields alone is a script of that one module.
Result<Script> parse_script(std::string_view source, std::string_view name);

}  // namespace gpurun::text
