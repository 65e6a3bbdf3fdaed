// Machine code of the CPU, and the table of which positions of a code memory it can be entered at.
#pragma once

#include <atomic>
#include <unordered_map>

#include "codegen/codegen.h"
#include "codegen/quick.h"
#include "device/device.h"
#include "runtime/native/native.h"

namespace gpurun::device {

// Pieces of an image that have been linked into this process, or quick code.
class CpuNativeCode final : public NativeCode {
public:
    // Links an image. `beside` is machine code of the same module that was loaded before, or null:
    // the two call each other.
    static Result<std::shared_ptr<const NativeCode>> make(const codegen::Image& image,
                                                          const NativeCode* beside);
    explicit CpuNativeCode(std::shared_ptr<codegen::LoadedImage> image)
        : image_(std::move(image)) {}
    CpuNativeCode(std::shared_ptr<const codegen::QuickCode> code,
                  std::vector<codegen::QuickCode::Function> functions)
        : quick_code_(std::move(code)), quick_(std::move(functions)) {}
    std::span<const codegen::LoadedImage::Entry> entries() const { return entries_; }
    std::span<const codegen::QuickCode::Function> quick() const { return quick_; }

private:
    std::shared_ptr<codegen::LoadedImage> image_;
    std::vector<codegen::LoadedImage::Entry> entries_;
    std::shared_ptr<const codegen::QuickCode> quick_code_;
    std::vector<codegen::QuickCode::Function> quick_;
};

// The table of entries. Machine code may be added while threads use it.
class CpuNativeTable {
public:
    // The arrays have a zero for every position of the code, take memory only where they are used,
    // and outlive the table.
    CpuNativeTable(u32* entry_at, rt::NativeEntry* entries, u64* quick_at)
        : entry_at_(entry_at), entries_(entries), quick_at_(quick_at) {
        if (entries) entries[0].enter = reinterpret_cast<rt::NativeEnter*>(quick_at);
    }
    void add(const NativePart& part);
    bool is_empty() const { return last_.load(std::memory_order_relaxed) == 0; }
    rt::NativeTable table() const { return {entry_at_, entries_, &misses_}; }
    // Adds the misses since the last call to `to`. One thread at a time.
    void take_misses(Activity& to);

private:
    // The number of the one entry of all quick code, which finds its address by the position.
    static constexpr u32 quick_entry = 1;

    void add_quick(const codegen::QuickCode::Function& function, u32 begin);

    u32* entry_at_;
    rt::NativeEntry* entries_;  // the first is none
    u64* quick_at_;
    std::unordered_map<u32, u64> promoted_;  // by position: QuickCode::Function::promoted
    std::atomic<u32> last_ = 0;
    std::vector<NativePart> parts_;
    mutable rt::NativeMisses misses_;
    u32 seen_misses_ = 0;
};

// Returns how far down machine code may use the stack of the calling thread.
u8* stack_limit();

}  // namespace gpurun::device
