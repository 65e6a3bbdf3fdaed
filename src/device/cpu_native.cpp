// Links images with the runtime's functions, and finds the end of stacks.
#include "device/cpu_native.h"

#include <pthread.h>

#include <algorithm>

namespace gpurun::device {
namespace {

const codegen::LoadedImage::Symbol symbols[] = {
#define NATIVE_CALL(name) {#name, reinterpret_cast<const void*>(&rt::name)},
#include "abi/native_calls.def"
};

}  // namespace

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
    for (const codegen::LoadedImage::Entry& entry :
         static_cast<const CpuNativeCode&>(*part.code).entries()) {
        const u32 number = last_.load(std::memory_order_relaxed) + 1;
        entries_[number] = {reinterpret_cast<rt::NativeEnter*>(entry.enter), entry.number};
        // Pairs with NativeTable::entry_of.
        __atomic_store_n(&entry_at_[part.begin + entry.position], number, __ATOMIC_RELEASE);
        last_.store(number, std::memory_order_relaxed);
    }
    parts_.push_back(part);
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
    // For what the runtime's own functions take.
    constexpr usize reserve = 256 << 10;
    static thread_local u8* const limit = [] {
        pthread_attr_t attributes;
        void* begin = nullptr;
        usize size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
            pthread_attr_getstack(&attributes, &begin, &size);
            pthread_attr_destroy(&attributes);
        }
        // Of the main thread's stack, which is only there once it is touched, no more than this.
        constexpr usize most = 8 << 20;
        u8* end = static_cast<u8*>(begin) + size;
        return (size > most ? end - most : static_cast<u8*>(begin)) + reserve;
    }();
    return limit;
}

}  // namespace gpurun::device
