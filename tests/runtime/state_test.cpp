// The canonical state: a thread can stop after any instruction of its code and go on elsewhere.
// Each program runs straight, and in steps between which the whole process moves to a fresh
// space, other addresses and all; the old space is unmapped. Both must end alike.
#include <gtest/gtest.h>

#include "device/device.h"
#include "process.h"

namespace gpurun::test {
namespace {

struct Program {
    const char* name;
    std::vector<NamedModule> modules;  // the last one exports "run"
    const char* result;
    u32 stride = 1;  // instructions between two moves
};

Result<Process> load(const Program& program) {
    Process process = TRY(Process::make(small_options()));
    for (const NamedModule& module : program.modules) TRY(process.add(module.name, module.wat));
    return process;
}

Result<Completion> run_moving(Process& process, u32 stride) {
    engine::Store& store = process.store();
    TRY(store.begin_call(process.func("run"), {}));
    ThreadState state = ThreadState::ready;
    while (state == ThreadState::ready) {
        state = TRY(store.space().step(store.thread(), stride));
        auto space = TRY(device::make_cpu_space(store.sizes()));
        TRY(store.move_to(std::move(space)));
    }
    return store.finish_call(process.func("run"), state);
}

class State : public testing::TestWithParam<Program> {};

TEST_P(State, MovesAtEveryStep) {
    const Program& program = GetParam();
    auto straight = load(program);
    ASSERT_TRUE(straight.ok()) << straight.error().to_string();
    EXPECT_EQ(to_string(straight->call("run")), program.result);

    auto moving = load(program);
    ASSERT_TRUE(moving.ok());
    auto completion = run_moving(*moving, program.stride);
    ASSERT_TRUE(completion.ok()) << completion.error().to_string();
    EXPECT_EQ(to_string(*completion), program.result);
    // It is still a process: another call works.
    EXPECT_EQ(moving->call("run").kind, straight->call("run").kind);
}

const Program programs[] = {
    {"Recursion",
     {{"", R"(
        (func $fib (param i32) (result i32)
          (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (local.get 0))
            (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                           (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
        (func (export "run") (result i32) (call $fib (i32.const 11))))"}},
     "89"},

    {"DeepRecursionTraps",
     {{"", R"(
        (func $down (param i64) (result i64)
          (i64.add (i64.const 1) (call $down (i64.add (local.get 0) (i64.const 1)))))
        (func (export "run") (result i64) (call $down (i64.const 0))))"}},
     "call stack exhausted",
     5},

    {"Loops",
     {{"", R"(
        (func (export "run") (result i64) (local $i i32) (local $sum i64)
          (loop $next
            (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
                                     (i64.extend_i32_u (local.get $i))))
            (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                   (i32.const 200))))
          (local.get $sum)))"}},
     "4658671879608424548"},

    {"BrTableAndLabels",
     {{"", R"(
        (func $pick (param i32) (result i32 i64)
          (f64.const 0)
          (block $c (result i32 i64)
            (f32.const 0)
            (block $b (result i32 i64)
              (i32.const 7) (i64.const 8)
              (br_table $b $c 2 $b $c (local.get 0)))
            (i64.add (i64.const 100)) (br $c))
          (return))
        (func (export "run") (result i32 i64) (local i32 i32 i64 i64)
          (loop $next
            (call $pick (local.get 0))
            (local.set 3 (i64.add (local.get 2))) (local.set 1 (i32.add (local.get 1)))
            (local.set 2 (local.get 3))
            (local.set 0 (i32.add (local.get 0) (i32.const 1)))
            (br_if $next (i32.lt_s (local.get 0) (i32.const 9))))
          (local.get 1) (local.get 2)))"}},
     "63 272"},

    {"MemoryAndGlobals",
     {{"", R"(
        (memory 1)
        (data (i32.const 100) "\01\02\03\04\05\06\07\08\f9\fa\fb\fc\fd\fe\ff")
        (global $i (mut i32) (i32.const 3))
        (global $l (mut i64) (i64.const -5))
        (global $v (mut v128) (v128.const i64x2 7 9))
        (func (export "run") (result i32 i64 f64 v128) (local i32)
          (loop $next
            (i64.store offset=1000 (local.get 0)
              (i64.load offset=100 (i32.and (local.get 0) (i32.const 7))))
            (global.set $i (i32.add (global.get $i) (i32.load8_s offset=1003 (local.get 0))))
            (global.set $l (i64.xor (global.get $l) (i64.load32_u offset=1001 (local.get 0))))
            (global.set $v (v128.xor (global.get $v) (v128.load offset=1000 (local.get 0))))
            (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 3)))
                                   (i32.const 60))))
          (global.get $i) (global.get $l) (f64.load (i32.const 1010)) (global.get $v)))"}},
     "37 -4043110409 -2.3263782096506942e+284 0x0000000000000009f40804f0fcf80c07"},

    {"BulkMemory",
     {{"", R"(
        (memory 8 16)
        (data $d "0123456789abcdef")
        (func $sum (result i64) (local i32 i64)
          (loop $next
            (local.set 1 (i64.add (i64.mul (local.get 1) (i64.const 1099511628211))
                                  (i64.load (local.get 0))))
            (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 4096)))
                                   (i32.const 0x80000))))
          (local.get 1))
        (func (export "run") (result i64 i32) (local i32)
          (memory.fill (i32.const 3) (i32.const 0xab) (i32.const 0x41234))
          (memory.init $d (i32.const 0x20000) (i32.const 2) (i32.const 10))
          (memory.copy (i32.const 0x10001) (i32.const 0x00007) (i32.const 0x2ffff))
          (memory.copy (i32.const 0x00100) (i32.const 0x0ff07) (i32.const 0x2ffff))
          (memory.fill (i32.const 0x70000) (i32.const 1) (i32.const 0x10000))
          (local.set 0 (memory.grow (i32.const 3)))
          (memory.copy (i32.const 0x80000) (i32.const 0x60000) (i32.const 0x30000))
          (call $sum)
          (i32.add (i32.mul (local.get 0) (i32.const 100)) (memory.size))))"}},
     "7349166289048050515 811",
     3},

    {"BulkOutOfBounds",
     {{"", R"(
        (memory 4)
        (func (export "run")
          (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x30000))
          (memory.copy (i32.const 0x20000) (i32.const 0) (i32.const 0x20001))))"}},
     "out of bounds memory access"},

    {"Tables",
     {{"", R"(
        (type $t (func (param i32) (result i32)))
        (table $a 10000 20000 funcref)
        (table $b 12000 funcref)
        (elem $e func $inc $dec $twice)
        (func $inc (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
        (func $dec (param i32) (result i32) (i32.sub (local.get 0) (i32.const 1)))
        (func $twice (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1)))
        (func (export "run") (result i32 i32) (local i32 i32)
          (table.fill $a (i32.const 5) (ref.func $inc) (i32.const 9000))
          (table.init $a $e (i32.const 4000) (i32.const 0) (i32.const 3))
          (table.copy $b $a (i32.const 100) (i32.const 5) (i32.const 9995))
          (table.copy $b $b (i32.const 101) (i32.const 100) (i32.const 9000))
          (table.set $b (i32.const 7) (table.get $b (i32.const 4097)))
          (local.set 1 (table.grow $a (ref.func $dec) (i32.const 100)))
          (local.set 0 (call_indirect $b (type $t) (i32.const 20) (i32.const 4096)))
          (local.set 0 (call_indirect $b (type $t) (local.get 0) (i32.const 4097)))
          (local.set 0 (call_indirect $b (type $t) (local.get 0) (i32.const 7)))
          (local.set 0 (call_indirect $a (type $t) (local.get 0) (i32.const 10099)))
          (local.get 0) (i32.add (local.get 1) (table.size $a))))"}},
     "18 20100"},

    {"NewExceptions",
     {{"", R"(
        (tag $t (param i32 i64)) (tag $u) (tag $v (param v128))
        (func $throw (param i32)
          (if (i32.eq (local.get 0) (i32.const 1)) (then (throw $t (i32.const 5) (i64.const 6))))
          (if (i32.eq (local.get 0) (i32.const 2)) (then (throw $u)))
          (if (i32.eq (local.get 0) (i32.const 3))
            (then (throw $v (v128.const i64x2 100 200)))))
        (func $catch (param i32) (result i64) (local i64)
          (block $any (result exnref)
            (block $v (result v128)
              (block $t (result i32 i64)
                (try_table (catch $t $t) (catch $v $v) (catch_all_ref $any)
                  (try_table (catch $v $v) (call $throw (local.get 0))))
                (return (i64.const 1000)))
              (local.set 1) (i64.extend_i32_s) (return (i64.add (local.get 1))))
            (return (i64x2.extract_lane 1)))
          (drop) (i64.const 7))
        (func $rethrow (result i32)
          (block $out (result i32 i64)
            (try_table (catch $t $out)
              (block $again (result exnref)
                (try_table (catch_all_ref $again) (call $throw (i32.const 1)))
                (unreachable))
              (throw_ref))
            (unreachable))
          (drop))
        (func (export "run") (result i64 i64 i64 i64 i32)
          (call $catch (i32.const 0)) (call $catch (i32.const 1)) (call $catch (i32.const 2))
          (call $catch (i32.const 3)) (call $rethrow)))"}},
     "1000 11 7 200 5"},

    {"LegacyExceptions",
     {{"", R"(
        (tag $t (param i32)) (tag $u (param i64 i32))
        (func $throw (param i32)
          (if (local.get 0) (then (throw $u (i64.const 40) (i32.const 2))))
          (throw $t (i32.const 9)))
        (func $catch (param i32) (result i32) (local i32)
          (local.set 1 (i32.const 1))
          (i32.const 100)
          (try (result i32)
            (do (local.set 1 (i32.const 2)) (call $throw (local.get 0)) (i32.const 0))
            (catch $t (i32.add (local.get 1)))
            (catch $u (local.set 1) (i32.wrap_i64) (i32.add (local.get 1))))
          (i32.add))
        (func $nested (result i32)
          (try (result i32)
            (do
              (try (result i32)
                (do (try (result i32) (do (call $throw (i32.const 0)) (i32.const 1))
                      (delegate 1)))
                (catch_all (i32.const 2))))
            (catch $t
              (try (result i32) (do (rethrow 1)) (catch $t (i32.mul (i32.const 3)))
                                (catch_all (i32.const 4)))
              (i32.add))))
        (func (export "run") (result i32 i32 i32)
          (call $catch (i32.const 0)) (call $catch (i32.const 1)) (call $nested)))"}},
     "111 142 36"},

    {"Uncaught",
     {{"", R"(
        (tag $t (param i32)) (tag $u)
        (func $f (try_table (call $g)))
        (func $g (throw $t (i32.const 1)))
        (func (export "run") (block $x (try_table (catch $u $x) (call $f)))))"}},
     "uncaught exception"},

    {"Objects",
     {{"", R"(
        (rec (type $list (sub (struct (field i64) (field (ref null $list)))))
             (type $pair (sub $list (struct (field i64) (field (ref null $list)) (field i8)))))
        (type $bytes (array (mut i8)))
        (type $longs (array (mut i64)))
        (type $refs (array (mut (ref null $list))))
        (data $d "abcdefghijklmnop")
        (func $make (param i32) (result (ref null $list)) (local (ref null $list))
          (loop $next
            (if (i32.and (local.get 0) (i32.const 1))
              (then (local.set 1 (struct.new $list (i64.extend_i32_s (local.get 0)) (local.get 1))))
              (else (local.set 1 (struct.new $pair (i64.const 1000) (local.get 1) (local.get 0)))))
            (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
          (local.get 1))
        (func $sum (param (ref null $list)) (result i64) (local i64)
          (block $end
            (loop $next
              (br_if $end (ref.is_null (local.get 0)))
              (local.set 1 (i64.add (local.get 1) (struct.get $list 0 (local.get 0))))
              (block $no (result (ref null $list))
                (br_on_cast_fail $no (ref null $list) (ref $pair) (local.get 0))
                (local.set 1 (i64.add (i64.extend_i32_s (struct.get_s $pair 2)) (local.get 1)))
                (local.get 0))
              (local.set 0 (struct.get $list 1))
              (br $next)))
          (local.get 1))
        (func (export "run") (result i64 i32 i64 i32 i32) (local $b (ref null $bytes))
                                                     (local $l (ref null $longs))
          (call $sum (call $make (i32.const 13)))
          (local.set $b (array.new $bytes (i32.const 0x85) (i32.const 20000)))
          (array.init_data $bytes $d (local.get $b) (i32.const 8190) (i32.const 1) (i32.const 9))
          (array.copy $bytes $bytes (local.get $b) (i32.const 3) (local.get $b) (i32.const 0)
                                    (i32.const 19000))
          (array.copy $bytes $bytes (local.get $b) (i32.const 0) (local.get $b) (i32.const 1)
                                    (i32.const 19000))
          (array.fill $bytes (local.get $b) (i32.const 1) (i32.const 3) (i32.const 5000))
          (i32.add (array.get_u $bytes (local.get $b) (i32.const 8192))
                   (array.get_s $bytes (local.get $b) (i32.const 19999)))
          (local.set $l (array.new_fixed $longs 3 (i64.const 1) (i64.const -2) (i64.const 3)))
          (array.set $longs (local.get $l) (i32.const 2) (i64.const 40))
          (i64.add (array.get $longs (local.get $l) (i32.const 1))
                   (array.get $longs (array.new_data $longs $d (i32.const 0) (i32.const 2))
                                     (i32.const 1)))
          (array.len (array.new_default $refs (i32.const 12345)))
          (i31.get_s (ref.i31 (i32.const -77)))))"}},
     "6091 -25 8101815670912281191 12345 -77",
     2},

    {"Vectors",
     {{"", R"(
        (memory 1)
        (func (export "run") (result v128 i32) (local $i i32) (local $v v128)
          (local.set $v (v128.const i32x4 1 2 3 4))
          (loop $next
            (v128.store offset=64 (local.get $i)
              (i32x4.add (i32x4.mul (local.get $v) (i32x4.splat (local.get $i)))
                         (v128.const i8x16 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)))
            (local.set $v
              (i8x16.shuffle 3 1 16 17 18 5 6 20 21 9 10 24 13 29 31 0
                (local.get $v) (v128.load offset=60 (local.get $i))))
            (local.set $v (i16x8.replace_lane 3 (local.get $v) (local.get $i)))
            (local.set $v (v128.load8_lane offset=70 5 (local.get $i) (local.get $v)))
            (local.set $v (v128.bitselect (local.get $v) (i8x16.neg (local.get $v))
                                          (v128.const i64x2 0xff00ff00ff 0x1234567890)))
            (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 5)))
                                   (i32.const 200))))
          (local.get $v) (i8x16.bitmask (local.get $v))))"}},
     "0x16e15d285e0000dd003df42d14a50039 16676"},

    {"SeveralInstances",
     {{"m", R"(
        (memory (export "memory") 1 5)
        (table (export "table") 4 funcref)
        (global (export "g") (mut i64) (i64.const 7))
        (tag (export "t") (param i32))
        (type $ft (func (param i32) (result i32)))
        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
        (func (export "throw") (param i32) (throw 0 (local.get 0)))
        (func (export "back") (param i32) (result i32)
          (call_indirect (type $ft) (local.get 0) (i32.const 0))))"},
      {"", R"(
        (import "m" "memory" (memory 1))
        (import "m" "table" (table 4 funcref))
        (import "m" "g" (global $g (mut i64)))
        (import "m" "t" (tag $t (param i32)))
        (import "m" "grow" (func $grow (param i32) (result i32)))
        (import "m" "throw" (func $throw (param i32)))
        (import "m" "back" (func $back (param i32) (result i32)))
        (elem (i32.const 0) $cube)
        (func $cube (param i32) (result i32)
          (drop (memory.grow (i32.const 1)))
          (i32.mul (i32.mul (local.get 0) (local.get 0)) (local.get 0)))
        (func (export "run") (result i32 i32 i32 i32 i64)
          (i32.store (i32.const 65532) (i32.const 5))
          (call $grow (i32.const 2))
          (i32.store (i32.const 196604) (i32.const 6))
          (memory.size)
          (call $back (i32.const 4))
          (i32.store (i32.const 262140) (i32.const 6))
          (block $caught (result i32)
            (try_table (catch $t $caught) (call $throw (memory.size)))
            (i32.const -1))
          (global.set $g (i64.add (global.get $g) (i64.const 35)))
          (global.get $g)))"}},
     "1 3 64 4 42"},

    {"TailCalls",
     {{"m", R"(
        (type $ft (func (param i32 i64) (result i64)))
        (table (export "table") 2 funcref)
        (func (export "step") (param i32 i64) (result i64)
          (return_call_indirect (type $ft) (i32.sub (local.get 0) (i32.const 1))
            (i64.add (local.get 1) (i64.const 3)) (i32.and (local.get 0) (i32.const 1)))))"},
      {"", R"(
        (type $ft (func (param i32 i64) (result i64)))
        (import "m" "table" (table 2 funcref))
        (import "m" "step" (func $step (param i32 i64) (result i64)))
        (elem (i32.const 0) $even $odd)
        (elem declare func $hop)
        (func $even (param i32 i64) (result i64)
          (if (i32.le_s (local.get 0) (i32.const 0)) (then (return (local.get 1))))
          (return_call $odd (i32.sub (local.get 0) (i32.const 1))
                            (i64.mul (local.get 1) (i64.const 5))))
        (func $odd (param i32 i64) (result i64)
          (if (i32.le_s (local.get 0) (i32.const 0)) (then (return (local.get 1))))
          (return_call_ref $ft (local.get 0) (i64.add (local.get 1) (i64.const 1))
                               (ref.func $hop)))
        (func $hop (param i32 i64) (result i64) (local i64 i64)
          (return_call $step (local.get 0) (local.get 1)))
        (func (export "run") (result i64) (call $even (i32.const 50) (i64.const 1))))"}},
     "834465026855468745"},

    {"Atomics",
     {{"", R"(
        (memory 1 1 shared)
        (func (export "run") (result i32 i64 i32 i32 i32) (local i32)
          (loop $next
            (drop (i32.atomic.rmw.add (i32.const 8) (local.get 0)))
            (drop (i64.atomic.rmw.xchg (i32.const 16)
                    (i64.atomic.rmw8.xor_u (i32.const 24) (i64.extend_i32_u (local.get 0)))))
            (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1)))
                                   (i32.const 20))))
          (i32.atomic.load (i32.const 8)) (i64.atomic.load (i32.const 16))
          (memory.atomic.notify (i32.const 0) (i32.const 1))
          (memory.atomic.wait32 (i32.const 0) (i32.const 1) (i64.const -1))
          (i32.atomic.rmw16.cmpxchg_u (i32.const 8) (i32.const 190) (i32.const 3))))"}},
     "190 19 0 1 190"},

    {"Memory64",
     {{"", R"(
        (memory i64 2) (memory $n 1) (table $t i64 5 funcref)
        (func (export "run") (result i64 i64 i32 i64)
          (i64.store offset=0x10000 (i64.const 0xfff0) (i64.const 77))
          (memory.copy 1 0 (i32.const 8) (i64.const 0x1fff0) (i32.const 8))
          (memory.fill 0 (i64.const 5) (i32.const 1) (i64.const 0x18000))
          (i64.add (memory.grow (i64.const 1)) (memory.size))
          (i64.load $n (i32.const 8))
          (i32.load8_u (i64.const 0x18004))
          (table.size $t)))"}},
     "5 77 1 5"},
};

INSTANTIATE_TEST_SUITE_P(Programs, State, testing::ValuesIn(programs),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gpurun::test
