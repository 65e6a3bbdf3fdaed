// What machine code made from code, and the runtime that enters it, have agreed on.
//
// A function of the native tier is given its context, the place of its frame (fp) and that of its
// caller's record (rp), and its arguments; it returns a status and its results. It writes neither
// frame nor records while it runs. Where it stops it *leaves*: it writes the slots that are live
// into its frame and, if it is the innermost, its position into the thread's words; whoever called
// it writes its own slots, and the record of the call, and returns the same status. What the other
// slots hold then is anything: neither tier reads them before they are written.
#pragma once

#include "base/ints.h"

namespace gpurun {

enum class NativeStatus : u32 {
    done,       // results are returned, or stand in the callee's slots from 0 on
    yield,      // left; either tier may go on
    interpret,  // left; the instruction there is for the interpreter
    stopped,    // left; the thread's state says why
    tail,       // arguments stand in the slots from 0 on: the context says which function is next
    here,       // of a call that was not made: the caller leaves where it stands
};

// Where a function left, in one word: the position, counted from the function's first, how many
// handlers were open there, and the status; and whether it did because its callee had.
inline constexpr u32 native_position_bits = 20, native_status_shift = 20, native_status_bits = 3,
                     native_caller_bit = 1u << 23, native_handlers_shift = 24;
inline constexpr u32 native_most_words = 1u
                                         << native_position_bits;  // of a function: then it stays
inline constexpr u32 native_most_handlers = 255;                   // in the interpreter

// Entries of a piece of an image have numbers: what its function `enter` is asked for. An image for
// GPUs is modules of its own, apart from the runtime's; native_image_name is a kernel in each that
// writes the addresses of its pieces' `enter`, and calls all of them if it is given nowhere to
// write to: so the linker knows what it takes to run them. native_table_name are the addresses of
// the wasm module's functions; of those in other modules they are 0 until these are loaded too. On
// the CPU each piece is loaded by itself: native_own_table_name are the addresses of its functions,
// which the loader writes into a native_table_name that it has for all pieces. There it is 0 for
// those that are not loaded: whoever calls one leaves.
inline constexpr const char* native_enter_name = "gpurun_native_enter";
inline constexpr const char* native_image_name = "gpurun_native_image";
inline constexpr const char* native_table_name = "gpurun_functions";
inline constexpr const char* native_own_table_name = "gpurun_own_functions";

// ---- what kernels are told ---------------------------------------------------------

// Where positions of the code can be entered; addresses of the device, 0: nowhere.
struct NativeEntries {
    u64 entry_at;  // u32 for each position: number in `entries`, or 0
    u64 entries;   // rt::NativeEntry
};

struct NativeParams {
    u32 stack_bytes;  // that a lane has of hardware stack
    u32 alternates;   // 1: the tiers take turns at every suspension point, to test that
};

}  // namespace gpurun
