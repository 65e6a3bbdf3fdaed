;; Accesses to addresses that differ by constants: machine code checks them together. Traps are where
;; they would be if each were checked by itself, and what was stored before them has been stored.

(module
  (memory 1 2)

  ;; Four words from $at on, one after the other.
  (func (export "store_4") (param $at i32)
    (i32.store (local.get $at) (i32.const 1))
    (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 2))
    (i32.store (i32.add (local.get $at) (i32.const 8)) (i32.const 3))
    (i32.store (i32.add (local.get $at) (i32.const 12)) (i32.const 4)))
  ;; Downwards.
  (func (export "store_below") (param $at i32)
    (i32.store (local.get $at) (i32.const 5))
    (i32.store (i32.sub (local.get $at) (i32.const 4)) (i32.const 6))
    (i32.store (i32.add (local.get $at) (i32.const -8)) (i32.const 7)))
  (func (export "load") (param $at i32) (result i32) (i32.load (local.get $at)))
  (func (export "clear") (param $at i32) (param $count i32)
    (memory.fill (local.get $at) (i32.const 0) (local.get $count)))

  ;; The second access only if it is asked for.
  (func (export "maybe") (param $at i32) (param $is_wanted i32) (result i32)
    (local $sum i32)
    (local.set $sum (i32.load (local.get $at)))
    (if (local.get $is_wanted)
      (then (local.set $sum (i32.add (local.get $sum)
                                     (i32.load (i32.add (local.get $at) (i32.const 4)))))))
    (local.get $sum))

  ;; A loop of 16 turns, two at a time, that ends in the middle of the last pair: the sum of 15 words
  ;; from $at on.
  (func (export "sum_15") (param $at i32) (result i32)
    (local $i i32) (local $sum i32)
    (local.set $i (i32.const -56))
    (loop $next
      (local.set $sum (i32.add (local.get $sum)
        (i32.load (i32.add (i32.add (local.get $i) (local.get $at)) (i32.const 56)))))
      (if (i32.ne (local.get $i) (i32.const 0))
        (then
          (local.set $sum (i32.add (local.get $sum)
            (i32.load (i32.add (i32.add (local.get $i) (local.get $at)) (i32.const 60)))))
          (local.set $i (i32.add (local.get $i) (i32.const 8)))
          (br $next))))
    (local.get $sum))

  ;; An array of 16 words is written, read back and mixed with one that may overlap it.
  (func (export "mix") (param $a i32) (param $b i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $fill
      (i32.store (i32.add (local.get $a) (local.get $i)) (i32.mul (local.get $i) (i32.const 7)))
      (i32.store16 (i32.add (i32.add (local.get $b) (local.get $i)) (i32.const 1)) (local.get $i))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $fill (i32.lt_u (local.get $i) (i32.const 64))))
    (local.set $i (i32.const 0))
    (loop $read
      (local.set $sum (i32.add (i32.rotl (local.get $sum) (i32.const 5))
        (i32.load (i32.add (local.get $a) (local.get $i)))))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $read (i32.lt_u (local.get $i) (i32.const 64))))
    (local.get $sum))

  ;; Memory grows between two accesses that are near each other.
  (func (export "grow_between") (param $at i32) (result i32)
    (i32.store (local.get $at) (i32.const 9))
    (drop (memory.grow (i32.const 1)))
    (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 10))
    (i32.add (i32.load (local.get $at)) (i32.load (i32.add (local.get $at) (i32.const 4)))))
)

(invoke "store_4" (i32.const 65520))
(assert_return (invoke "load" (i32.const 65532)) (i32.const 4))
(invoke "clear" (i32.const 65520) (i32.const 16))
(assert_trap (invoke "store_4" (i32.const 65524)) "out of bounds memory access")
(assert_return (invoke "load" (i32.const 65524)) (i32.const 1))
(assert_return (invoke "load" (i32.const 65532)) (i32.const 3))
(assert_trap (invoke "store_4" (i32.const 65533)) "out of bounds memory access")
;; Sums wrap.
(invoke "clear" (i32.const 0) (i32.const 16))
(assert_trap (invoke "store_4" (i32.const -4)) "out of bounds memory access")
(assert_return (invoke "load" (i32.const 0)) (i32.const 0))
(invoke "store_below" (i32.const 8))
(assert_return (invoke "load" (i32.const 0)) (i32.const 7))
(invoke "clear" (i32.const 0) (i32.const 16))
(assert_trap (invoke "store_below" (i32.const 4)) "out of bounds memory access")
(assert_return (invoke "load" (i32.const 4)) (i32.const 5))
(assert_return (invoke "load" (i32.const 0)) (i32.const 6))
(assert_trap (invoke "store_below" (i32.const 0)) "out of bounds memory access")
(assert_return (invoke "load" (i32.const 0)) (i32.const 5))

(invoke "clear" (i32.const 65520) (i32.const 16))
(assert_return (invoke "maybe" (i32.const 65532) (i32.const 0)) (i32.const 0))
(assert_trap (invoke "maybe" (i32.const 65532) (i32.const 1)) "out of bounds memory access")
(assert_return (invoke "maybe" (i32.const 65528) (i32.const 1)) (i32.const 0))

(invoke "clear" (i32.const 65472) (i32.const 64))
(assert_return (invoke "sum_15" (i32.const 65476)) (i32.const 0))
(assert_trap (invoke "sum_15" (i32.const 65480)) "out of bounds memory access")

(assert_return (invoke "mix" (i32.const 1024) (i32.const 4096)) (i32.const -1103907494))
(assert_return (invoke "mix" (i32.const 1024) (i32.const 1024)) (i32.const -643503501))
(assert_return (invoke "mix" (i32.const 65472) (i32.const 1030)) (i32.const -1103907494))
(assert_trap (invoke "mix" (i32.const 65476) (i32.const 1030)) "out of bounds memory access")

(assert_return (invoke "grow_between" (i32.const 65532)) (i32.const 19))
