// poll_oneoff: waiting for clocks, for input, and for room for output.
#include "runtime/machine/wait.h"
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

constexpr u32 event_bytes = 32;
constexpr u32 max_subscriptions = 4096;  // then EINVAL

struct Subscription {
    u64 userdata;
    u32 type;
    u32 clock;
    u64 timeout;
    u32 flags;
    u32 fd;
};

// Where the guest has its subscriptions, all of them within its memory.
struct Subscriptions {
    const Call& call;
    u32 address;
    bool is_unstable;  // a clock begins with an identifier, which nobody looks at

    u32 bytes() const { return is_unstable ? 56 : 48; }
    const u8* at(u32 i) const { return call.in(address + i * bytes(), bytes()); }
    u32 type(u32 i) const { return load_bytes<u8>(at(i) + 8); }
    Subscription get(u32 i) const {
        const u8 *from = at(i), *clock = from + (is_unstable ? 24 : 16);
        return {load_bytes<u64>(from),       load_bytes<u8>(from + 8),
                load_bytes<u32>(clock),      load_bytes<u64>(clock + 8),
                load_bytes<u16>(clock + 24), load_bytes<u32>(from + 16)};
    }
};

struct Event {
    Errno error = Errno::success;
    u64 bytes = 0;
    u32 flags = 0;
};

Errno put_event(const Call& call, u32 address, const Subscription& subscription, Event event) {
    u8* at = call.out(address, event_bytes);
    if (at == nullptr) return Errno::fault;
    store_bytes<u64>(at, subscription.userdata);
    store_bytes<u64>(at + 8, u64(event.error) | u64(subscription.type) << 16);
    store_bytes<u64>(at + 16, event.bytes);
    store_bytes<u64>(at + 24, event.flags);
    return Errno::success;
}

// The monotonic time at which a clock's subscription is due. Relative ones count from when the
// call began.
u64 due_at(const Call& call, const Subscription& subscription, u64 began) {
    const bool is_absolute = subscription.flags & wasi::subclock_abstime;
    u64 from = began, left = subscription.timeout;
    if (is_absolute && subscription.clock == wasi::clock_monotonic) return subscription.timeout;
    if (is_absolute) {
        // Both clocks go on from what they were at the launch.
        const SystemHeader& system = system_of(call.p);
        if (subscription.timeout <= system.realtime) return 0;
        from = system.monotonic;
        left = subscription.timeout - system.realtime;
    }
    return from + left < from ? ~u64{0} : from + left;
}

// A task that polls several pipes leaves its number in each before it looks: of it and of whoever
// changes the pipe at least one sees what the other did.
void leave_number(PipeBlock* pipe, u32 task) {
    const u32 mine = task + 1, found = load_relaxed(&pipe->poller);
    if (found != mine) store_relaxed(&pipe->poller, found == 0 ? mine : any_poller);
    atomic_fence();  // pairs with wake's
}

bool is_pipe_ready(PipeBlock* pipe, u32 type, u32 poller, Event& event) {
    bool is_ready = false;
    one_by_one([&] {
        Lock lock(&pipe->lock);
        if (poller != 0) leave_number(pipe, poller);
        const u64 there = pipe->written - pipe->read;
        event.bytes = type == wasi::event_fd_read ? there : pipe_bytes - there;
        const bool is_alone = type == wasi::event_fd_read ? !has_writers(load_relaxed(&pipe->ends))
                                                          : !has_readers(load_relaxed(&pipe->ends));
        event.flags = is_alone && (type != wasi::event_fd_read || there == 0);
        is_ready = is_alone || event.bytes >= (type == wasi::event_fd_read ? 1 : pipe_atomic);
    });
    return is_ready;
}

// Is a descriptor ready? False: it will be when there is input. `poller`: the task, if it polls
// several.
bool is_ready(const Call& call, const Subscription& subscription, u32 poller, Event& event) {
    Descriptor* file = descriptor(call, subscription.fd);
    u64 right =
        subscription.type == wasi::event_fd_read ? wasi::right_fd_read : wasi::right_fd_write;
    if (file == nullptr) {
        event.error = Errno::badf;
    } else if (u64 needs = wasi::right_poll_fd_readwrite | right; (file->rights & needs) != needs) {
        event.error = Errno::notcapable;
    } else if (Node* node = node_at(call.p, file->node); may_be_resident &&
                                                         file->kind == DescriptorKind::stream &&
                                                         node->flags & node_is_pipe) {
        return is_pipe_ready(pipe_of(call.p, node), subscription.type, poller, event);
    } else if (subscription.type == wasi::event_fd_read) {
        event.bytes = node->size > file->offset ? node->size - file->offset : 0;
        if (file->kind != DescriptorKind::stream || event.bytes > 0) return true;
        if (node->flags & node_is_ended || !system_of(call.p).is_live) {
            event.flags = 1;  // hangup
            return true;
        }
        node->size = file->offset = 0;  // all of it was read: what comes is to be read from there
        return false;
    } else {
        event.bytes = file_block;
    }
    return true;
}

Outcome wait_for_pipes(Call& call, u32 waits, u32 poller, u64 turn, const Subscription& awaited,
                       u64 deadline) {
    if (waits == 0) return call.wait_for(Request::time, 0, 0, deadline);
    // Another thread of the guest may have changed what there is to poll meanwhile.
    if (waits > 1 && poller == 0) return call.again();
    if (waits > 1) return call.wait_for(Request::pipes, 0, turn, deadline);
    const Handle node = descriptor(call, awaited.fd)->node;
    return awaited.type == wasi::event_fd_read
               ? call.wait_for(Request::pipe_data, node, 0, deadline)
               : call.wait_for(Request::pipe_room, node, pipe_atomic, deadline);
}

u32 descriptor_count(const Subscriptions& subscriptions, u32 count) {
    u32 found = 0;
    for (u32 i = 0; i < count; i++) found += subscriptions.type(i) != wasi::event_clock;
    return found;
}

}  // namespace

void wake_poller(const Machine& m, u32 poller) {
    if (poller == any_poller) {
        fetch_add(&m.header->poll_turn, u32{1});
        wake(m, pipes_key(), ~u32{0});
    } else if (poller != 0 && poller <= m.header->task_count) {
        // It may be another's by now, who then looks for nothing.
        const TaskEntry& task = m.task(poller - 1);
        fetch_add(&m.task(poller - 1).poll_turn, u32{1});
        unblock(m, poller - 1, Wake::woken, [&] { return task.wait_key == pipes_key(); });
    }
}

void wake_pollers(const Machine& m, PipeBlock* pipe) {
    if (load_relaxed(&pipe->poller) != 0) wake_poller(m, exchange(&pipe->poller, u32{0}));
}

Outcome call_poll(Call& call, SystemCall which) {
    u32 in = call.i32(), out = call.i32(), count = call.i32(), result_at = call.i32();
    if (count == 0 || count > max_subscriptions) return call.done(Errno::inval);
    const Subscriptions given{call, in, which == SystemCall::unstable_poll_oneoff};
    if (call.in(in, u64(count) * given.bytes()) == nullptr ||
        call.in(out, u64(count) * event_bytes) == nullptr || call.in(result_at, 4) == nullptr)
        return call.done(Errno::fault);
    u64 now = monotonic_ns(call.p);
    if (call.my->progress == 0) call.my->progress = now;  // when it began
    u64 began = call.my->progress, deadline = ~u64{0};
    bool waits_for_input = false;
    u32 ready = 0, waits = 0, poller = 0;
    u64 turn = 0;
    if (has_machine(call.p) && descriptor_count(given, count) > 1) {
        poller = word(call.p.words, process_task);
        turn = poll_turn_of(machine_of(call.p), poller);
    }
    Subscription awaited{};
    for (u32 i = 0; i < count; i++) {
        Subscription subscription = given.get(i);
        Event event;
        if (subscription.type == wasi::event_clock) {
            if (subscription.clock > wasi::clock_monotonic) {
                event.error = Errno::notsup;
            } else {
                u64 due = due_at(call, subscription, began);
                if (due < deadline) deadline = due;
                if (due > now) continue;
            }
        } else if (subscription.type <= wasi::event_fd_write) {
            if (!is_ready(call, subscription, poller, event)) {
                waits_for_input = true;
                waits++;
                awaited = subscription;
                continue;
            }
        } else {
            return call.done(Errno::inval);
        }
        put_event(call, out + ready * event_bytes, subscription, event);
        ready++;
    }
    if (ready > 0) return call.done(call.put<u32>(result_at, ready));
    if (has_machine(call.p)) return wait_for_pipes(call, waits, poller, turn, awaited, deadline);
    if (waits_for_input && system_of(call.p).is_live)
        return call.ask_host(Request::input, call.me->input, 0, deadline);
    return call.leave(ThreadState::sleeping, deadline);
}

}  // namespace gpurun::rt
