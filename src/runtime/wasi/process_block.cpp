// A process's side of system memory: its block, how it begins with streams, preopens and strings,
// and what is given back when it ends.
#include "runtime/wasi/system.h"

namespace gpurun::rt {

namespace {

// What process `id` of the launch is called with: what is its own, or what all have.
InputEntry input_of(const Process& p, u32 id) {
    const SystemHeader& system = system_of(p);
    InputEntry shared{id, system.argument_count, system.argument_bytes, system.stdin_node,
                      u64{system.arguments} << handle_shift};
    if (system.inputs == 0) return shared;
    InputEntry own = at_handle<InputEntry>(p, system.inputs)[id];
    if (own.stdin_node == 0) own.stdin_node = system.stdin_node;
    return own;
}

}  // namespace

Handle begin_process(const Process& p, u32 id) {
    const SystemHeader& system = system_of(p);
    const InputEntry given = input_of(p, id);
    constexpr u32 first_capacity = 16;
    Handle block = take_zeroed(p, sizeof(ProcessBlock));
    if (block == 0) return 0;
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner = owner_of(p, me);
    me->id = given.number;
    me->argument_count = given.argument_count;
    me->argument_bytes = given.argument_bytes;
    me->arguments = given.arguments;
    me->next_inode = u64{1} << 32;
    me->descriptors = take_zeroed(p, first_capacity * sizeof(Descriptor));
    me->descriptor_capacity = first_capacity;
    me->roots = take_zeroed(p, max_preopens * sizeof(Handle));
    me->input = given.stdin_node != 0 ? given.stdin_node : make_node(owner, NodeKind::stream);
    me->output = make_node(owner, NodeKind::stream);
    me->error = make_node(owner, NodeKind::stream);
    bool is_there = me->descriptors != 0 && me->roots != 0 && me->input != 0 && me->output != 0 &&
                    me->error != 0;
    if (!is_there) {
        end_process(p, block, false);
        return 0;
    }
    // The block itself holds the streams, closed or not.
    node_at(p, me->output)->link_count = node_at(p, me->error)->link_count = 1;
    if (given.stdin_node == 0) {
        node_at(p, me->input)->link_count = 1;
        node_at(p, me->input)->flags |= node_is_ended;
    }
    // A live input is the only process's own, though the host made it; a file has its end already.
    if (system.terminals & 1 && system.is_live && !(node_at(p, me->input)->flags & node_is_ended))
        node_at(p, me->input)->flags |= node_is_terminal;
    if (system.terminals & 2) node_at(p, me->output)->flags |= node_is_terminal;
    if (system.terminals & 4) node_at(p, me->error)->flags |= node_is_terminal;
    constexpr u64 reads = wasi::stream_rights & ~u64{wasi::right_fd_write},
                  writes = wasi::stream_rights & ~u64{wasi::right_fd_read};
    const Descriptor streams[] = {
        {DescriptorKind::stream, me->input, 0, reads, 0, 0, 0},
        {DescriptorKind::stream, me->output, 0, writes, 0, wasi::fdflag_append, 0},
        {DescriptorKind::stream, me->error, 0, writes, 0, wasi::fdflag_append, 0}};
    u32 fd;
    for (const Descriptor& stream : streams) add_descriptor(owner, stream, fd);
    open_preopens(owner);
    return block;
}

void open_preopens(const Owner& owner) {
    const Process& p = owner.p;
    const SystemHeader& system = system_of(p);
    u32 fd;
    Handle* roots = at_handle<Handle>(p, owner.files->roots);
    const Preopen* preopens = at_handle<Preopen>(p, system.preopens);
    for (u32 i = 0; i < system.preopen_count; i++) {
        u64 rights = wasi::directory_rights, inheriting = wasi::all_rights;
        if (!preopens[i].is_writable) {
            rights &= ~wasi::writing_rights;
            inheriting &= ~wasi::writing_rights;
        }
        roots[i] = preopens[i].node;
        add_descriptor(owner,
                       {DescriptorKind::directory, roots[i], 0, rights, inheriting, 0, i + 1}, fd);
    }
}

namespace {

// The tree of private nodes, one directory after another: a directory's entries lose their links,
// and its subdirectories are put on the list.
void free_files(const Owner& owner) {
    const Process& p = owner.p;
    ProcessBlock* me = owner.files;
    Handle list = 0;
    auto add = [&](Handle node) {
        if (node == 0 || is_base(p, node)) return;
        if (node_at(p, node)->kind == NodeKind::directory) {
            node_at(p, node)->parent = list;
            list = node;
        } else {
            Node* unlinked = node_at(p, node);
            if (unlinked->link_count > 0) unlinked->link_count--;
            drop_node(owner, node);
        }
    };
    if (me->roots != 0)
        for (u32 i = 0; i < system_of(p).preopen_count; i++)
            add(at_handle<Handle>(p, me->roots)[i]);
    while (list != 0) {
        Handle directory = list;
        Node* node = node_at(p, directory);
        list = node->parent;
        for (u32 i = 0; i < node->content_count; i++) add(entries_of(p, node)[i].node);
        node->link_count = 0;
        drop_node(owner, directory);
    }
    give_block(p, me->roots, max_preopens * sizeof(Handle));
    give_block(p, me->copies, me->copy_capacity * sizeof(Handle));
    me->roots = me->copies = me->copy_capacity = 0;
}

void free_stream(const Owner& owner, Handle& stream) {
    if (stream != 0 && !is_base(owner.p, stream)) {
        node_at(owner.p, stream)->link_count = 0;
        drop_node(owner, stream);
    }
    stream = 0;
}

}  // namespace

void give_back(const Process& p, const ResidentBlocks& blocks) {
    give_block(p, blocks.block, sizeof(ProcessBlock));
    give_block(p, blocks.descriptors, ResidentBlocks::descriptor_bytes);
    give_block(p, blocks.strings, blocks.string_bytes);
}

Handle begin_resident(const Process& p, const ResidentBlocks& blocks) {
    if (!blocks.are_there()) return 0;
    fill_system(at_handle<u8>(p, blocks.block), 0, block_size(sizeof(ProcessBlock)));
    ProcessBlock* me = at_handle<ProcessBlock>(p, blocks.block);
    me->next_inode = u64{1} << 32;
    me->file_users = 1;
    me->descriptors = blocks.descriptors;
    me->descriptor_capacity = ResidentBlocks::first_descriptors;
    me->strings = blocks.strings;
    me->string_bytes = blocks.string_bytes;
    return blocks.block;
}

void close_descriptors(const Process& p, Handle block) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner = owner_of(p, me);
    LateLock lock(&owner.files->file_lock);
    for (u32 fd = 0; fd < me->descriptor_count; fd++) {
        const Descriptor& file = at_handle<Descriptor>(p, me->descriptors)[fd];
        if (file.kind == DescriptorKind::closed) continue;
        if (counts_files(p, file)) lock.take();
        close_descriptor(owner, fd);
    }
    me->descriptor_count = 0;
}

void end_resident(const Process& p, Handle block) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    const Owner owner = owner_of(p, me);
    close_descriptors(p, block);
    give_block(p, me->descriptors, me->descriptor_capacity * sizeof(Descriptor));
    me->descriptors = me->descriptor_capacity = 0;
    free_guest_blocks(p, me);
    give_block(p, me->strings, me->string_bytes);
    me->strings = 0;
    // Who shared its files with others leaves its block to them.
    const Handle files = owner.files == me ? block : me->files;
    ProcessBlock* const shared = owner.files;
    if (files != block) give_block(p, block, sizeof(ProcessBlock));
    release_fence();  // what was done to them is done, for the last one
    if (fetch_add(&shared->file_users, ~u32{0}) != 1) return;
    acquire_fence();  // what the others did is there
    free_files({p, owner.files, owner.files});
    give_block(p, files, sizeof(ProcessBlock));
}

void end_process(const Process& p, Handle block, bool keeps) {
    ProcessBlock* me = at_handle<ProcessBlock>(p, block);
    Owner owner = owner_of(p, me);
    for (u32 fd = 0; fd < me->descriptor_count; fd++)
        if (at_handle<Descriptor>(p, me->descriptors)[fd].kind != DescriptorKind::closed)
            close_descriptor(owner, fd);
    give_block(p, me->descriptors, me->descriptor_capacity * sizeof(Descriptor));
    me->descriptors = me->descriptor_count = me->descriptor_capacity = 0;
    free_guest_blocks(p, me);
    free_stream(owner, me->input);
    if (!keeps || !system_of(p).keeps_files) free_files(owner);
    if (keeps) return;
    free_stream(owner, me->output);
    free_stream(owner, me->error);
    give_block(p, block, sizeof(ProcessBlock));
}

}  // namespace gpurun::rt
