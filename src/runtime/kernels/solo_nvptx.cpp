// The kernel of a process that has a warp to itself: one lane interprets, the others help it.
#include "runtime/kernels/runtime_nvptx.h"

namespace gpurun::rt {
namespace {

#if GPURUN_NATIVE
// Machine code leaves after a millisecond, to look at the stop word.
constexpr s64 native_quantum = 1 << 20;
#endif

#if GPURUN_WINDOW
// Both ends of a stack, as if that were all of it: frames from its start up, records from its end
// down. The thread's words say so while it runs.
struct Clipped {
    u32 begin, end;  // word indices
    u32 slots;       // in the window

    explicit Clipped(const u32* thread)
        : begin(thread[thread_stack]), end(thread[thread_stack_end]), slots(end - begin) {
        if (slots > stack_window) slots = stack_window;
    }
    // Does what is in use fit? A call that has just begun does: `enter` asks for its frame.
    bool fits(const Process& p, const u32* thread) const {
        if (end - begin == slots || thread[thread_window] != 0) return true;
        return op_of(p.code[thread[thread_pc]]) == u32(CodeOp::enter) &&
               thread[thread_fp] == begin && end - thread[thread_rp] <= slots / 2;
    }
    // All lanes: the records count from the end, everything else from the start.
    void load(const u32* words, u32 records) const {
        for (u32 i = lane_id(); i < slots; i += warp_lanes)
            window()[i] = words[i < slots - records ? begin + i : end - (slots - i)];
    }
    void store(u32* words, u32 records) const {
        for (u32 i = lane_id(); i < slots; i += warp_lanes)
            words[i < slots - records ? begin + i : end - (slots - i)] = window()[i];
    }
};
#endif

}  // namespace

extern "C" [[clang::nvptx_kernel]] void gpurun_solo(SoloParams params) {
    Process p{pointer<const u64>(params.code),
              pointer<u32>(params.words),
              pointer<u8>(params.bytes),
              (StackWord*)pointer<u32>(params.words),
              0,
              63,
              pointer<u8>(params.system)};
#if GPURUN_WINDOW
    u32* thread = p.words + params.thread;
    Clipped clipped(thread);
    if (!clipped.fits(p, thread)) {
        sync_warp();
        if (lane_id() == 0) thread[thread_state] = u32(ThreadState::outgrown);
        return;
    }
    clipped.load(p.words, clipped.end - thread[thread_rp]);
    p.stack = window();
    p.stack_begin = clipped.begin;
    sync_warp();
#endif
    if (lane_id() == 0) {
#if GPURUN_WINDOW
        const u32 shift = clipped.end - clipped.begin - clipped.slots;
        thread[thread_rp] -= shift;
        thread[thread_stack_end] -= shift;
        p.words[process_clipped] = shift != 0 ? clipped_stack : 0;
#endif
        if (p.system != nullptr && p.words[process_block] == 0)
            p.words[process_block] = begin_process(p, 0);
        if (p.system != nullptr && p.words[process_block] == 0) p.system = nullptr;
        s64 left = params.steps != 0 ? params.steps : quantum;
        const u64 until = params.slice_us == 0 ? ~u64{0} : clock_ns() + params.slice_us * u64{1000};
        // Ends: the host sets the stop word when it has waited long enough.
        auto run_quantum = [&] {
#if GPURUN_NATIVE
            if (params.steps == 0)
                return run_native(p, NativeTable(params.native), params.thread, native_quantum, 0,
                                  stack_limit(params.tier.stack_bytes), params.tier.alternates);
#endif
            return run(p, params.thread, left, 0);
        };
        const bool can_run = may_go_on(p, p.words + params.thread);
        while (can_run && run_quantum() == ThreadState::ready && params.steps == 0) {
            if (load_relaxed(pointer<const u32>(params.stop)) != 0 || clock_ns() >= until) break;
        }
#if GPURUN_WINDOW
        thread[thread_rp] += shift;
        thread[thread_stack_end] += shift;
        p.words[process_clipped] = 0;
#endif
        if (params.is_watched) verify_process(p, 0);
        leave_others();
    } else {
        serve();
    }
#if GPURUN_WINDOW
    clipped.store(p.words, clipped.end - thread[thread_rp]);
#endif
}

}  // namespace gpurun::rt
