// Links images with the runtime's functions, and finds the end of stacks.
#include "device/cpu_native.h"

#include <pthread.h>

namespace gpurun::device {
namespace {

const codegen::LoadedImage::Symbol symbols[] = {
#define NATIVE_CALL(name) {#name, reinterpret_cast<const void*>(&rt::name)},
#include "abi/native_calls.def"
};

}  // namespace

Result<std::shared_ptr<const NativeCode>> CpuNativeCode::make(const codegen::Image& image) {
    return std::shared_ptr<const NativeCode>(
        std::make_shared<CpuNativeCode>(TRY(codegen::load(image, symbols))));
}

void CpuNativeTable::add(const NativePart& part) {
    for (const codegen::LoadedImage::Entry& entry :
         static_cast<const CpuNativeCode&>(*part.code).image().entries()) {
        entry_at_[part.begin + entry.position] = u32(entries_.size());
        entries_.push_back({reinterpret_cast<rt::NativeEnter*>(entry.enter), entry.number});
    }
    parts_.push_back(part);
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
