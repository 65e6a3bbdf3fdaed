// A device that runs bursts by kernels, as src/burst sees it: memory, kernels, launch and poll.
// Addresses are the device's. One thread drives it.
#pragma once

#include <utility>

#include "abi/burst.h"
#include "device/device.h"

namespace gpurun::device {

class KernelDevice;

// Owns memory of a device. The device outlives it.
class Buffer {
public:
    Buffer() = default;
    Buffer(KernelDevice* device, u64 at, u64 size) : device_(device), at_(at), size_(size) {}
    Buffer(Buffer&& other) noexcept
        : device_(other.device_),
          at_(std::exchange(other.at_, 0)),
          size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(at_, other.at_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer();
    u64 at() const { return at_; }
    u64 size() const { return size_; }

private:
    KernelDevice* device_ = nullptr;
    u64 at_ = 0;
    u64 size_ = 0;
};

// NativeEntries, and the memory that they are in.
struct UploadedEntries {
    Buffer memory;
    NativeEntries addresses = {};
};

// A kernel that runs bursts, loaded.
struct BurstKernel {
    const void* handle = nullptr;  // the device's own
    u32 local_bytes = 0;           // memory that the device takes for each lane that it can have
    u32 resident_warps = 0;        // that can run at once
};
struct BurstKernelKind {
    bool is_native = false;
    bool is_deep = false;  // stacks have more than gang_stack_slots
    Layout layout = Layout::linear;

    bool operator==(const BurstKernelKind&) const = default;
};

class KernelDevice {
public:
    virtual ~KernelDevice() = default;
    virtual const DeviceInfo& info() const = 0;

    // ---- memory: what copies and clears is done in the order of the calls ------------

    virtual Result<u64> free_memory() = 0;
    // Allocates memory. The error names `what` it was for if there is no room.
    virtual Result<Buffer> allocate(u64 size, const char* what) = 0;
    // Frees what allocate() returned. Buffers call it.
    virtual void release(u64 at, u64 size) = 0;
    virtual Result<void> clear(u64 at, u64 size) = 0;
    // Copy to the device and back. The caller keeps the bytes at `from` until synchronize(), except
    // those of a single word, which are copied at once.
    virtual Result<void> copy_in(u64 to, const void* from, u64 size) = 0;
    virtual Result<void> copy_out(void* to, u64 from, u64 size) = 0;
    // Waits until all copies are done. An error names `what` they were for.
    virtual Result<void> synchronize(const char* what) = 0;
    // Reads memory while a kernel runs.
    virtual Result<void> peek(void* to, u64 from, u64 size) = 0;
    // Returns where system memory of this device is, or 0 if there is none.
    virtual u64 address_of(const SystemMemory* system) const = 0;

    // ---- kernels ---------------------------------------------------------------------

    virtual Result<BurstKernel> burst_kernel(const BurstKernelKind& kind) = 0;
    // Makes the table of where code of so many words can be entered natively.
    virtual Result<UploadedEntries> upload_entries(std::span<const NativePart> parts,
                                                   u64 code_words) = 0;
    virtual NativeParams native_params(Tier tier) const = 0;

    // ---- launch and poll -------------------------------------------------------------

    // Launches a kernel; the device adds to `params` where its stop word is. A request to stop that
    // `control` has already is passed on.
    virtual Result<void> launch_burst(const BurstKernel& kernel, u32 warps, BurstParams params,
                                      const RunControl& control) = 0;
    // Waits for the end of what was launched. Passes a request to stop on to the kernel, and has it
    // park once the count of lanes at `waiting` is not 0 or the slice is over. `look` is called now
    // and then meanwhile, unless it is empty. Returns how long the end took from a request to stop
    // on, if there was one.
    virtual Result<std::optional<double>> wait(const RunControl& control, u64 waiting,
                                               const std::function<Result<void>()>& look) = 0;
    // Returns how long so many cycles of a multiprocessor take, or 0 if the device does not know.
    virtual double seconds_of(u64 cycles) const = 0;

    // ---- made of these ---------------------------------------------------------------

    Result<Buffer> allocate_zeroed(u64 size, const char* what) {
        Buffer buffer = TRY(allocate(size, what));
        TRY(clear(buffer.at(), buffer.size()));
        return buffer;
    }
    template <class T>
    Result<Buffer> upload(std::span<const T> data, const char* what) {
        Buffer buffer = TRY(allocate(data.size_bytes(), what));
        TRY(copy_in(buffer.at(), data.data(), data.size_bytes()));
        return buffer;
    }
};

inline Buffer::~Buffer() {
    if (at_) device_->release(at_, size_);
}

}  // namespace gpurun::device
