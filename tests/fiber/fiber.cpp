// Switching stacks by hand: what the system's own functions do besides, a system call for the
// signal mask, is most of their time.
#include "fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace gpurun::test {
namespace {

thread_local Fiber* running = nullptr;

// Puts the registers that a call preserves on the stack and its place into `from`; goes on at `to`.
#if defined(__x86_64__)
constexpr usize saved_words = 6;
[[gnu::naked, gnu::noinline, gnu::used]] void switch_stacks(void** /*from*/, void* /*to*/) {
    asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
        "ret");
}
// As `switch_stacks` leaves one, so that it goes on at the start of `entry`.
void* first_frame(u8* top, void (*entry)()) {
    auto** words = reinterpret_cast<void**>(top);
    words[-2] = reinterpret_cast<void*>(entry);
    return words - 2 - saved_words;
}
#elif defined(__aarch64__)
constexpr usize saved_words = 20;
[[gnu::naked, gnu::noinline, gnu::used]] void switch_stacks(void** /*from*/, void* /*to*/) {
    asm("sub sp, sp, #160\n"
        "stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
        "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\n"
        "ret");
}
void* first_frame(u8* top, void (*entry)()) {
    auto** words = reinterpret_cast<void**>(top) - saved_words;
    words[11] = reinterpret_cast<void*>(entry);  // x30
    return words;
}
#endif

u8* map_stack(usize size) {
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        std::perror("a fiber's stack");
        std::abort();
    }
    return static_cast<u8*>(at);
}

}  // namespace

Fiber::Fiber(usize stack_bytes)
    : bottom_(map_stack(stack_bytes)),
      size_(stack_bytes),
      top_(bottom_ + stack_bytes),
      stack_(top_),
      lowest_(top_) {}

Fiber::~Fiber() {
    clear();
    munmap(bottom_, size_);
}

Fiber* Fiber::current() { return running; }

// Below the lowest place that was seen are the frames of what was called from there.
void Fiber::clear() {
    constexpr usize margin = 4096;
    lowest_ = std::min(lowest_, static_cast<u8*>(stack_));
    u8* from = lowest_ - bottom_ > s64(margin) ? lowest_ - margin : bottom_;
#if __has_feature(address_sanitizer)
    __asan_unpoison_memory_region(bottom_, size_);
#endif
    std::memset(from, 0, usize(top_ - from));
    lowest_ = top_;
}

void Fiber::start(Entry entry, void* argument) {
    clear();
    entry_ = entry;
    argument_ = argument;
    is_over_ = false;
    stack_ = first_frame(top_, begin);
}

void Fiber::begin() {
#if __has_feature(address_sanitizer)
    __sanitizer_finish_switch_fiber(nullptr, &running->resumer_bottom_, &running->resumer_size_);
#endif
    running->entry_(running->argument_);
    running->is_over_ = true;
    running->leave();
    std::abort();  // nobody resumes what is over
}

void Fiber::resume() {
    if (running != nullptr || is_over_) std::abort();
    running = this;
#if __has_feature(address_sanitizer)
    void* shadow = nullptr;
    __sanitizer_start_switch_fiber(&shadow, bottom_, size_);
#endif
    switch_stacks(&resumer_, stack_);
#if __has_feature(address_sanitizer)
    __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr);
#endif
    lowest_ = std::min(lowest_, static_cast<u8*>(stack_));
    running = nullptr;
}

void Fiber::leave() {
#if __has_feature(address_sanitizer)
    __sanitizer_start_switch_fiber(is_over_ ? nullptr : &shadow_, resumer_bottom_, resumer_size_);
#endif
    switch_stacks(&stack_, resumer_);
#if __has_feature(address_sanitizer)
    __sanitizer_finish_switch_fiber(shadow_, &resumer_bottom_, &resumer_size_);
#endif
}

void Fiber::yield() { running->leave(); }

std::span<const u8> Fiber::live() const {
    const u8* from = static_cast<const u8*>(stack_);
    return {from, usize(top_ - from)};
}

}  // namespace gpurun::test
