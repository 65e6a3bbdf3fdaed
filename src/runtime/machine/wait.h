// How tasks wait for something, and are woken: buckets of blocked tasks, by a key for what they
// wait for.
//
// A task is put into a bucket when it is off its lane, all of it in memory; so whoever takes it out
// may make it ready at once. Under the bucket's lock it looks once more whether it has to wait. Who
// changes what it waits for does so first and then wakes: either the task has seen the change, or
// it is in the bucket by then. `count` spares wakers the lock where nobody waits, and the task's
// state those who end it: both are written before that last look, so that of a waiter and a waker
// at least one sees what the other did.
//
// A task leaves its bucket once, under the lock: by take_waiting() or take_first_waiting(), by
// unblock() for a deadline or an end, or by take_blocked().
#pragma once

#include "runtime/machine/machine.h"

namespace gpurun::rt {

// What tasks wait for. Keys that happen to be alike only cost a look.
enum class WaitFor : u32 { time, memory, pipe_data, pipe_room, child, host, pipes, show };
inline u64 wait_key(WaitFor what, u32 who, u64 where = 0) {
    return (u64(what) << 61) ^ (u64(who) << 40) ^ where ^ (where >> 40);
}
// All who poll several pipes: a task can be in one bucket only, so it is told apart by its number.
inline u64 pipes_key() { return wait_key(WaitFor::pipes, 0); }
inline u64 poll_turn_of(const Machine& m, u32 task) {
    return u64{load_relaxed(&m.header->poll_turn)} << 32 | load_relaxed(&m.task(task).poll_turn);
}

// Those who wait for any child of a process and for a certain one are in the same bucket. Nobody
// looks for who sleeps by its key: sleepers have buckets of their own, so that they are in nobody's
// way, however many there are.
inline u32 bucket_of(u64 key) {
    constexpr u32 half = wait_buckets / 2;
    const WaitFor what = WaitFor(key >> 61);
    if (what == WaitFor::child) key = key >> 40 << 40;
    const u32 hash = u32((key * 0x9e3779b97f4a7c15) >> 32) & (half - 1);
    return what == WaitFor::time ? half + hash : hash;
}

// Puts a task last into a bucket, whose lock the caller has.
inline void link_waiting(const Machine& m, WaitBucket& bucket, u32 index) {
    TaskEntry& task = m.task(index);
    task.next_waiting = 0;
    task.previous_waiting = bucket.last;
    if (bucket.last != 0)
        m.task(bucket.last - 1).next_waiting = index + 1;
    else
        bucket.first = index + 1;
    bucket.last = index + 1;
}
// Takes a task out of a bucket, whose lock the caller has.
inline void unlink_waiting(const Machine& m, WaitBucket& bucket, u32 index) {
    TaskEntry& task = m.task(index);
    if (task.next_waiting != 0)
        m.task(task.next_waiting - 1).previous_waiting = task.previous_waiting;
    else
        bucket.last = task.previous_waiting;
    if (task.previous_waiting != 0)
        m.task(task.previous_waiting - 1).next_waiting = task.next_waiting;
    else
        bucket.first = task.next_waiting;
    store_relaxed(&bucket.count, bucket.count - 1);
}
// Notes why a task goes on, and that it waits for nothing any more.
inline void end_wait(const Machine& m, u32 index, Wake why) {
    TaskEntry& task = m.task(index);
    task.wake = why;
    if (load_relaxed(&m.deadline(index)) != no_deadline) {
        store_relaxed(&m.deadline(index), no_deadline);
        fetch_add(&m.header->sleeping, ~u32{0});
    }
    fetch_add(&m.header->blocked_tasks, ~u64{0});
}

// Takes a task out of a bucket, whose lock the caller has, and makes it the caller's.
inline void take_out(const Machine& m, WaitBucket& bucket, u32 index, Wake why) {
    unlink_waiting(m, bucket, index);
    end_wait(m, index, why);
    store_task_state(m.task(index), TaskState::running);
}

// Blocks a task of the caller's that is off its lane, if `still_waits()`. Returns false if it need
// not wait; it is the caller's as before.
template <class StillWaits>
inline bool park(const Machine& m, u32 index, u64 key, u64 deadline, StillWaits still_waits) {
    TaskEntry& task = m.task(index);
    const u32 number = bucket_of(key);
    WaitBucket& bucket = m.bucket(number);
    Lock lock(&bucket.lock);
    task.wait_key = key;
    task.wake = Wake::none;
    store_task_state(task, TaskState::blocked, number);
    store_relaxed(&bucket.count, bucket.count + 1);
    atomic_fence();  // pairs with wake's and unblock's
    if (!still_waits()) {
        store_relaxed(&bucket.count, bucket.count - 1);
        store_task_state(task, TaskState::running);
        return false;
    }
    link_waiting(m, bucket, index);
    fetch_add(&m.header->blocked_tasks, u64{1});
    if (deadline != no_deadline) {
        store_relaxed(&m.deadline(index), deadline);
        fetch_add(&m.header->sleeping, u32{1});
    }
    return true;
}

// Takes up to `most` tasks that wait for `key`, or for `other` of the same bucket, the longest
// first, and gives each to `take`. Returns how many. What they wait for was changed before, and
// since then there was a fence.
template <class Take>
inline u32 take_waiting(const Machine& m, u64 key, u32 most, u64 other, Take take) {
    WaitBucket& bucket = m.bucket(bucket_of(key));
    if (most == 0 || load_relaxed(&bucket.count) == 0) return 0;
    u32 first = 0, last = 0, count = 0;
    {
        Lock lock(&bucket.lock);
        for (u32 at = bucket.first; at != 0 && count < most;) {
            TaskEntry& task = m.task(at - 1);
            const u32 next = task.next_waiting;
            if (task.wait_key == key || task.wait_key == other) {
                take_out(m, bucket, at - 1, Wake::woken);
                task.next_waiting = 0;
                if (last != 0)
                    m.task(last - 1).next_waiting = at;
                else
                    first = at;
                last = at;
                count++;
            }
            at = next;
        }
    }
    while (first != 0) {
        const u32 next = m.task(first - 1).next_waiting;
        take(first - 1);
        first = next;
    }
    return count;
}

// Takes the task of that process that waits longest for either key. Returns index + 1, or 0 if none
// does. Who gets none has to see to it that nobody comes after this look: by take_waiting.
inline u32 take_first_waiting(const Machine& m, u32 process, u64 key, u64 other) {
    WaitBucket& bucket = m.bucket(bucket_of(key));
    Lock lock(&bucket.lock);
    u32 at = bucket.first;
    while (at != 0) {
        const TaskEntry& task = m.task(at - 1);
        if (task.process == process && (task.wait_key == key || task.wait_key == other)) {
            take_out(m, bucket, at - 1, Wake::woken);
            break;
        }
        at = task.next_waiting;
    }
    return at;
}

// Makes up to `most` tasks ready that wait for `key`. Returns how many.
inline u32 wake(const Machine& m, u64 key, u32 most) {
    atomic_fence();  // pairs with park's
    return take_waiting(m, key, most, key, [&](u32 task) { make_ready(m, task); });
}

// Makes a task that is blocked the caller's, if `condition()`. Returns false if it is not, or not
// blocked.
template <class Condition>
inline bool take_blocked(const Machine& m, u32 index, Wake why, Condition condition) {
    TaskEntry& task = m.task(index);
    atomic_fence();  // pairs with park's: why it is to go on was written before
    const u32 seen = load_task_word(task);
    if (task_state_of(seen) != TaskState::blocked) return false;
    WaitBucket& bucket = m.bucket(seen >> task_state_bits);
    // Whoever took it out of this bucket had the lock before: then its word is another by now.
    Lock lock(&bucket.lock);
    if (load_task_word(task) != seen || !condition()) return false;
    take_out(m, bucket, index, why);
    return true;
}

// Makes a task ready that is blocked, if `condition()`. Returns false if it is not, or not blocked.
template <class Condition>
inline bool unblock(const Machine& m, u32 index, Wake why, Condition condition) {
    if (!take_blocked(m, index, why, condition)) return false;
    make_ready(m, index);
    return true;
}

}  // namespace gpurun::rt
