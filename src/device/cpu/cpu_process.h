// Parts of spaces and bursts of the CPU: reserved memory, system memory, and the call that runs a
// thread in them.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "device/cpu/cpu_native.h"
#include "runtime/vm/interp.h"
#include "runtime/wasi/system.h"

namespace gpurun::device {

// Words of code between two looks at the stop request: well under a millisecond, and some 20 ms
// of bulk operations.
inline constexpr s64 quantum = 1 << 16;
inline constexpr s64 native_quantum = 1 << 22;
inline constexpr s64 early_quantum = 64;  // until there is machine code, of Tier::early

// Runs a thread for the `share`-th part of a quantum.
inline ThreadState run_thread(const rt::Process& process, u32 thread, const CpuNativeTable& native,
                              Tier tier, u32 share = 1) {
    if (native.is_empty())
        return rt::run(process, thread, tier == Tier::early ? early_quantum : quantum / share);
    return rt::run_native(process, native.table(), thread, native_quantum / share, 0, stack_limit(),
                          tier == Tier::alternate);
}

// Reserved address space, all zero, that takes memory only where it is touched.
class Reservation {
public:
    static Result<Reservation> make(u64 size, const char* what) {
        if (size == 0) return Reservation(nullptr, 0);
        void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            return Error{
                format("cannot reserve %llu MiB of address space for %s: %s; raise the "
                       "limit (ulimit -v)",
                       (unsigned long long)(size >> 20), what, std::strerror(errno))};
        return Reservation(p, size);
    }
    Reservation(Reservation&& other) noexcept
        : p_(std::exchange(other.p_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
        if (p_) munmap(p_, size_);
    }
    // Asks the system for large pages, except at the beginning: gigabytes are then taken and freed
    // much faster. Most guests touch the beginning alone.
    void prefer_large_pages() const {
        constexpr u64 beginning = u64{32} << 20;
        if (size_ > beginning) madvise(as<u8>() + beginning, size_ - beginning, MADV_HUGEPAGE);
    }
    template <class T>
    T* as() const {
        return static_cast<T*>(p_);
    }

private:
    Reservation(void* p, u64 size) : p_(p), size_(size) {}
    void* p_;
    u64 size_;
};

// A table of machine code with room for an entry at every position of the code.
class NativeRoom {
public:
    static Result<NativeRoom> make(u64 code_words) {
        Reservation entry_at =
            TRY(Reservation::make(code_words * sizeof(u32), "entries of machine code"));
        // The first number means no entry, the second is the entry of all quick code.
        Reservation entries =
            TRY(Reservation::make(code_words ? (code_words + 2) * sizeof(rt::NativeEntry) : 0,
                                  "entries of machine code"));
        Reservation quick_at =
            TRY(Reservation::make(code_words * sizeof(u64), "entries of quick code"));
        return NativeRoom(std::move(entry_at), std::move(entries), std::move(quick_at));
    }
    CpuNativeTable& table() const { return *table_; }

private:
    NativeRoom(Reservation entry_at, Reservation entries, Reservation quick_at)
        : entry_at_(std::move(entry_at)),
          entries_(std::move(entries)),
          quick_at_(std::move(quick_at)),
          table_(std::make_unique<CpuNativeTable>(
              entry_at_.as<u32>(), entries_.as<rt::NativeEntry>(), quick_at_.as<u64>())) {}
    Reservation entry_at_, entries_, quick_at_;
    std::unique_ptr<CpuNativeTable> table_;
};

class CpuSystem final : public SystemMemory {
public:
    CpuSystem(Reservation memory, u64 size) : memory_(std::move(memory)), size_(size) {}
    u64 size() const override { return size_; }
    Result<void> write(u64 offset, std::span<const u8> bytes) override {
        std::ranges::copy(bytes, at() + offset);
        return {};
    }
    Result<void> read(u64 offset, std::span<u8> bytes) override {
        std::copy_n(at() + offset, bytes.size(), bytes.begin());
        return {};
    }
    Result<std::vector<u64>> load_shared(u64 offset, u64 stride, u64 count) override {
        std::vector<u64> numbers(count);
        for (u64 i = 0; i < count; i++) numbers[i] = number(offset + i * stride).load();
        return numbers;
    }
    Result<void> store_shared(u64 offset, u64 value) override {
        number(offset).store(value);
        return {};
    }
    Result<TakenMemory> take(u64 size) override {
        auto keeper = std::make_shared<const Reservation>(std::move(memory_));
        return TakenMemory{{keeper->as<const u8>(), size}, keeper};
    }
    u8* at() const { return memory_.as<u8>(); }

private:
    std::atomic_ref<u64> number(u64 offset) const {
        return std::atomic_ref<u64>(*reinterpret_cast<u64*>(at() + offset));
    }

    Reservation memory_;
    u64 size_;
};

// Returns where system memory is, or null if there is none.
inline u8* system_at(const SystemMemory* system) {
    return system ? static_cast<const CpuSystem*>(system)->at() : nullptr;
}

// Makes the process's block in system memory, if there is any. Returns false if there was no room.
inline bool begin_in_system(const rt::Process& process, u32 id) {
    if (process.system == nullptr || process.words[process_block] != 0) return true;
    process.words[process_block] = rt::begin_process(process, id);
    return process.words[process_block] != 0;
}

}  // namespace gpurun::device
