// Processes that begin with little stack and memory, and move to larger slots as they need them.
#include <gtest/gtest.h>

#include "burst/slot_layout.h"
#include "process.h"
#include "runtime/memory/move.h"
#include "runtime/memory/watch.h"
#include "runtime/vm/interp.h"

namespace gpurun::test {
namespace {

using burst::lay_out;
using burst::SlotLayout;
using burst::SlotSize;

// A slot in host memory.
struct Place {
    SlotLayout layout;
    std::vector<u32> words;
    std::vector<u8> bytes;

    Place(const device::Burst& burst, const SlotSize& size)
        : layout(lay_out(burst, size)), words(layout.words), bytes(initial_bytes(burst, layout)) {
        bytes.resize(layout.bytes_per_process + 8);
    }
    rt::Process process(const device::Burst& burst) {
        return {burst.code.data(), words.data(), bytes.data(), words.data(), 0, 63, nullptr};
    }
    rt::Room room() { return {words.data(), layout.stack, layout.stack_end}; }
};

struct Ending {
    ThreadState state;
    u32 trap;
    u32 moves;
    std::vector<u32> results;
    u64 memory_size;
};

// Runs a call in slots that double until it ends.
Ending run_growing(const device::Burst& burst, SlotSize size, s64 quantum) {
    auto place = std::make_unique<Place>(burst, size);
    std::copy(burst.arguments.begin(), burst.arguments.end(),
              place->words.begin() + place->layout.stack);
    Ending ending{};
    for (;;) {
        rt::Process p = place->process(burst);
        ThreadState state = rt::run(p, burst.thread, quantum);
        if (burst.is_watched) rt::verify_process(p, 0);
        if (state == ThreadState::ready) continue;
        if (state == ThreadState::outgrown) {
            size.stack_slots *= 2;
            size.memory_bytes *= 2;
            auto larger = std::make_unique<Place>(burst, size);
            rt::move_words(place->room(), larger->room(), larger->layout.words.data(),
                           burst.thread);
            rt::move_memories(
                place->words.data(), larger->layout.words.data(), [&](u64 to, u64 from, u64 count) {
                    std::copy_n(place->bytes.begin() + from, count, larger->bytes.begin() + to);
                });
            place = std::move(larger);
            ending.moves++;
            continue;
        }
        const u32* thread = place->words.data() + burst.thread;
        ending.state = state;
        ending.trap = thread[thread_trap];
        auto results = place->words.begin() + place->layout.stack;
        ending.results.assign(results, results + burst.result_words);
        if (!burst.memories.empty())
            ending.memory_size =
                rt::get<u64>(place->words.data() + burst.memories[0].record, memory_bytes);
        return ending;
    }
}

constexpr char module[] = R"((module
  (memory $a 1 40) (memory $b 1 40)
  (data (memory $a) (i32.const 0) "first") (data (memory $b) (i32.const 0) "second")
  (global $calls (mut i32) (i32.const 0))
  ;; Depth, through frames with something in them.
  (func $down (param $n i32) (param $sum i64) (result i64) (local $mine i64)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (local.set $mine (i64.extend_i32_u (local.get $n)))
    (if (i32.eqz (local.get $n)) (then (return (local.get $sum))))
    (i64.add (local.get $mine)
      (call $down (i32.sub (local.get $n) (i32.const 1)) (i64.add (local.get $sum) (i64.const 1)))))
  (func (export "down") (param i32) (result i64) (call $down (local.get 0) (i64.const 0)))
  ;; Both memories grow page by page, and keep what they have.
  (func (export "grow") (param $pages i32) (result i32) (local $i i32)
    (loop $again
      (if (i32.eq (memory.grow $a (i32.const 1)) (i32.const -1)) (then (return (i32.const -1))))
      (if (i32.eq (memory.grow $b (i32.const 1)) (i32.const -1)) (then (return (i32.const -2))))
      (i32.store $a (i32.shl (memory.size $a) (i32.const 15)) (local.get $i))
      (i32.store $b (i32.shl (memory.size $b) (i32.const 15)) (i32.const 7))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (local.get $pages))))
    (i32.add (i32.load8_u $a (i32.const 0))       ;; f
      (i32.add (i32.load8_u $b (i32.const 0))     ;; s
        (i32.add (i32.load $a (i32.shl (memory.size $a) (i32.const 15)))
          (i32.load $b (i32.const 65536))))))
  (func (export "handled") (param i32) (result i64)
    (block $caught (result i64)
      (try_table (result i64) (catch $tag $caught)
        (drop (call $down (local.get 0) (i64.const 0)))
        (throw $tag (i64.const 77)))))
  (tag $tag (param i64))
))";

class Outgrow : public testing::TestWithParam<bool> {
protected:
    Ending run(const char* name, u32 argument, s64 quantum, u32 stack_slots = 4096) {
        engine::StoreOptions options = small_options();
        options.is_watched = GetParam();
        options.stack_slots = stack_slots;
        options.memory_bytes = 8 << 20;
        process_ = std::make_unique<Process>(*Process::make(module, options));
        auto burst = process_->store().make_burst(process_->func(name), {argument}, 1);
        EXPECT_TRUE(burst);
        return run_growing(*burst, {128, 1 << 16}, quantum);
    }
    std::unique_ptr<Process> process_;
};

TEST_P(Outgrow, StackGrowsUntilTheCallReturns) {
    for (s64 quantum : {1, 7, 1 << 20}) {
        Ending ending = run("down", 300, quantum);
        EXPECT_EQ(ending.state, ThreadState::finished);
        EXPECT_EQ(ending.results[0], 300u * 301 / 2 + 300);
        EXPECT_GE(ending.moves, 4u);
    }
}

TEST_P(Outgrow, StackEndsWhereItMayNotGrow) {
    Ending ending = run("down", 100'000, 1 << 20);
    EXPECT_EQ(ending.state, ThreadState::trapped);
    EXPECT_EQ(Trap(ending.trap), Trap::call_stack_exhausted);
    EXPECT_EQ(ending.moves, 5u);
}

TEST_P(Outgrow, MemoriesKeepWhatTheyHave) {
    for (s64 quantum : {1, 1 << 20}) {
        Ending ending = run("grow", 20, quantum);
        EXPECT_EQ(ending.state, ThreadState::finished);
        EXPECT_EQ(ending.results[0], 'f' + 's' + 19u + 7u);
        EXPECT_EQ(ending.memory_size, 21u << page_bits);
        EXPECT_GE(ending.moves, 5u);
    }
}

TEST_P(Outgrow, MemoryEndsAtItsMaximum) {
    Ending ending = run("grow", 100, 1 << 20);
    EXPECT_EQ(ending.state, ThreadState::finished);
    EXPECT_EQ(ending.results[0], u32(-1));
    EXPECT_EQ(ending.memory_size, 40u << page_bits);
}

TEST_P(Outgrow, HandlersMoveToo) {
    Ending ending = run("handled", 200, 1 << 20);
    EXPECT_EQ(ending.state, ThreadState::finished);
    EXPECT_EQ(ending.results[0], 77u);
    EXPECT_GE(ending.moves, 3u);
}

INSTANTIATE_TEST_SUITE_P(Watched, Outgrow, testing::Bool());

}  // namespace
}  // namespace gpurun::test
