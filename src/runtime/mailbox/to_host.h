// What the mailbox warp brings the host: output, records, requests for blocks, and ends of
// processes.
#pragma once

#include "runtime/mailbox/rings.h"
#include "runtime/process/host_requests.h"

namespace gpurun::rt {

class ToHost : protected Rings {
protected:
    static constexpr u32 output_piece = 16 << 10, pieces_a_turn = 16;

    using Rings::Rings;

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
        if (read == stream.reported) return false;
        if (!send(MessageKind::taken, StreamBytes{number + 1, 0, read})) {
            has_output_ = true;
            return false;
        }
        if (lane_id() == 0) m_.host_stream(number).reported = read;
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
        if (is_over == (stream.reported != 0)) return false;
        if (is_over && !send(MessageKind::output, StreamBytes{number + 1, 0, pipe->read})) {
            has_output_ = true;
            return false;
        }
        if (lane_id() == 0) m_.host_stream(number).reported = is_over;
        sync_warp();
        return is_over;
    }

    // Alike on all lanes.
    u64 seen_waits_ = 0;
    u64 noted_ = 0;  // lane 0: records that there were when the zombies were taken
    u32 streams_ = 0, idle_ = 0;
    bool has_output_ = true;
};

}  // namespace gpurun::rt
