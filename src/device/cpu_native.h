// Machine code beside a code memory of the CPU: which positions of the code can be entered.
#pragma once

#include <deque>

#include "codegen/codegen.h"
#include "device/device.h"
#include "runtime/native.h"

namespace gpurun::device {

// An image that has been linked into this process.
class CpuNativeCode final : public NativeCode {
public:
    static Result<std::shared_ptr<const NativeCode>> make(const codegen::Image& image);
    explicit CpuNativeCode(std::shared_ptr<const codegen::LoadedImage> image)
        : image_(std::move(image)) {}
    const codegen::LoadedImage& image() const { return *image_; }

private:
    std::shared_ptr<const codegen::LoadedImage> image_;
};

class CpuNativeTable {
public:
    // `entry_at` has a zero for every position of the code; it outlives this.
    explicit CpuNativeTable(u32* entry_at) : entry_at_(entry_at) {}
    void add(const NativePart& part);
    bool is_empty() const { return parts_.empty(); }
    rt::NativeTable table() const { return {entry_at_, entries_.data()}; }

private:
    u32* entry_at_;
    std::vector<rt::NativeEntry> entries_ = {{nullptr, 0}};
    std::vector<NativePart> parts_;
};

// How far down machine code may use the stack of the thread that asks.
u8* stack_limit();

}  // namespace gpurun::device
