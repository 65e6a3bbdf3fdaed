// Translates a module's validated functions into the interpreter's register code (abi/code.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "abi/code.h"
#include "base/result.h"
#include "translate/instance_layout.h"
#include "wasm/module.h"

namespace gpurun::translate {

struct Options {
    bool metered = false;  // charge fuel at every basic block
    u32 threads = 0;       // 0: as many as the machine has
};

// A module's code, for any place in a code memory: distances are relative.
struct Code {
    std::vector<u64> words;
    std::vector<u32> entries;  // function index -> position in `words`; imports: 0
    u32 instantiate;           // position of the function that initialises an instance
    InstanceLayout layout;
};

// Translates a module. Fails only for functions whose frames, without slots that may be far, exceed
// max_frame_slots.
Result<Code> translate(const wasm::Module& module, const Options& options);
// Translates a module whose functions stand for system calls, from number `first` on.
Result<Code> translate_system(const wasm::Module& module, u32 first);

inline constexpr u32 max_frame_slots = 65'535;  // fields of an instruction have 16 bits

// Returns the code of a function, for position `at` of the code memory in which the module's
// functions have these entries and the function that initialises an instance stands at
// `instantiate`. It has the type of `func` and calls it once the instance is initialised, by
// `initialize` too if that is given. For processes that initialise themselves.
Result<std::vector<u64>> translate_beginning(const wasm::Module& module,
                                             const InstanceLayout& layout,
                                             std::span<const u32> entries, u32 instantiate, u32 at,
                                             std::optional<u32> initialize, u32 func);

// A FunctionMap says what positions of a function's code stand for. It is not kept: translation is
// deterministic, so the map of a function can be made again.
enum class SlotKind : u8 { i32, i64, f32, f64, v128, ref };

struct FunctionMap {
    struct Line {
        u32 position;     // relative to the function's entry
        u32 wasm_offset;  // of the instruction it belongs to, in the module's bytes
    };
    static constexpr u32 none = ~u32{0};
    // A call or a loop head: every local and operand stands in its own slot there.
    struct Point {
        u32 position;
        u32 wasm_offset;
        bool is_loop;
        u32 top;  // newest operand, in `operands`, or none
    };
    // Points share what is below: the map is no larger than the function.
    struct Operand {
        SlotKind kind;
        u32 slot;
        u32 below;  // the next older one, or none
    };
    std::vector<Line> lines;    // by position
    std::vector<Point> points;  // by position
    std::vector<Operand> operands;
    std::vector<u32> local_slots;
    std::vector<SlotKind> local_kinds;
    u32 frame_slots = 0;

    u32 wasm_offset_at(u32 position) const;
};
FunctionMap map_function(const wasm::Module& module, u32 func, const Options& options);

// The code of one function on its own, for listings.
struct FunctionCode {
    struct Callee {
        u32 position;  // of the call; its distance is left open
        u32 func;
    };
    std::vector<u64> words;
    std::vector<Callee> callees;  // by position
    FunctionMap map;
};
// Translates one function. Returns nothing if translate() fails.
std::optional<FunctionCode> translate_function(const wasm::Module& module,
                                               const InstanceLayout& layout, u32 func,
                                               const Options& options);
std::optional<FunctionCode> translate_instantiate(const wasm::Module& module,
                                                  const InstanceLayout& layout);

}  // namespace gpurun::translate
