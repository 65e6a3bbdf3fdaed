// Fibers for tests: functions with stacks of their own that take turns on one host thread. Whoever
// resumes one gets control back when it yields or ends; the order is the caller's alone.
#pragma once

#include <span>

#include "base/ints.h"

namespace gpurun::test {

class Fiber {
public:
    using Entry = void (*)(void* argument);

    explicit Fiber(usize stack_bytes);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Begins anew when it is resumed. Whatever it was doing is forgotten, nothing is unwound; the
    // stack is as it was before it ever ran.
    void start(Entry entry, void* argument);
    // Runs it until it yields or ends. Not from within a fiber.
    void resume();
    // Gives control back to who resumed the fiber that runs.
    static void yield();
    // The one that runs, or null.
    static Fiber* current();

    bool is_over() const { return is_over_; }
    // What it has on its stack: all that it knows, registers included.
    std::span<const u8> live() const;

private:
    static void begin();
    void leave();
    void clear();

    u8* const bottom_;
    const usize size_;
    u8* const top_;
    void* stack_;  // where it goes on
    u8* lowest_;   // of what it has used, as far as was seen
    void* resumer_ = nullptr;
    Entry entry_ = nullptr;
    void* argument_ = nullptr;
    bool is_over_ = true;
    // The address sanitizer's view of it.
    [[maybe_unused]] void* shadow_ = nullptr;
    [[maybe_unused]] const void* resumer_bottom_ = nullptr;
    [[maybe_unused]] usize resumer_size_ = 0;
};

}  // namespace gpurun::test
