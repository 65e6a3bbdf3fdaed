;; A test script, in the language of the official WebAssembly test suite.
(module
  (memory 1)
  (data (i32.const 0) "\01\00\00\00\02\00\00\00\03\00\00\00")
  (func (export "sum") (param $count i32) (result i32)
    (local $sum i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (local.set $sum
          (i32.add (local.get $sum)
            (i32.load (i32.shl (local.get $count) (i32.const 2)))))
        (br $next)))
    (local.get $sum)))

(assert_return (invoke "sum" (i32.const 0)) (i32.const 0))
(assert_return (invoke "sum" (i32.const 3)) (i32.const 6))
(assert_return (invoke "sum" (i32.const 16384)) (i32.const 6))
(assert_trap (invoke "sum" (i32.const 16385)) "out of bounds memory access")
(assert_invalid
  (module (func (result i32) (f32.const 1)))
  "type mismatch")
