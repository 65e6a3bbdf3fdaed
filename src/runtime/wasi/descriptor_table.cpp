// The descriptors of a process: numbers, what they have open, closing, and what a child inherits.
// The calls are in descriptors.cpp.
#include "runtime/machine/wait.h"
#include "runtime/wasi/system.h"

namespace gpurun::rt {

Errno free_descriptor(const Owner& owner, u32& fd) {
    ProcessBlock* me = owner.me;
    Descriptor* all = at_handle<Descriptor>(owner.p, me->descriptors);
    for (fd = 0; fd < me->descriptor_count; fd++)
        if (all[fd].kind == DescriptorKind::closed) break;
    if (fd == max_descriptors) return Errno::mfile;
    if (fd == me->descriptor_capacity) {
        u64 used = fd * sizeof(Descriptor);
        Handle grown = take_copy(owner.p, 2 * used, reinterpret_cast<const u8*>(all), used);
        if (grown == 0) return Errno::nomem;
        give_block(owner.p, me->descriptors, used);
        me->descriptors = grown;
        me->descriptor_capacity = 2 * fd;
    }
    return Errno::success;
}

namespace {

bool is_pipe(const Process& p, const Descriptor& descriptor) {
    return may_be_resident && descriptor.kind == DescriptorKind::stream &&
           node_at(p, descriptor.node)->flags & node_is_pipe;
}

void open_node(const Owner& owner, const Descriptor& opened) {
    if (is_base(owner.p, opened.node)) return;
    if (is_pipe(owner.p, opened)) return open_pipe(owner.p, opened.node, opened.rights);
    node_at(owner.p, opened.node)->open_count++;
}

}  // namespace

bool counts_files(const Process& p, const Descriptor& file) {
    return file.kind == DescriptorKind::file || (!is_base(p, file.node) && !is_pipe(p, file));
}

Errno add_descriptor(const Owner& owner, const Descriptor& added, u32& fd) {
    if (Errno error = free_descriptor(owner, fd); error != Errno::success) return error;
    if (fd == owner.me->descriptor_count) owner.me->descriptor_count++;
    at_handle<Descriptor>(owner.p, owner.me->descriptors)[fd] = added;
    open_node(owner, added);
    return Errno::success;
}

void end_waits(const Owner& owner, Handle pipe) {
    if (!has_machine(owner.p)) return;
    const Machine& m = machine_of(owner.p);
    ProcessEntry& process = m.process(owner.me->entry);
    if (load_relaxed(&process.tasks) < 2) return;
    const u64 data = wait_key(WaitFor::pipe_data, pipe), room = wait_key(WaitFor::pipe_room, pipe);
    // Who is on its way to its bucket sees there that something was closed, before it looks at the
    // pipe; who has looked is seen to be blocked.
    fetch_add(&owner.me->closes, u32{1});
    Lock lock(&process.lock);
    for (u32 at = process.first_task; at != 0; at = m.task(at - 1).next_of_process) {
        const TaskEntry& task = m.task(at - 1);
        unblock(m, at - 1, Wake::woken, [&] {
            return task.wait_key == data || task.wait_key == room || task.wait_key == pipes_key();
        });
    }
}

void close_descriptor(const Owner& owner, u32 fd) {
    Descriptor& closed = at_handle<Descriptor>(owner.p, owner.me->descriptors)[fd];
    const Handle node = closed.node;
    const bool was_pipe = is_pipe(owner.p, closed);
    closed.kind = DescriptorKind::closed;
    if (closed.cell != 0) {
        OffsetCell* cell = at_handle<OffsetCell>(owner.p, closed.cell);
        if (--cell->users == 0) give_block(owner.p, closed.cell, sizeof(OffsetCell));
        closed.cell = 0;
    }
    if (is_base(owner.p, node)) return;
    if (was_pipe) {
        end_waits(owner, node);
        return close_pipe(owner.p, node, closed.rights);
    }
    node_at(owner.p, node)->open_count--;
    drop_node(owner, node);
}

void refresh_descriptor(const Owner& owner, Descriptor& file) {
    if (owner.files->copy_count == 0 || !is_base(owner.p, file.node)) return;
    const Handle now = current_node(owner, file.node);
    if (now == file.node) return;
    file.node = now;
    node_at(owner.p, now)->open_count++;
}

Errno inherit_descriptor(const Owner& parent, u32 fd, const Owner& child, u32 child_fd,
                         LateLock* lock) {
    const Process& p = parent.p;
    auto is_open = [&](u32 number, const Owner& owner) {
        return number < owner.me->descriptor_count &&
               at_handle<Descriptor>(p, owner.me->descriptors)[number].kind !=
                   DescriptorKind::closed;
    };
    if (!is_open(fd, parent)) return Errno::badf;
    if (child_fd >= max_descriptors) return Errno::mfile;
    ProcessBlock* block = child.me;
    if (child_fd >= block->descriptor_capacity) {
        u32 capacity = block->descriptor_capacity;
        while (capacity <= child_fd) capacity *= 2;
        const u64 used = block->descriptor_count * sizeof(Descriptor);
        Handle grown =
            take_copy(p, capacity * sizeof(Descriptor), at_handle<u8>(p, block->descriptors), used);
        if (grown == 0) return Errno::nomem;
        give_block(p, block->descriptors, block->descriptor_capacity * sizeof(Descriptor));
        block->descriptors = grown;
        block->descriptor_capacity = capacity;
    }
    Descriptor& from = at_handle<Descriptor>(p, parent.me->descriptors)[fd];
    if (lock != nullptr && counts_files(p, from)) lock->take();
    if (from.kind == DescriptorKind::file) {
        if (from.cell == 0) {
            from.cell = take_block(p, sizeof(OffsetCell));
            if (from.cell == 0) return Errno::nomem;
            *at_handle<OffsetCell>(p, from.cell) = {from.offset, 1, 0};
        }
        at_handle<OffsetCell>(p, from.cell)->users++;
    }
    if (is_open(child_fd, child)) close_descriptor(child, child_fd);
    for (u32& count = block->descriptor_count; count <= child_fd; count++)
        at_handle<Descriptor>(p, block->descriptors)[count].kind = DescriptorKind::closed;
    Descriptor& to = at_handle<Descriptor>(p, block->descriptors)[child_fd];
    to = from;
    open_node(child, to);
    return Errno::success;
}

}  // namespace gpurun::rt
