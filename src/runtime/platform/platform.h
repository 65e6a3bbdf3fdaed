// Includes what the runtime needs of its target. Only this file asks which target it is; each
// platform file defines the same names:
//
//   may_be_resident                   true if this is, or may be, a resident machine
//   lanes_are_processes               true if a warp runs several processes at once
//   lane_stride                       words of neighbouring lanes interleave by this much
//   StackWord, slot_stride            the same for the slots of stacks, wherever those are
//   load_word<T>, load_slot<T>, …     numbers of one to four words or slots
//   memories_interleave               true if linear memories of a warp's lanes do (interleaved.h)
//   load_bytes<T>, store_bytes<T>     unaligned little-endian access
//   guest_base, load_guest<T>, …      the same to a linear memory, by its base
//   load_compact<T>, load_guest_compact<T>, load_guest_natural<T>, …   for machine code: in little
//                                     code, or of aligned addresses
//   in_stack, in_device               return a pointer whose type says which memory it points to
//   do_chore, do_chores               copy and fill memory (chore.h): for one lane, for all
//   stack_is_window                   true if only a part of a stack can be accessed
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

// Hosts have one kind of memory, so pointers stay as they are.
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
