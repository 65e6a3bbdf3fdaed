// What machine code made from code, and the runtime that enters it, have agreed on.
//
// A function of the native tier is given its context, the place of its frame (fp) and that of its
// caller's record (rp), and its arguments; it returns a status and its results. It writes neither
// frame nor records while it runs. Where it stops it *leaves*: it writes the slots that are live
// into its frame and, if it is the innermost, its position into the thread's words; whoever called
// it writes its own slots, and the record of the call, and returns the same status.
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

// Entries of an image have numbers: what its function `enter` is asked for.
inline constexpr const char* native_enter_name = "gpurun_native_enter";

}  // namespace gpurun
