// Links images with the runtime's functions, and finds the end of stacks.
#include "device/cpu/cpu_native.h"

#include <pthread.h>

#include <algorithm>

namespace gpurun::device {
namespace {

const codegen::LoadedImage::Symbol symbols[] = {
#define NATIVE_CALL(name) {#name, reinterpret_cast<const void*>(&rt::name)},
#include "abi/native_calls.def"
};

typedef NativeStatus QuickStart(rt::NativeContext* n, rt::StackWord* fp, rt::StackWord* rp,
                                u8* memory, u64 memory_size, s64 quantum)
    __attribute__((preserve_none));

// Quick code runs for about a millisecond at most, so that hot functions are noticed soon.
constexpr s64 quick_quantum = 1 << 20;

// Runs quick code from n->quick.entry on. It calls itself only by way of the runtime, which uses
// the thread's own stack: where little of that is left, it leaves at once.
NativeStatus enter_quick(rt::NativeContext* n, rt::StackWord* fp, rt::StackWord* rp, u32) {
    if (!rt::is_above(n->stack_limit)) {
        n->thread[thread_pc] = n->code + n->quick.entry;
        n->thread[thread_fp] = u32(fp - n->quick.slot_0);
        n->thread[thread_rp] = u32(rp - n->quick.slot_0);
        n->thread[thread_instance] = n->quick.instance;
        return NativeStatus::yield;
    }
    auto* const code = reinterpret_cast<QuickStart*>(n->quick.own[n->quick.entry]);
    return code(n, fp, rp, n->memory_base, n->memory_size,
                std::min(n->time.quantum, quick_quantum));
}

}  // namespace

std::shared_ptr<const NativeCode> use_quick_code(
    std::shared_ptr<const codegen::QuickCode> code,
    std::vector<codegen::QuickCode::Function> functions) {
    return std::make_shared<CpuNativeCode>(std::move(code), std::move(functions));
}

Result<std::shared_ptr<const NativeCode>> CpuNativeCode::make(const codegen::Image& image,
                                                              const NativeCode* beside) {
    auto made = std::make_shared<CpuNativeCode>(
        beside ? static_cast<const CpuNativeCode*>(beside)->image_
               : codegen::make_loaded_image(image.all_functions, symbols));
    for (const codegen::Image::Piece& piece : image.pieces) {
        const auto entries = TRY(made->image_->add(piece));
        made->entries_.insert(made->entries_.end(), entries.begin(), entries.end());
    }
    return std::shared_ptr<const NativeCode>(std::move(made));
}

void CpuNativeTable::add(const NativePart& part) {
    const auto& code = static_cast<const CpuNativeCode&>(*part.code);
    parts_.push_back(part);
    for (const codegen::QuickCode::Function& function : code.quick())
        add_quick(function, part.begin);
    for (const codegen::LoadedImage::Entry& entry : code.entries()) {
        const u32 number = std::max(quick_entry, last_.load(std::memory_order_relaxed)) + 1;
        const u32 position = part.begin + entry.position;
        entries_[number] = {reinterpret_cast<rt::NativeEnter*>(entry.enter), entry.number};
        // Pairs with NativeTable::entry_of.
        __atomic_store_n(&entry_at_[position], number, __ATOMIC_RELEASE);
        last_.store(number, std::memory_order_relaxed);
        // From here on quick code calls this machine code instead of its own.
        if (auto found = promoted_.find(position); found != promoted_.end())
            __atomic_store_n(&quick_at_[position], found->second, __ATOMIC_RELEASE);
    }
}

void CpuNativeTable::add_quick(const codegen::QuickCode::Function& function, u32 begin) {
    if (promoted_.empty()) entries_[quick_entry] = {&enter_quick, 0};
    const u32 first = begin + function.entries.front().position;
    promoted_[first] = function.promoted;
    for (const codegen::QuickCode::Entry& entry : function.entries) {
        const u32 position = begin + entry.position;
        const bool has_better = entry_at_[position] != 0;
        const u64 address = position == first && has_better ? function.promoted : entry.address;
        __atomic_store_n(&quick_at_[position], address, __ATOMIC_RELEASE);
        if (!has_better) __atomic_store_n(&entry_at_[position], quick_entry, __ATOMIC_RELEASE);
    }
    if (is_empty()) last_.store(quick_entry, std::memory_order_relaxed);
}

void CpuNativeTable::take_misses(Activity& to) {
    const u32 count = __atomic_load_n(&misses_.count, __ATOMIC_RELAXED);
    to.misses = count - seen_misses_;
    seen_misses_ = count;
    const u32 known = u32(std::min<u64>(to.misses, rt::NativeMisses::size));
    for (u32 i = 1; i <= known; i++)
        to.missed.push_back(__atomic_load_n(&misses_.callees[(count - i) % rt::NativeMisses::size],
                                            __ATOMIC_RELAXED));
}

u8* stack_limit() {
    // The runtime's own functions take some of the stack.
    constexpr usize reserve = 256 << 10;
    static thread_local u8* const limit = [] {
        pthread_attr_t attributes;
        void* begin = nullptr;
        usize size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstack(&attributes, &begin, &size);
            pthread_attr_destroy(&attributes);
        }
        // The main thread's stack is allocated only as it is touched, so no more than this is used.
        constexpr usize most = 8 << 20;
        u8* end = static_cast<u8*>(begin) + size;
        return (size > most ? end - most : static_cast<u8*>(begin)) + reserve;
    }();
    return limit;
}

}  // namespace gpurun::device
