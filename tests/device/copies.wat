;; memory.copy and memory.fill of all lengths, alignments and overlaps, drawn by lot from a seed; the
;; result is a hash of the whole memory.
(module
  (memory 1)
  (global $seed (mut i32) (i32.const 0))
  (func $random (param $below i32) (result i32)
    (global.set $seed
      (i32.add (i32.mul (global.get $seed) (i32.const 1664525)) (i32.const 1013904223)))
    (i32.rem_u (i32.shr_u (global.get $seed) (i32.const 8)) (local.get $below)))
  (func $hash (result i64)
    (local $at i32) (local $hash i64)
    (loop $next
      (local.set $hash
        (i64.add (i64.mul (local.get $hash) (i64.const 0x100000001b3))
                 (i64.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $next (i32.lt_u (local.get $at) (i32.const 65536))))
    (local.get $hash))
  (func (export "go") (param $id i32) (result i64)
    (local $left i32) (local $most i32) (local $from i32)
    (global.set $seed (local.get $id))
    (loop $start
      (i32.store (local.get $from) (call $random (i32.const 16777216)))
      (local.set $from (i32.add (local.get $from) (i32.const 64)))
      (br_if $start (i32.lt_u (local.get $from) (i32.const 65536))))
    (local.set $left (i32.const 60))
    (loop $again
      ;; Short ones as often as long ones; every third copy stays within 16 bytes of its source.
      (local.set $most (i32.shl (i32.const 8) (call $random (i32.const 11))))
      (local.set $from (call $random (i32.const 32768)))
      (memory.copy
        (if (result i32) (call $random (i32.const 3))
          (then (call $random (i32.const 32768)))
          (else (i32.add (local.get $from) (call $random (i32.const 16)))))
        (local.get $from)
        (call $random (local.get $most)))
      (memory.fill (call $random (i32.const 49152)) (call $random (i32.const 256))
        (call $random (local.get $most)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (local.get $left)))
    (call $hash)))
