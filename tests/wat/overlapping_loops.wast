;; A loop that begins within another, and goes back once more after the other's last way back; within
;; both there are loops at which a process may go on.
(module
  (func (export "go") (param $turns i32) (result i32) (local $outer i32) (local $inner i32) (local $sum i32) (local $i i32)
    (loop $a
      (local.set $outer (i32.add (local.get $outer) (i32.const 1)))
      (loop $b
        (local.set $inner (i32.add (local.get $inner) (i32.const 1)))
        (local.set $i (i32.const 3))
        (loop $in_both
          (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (local.get $i)))
          (br_if $in_both (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (br_if $a (i32.lt_u (i32.rem_u (local.get $sum) (i32.const 7)) (i32.const 2)))
        (local.set $i (i32.const 2))
        (loop $in_b
          (local.set $sum (i32.xor (local.get $sum) (i32.shl (local.get $outer) (local.get $i))))
          (br_if $in_b (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (br_if $b (i32.lt_u (local.get $inner) (local.get $turns)))))
    (i32.add (local.get $sum) (i32.mul (local.get $outer) (i32.const 1000003)))))
(assert_return (invoke "go" (i32.const 1)) (i32.const 1000039))
(assert_return (invoke "go" (i32.const 5)) (i32.const 21709072))
(assert_return (invoke "go" (i32.const 100)) (i32.const 348556220))
