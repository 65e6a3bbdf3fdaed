;; memory.copy and memory.fill of few bytes, which machine code does by itself: every alignment of both
;; ends, overlapping either way, up to the end of memory and beyond it.

(module
  (memory 1)
  (global $mistakes (mut i32) (i32.const 0))

  ;; What byte i of the memory is at first.
  (func $pattern (param $i i32) (result i32)
    (i32.and (i32.add (i32.mul (local.get $i) (i32.const 37)) (i32.const 11)) (i32.const 255)))

  (func $prepare (local $i i32)
    (loop $next
      (i32.store8 (local.get $i) (call $pattern (local.get $i)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1024)))))

  ;; Counts the bytes below 1024 that are not as after a copy of `count` from `from` to `to`, or after a fill
  ;; with -1 if `from` is negative.
  (func $verify (param $to i32) (param $from i32) (param $count i32) (local $i i32) (local $wanted i32)
    (loop $next
      (local.set $wanted (call $pattern (local.get $i)))
      (if (i32.lt_u (i32.sub (local.get $i) (local.get $to)) (local.get $count))
        (then
          (local.set $wanted
            (if (result i32) (i32.lt_s (local.get $from) (i32.const 0))
              (then (i32.const 255))
              (else (call $pattern
                (i32.add (local.get $from) (i32.sub (local.get $i) (local.get $to)))))))))
      (if (i32.ne (i32.load8_u (local.get $i)) (local.get $wanted))
        (then (global.set $mistakes (i32.add (global.get $mistakes) (i32.const 1)))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1024)))))

  ;; All alignments of both ends, at distances from -9 to 9, by `count` bytes.
  (func (export "copies") (param $count i32) (result i32) (local $to i32) (local $from i32)
    (global.set $mistakes (i32.const 0))
    (local.set $to (i32.const 400))
    (loop $next_to
      (local.set $from (i32.sub (local.get $to) (i32.const 9)))
      (loop $next_from
        (call $prepare)
        (memory.copy (local.get $to) (local.get $from) (local.get $count))
        (call $verify (local.get $to) (local.get $from) (local.get $count))
        (br_if $next_from (i32.le_u (local.tee $from (i32.add (local.get $from) (i32.const 1)))
                                    (i32.add (local.get $to) (i32.const 9)))))
      (br_if $next_to (i32.lt_u (local.tee $to (i32.add (local.get $to) (i32.const 1))) (i32.const 404))))
    (global.get $mistakes))

  (func (export "fills") (param $count i32) (result i32) (local $to i32)
    (global.set $mistakes (i32.const 0))
    (local.set $to (i32.const 400))
    (loop $next
      (call $prepare)
      (memory.fill (local.get $to) (i32.const -1) (local.get $count))
      (call $verify (local.get $to) (i32.const -1) (local.get $count))
      (br_if $next (i32.lt_u (local.tee $to (i32.add (local.get $to) (i32.const 1))) (i32.const 404))))
    (global.get $mistakes))

  (func (export "copy") (param $to i32) (param $from i32) (param $count i32)
    (memory.copy (local.get $to) (local.get $from) (local.get $count)))
  (func (export "fill") (param $to i32) (param $value i32) (param $count i32)
    (memory.fill (local.get $to) (local.get $value) (local.get $count)))
  (func (export "load") (param $at i32) (result i32) (i32.load8_u (local.get $at))))

(assert_return (invoke "copies" (i32.const 0)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 0)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 1)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 1)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 2)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 2)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 3)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 3)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 4)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 4)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 5)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 5)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 7)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 7)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 8)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 8)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 9)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 9)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 15)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 15)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 16)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 16)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 17)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 17)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 31)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 31)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 255)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 255)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 256)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 256)) (i32.const 0))
(assert_return (invoke "copies" (i32.const 257)) (i32.const 0))
(assert_return (invoke "fills" (i32.const 257)) (i32.const 0))

;; Up to the end of memory, and beyond: a trap writes nothing.
(assert_return (invoke "fill" (i32.const 65530) (i32.const 7) (i32.const 6)))
(assert_return (invoke "load" (i32.const 65535)) (i32.const 7))
(assert_return (invoke "copy" (i32.const 65532) (i32.const 65530) (i32.const 4)))
(assert_return (invoke "copy" (i32.const 65536) (i32.const 65536) (i32.const 0)))
(assert_return (invoke "fill" (i32.const 65536) (i32.const 1) (i32.const 0)))
(assert_trap (invoke "fill" (i32.const 65530) (i32.const 9) (i32.const 7)) "out of bounds memory access")
(assert_return (invoke "load" (i32.const 65535)) (i32.const 7))
(assert_trap (invoke "copy" (i32.const 0) (i32.const 65530) (i32.const 7)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const 65537) (i32.const 0) (i32.const 0)) "out of bounds memory access")
(assert_trap (invoke "fill" (i32.const -1) (i32.const 1) (i32.const 2)) "out of bounds memory access")
(assert_trap (invoke "copy" (i32.const -4) (i32.const -4) (i32.const 8)) "out of bounds memory access")
