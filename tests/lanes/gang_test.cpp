// Gangs of processes on warps of fibers end as the same processes do one at a time: the loop that
// elects a position, lanes that go different ways, that trap or end early, chores that all lanes do
// together, system calls.
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/burst.h"
#include "lanes_device.h"
#include "text/assemble.h"

namespace gpurun::test {
namespace {

using engine::BurstReport;

struct Program {
    const char* name;
    const char* wat;  // exports "run": of the process's number, if it has a parameter; null: made
};

const Program programs[] = {
    {"Branches", R"((func (export "run") (param i32) (result i32)
        (local $i i32) (local $sum i32)
        (loop $next
          (if (i32.and (i32.xor (local.get 0) (local.get $i)) (i32.const 1))
            (then (local.set $sum (i32.add (local.get $sum) (i32.const 3))))
            (else (if (i32.and (local.get 0) (i32.const 2))
              (then (local.set $sum (i32.mul (local.get $sum) (i32.const 5))))
              (else (local.set $sum (i32.sub (local.get $sum) (local.get $i)))))))
          (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                 (i32.const 50))))
        (local.get $sum)))"},
    {"Tables", R"((func (export "run") (param i32) (result i64)
        (block $c (block $b (block $a
          (br_table $a $b $c (i32.rem_u (local.get 0) (i32.const 4))))
          (return (i64.const 10)))
          (return (i64.extend_i32_u (local.get 0))))
        (i64.mul (i64.extend_i32_u (local.get 0)) (i64.const 0x100000001))))"},
    {"Loops", R"((func (export "run") (param i32) (result i32) (local $n i32)
        (loop $next
          (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 31)) (local.get 0)))
          (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get $n)))"},
    {"Calls", R"((func $fib (param i32) (result i32)
          (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (local.get 0))
            (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                           (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
        (func (export "run") (param i32) (result i32)
          (call $fib (i32.rem_u (local.get 0) (i32.const 11)))))"},
    {"IndirectCalls", R"((type $f (func (param i32) (result i32)))
        (table funcref (elem $one $two $three))
        (func $one (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
        (func $two (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
        (func $three (param f32) (result i32) (i32.const 7))
        (func (export "run") (param i32) (result i32)
          (call_indirect (type $f) (local.get 0) (i32.rem_u (local.get 0) (i32.const 4)))))"},
    {"Traps", R"((func (export "run") (param i32) (result i32)
        (if (i32.eq (i32.rem_u (local.get 0) (i32.const 5)) (i32.const 2)) (then (unreachable)))
        (i32.div_u (i32.const 1000)
                   (i32.sub (i32.rem_u (local.get 0) (i32.const 7)) (i32.const 3)))))"},
    {"Exhaustion", R"((func $down (param i32) (result i32)
          (if (result i32) (local.get 0)
            (then (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
            (else (i32.const 0))))
        (func (export "run") (param i32) (result i32)
          (call $down (i32.mul (local.get 0) (i32.const 40)))))"},
    {"Memory", R"((memory 1) (data (i32.const 8) "abcdefgh")
        (func (export "run") (param i32) (result i64)
          (i32.store8 offset=3 (local.get 0) (i32.const 0x55))
          (i32.store (i32.add (local.get 0) (i32.const 7)) (i32.const 0x01020304))
          (i64.add (i64.load (local.get 0)) (i64.load (i32.const 8)))))"},
    {"Widths", R"((memory 1) (func (export "run") (param i32) (result i64 i64 i32 f64)
          (local $at i32) (local $sum i64)
          (loop $next  ;; every width at every alignment, each read as others wrote it
            (i64.store (local.get $at) (i64.mul (i64.extend_i32_u (local.get 0))
                                                (i64.const 0x0102040810204081)))
            (i32.store offset=5 (local.get $at) (i32.mul (local.get 0) (i32.const 0x01030507)))
            (i32.store16 offset=2 (local.get $at) (local.get $at))
            (i32.store8 offset=11 (local.get $at) (local.get 0))
            (f64.store offset=13 (local.get $at) (f64.convert_i32_u (local.get 0)))
            (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
              (i64.add (i64.load offset=1 (local.get $at))
                (i64.add (i64.load32_s offset=3 (local.get $at))
                  (i64.add (i64.load16_s offset=7 (local.get $at))
                           (i64.load8_s offset=10 (local.get $at)))))))
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 3)))
                                   (i32.const 200))))
          (local.get $sum) (i64.load (i32.const 65528)) (i32.load offset=2 (local.get 0))
          (f64.load offset=13 (i32.const 198))))"},
    {"Atomics", R"((memory 1) (func (export "run") (param i32) (result i64 i32 i32)
          (i64.atomic.store (i32.const 64) (i64.extend_i32_u (local.get 0)))
          (drop (i64.atomic.rmw.add (i32.const 64) (i64.const 0x100000001)))
          (drop (i64.atomic.rmw.xor (i32.const 72) (i64.const -1)))
          (drop (i32.atomic.rmw8.sub_u (i32.const 67) (i32.const 3)))
          (drop (i32.atomic.rmw16.cmpxchg_u (i32.const 74) (i32.const 0xffff) (local.get 0)))
          (i64.add (i64.atomic.load (i32.const 64)) (i64.atomic.load (i32.const 72)))
          (i32.atomic.rmw.xchg (i32.const 64) (i32.const 5))
          (memory.atomic.notify (i32.const 64) (i32.const 1))))"},
    {"VectorMemory", R"((memory 2) (data (i32.const 70000) "0123456789abcdefghijklmnopqrstuvwxyz")
        (func (export "run") (param i32) (result v128 v128)
          (v128.store offset=1 (local.get 0) (v128.load (i32.add (local.get 0) (i32.const 69990))))
          (v128.store64_lane 1 (i32.const 3) (v128.load8x8_s (i32.const 70003)))
          (v128.load32_lane offset=2 2 (i32.const 70001) (v128.load (i32.const 1)))
          (v128.load16_splat (i32.add (local.get 0) (i32.const 70000)))))"},
    {"MemoryEnds", R"((memory 1) (func (export "run") (param i32) (result i32)
          (i32.load (i32.add (i32.const 65520) (local.get 0)))))"},
    {"Growth", R"((memory 1 6) (func (export "run") (param i32) (result i32 i32)
          (memory.grow (i32.rem_u (local.get 0) (i32.const 9)))
          (memory.size)))"},
    {"BulkMemory", R"((memory 1) (data $d "some bytes that are copied to all sorts of places")
        (func (export "run") (param i32) (result i64) (local $at i32) (local $sum i64)
          (memory.fill (i32.mul (local.get 0) (i32.const 3)) (local.get 0)
                       (i32.mul (local.get 0) (i32.const 37)))
          (memory.init $d (i32.add (local.get 0) (i32.const 11)) (i32.const 2) (i32.const 40))
          (memory.copy (i32.const 1001) (local.get 0) (i32.mul (local.get 0) (i32.const 300)))
          (memory.copy (i32.const 1000) (i32.const 1001) (i32.mul (local.get 0) (i32.const 299)))
          (if (i32.eq (i32.rem_u (local.get 0) (i32.const 6)) (i32.const 5))
            (then (memory.copy (i32.const 9) (i32.const 60000) (i32.const 60000))))
          (loop $next
            (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
                                     (i64.load (local.get $at))))
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8)))
                                   (i32.const 24000))))
          (local.get $sum)))"},
    {"Exceptions", R"((tag $t (param i32))
        (func $f (param i32)
          (if (i32.and (local.get 0) (i32.const 1)) (then (throw $t (local.get 0)))))
        (func (export "run") (param i32) (result i32)
          (block $h (result i32)
            (try_table (catch $t $h) (call $f (local.get 0)))
            (if (i32.and (local.get 0) (i32.const 2)) (then (throw $t (i32.const 5))))
            (i32.const 9))))"},
    {"Objects", R"((type $node (struct (field (mut i32)) (field (ref null $node))))
        (func (export "run") (param i32) (result i32) (local $list (ref null $node)) (local $n i32)
          (loop $next
            (local.set $list (struct.new $node (local.get 0) (local.get $list)))
            (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
          (loop $sum
            (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 3))
                                   (struct.get $node 0 (local.get $list))))
            (br_if $sum (i32.eqz (ref.is_null
              (local.tee $list (struct.get $node 1 (local.get $list)))))))
          (local.get $n)))"},
    {"Vectors", R"((func (export "run") (param i32) (result v128) (local v128)
          (local.set 1 (i32x4.splat (local.get 0)))
          (loop $next
            (local.set 1 (i32x4.add (i32x4.mul (local.get 1) (i32x4.splat (i32.const 3)))
                                    (v128.const i32x4 1 2 3 4)))
            (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
          (local.get 1)))"},
    {"Floats", R"((func (export "run") (param f64) (result f64 f32)
          (f64.sqrt (f64.sub (local.get 0) (f64.const 4)))
          (f32.div (f32.demote_f64 (local.get 0)) (f32.const 3))))"},
    {"SystemCalls", R"((import "wasi_snapshot_preview1" "fd_write"
            (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1) (data (i32.const 32) "0 says something\n")
        (func (export "run") (param i32)
          (i32.store (i32.const 0) (i32.const 32)) (i32.store (i32.const 4) (i32.const 17))
          (i32.store8 (i32.const 32) (i32.add (i32.const 65) (local.get 0)))
          (loop $next
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
            (br_if $next (i32.and (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))
                                  (i32.const 3))))
          (if (i32.gt_s (local.get 0) (i32.const 20)) (then (call $exit (local.get 0))))))"},
    {"Files", R"((import "wasi_snapshot_preview1" "random_get"
            (func $random (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_prestat_get"
            (func $prestat (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get"
            (func $time (param i32 i64 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "run") (param i32) (result i32 i32 i32)
          (call $random (i32.const 65500) (local.get 0))
          (call $prestat (local.get 0) (i32.const 0))
          (call $time (i32.const 1) (i64.const 0) (i32.add (i32.const 65500) (local.get 0)))))"},
    {"Paths", R"((import "wasi_snapshot_preview1" "path_create_directory"
            (func $mkdir (param i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_symlink"
            (func $link (param i32 i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_readlink"
            (func $readlink (param i32 i32 i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_open"
            (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write"
            (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_pread"
            (func $pread (param i32 i32 i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_readdir"
            (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 64) "dir/file") (data (i32.const 80) "dir/link")
        (data (i32.const 96) "text of a file, and more than that: it goes on")
        (func (export "run") (param i32) (result i32 i32 i32 i32 i32 i32 i64)
          (local $fd i32) (local $at i32) (local $sum i64)
          (call $mkdir (i32.const 3) (i32.const 64) (i32.const 3))
          (call $link (i32.const 96) (i32.const 4) (i32.const 3) (i32.const 80) (i32.const 8))
          (call $readlink (i32.const 3) (i32.const 80) (i32.const 8)
                          (i32.add (i32.const 2000) (local.get 0)) (i32.const 100) (i32.const 8))
          (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 8) (i32.const 1)
                      (i64.const 0x1fffffff) (i64.const 0) (i32.const 0) (i32.const 0))
          (local.set $fd (i32.load (i32.const 0)))
          (i32.store (i32.const 16) (i32.const 96))
          (i32.store (i32.const 20) (i32.rem_u (local.get 0) (i32.const 47)))
          (i32.store (i32.const 24) (i32.const 97)) (i32.store (i32.const 28) (i32.const 700))
          (call $write (local.get $fd) (i32.const 16) (i32.const 2) (i32.const 8))
          (i32.store (i32.const 16) (i32.add (i32.const 3001) (local.get 0)))
          (i32.store (i32.const 20) (i32.const 650))
          (call $pread (local.get $fd) (i32.const 16) (i32.const 1) (i64.const 5) (i32.const 8))
          (drop (call $readdir (i32.const 3) (i32.const 5000) (i32.const 500) (i64.const 0)
                               (i32.const 12)))
          (loop $next
            (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
                                     (i64.load8_u offset=2000 (local.get $at))))
            (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1)))
                                   (i32.const 1800))))
          (local.get $sum)))"},
    {"FarLocals", nullptr},
    {"Sleep", R"((import "wasi_snapshot_preview1" "poll_oneoff"
            (func $poll (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "run") (param i32) (result i32)
          ;; a subscription to the monotonic clock, so many microseconds ahead
          (i32.store (i32.const 16) (i32.const 1))
          (i64.store (i32.const 24) (i64.mul (i64.extend_i32_u (local.get 0)) (i64.const 1000)))
          (call $poll (i32.const 0) (i32.const 100) (i32.const 1) (i32.const 200))))"},
};

// Returns a module whose function has more locals than an instruction's fields can name.
std::string far_locals() {
    std::string text = R"((func $next (param i32) (result i32 i64)
          (if (i32.eq (i32.rem_u (local.get 0) (i32.const 5)) (i32.const 4)) (then (unreachable)))
          (i32.sub (local.get 0) (i32.const 1)) (i64.extend_i32_u (local.get 0)))
        (func (export "run") (param i32) (result i64) (local)";
    for (u32 i = 0; i < 16'400; i++) text += " v128";
    return text + R"() (local $sum i64) (local $next i32)
          (local.set $next (i32.rem_u (local.get 0) (i32.const 9)))
          (loop $again
            (call $next (local.get $next))
            (local.set $sum (i64.add (local.get $sum)))
            (br_if $again (local.tee $next)))
          (local.get $sum)))";
}

std::string ending(const BurstReport& report, u32 process) {
    engine::Completion completion = report.of(process);
    std::string text = completion.to_string();
    for (const engine::Value& value : completion.results) text += " " + value.to_string();
    for (int stream : {1, 2}) {
        auto written = report.stream(process, stream);
        text += written ? " [" + *written + "]" : " " + written.error().to_string();
    }
    return text;
}

constexpr u32 small_stack = 2048, large_stack = 1 << 17;

Result<std::vector<std::string>> endings(device::Device& device, const Program& program,
                                         u32 processes, bool is_watched, u32 stack_slots,
                                         Layout layout) {
    const std::string text = program.wat ? program.wat : far_locals();
    text::Assembled assembled = TRY(text::assemble(text, program.name));
    const engine::Program made{TRY(wasm::load(std::move(assembled.bytes)))};
    engine::Run run;
    run.function = "run";
    run.arguments = {"{}"};
    run.many.processes = processes;
    run.many.first_number = 1;  // so that no argument is 0: loops count down to it
    run.limits.stack_slots = stack_slots;
    run.limits.memory_bytes = 8 << 16;
    run.limits.heap_words = 4096;
    run.limits.system_bytes = 8 << 20;
    run.is_watched = is_watched;
    run.layout = layout;
    const std::string folder = testing::TempDir() + "/gang";
    std::filesystem::create_directory(folder);
    run.system.mounts = {{folder, "/", true}};
    const engine::Job job{made, run};
    BurstReport report = TRY(engine::run_burst(device, {&job, 1}, {}));
    std::vector<std::string> found;
    for (u32 i = 0; i < processes; i++) found.push_back(ending(report, i));
    return found;
}

class Gang : public testing::TestWithParam<Program> {
protected:
    void compare(u32 lanes, u32 warps, u32 processes, u64 seed, bool is_watched,
                 u32 stack_slots = small_stack) {
        SCOPED_TRACE(testing::Message() << lanes << " lanes, " << warps << " warps, seed " << seed);
        auto cpu = device::open_device("cpu");
        ASSERT_TRUE(cpu.ok());
        auto expected =
            endings(**cpu, GetParam(), processes, is_watched, stack_slots, Layout::linear);
        ASSERT_TRUE(expected.ok()) << expected.error().to_string();
        for (Layout layout : {Layout::linear, Layout::interleaved}) {
            SCOPED_TRACE(layout == Layout::linear ? "linear" : "interleaved");
            LanesDevice device(lanes, warps, seed);
            auto found = endings(device, GetParam(), processes, is_watched, stack_slots, layout);
            ASSERT_TRUE(found.ok()) << found.error().to_string();
            EXPECT_EQ(*found, *expected);
        }
    }
};

TEST_P(Gang, Of4EndsAsOneByOne) {
    for (u64 seed = 1; seed <= 4; seed++) compare(4, 1, 4, seed, false);
    compare(4, 3, 50, 5, false);
    compare(4, 1, 10, 6, false, large_stack);
}
TEST_P(Gang, Of32EndsAsOneByOne) {
    compare(32, 1, 32, 1, false);
    compare(32, 2, 100, 2, false);
}
TEST_P(Gang, IsWatched) {
    compare(4, 2, 20, 1, true);
    compare(32, 1, 40, 1, true);
}

INSTANTIATE_TEST_SUITE_P(Programs, Gang, testing::ValuesIn(programs),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gpurun::test
