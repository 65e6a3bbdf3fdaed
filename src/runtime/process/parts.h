// What processes are made of: slots of page memory, and the lists that link tasks and children. For
// the files of this room.
#pragma once

#include "runtime/process/processes.h"

namespace gpurun::rt {

// ---- slots (slots.cpp) -------------------------------------------------------------

inline u32* slot_words(const Machine& m, u64 page) {
    return reinterpret_cast<u32*>(m.pages + (page << page_shift));
}
// Returns which list of spare slots to look at first: where there are few, that of the last one
// given.
u32 spare_shard(const ProgramEntry& program);
// Counts a slot that was taken from a list of spares.
void note_spare_taken(const Machine& m, ProgramEntry& program);
// Takes a slot for a process of that program. Returns its page, or 0. What a slot held that was in
// use before is known (prepare_task); one that `is_new` can hold anything.
u64 take_slot(const Machine& m, ProgramEntry& program, bool& is_new);
// Gives a slot back. `is_raw`: nothing was ever made ready in it.
void give_slot(const Machine& m, ProgramEntry& program, u64 page, bool is_raw);

// ---- ends (end.cpp) ----------------------------------------------------------------

// Gives back what a process had.
[[gnu::noinline]] void give_back(const Machine& m, const Belongings& had);

// ---- tasks and children ------------------------------------------------------------

// Links and unlinks a task of its process, whose lock the caller has (threads.cpp).
[[maybe_unused]] void link_task(const Machine& m, u32 index);
[[maybe_unused]] void unlink_task(const Machine& m, u32 index);

// Links a process into its parent's list of children or zombies. The parent's lock is the caller's.
inline void link_child(const Machine& m, u32& list, u32 index) {
    ProcessEntry& child = m.process(index);
    child.previous_sibling = 0;
    child.next_sibling = list;
    if (list != 0) m.process(list - 1).previous_sibling = index + 1;
    store_relaxed(&list, index + 1);  // who is about to wait looks without the lock
}

}  // namespace gpurun::rt
