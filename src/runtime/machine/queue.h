// The run queue: tasks that are ready, first in, first out. Any number of warps push and take at
// the same time; nobody waits for a lock.
//
// Whoever pushes draws the ticket `tail` and puts the task into that ticket's slot. Whoever takes
// moves `head` over as many tickets as have been drawn, and then fetches the tasks from their
// slots. There are more slots than tasks, but one who has drawn a ticket may be kept from using it
// while others go round; so a slot says which round it is in: `round` is empty, `round | 1` is
// full, and who empties it begins the next. Slots that are all zero are those of an empty queue.
// The tasks' own words pass with the release store into the slot and the acquire load out of it,
// and nothing else does: all the rest only counts.
#pragma once

#include "abi/machine.h"
#include "runtime/platform/platform.h"

namespace gpurun::rt {

// Returns the round that a ticket's slot has to be in. A slot is round << 32 | task.
inline u32 round_of(const RunQueue& queue, u32 ticket) { return ticket & ~queue.mask; }

// Puts a task into a queue. `is_released`: the caller has fenced.
inline void push_task(RunQueue& queue, u64* slots, u32 task, bool is_released = false) {
    const u32 ticket = fetch_add(&queue.tail, u32{1}), round = round_of(queue, ticket);
    u64* slot = slots + (ticket & queue.mask);
    // Ends: who took it a round before has only to empty it.
    while (u32(load_relaxed(slot) >> 32) != round) pause();
    const u64 full = u64(round | 1) << 32 | task;
    is_released ? store_released(slot, full) : store_shared(slot, full);  // pairs with fetch_task
}

// Where the first ticket is, and how many there are, about. Tail may have been read before a head
// that others moved since: then nothing is there.
struct QueueLook {
    u32 head = 0;
    s32 there = 0;
};
inline QueueLook look_at(const RunQueue& queue) {
    const u32 head = load_relaxed(&queue.head);
    return {head, s32(load_relaxed(&queue.tail) - head)};
}

// Takes up to `most` tickets, from `first` on. Returns how many: none, too, where others were
// quicker several times, for among thousands of warps those that are far from the memory would try
// for ever. `seen`: what the queue was like just now.
inline u32 take_tickets(RunQueue& queue, u32 most, u32& first, QueueLook seen) {
    constexpr u32 attempts = 4;
    for (u32 i = 0; i < attempts && seen.there > 0; i++) {
        const u32 count = u32(seen.there) < most ? u32(seen.there) : most;
        const u32 found = compare_exchange_relaxed(&queue.head, seen.head, seen.head + count);
        if (found == seen.head) {
            first = found;
            return count;
        }
        seen = {found, s32(load_relaxed(&queue.tail) - found)};
    }
    return 0;
}
inline u32 take_tickets(RunQueue& queue, u32 most, u32& first) {
    return take_tickets(queue, most, first, look_at(queue));
}

// Returns the task in the slot of a ticket that the caller has taken.
inline u32 fetch_task(RunQueue& queue, u64* slots, u32 ticket) {
    u64* slot = slots + (ticket & queue.mask);
    const u32 round = round_of(queue, ticket);
    // Ends: who drew this ticket has only to fill it.
    for (;;) {
        const u64 found = load_shared(slot);  // pairs with push_task
        if (u32(found >> 32) == (round | 1)) {
            store_relaxed(slot, u64(round + queue.mask + 1) << 32);
            return u32(found);
        }
        pause();
    }
}

// Returns about how many tasks are in a queue.
inline u32 queue_length(const RunQueue& queue) {
    const s32 there = look_at(queue).there;
    return there > 0 ? u32(there) : 0;
}

}  // namespace gpurun::rt
