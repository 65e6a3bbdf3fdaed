// Takes messages of the host and carries them out; brings it what processes wrote and how they
// ended. The only warp that touches the host's memory. Nothing of what it reads there is trusted.
#include "runtime/mailbox.h"

#include "abi/ring.h"
#include "runtime/host_requests.h"
#include "runtime/programs.h"

namespace gpurun::rt {
namespace {

constexpr u32 messages_a_turn = 64;
constexpr u32 output_piece = 16 << 10, pieces_a_turn = 16;
// While a lot happens the bell rings this often at the most: every ring costs the host a wake-up.
constexpr u64 bell_every_ns = 8'000'000;
constexpr u32 most_bells = 16;  // that it may ring at once after a silence
constexpr u32 few_processes = 2;

class Server {
public:
    Server(const Machine& m, Mailbox& mailbox)
        : m_(m), p_(m.nobody()), mailbox_(mailbox), pulse_(m, mailbox_warp, 0) {}

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

    // ---- the rings

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
        in_head_ = load_mapped(&mailbox_.in_head);
        out_tail_ = load_mapped(&mailbox_.out_tail);
        out_head_ = load_mapped(&mailbox_.out_head);
        scratch_ = at_handle<u8>(p_, load_shared(&m_.header->scratch));
        make_queue(m_, m_.header->host_requests);
        // Of an earlier launch.
        for (u32 i = 0; i < max_host_streams; i++)
            if (m_.host_stream(i).node != 0) streams_ = i + 1;
        sync_warp();
    }

    // All lanes: a message whose payload is `head`, then `count` bytes in two parts. False: there
    // is no room now.
    template <class T>
    bool send(MessageKind kind, const T& head, Chore first = {}, Chore second = {}) {
        const u64 size = sizeof(T) + first.count + second.count;
        RingRoom room = ring_room(out_head_, out_tail_, out_ring_bytes, size);
        if (!room.fits) {
            out_head_ = shuffle(lane_id() == 0 ? load_mapped(&mailbox_.out_head) : u64{0}, 0);
            if (!ring_can_be(out_head_, out_tail_, out_ring_bytes)) is_broken_ = true;
            room = ring_room(out_head_, out_tail_, out_ring_bytes, size);
            if (!room.fits || is_broken_) return false;
        }
        u8* ring = mailbox_.out_ring;
        if (lane_id() == 0) {
            if (room.skip != 0)
                store_as(ring + room.skip_at,
                         message_head(MessageKind::skip, u32(room.skip - sizeof(MessageHead))));
            store_as(ring + room.at, message_head(kind, u32(size)));
            store_as(ring + room.at + sizeof(MessageHead), head);
        }
        u8* to = ring + room.at + sizeof(MessageHead) + sizeof(T);
        if (first.count != 0) do_part({to, first.from, first.count, 0});
        if (second.count != 0) do_part({to + first.count, second.from, second.count, 0});
        sync_warp();
        out_tail_ = room.tail;
        has_news_ = true;
        is_urgent_ |= is_answer(kind);
        return true;
    }
    template <class T>
    static void store_as(u8* to, const T& value) {
        const u8* from = reinterpret_cast<const u8*>(&value);
        static_assert(sizeof(T) % 8 == 0);
        for (u32 i = 0; i < sizeof(T); i += 8) {
            u64 piece;
            __builtin_memcpy(&piece, from + i, 8);
            *reinterpret_cast<u64*>(to + i) = piece;
        }
    }

    // What the host waits for: as often as it asks. How processes come and go is that while there
    // are hardly any.
    bool is_answer(MessageKind kind) const {
        if (kind == MessageKind::spawned || kind == MessageKind::ended)
            return shuffle(lane_id() == 0 ? load_relaxed(&m_.header->alive) : 0, 0) <=
                   few_processes;
        return kind == MessageKind::pong || kind == MessageKind::program_ready ||
               kind == MessageKind::want_block;
    }

    // What was written is the host's to read; the bell, if it has been silent for a while.
    void publish(u64 now) {
        if (has_news_) {
            if (lane_id() == 0) store_mapped(&mailbox_.out_tail, out_tail_);
            has_news_ = false;
            must_ring_ = true;
        }
        // Every so often it may ring once more.
        const u64 earned = (now - last_earned_) / bell_every_ns;
        if (earned > 0) {
            bells_ = bells_ + earned < most_bells ? bells_ + u32(earned) : most_bells;
            last_earned_ += earned * bell_every_ns;
        }
        if (must_ring_ && (bells_ > 0 || is_urgent_)) {
            if (lane_id() == 0) ring_bell(&mailbox_.bell);
            must_ring_ = is_urgent_ = false;
            if (bells_ > 0) bells_--;
        }
        if (now - last_stats_ < stats_every_ns) return;
        last_stats_ = now;
        publish_stats();
        if (lane_id() == 0) store_relaxed(&m_.header->share, load_mapped(&mailbox_.share));
    }

    void publish_stats() {
        if (lane_id() == 0) {
            const u64* from = &m_.header->stats.now;
            u64* to = &mailbox_.stats.now;
            const u64 sequence = load_mapped(&mailbox_.stats.sequence);
            store_mapped(&mailbox_.stats.sequence, sequence + 1);
            for (u32 i = 0; i < sizeof(MachineStats) / 8 - 1; i++)
                store_mapped(to + i, load_relaxed(from + i));
            store_mapped(&mailbox_.stats.sequence, sequence + 2);
        }
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
        if (is_broken_) return tell_broken();
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

    bool tell_broken() {
        if (!has_told_broken_) has_told_broken_ = send(MessageKind::broken, Ping{0});
        return false;
    }

    // The payload, where the host cannot change it any more. False: it is not of that size.
    template <class T>
    bool read(const MessageHead& head, u64 at, T& value) {
        if (head.size < sizeof(T)) {
            is_broken_ = true;
            return false;
        }
        do_part({scratch_, mailbox_.in_ring + at, head.size, 0});
        sync_warp();
        __builtin_memcpy(&value, scratch_, sizeof(T));
        sync_warp();
        return true;
    }

    // False: later, once there is room for the answer.
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
        const Bringing state = rt::begin_program(m_, info);
        is_broken_ |= state == Bringing::cannot_be;
        return state != Bringing::no_memory ||
               send(MessageKind::program_ready, ProgramNumber{info.number, u32(Errno::nomem)});
    }

    bool add_data(const MessageHead& head, u64 at) {
        ProgramData data;
        if (!read(head, at, data)) return true;
        is_broken_ |= add_program_data(m_, data, scratch_ + sizeof data, head.size - sizeof data) ==
                      Bringing::cannot_be;
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

    bool has_room(u64 size) {
        if (ring_room(out_head_, out_tail_, out_ring_bytes, size).fits) return true;
        out_head_ = shuffle(lane_id() == 0 ? load_mapped(&mailbox_.out_head) : u64{0}, 0);
        is_broken_ |= !ring_can_be(out_head_, out_tail_, out_ring_bytes);
        return !is_broken_ && ring_room(out_head_, out_tail_, out_ring_bytes, size).fits;
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
            if (header.brought_end - header.brought < file_block) {
                call->request_failed = 1;
            } else {
                const Handle block = Handle(header.brought >> handle_shift);
                header.brought += file_block;
                copy_system(at_handle<u8>(p_, block), scratch_ + sizeof answer, file_block);
                store_shared(slot, block);
            }
        }
        make_ready(m_, answer.task);
    }

    // ---- to the host

    [[gnu::noinline]] bool send_all() {
        if (is_broken_) return false;
        bool sent = send_records();
        sent |= send_streams();
        sent |= send_requests();
        sent |= send_zombies();
        // What processes wrote comes before the news that they ended: looked for after these.
        const u32 idle = shuffle(lane_id() == 0 ? load_shared(&m_.header->idle_turns) : 0, 0);
        if (idle == idle_ || has_zombies() ||
            shuffle(lane_id() == 0 ? load_shared(&m_.header->alive) : 0, 0) != 0)
            return sent;
        sent |= send_streams();
        sent |= send_records();
        if (!has_output_ && !has_records() && !has_zombies() && send(MessageKind::idle, Ping{idle}))
            idle_ = idle;
        return sent;
    }

    bool has_records() {
        const SystemHeader& system = system_of(p_);
        return shuffle(lane_id() == 0 ? load_relaxed(&system.debug_count) : u64{0}, 0) !=
               shuffle(lane_id() == 0 ? load_relaxed(&system.debug_taken) : u64{0}, 0);
    }

    // What processes noted, in the order in which they took their places.
    bool send_records() {
        SystemHeader& system = system_of(p_);
        bool sent = false;
        for (u32 i = 0; i < messages_a_turn && has_records(); i++, sent = true) {
            const u64 number =
                shuffle(lane_id() == 0 ? load_relaxed(&system.debug_taken) : u64{0}, 0);
            const DebugRecord* record =
                at_handle<DebugRecord>(p_, system.debug) + number % system.debug_capacity;
            // Somebody may still be writing it.
            const u64 turn = shuffle(lane_id() == 0 ? load_shared(&record->turn) : u64{0}, 0);
            if (turn != number + 1 || !has_room(sizeof(DebugRecord))) break;
            sync_warp();
            send(MessageKind::record, *record);
            // Whoever writes there next has seen that it was sent.
            if (lane_id() == 0) store_shared(&system.debug_taken, number + 1);
            sync_warp();
            pulse_.get_on();
        }
        return sent;
    }

    bool has_zombies() {
        MachineHeader& header = *m_.header;
        u32 first = 0;
        if (lane_id() == 0) {
            if (header.taken_host_zombies == 0) {
                header.taken_host_zombies = take_host_zombies(m_);
                if (header.taken_host_zombies != 0) count_records();
            }
            first = header.taken_host_zombies;
        }
        return shuffle(first, 0) != 0;
    }

    void count_records() { noted_ = load_relaxed(&system_of(p_).debug_count); }

    // Returns true if records are to be sent that processes left before they came to be zombies.
    bool is_behind_records() {
        const SystemHeader& system = system_of(p_);
        return shuffle(lane_id() == 0 && load_relaxed(&system.debug_taken) < noted_ ? 1u : 0u, 0) !=
               0;
    }

    bool send_zombies() {
        bool sent = false;
        for (u32 i = 0; i < messages_a_turn && has_zombies(); i++, sent = true) {
            pulse_.get_on();
            // What it wrote comes first, and so does the record of what ended it.
            send_streams();
            if (is_behind_records()) send_records();
            if (has_output_ || is_behind_records() || !has_room(sizeof(EndedProcess))) break;
            u32 index = 0;
            if (lane_id() == 0) {
                index = m_.header->taken_host_zombies - 1;
                m_.header->taken_host_zombies = next_host_zombie(m_, index);
            }
            index = shuffle(index, 0);
            const ProcessEntry& process = m_.process(index);
            // Who ended it need not be who told of it.
            const u64 ending = load_relaxed(&process.ending);
            const EndedProcess ended{process.request, process.pid,     Ending((ending >> 32) - 1),
                                     u32(ending),     process.trap_pc, process.program,
                                     process.started, process.ended,   process.time_used};
            sync_warp();
            send(MessageKind::ended, ended);
            if (lane_id() == 0) reap(m_, index);
            sync_warp();
        }
        return sent;
    }

    bool send_requests() {
        const RunQueue& queue = m_.header->host_requests;
        bool sent = false;
        while (shuffle(lane_id() == 0 ? queue_length(queue) : 0, 0) > 0 &&
               has_room(sizeof(BlockRequest))) {
            BlockRequest wanted{};
            if (lane_id() == 0 && !take_request(m_, wanted)) wanted.task = 0;
            wanted.task = shuffle(wanted.task, 0);
            if (wanted.task == 0) break;
            send(MessageKind::want_block, wanted);
            sent = true;
        }
        return sent;
    }

    bool send_streams() {
        const u64 waits =
            shuffle(lane_id() == 0 ? load_shared(&m_.header->output_waits) : u64{0}, 0);
        if (waits == seen_waits_ && !has_output_) return false;
        seen_waits_ = waits;
        has_output_ = false;
        bool sent = false;
        for (u32 i = 0; i < streams_; i++) {
            const HostStream stream = m_.host_stream(i);
            if (stream.node == 0) continue;
            sent |= stream.is_input ? send_taken(i, stream) : send_output(i, stream);
            pulse_.get_on();
        }
        return sent;
    }

    // Acquired: what was written before an end was closed is there.
    static u64 ends_of(const PipeBlock* pipe) {
        return shuffle(lane_id() == 0 ? load_shared(&pipe->ends) : u64{0}, 0);
    }

    bool send_taken(u32 number, const HostStream& stream) {
        PipeBlock* pipe = pipe_of(p_, node_at(p_, stream.node));
        u64 read = shuffle(lane_id() == 0 ? load_relaxed(&pipe->read) : u64{0}, 0);
        if (!has_readers(ends_of(pipe))) read = nobody_reads;
        if (read == stream.told) return false;
        if (!send(MessageKind::taken, StreamBytes{number + 1, 0, read})) {
            has_output_ = true;
            return false;
        }
        if (lane_id() == 0) m_.host_stream(number).told = read;
        sync_warp();
        return true;
    }

    bool send_output(u32 number, const HostStream& stream) {
        PipeBlock* pipe = pipe_of(p_, node_at(p_, stream.node));
        const u8* buffer = at_handle<u8>(p_, pipe->buffer);
        bool sent = false;
        for (u32 pieces = 0;; pieces++) {
            if (pieces == pieces_a_turn) {
                has_output_ = true;
                return sent;
            }
            u64 written = 0;
            if (lane_id() == 0) {
                Lock lock(&pipe->lock);
                written = pipe->written;
            }
            written = shuffle(written, 0);
            const u64 read = pipe->read, size = smaller(written - read, output_piece);
            if (size == 0) return send_output_end(number, stream, pipe) || sent;
            const u64 within = read % pipe_bytes, first = smaller(size, pipe_bytes - within);
            if (!send(MessageKind::output, StreamBytes{number + 1, 0, read},
                      {nullptr, buffer + within, first, 0}, {nullptr, buffer, size - first, 0})) {
                has_output_ = true;  // later
                return sent;
            }
            sent = true;
            sync_warp();
            if (lane_id() == 0) {
                {
                    Lock lock(&pipe->lock);
                    store_relaxed(&pipe->read, read + size);
                }
                wake(m_, wait_key(WaitFor::pipe_room, stream.node), woken_at_once);
                wake_pollers(m_, pipe);
            }
            sync_warp();
        }
    }

    bool send_output_end(u32 number, const HostStream& stream, const PipeBlock* pipe) {
        const bool is_over =
            !has_writers(ends_of(pipe)) &&
            shuffle(lane_id() == 0 ? load_relaxed(&pipe->written) : u64{0}, 0) == pipe->read;
        if (is_over == (stream.told != 0)) return false;
        if (is_over && !send(MessageKind::output, StreamBytes{number + 1, 0, pipe->read})) {
            has_output_ = true;
            return false;
        }
        if (lane_id() == 0) m_.host_stream(number).told = is_over;
        sync_warp();
        return is_over;
    }

    const Machine& m_;
    const Process p_;
    Mailbox& mailbox_;
    Pulse pulse_;
    u8* scratch_ = nullptr;
    // The same on all lanes.
    u64 in_head_ = 0, out_tail_ = 0, out_head_ = 0;
    u64 seen_waits_ = 0, last_earned_ = 0, last_stats_ = 0;
    u64 noted_ = 0;  // lane 0: records that there were when the zombies were taken
    u32 streams_ = 0, idle_ = 0, bells_ = most_bells;
    bool has_news_ = false, must_ring_ = false, is_urgent_ = false, has_output_ = true;
    bool is_broken_ = false, has_told_broken_ = false;
};

}  // namespace

void serve_mailbox(const Machine& m, Mailbox& mailbox, u64 until) {
    Server(m, mailbox).serve(until);
}

}  // namespace gpurun::rt
