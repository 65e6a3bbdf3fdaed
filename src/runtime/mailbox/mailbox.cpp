// Takes messages of the host and carries them out. The only warp that touches the host's memory.
#include "runtime/mailbox/mailbox.h"

#include "runtime/mailbox/programs.h"
#include "runtime/mailbox/to_host.h"

namespace gpurun::rt {
namespace {

class Server : ToHost {
public:
    Server(const Machine& m, Mailbox& mailbox) : ToHost(m, mailbox) {}

    [[gnu::noinline]] void serve(u64 until) {
        begin();
        if (until != 0) until += pulse_.now();
        for (u32 naps = 0;;) {
            pulse_.get_on();
            const u64 now = pulse_.now();
            u32 stop = shuffle(lane_id() == 0 ? load_mapped(&mailbox_.stop) : 0, 0);
            if (until != 0 && now >= until) stop = stop_park;
            if (stop != stop_none) {
                if (lane_id() == 0) store_shared(&m_.header->stop, stop);
                finish(now);
                return;
            }
            bool did_something = take_messages();
            did_something |= send_all();
            publish(now);
            naps = did_something ? 0 : naps < 5 ? naps + 1 : naps;
            if (!did_something) sleep_ns(idle_nap(naps));
        }
    }

private:
    static u32 idle_nap(u32 naps) {
        const u32 nap = 500u << naps;
        return nap < longest_mailbox_nap_ns ? nap : longest_mailbox_nap_ns;
    }

    void begin() {
        if (lane_id() == 0) {
            if (!m_.header->is_begun) {
                PageAllocator(m_).begin();
                m_.header->scratch = take_block(p_, max_message);
                m_.header->is_begun = 1;
            }
            // An earlier launch took them.
            if (m_.header->taken_host_zombies != 0) count_records();
        }
        sync_warp();
        begin_rings();
        make_queue(m_, m_.header->host_requests);
        // Streams that an earlier launch had.
        for (u32 i = 0; i < max_host_streams; i++)
            if (m_.host_stream(i).node != 0) streams_ = i + 1;
        sync_warp();
    }

    void finish(u64 now) {
        send_all();
        bells_ = 1;
        publish_stats();
        must_ring_ = true;
        publish(now);
        if (lane_id() == 0) {
            store_mapped(&mailbox_.in_head, in_head_);
            store_mapped(&mailbox_.is_parked, u32{1});
        }
        sync_warp();
    }

    // ---- from the host

    [[gnu::noinline]] bool take_messages() {
        if (is_broken_) return send_broken();
        const u64 tail = shuffle(lane_id() == 0 ? load_mapped(&mailbox_.in_tail) : u64{0}, 0);
        if (tail == in_head_) return false;
        u32 taken = 0;
        for (; taken < messages_a_turn && !is_broken_; taken++) {
            const RingNext next = ring_next(in_head_, tail, in_ring_bytes, [&](u64 at) {
                MessageHead head;
                const u64 first = *reinterpret_cast<const u64*>(mailbox_.in_ring + at);
                head.size = u32(shuffle(first, 0));
                head.kind = MessageKind(u16(shuffle(first, 0) >> 32));
                head.version = u16(shuffle(first, 0) >> 48);
                head.padding = 0;
                return head;
            });
            if (next.state == RingState::broken) is_broken_ = true;
            if (next.state != RingState::message) break;
            if (!carry_out(next.what, next.at)) break;
            in_head_ = next.head;
            pulse_.get_on();
        }
        if (lane_id() == 0) store_mapped(&mailbox_.in_head, in_head_);
        sync_warp();
        return taken > 0;
    }

    bool send_broken() {
        if (!has_sent_broken_) has_sent_broken_ = send(MessageKind::broken, Ping{0});
        return false;
    }

    // Carries out a message. Returns false if there is no room for the answer yet: it is tried
    // again.
    [[gnu::noinline]] bool carry_out(const MessageHead& head, u64 at) {
        switch (head.kind) {
            case MessageKind::program: return begin_program(head, at);
            case MessageKind::program_data: return add_data(head, at);
            case MessageKind::program_end: return end_program(head, at);
            case MessageKind::spawn: return spawn(head, at);
            case MessageKind::kill: return kill(head, at);
            case MessageKind::input: return take_input(head, at);
            case MessageKind::input_end:
            case MessageKind::output_end: return end_stream(head, at);
            case MessageKind::ping: {
                Ping ping;
                return !read(head, at, ping) || send(MessageKind::pong, ping);
            }
            case MessageKind::block: return take_block_answer(head, at);
            default: is_broken_ = true; return false;
        }
    }

    // ---- programs

    bool begin_program(const MessageHead& head, u64 at) {
        ProgramInfo info;
        if (!read(head, at, info)) return true;
        const LoadResult state = rt::begin_program(m_, info);
        is_broken_ |= state == LoadResult::invalid;
        return state != LoadResult::no_memory ||
               send(MessageKind::program_ready, ProgramNumber{info.number, u32(Errno::nomem)});
    }

    bool add_data(const MessageHead& head, u64 at) {
        ProgramData data;
        if (!read(head, at, data)) return true;
        is_broken_ |= add_program_data(m_, data, scratch_ + sizeof data, head.size - sizeof data) ==
                      LoadResult::invalid;
        return true;
    }

    bool end_program(const MessageHead& head, u64 at) {
        ProgramNumber number;
        if (!read(head, at, number)) return true;
        if (number.number >= max_programs) return is_broken_ = true;
        if (m_.program(number.number).state != ProgramState::loading) return true;
        const bool has_queues = make_program_queues(m_, number.number);
        number.error = u32(has_queues ? Errno::success : Errno::nomem);
        if (!send(MessageKind::program_ready, number)) return false;
        if (has_queues) publish_program(m_, number.number);
        return true;
    }

    // ---- processes

    bool spawn(const MessageHead& head, u64 at) {
        SpawnRequest request;
        if (!read(head, at, request)) return true;
        // The answer needs room; what is carried out is not carried out twice.
        if (!has_room(sizeof(SpawnAnswer))) return false;
        const u64 strings = u64(request.argument_bytes) + request.environment_bytes;
        if (sizeof request + strings != head.size || request.program >= max_programs ||
            m_.program(request.program).state != ProgramState::ready) {
            is_broken_ = true;
            return true;
        }
        SpawnAnswer answer{request.request, u32(Errno::success), 0, 0};
        if (lane_id() == 0) {
            answer.error = u32(make_and_start(request, answer.pid));
        }
        answer.error = shuffle(answer.error, 0);
        answer.pid = shuffle(answer.pid, 0);
        streams_ = shuffle(streams_, 0);
        return send(MessageKind::spawned, answer);
    }

    Errno make_and_start(const SpawnRequest& request, u32& pid) {
        const u8* arguments = scratch_ + sizeof request;
        const u8* environment = arguments + request.argument_bytes;
        u32 index;
        Errno error =
            make_process(m_,
                         {request.program,
                          host_parent,
                          request.request,
                          request.priority,
                          request.fuel,
                          {arguments, request.argument_count, request.argument_bytes},
                          {environment, request.environment_count, request.environment_bytes},
                          0},
                         index);
        if (error != Errno::success) return error;
        const Owner owner = owner_of(p_, at_handle<ProcessBlock>(p_, m_.process(index).block));
        for (u32 fd = 0; fd < 3 && error == Errno::success; fd++)
            error = open_host_stream(owner, request.streams[fd], fd);
        if (error != Errno::success) {
            drop_process(m_, index);
            return error;
        }
        open_preopens(owner);
        keep_files(index);
        pid = m_.process(index).pid;
        start_process(m_, index);
        return Errno::success;
    }

    // The files of the first process, and of all that share them, stay: for the host to write back
    // once the machine has parked.
    void keep_files(u32 index) {
        MachineHeader& header = *m_.header;
        if (!system_of(p_).keeps_files || header.kept_files != 0) return;
        header.kept_files = m_.process(index).block;
        fetch_add(&at_handle<ProcessBlock>(p_, header.kept_files)->file_users, u32{1});
    }

    // Descriptors 0, 1 and 2 of a process that the host asked for.
    Errno open_host_stream(const Owner& owner, u32 number, u32 fd) {
        const u64 rights = fd == 0 ? wasi::stream_rights & ~u64{wasi::right_fd_write}
                                   : wasi::stream_rights & ~u64{wasi::right_fd_read};
        Handle node;
        if (number == 0) {
            node = make_node(owner, NodeKind::stream);
            if (node == 0) return Errno::nomem;
            node_at(p_, node)->flags |= node_is_null;
        } else {
            if (number > max_host_streams) return Errno::inval;
            HostStream& stream = m_.host_stream(number - 1);
            if (stream.node == 0) {
                node = make_pipe(p_, number);
                if (node == 0) return Errno::nomem;
                const SystemHeader& system = *reinterpret_cast<SystemHeader*>(m_.system);
                if (system.terminals >> fd & 1) node_at(p_, node)->flags |= node_is_terminal;
                pipe_of(p_, node_at(p_, node))->host_stream = number;
                stream = {node, fd == 0, 0};
                // The host's end.
                open_pipe(p_, node, fd == 0 ? wasi::right_fd_write : wasi::right_fd_read);
                if (number > streams_) streams_ = number;
            }
            node = stream.node;
            if (stream.is_input != u32(fd == 0)) return Errno::inval;
        }
        u32 got;
        return add_descriptor(
            owner,
            {DescriptorKind::stream, node, 0, rights, 0, fd == 0 ? 0 : u32(wasi::fdflag_append), 0},
            got);
    }

    bool kill(const MessageHead& head, u64 at) {
        KillRequest request;
        if (!read(head, at, request)) return true;
        if (!is_deadly(request.signal)) return true;
        const u32 end = load_relaxed(&m_.header->processes_used) + 1;
        if (request.pid != 0) {
            const u32 index = pid_index(m_, request.pid);
            if (lane_id() == 0 && index != 0)
                end_all_tasks(m_, request.pid, Ending::killed, request.signal);
        } else {
            for (u32 first = 1; first < end; first += warp_lanes) {
                const u32 i = first + lane_id();
                if (i < end) one_by_one([&] { kill_one(i, request.signal); });
                sync_warp();
                pulse_.get_on();
            }
        }
        sync_warp();
        return true;
    }
    void kill_one(u32 index, u32 signal) {
        if (load_shared(reinterpret_cast<const u32*>(&m_.process(index).state)) ==
            u32(ProcessState::alive))
            end_all_tasks(m_, load_relaxed(&m_.process(index).pid), Ending::killed, signal);
    }

    // ---- streams

    bool take_input(const MessageHead& head, u64 at) {
        StreamBytes bytes;
        if (!read(head, at, bytes)) return true;
        const u64 size = head.size - sizeof bytes;
        if (bytes.stream == 0 || bytes.stream > max_host_streams) return is_broken_ = true;
        const HostStream stream = m_.host_stream(bytes.stream - 1);
        if (stream.node == 0 || !stream.is_input) return true;  // nobody reads it
        PipeBlock* pipe = pipe_of(p_, node_at(p_, stream.node));
        if (pipe_bytes - (pipe->written - load_relaxed(&pipe->read)) < size)
            return is_broken_ = true;
        const u64 within = pipe->written % pipe_bytes, first = smaller(size, pipe_bytes - within);
        u8* buffer = at_handle<u8>(p_, pipe->buffer);
        do_part({buffer + within, scratch_ + sizeof bytes, first, 0});
        do_part({buffer, scratch_ + sizeof bytes + first, size - first, 0});
        sync_warp();
        if (lane_id() == 0) {
            {
                Lock lock(&pipe->lock);
                store_relaxed(&pipe->written, pipe->written + size);
            }
            wake(m_, wait_key(WaitFor::pipe_data, stream.node), woken_at_once);
            wake_pollers(m_, pipe);
        }
        sync_warp();
        return true;
    }

    // The host's end closes.
    bool end_stream(const MessageHead& head, u64 at) {
        StreamBytes bytes;
        if (!read(head, at, bytes)) return true;
        if (bytes.stream == 0 || bytes.stream > max_host_streams) return is_broken_ = true;
        HostStream& stream = m_.host_stream(bytes.stream - 1);
        const Handle node = stream.node;
        sync_warp();
        if (node == 0 || stream.is_input != u32(head.kind == MessageKind::input_end)) return true;
        const u64 right = stream.is_input ? wasi::right_fd_write : wasi::right_fd_read;
        sync_warp();
        if (lane_id() == 0) {
            stream.node = 0;
            close_pipe(p_, node, right);
        }
        sync_warp();
        return true;
    }

    bool take_block_answer(const MessageHead& head, u64 at) {
        BlockAnswer answer;
        if (!read(head, at, answer)) return true;
        if (answer.task == 0 || answer.task >= m_.header->task_count ||
            (answer.error == 0 && has_bytes(answer.block) &&
             head.size != sizeof answer + file_block))
            return is_broken_ = true;
        if (lane_id() == 0) bring_block(answer);
        sync_warp();
        return true;
    }
    // A block of the base, for all who have that file.
    void bring_block(const BlockAnswer& answer) {
        if (!take_asker(m_, answer)) return;
        CallState* call = call_state(place_of(m_, answer.task));
        if (!has_bytes(answer.block)) {
            call->request_failed = answer.error != 0;
            return make_ready(m_, answer.task);
        }
        Handle* slot =
            answer.error == 0 ? slot_of(p_, node_at(p_, answer.node), answer.block) : nullptr;
        if (slot == nullptr) {
            call->request_failed = 1;
        } else if (load_relaxed(slot) == 0) {
            // Not of the heap: what lies there is somebody's own, to be changed and freed.
            MachineHeader& header = *m_.header;
            if (header.cold_blocks_end - header.next_cold_block < file_block) {
                call->request_failed = 1;
            } else {
                const Handle block = Handle(header.next_cold_block >> handle_shift);
                header.next_cold_block += file_block;
                copy_system(at_handle<u8>(p_, block), scratch_ + sizeof answer, file_block);
                store_shared(slot, block);
            }
        }
        make_ready(m_, answer.task);
    }

    bool has_sent_broken_ = false;
};

}  // namespace

void serve_mailbox(const Machine& m, Mailbox& mailbox, u64 until) {
    Server(m, mailbox).serve(until);
}

}  // namespace gpurun::rt
