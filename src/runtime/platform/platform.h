// What the runtime needs of its target. The only place that asks which target it is; each
// platform file defines the same names:
//
//   may_be_resident                   whether this is, or may be, a resident machine
//   lanes_are_processes               whether a warp runs several at once
//   lane_stride                       words of neighbouring lanes interleave by this much
//   StackWord, slot_stride            the same for the slots of stacks, wherever those are
//   load_word<T>, load_slot<T>, …     numbers of one to four words or slots
//   memories_interleave               whether linear memories of a warp's lanes do (interleaved.h)
//   load_bytes<T>, store_bytes<T>     unaligned little-endian access
//   guest_base, load_guest<T>, …      the same to a linear memory, by its base
//   load_compact<T>, load_guest_compact<T>, load_guest_natural<T>, …   for machine code: in little
//                                     code, or of aligned addresses
//   in_stack, in_device               pointers of which it is said what memory they are to
//   do_chore, do_chores               copying and filling memory (chore.h): for one lane, for all
//   stack_is_window                   whether a part of a stack is all that is at hand
//   atomic_load, atomic_store, atomic_rmw_*, atomic_cmpxchg   sequentially consistent
//   check_failed                      ends everything, with a message
//   INTERPRETER_LOOP, CASE, NEXT, …   how one instruction follows another (interp.cpp)
#pragma once

#include "base/ints.h"

#if defined(__NVPTX__)
#if GPURUN_SOLO
#include "runtime/platform/platform_solo.h"
#else
#include "runtime/platform/platform_gang.h"
#endif
#include "runtime/platform/platform_nvptx.h"

#include "runtime/platform/interleaved.h"
#include "runtime/platform/together.h"
#elif defined(GPURUN_PLATFORM)
#include GPURUN_PLATFORM  // a test's
#else
#include "runtime/platform/platform_host.h"
#endif

#if !defined(__NVPTX__)
namespace gpurun::rt {

// A host has one kind of memory.
template <class T>
inline T* in_stack(T* p) {
    return p;
}
template <class T>
inline T* in_device(T* p) {
    return p;
}

}  // namespace gpurun::rt
#endif
