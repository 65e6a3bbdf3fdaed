;; A loop that calls nothing: what it is made of is inlined, and nothing of it is in local memory. The way
;; out is the only call.
;; ptx f0 calls native_left
;; ptx f0 lacks ld.local
;; ptx f0 has ld.global.b32
(module
  (memory 1)
  (func (param $at i32) (param $end i32) (result i32) (local $sum i32)
    (loop $next
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
    (local.get $sum)))
