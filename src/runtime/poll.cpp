// poll_oneoff: waiting for clocks, for input, and for room for output.
#include "runtime/machine.h"
#include "runtime/system.h"

namespace gpurun::rt {
namespace {

constexpr u32 subscription_bytes = 48, event_bytes = 32;
constexpr u32 max_subscriptions = 4096;  // then EINVAL

struct Subscription {
    u64 userdata;
    u32 type;
    u32 clock;
    u64 timeout;
    u32 flags;
    u32 fd;
};

Subscription read_subscription(const u8* at) {
    return {load_bytes<u64>(at),      load_bytes<u8>(at + 8),   load_bytes<u32>(at + 16),
            load_bytes<u64>(at + 24), load_bytes<u16>(at + 40), load_bytes<u32>(at + 16)};
}

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

bool is_pipe_ready(const Call& call, PipeBlock* pipe, u32 type, Event& event) {
    bool is_ready = false;
    one_by_one([&] {
        Lock lock(&pipe->lock);
        const u64 there = pipe->written - pipe->read;
        event.bytes = type == wasi::event_fd_read ? there : pipe_bytes - there;
        const bool is_alone = type == wasi::event_fd_read ? !has_writers(load_relaxed(&pipe->ends))
                                                          : !has_readers(load_relaxed(&pipe->ends));
        event.flags = is_alone && (type != wasi::event_fd_read || there == 0);
        is_ready = is_alone || event.bytes >= (type == wasi::event_fd_read ? 1 : pipe_atomic);
    });
    (void)call;
    return is_ready;
}

// Is a descriptor ready? False: it will be when there is input.
bool is_ready(const Call& call, const Subscription& subscription, Event& event) {
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
        return is_pipe_ready(call, pipe_of(call.p, node), subscription.type, event);
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

// One pipe wakes it; of several, it looks again and again.
constexpr u64 look_again_ns = 2'000'000;
Outcome wait_for_pipes(Call& call, u32 waits, const Subscription& awaited, u64 now, u64 deadline) {
    const u64 soon = now + look_again_ns;
    if (waits == 0) return call.wait_for(Request::time, 0, 0, deadline);
    if (waits > 1) return call.wait_for(Request::time, 0, 0, deadline < soon ? deadline : soon);
    const Handle node = descriptor(call, awaited.fd)->node;
    return awaited.type == wasi::event_fd_read
               ? call.wait_for(Request::pipe_data, node, 0, deadline)
               : call.wait_for(Request::pipe_room, node, pipe_atomic, deadline);
}

}  // namespace

Outcome call_poll(Call& call) {
    u32 in = call.i32(), out = call.i32(), count = call.i32(), result_at = call.i32();
    if (count == 0 || count > max_subscriptions) return call.done(Errno::inval);
    if (call.in(in, u64(count) * subscription_bytes) == nullptr ||
        call.in(out, u64(count) * event_bytes) == nullptr || call.in(result_at, 4) == nullptr)
        return call.done(Errno::fault);
    u64 now = monotonic_ns(call.p);
    if (call.my->progress == 0) call.my->progress = now;  // when it began
    u64 began = call.my->progress, deadline = ~u64{0};
    bool waits_for_input = false;
    u32 ready = 0, waits = 0;
    Subscription awaited{};
    for (u32 i = 0; i < count; i++) {
        Subscription subscription =
            read_subscription(call.in(in + i * subscription_bytes, subscription_bytes));
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
            if (!is_ready(call, subscription, event)) {
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
    call.my->deadline = deadline;
    if (has_machine(call.p)) return wait_for_pipes(call, waits, awaited, now, deadline);
    if (waits_for_input && system_of(call.p).is_live)
        return call.ask_host(Request::input, call.me->input, deadline);
    return call.leave(ThreadState::sleeping);
}

}  // namespace gpurun::rt
