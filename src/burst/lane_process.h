// Lets the host read and write a process of a burst, in the slot of its lane, while the kernel is
// parked.
#pragma once

#include "burst/stage.h"

namespace gpurun::burst {

class LaneProcess final : public device::WaitingProcess {
public:
    // `lane` is warp * lanes of a warp + lane. All of it outlives this.
    LaneProcess(KernelDevice& device, const Burst& burst, const SlotGroup& slots, u64 lane)
        : device_(device),
          burst_(burst),
          slots_(slots),
          warp_lanes_(slots.plan.warp_lanes),
          warp_(lane / warp_lanes_),
          lane_(lane % warp_lanes_),
          state_(slots.states[lane]) {}

    u32 id() const override { return state_.id; }
    Handle block() const override { return state_.block; }
    Result<void> read_words(u32 index, std::span<u32> words) override;
    Result<void> write_word(u32 index, u32 value);
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override;
    Result<void> write_bytes(u64 offset, std::span<const u8> bytes) override;

private:
    // Return where a word is, and a byte of memories that do not interleave.
    u64 word_at(u32 index) const {
        const u64 first = warp_ * slots_.layout.words.size() + index;
        return slots_.words.at() + (first * warp_lanes_ + lane_) * 4;
    }
    u64 byte_at(u64 offset) const {
        const u64 index = warp_ * slots_.plan.lanes + lane_;
        return slots_.bytes.at() + index * slots_.layout.bytes_per_process + offset;
    }
    bool is_linear() const { return slots_.plan.layout == Layout::linear; }
    // Memories that interleave lie in rows: a granule of each lane of the warp.
    u64 row_bytes() const { return interleaved_granule * warp_lanes_; }
    // Returns where byte `within` of this lane is, counted from where a row begins.
    u64 in_rows(u64 within) const {
        return within / interleaved_granule * row_bytes() + lane_ * interleaved_granule +
               within % interleaved_granule;
    }
    template <class Use>
    Result<void> for_rows(u64 offset, u64 size, Use use);

    KernelDevice& device_;
    const Burst& burst_;
    const SlotGroup& slots_;
    const u64 warp_lanes_, warp_, lane_;
    const LaneState state_;
};

}  // namespace gpurun::burst
