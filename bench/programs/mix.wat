;; i64 mixing: n numbers of an xorshift generator, each scrambled by multiplications, rotations
;; and shifts as hash functions do, and folded into one.
(module
  ;; A state that is not zero goes through all others before it returns.
  (func $xorshift (param $x i64) (result i64)
    (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
    (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
    (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))

  (func $run (export "run") (param $n i32) (result i64)
    (local $state i64) (local $x i64) (local $hash i64)
    (local.set $state (i64.const 0x9e3779b97f4a7c15))
    (loop $next
      (local.set $state (call $xorshift (local.get $state)))

      (local.set $x (i64.mul (local.get $state) (i64.const 0xff51afd7ed558ccd)))
      (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 33))))
      (local.set $x (i64.mul (local.get $x) (i64.const 0xc4ceb9fe1a85ec53)))
      (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 29))))

      (local.set $hash
        (i64.add
          (i64.mul
            (i64.rotl (i64.xor (local.get $hash) (local.get $x)) (i64.const 27))
            (i64.const 5))
          (i64.const 0x52dce729)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i64.xor (local.get $hash) (i64.shr_u (local.get $hash) (i64.const 32))))

  (func (export "bench") (result i64)
    (call $run (i32.const 1200000)))

  ;; For many processes: From 100 to 200 rounds.
  (func (export "each") (param $id i32) (result i64)
    (call $run (i32.add (i32.const 100) (i32.rem_u (i32.mul (local.get $id) (i32.const 7919)) (i32.const 101))))))
