// The CPU as a device: process memory is reserved address space, and the runtime is called.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/format.h"
#include "device/device.h"
#include "runtime/interp.h"

namespace gpurun::device {
namespace {

// Between two looks at the stop request: some milliseconds.
constexpr s64 quantum = 1 << 18;

// Zero pages that take memory only where touched.
class Reservation {
public:
    static Result<Reservation> make(u64 size) {
        if (size == 0) return Reservation(nullptr, 0);
        void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return Error{format("cannot reserve %llu MiB of address space: %s; a smaller --memory asks for less",
                                (unsigned long long)(size >> 20), std::strerror(errno))};
        return Reservation(p, size);
    }
    Reservation(Reservation&& other) noexcept
        : p_(std::exchange(other.p_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
        if (p_) munmap(p_, size_);
    }
    template <class T>
    T* as() const { return static_cast<T*>(p_); }

private:
    Reservation(void* p, u64 size) : p_(p), size_(size) {}
    void* p_;
    u64 size_;
};

class CpuSpace final : public Space {
public:
    CpuSpace(Reservation code, Reservation words, Reservation bytes)
        : code_(std::move(code)), words_(std::move(words)), bytes_(std::move(bytes)),
          process_{code_.as<u64>(), words_.as<u32>(), bytes_.as<u8>()} {}

    Result<void> write_code(u32 position, std::span<const u64> words) override {
        std::memcpy(code_.as<u64>() + position, words.data(), words.size_bytes());
        return {};
    }
    Result<void> write_words(u32 index, std::span<const u32> words) override {
        std::memcpy(words_.as<u32>() + index, words.data(), words.size_bytes());
        return {};
    }
    Result<void> read_words(u32 index, std::span<u32> words) override {
        std::memcpy(words.data(), words_.as<u32>() + index, words.size_bytes());
        return {};
    }
    Result<void> read_bytes(u64 offset, std::span<u8> bytes) override {
        std::memcpy(bytes.data(), bytes_.as<u8>() + offset, bytes.size_bytes());
        return {};
    }
    Result<ThreadState> run(u32 thread, const RunControl& control) override {
        for (;;) {
            ThreadState state = rt::run(process_, thread, quantum);
            if (state != ThreadState::ready) return state;
            if (control.stop && control.stop->load(std::memory_order_relaxed)) return state;
            if (control.deadline && std::chrono::steady_clock::now() >= *control.deadline) return state;
        }
    }
    Result<ThreadState> step(u32 thread, u64 count) override {
        return rt::step(process_, thread, s64(count));
    }

private:
    Reservation code_, words_, bytes_;
    rt::Process process_;
};

}  // namespace

Result<std::unique_ptr<Space>> make_cpu_space(const Sizes& sizes) {
    Reservation code = TRY(Reservation::make(sizes.code_words * sizeof(u64)));
    Reservation words = TRY(Reservation::make(sizes.words * sizeof(u32)));
    // One byte at least, so that memories have an address even where there are none.
    Reservation bytes = TRY(Reservation::make(std::max<u64>(sizes.bytes, 1)));
    return std::unique_ptr<Space>(new CpuSpace(std::move(code), std::move(words), std::move(bytes)));
}

}  // namespace gpurun::device
