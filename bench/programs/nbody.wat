;; f64: n steps of gravity between four bodies, kept in memory. Returns the total kinetic energy
;; in units of 1e-12, so that the last bits of the arithmetic show.
(module
  (memory 1)
  ;; A body is 56 bytes: position x y z, velocity x y z, mass.
  (data (i32.const 0)
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\24\40"     ;; at rest in the middle, mass 10
    "\00\00\00\00\00\00\f0\3f\00\00\00\00\00\00\00\00\00\00\00\00\00\00\d0\3f"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\08\40\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\d0\3f"     ;; at (1, 0, 1/4), moving along y at 3, mass 1/4
    "\00\00\00\00\00\00\00\c0\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\c0\00\00\00\00\00\00\e0\3f"
    "\00\00\00\00\00\00\e0\3f"     ;; at (-2, 0, 0), moving at (0, -2, 1/2), mass 1/2
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\10\40\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\f8\3f\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\f0\3f")    ;; at (0, 4, 0), moving along x at 3/2, mass 1
  (global $end i32 (i32.const 224))
  (global $step f64 (f64.const 0.001))

  ;; velocity of $body += (x, y, z) * factor
  (func $push (param $body i32) (param $x f64) (param $y f64) (param $z f64) (param $factor f64)
    (f64.store offset=24 (local.get $body)
      (f64.add (f64.load offset=24 (local.get $body)) (f64.mul (local.get $x) (local.get $factor))))
    (f64.store offset=32 (local.get $body)
      (f64.add (f64.load offset=32 (local.get $body)) (f64.mul (local.get $y) (local.get $factor))))
    (f64.store offset=40 (local.get $body)
      (f64.add (f64.load offset=40 (local.get $body)) (f64.mul (local.get $z) (local.get $factor))))
  )

  (func $attract (param $a i32) (param $b i32)
    (local $x f64) (local $y f64) (local $z f64) (local $square f64) (local $pull f64)
    (local.set $x
      (f64.sub (f64.load (local.get $b)) (f64.load (local.get $a))))
    (local.set $y
      (f64.sub (f64.load offset=8 (local.get $b)) (f64.load offset=8 (local.get $a))))
    (local.set $z
      (f64.sub (f64.load offset=16 (local.get $b)) (f64.load offset=16 (local.get $a))))
    (local.set $square
      (f64.add
        (f64.mul (local.get $x) (local.get $x))
        (f64.add (f64.mul (local.get $y) (local.get $y)) (f64.mul (local.get $z) (local.get $z)))))
    (local.set $pull
      (f64.div (global.get $step)
        (f64.mul (local.get $square) (f64.sqrt (local.get $square)))))
    (call $push (local.get $a) (local.get $x) (local.get $y) (local.get $z)
      (f64.mul (local.get $pull) (f64.load offset=48 (local.get $b))))
    (call $push (local.get $b) (local.get $x) (local.get $y) (local.get $z)
      (f64.neg (f64.mul (local.get $pull) (f64.load offset=48 (local.get $a))))))

  ;; One coordinate of $body moves by its velocity, 24 bytes on.
  (func $drift (param $body i32)
    (f64.store (local.get $body)
      (f64.add (f64.load (local.get $body))
        (f64.mul (global.get $step) (f64.load offset=24 (local.get $body))))))

  ;; The square of one coordinate of a velocity.
  (func $square (param $address i32) (result f64)
    (f64.mul (f64.load offset=24 (local.get $address)) (f64.load offset=24 (local.get $address))))

  (func $energy (result f64)
    (local $body i32) (local $sum f64)
    (loop $bodies
      (local.set $sum
        (f64.add (local.get $sum)
          (f64.mul (f64.mul (f64.const 0.5) (f64.load offset=48 (local.get $body)))
            (f64.add
              (call $square (local.get $body))
              (f64.add
                (call $square (i32.add (local.get $body) (i32.const 8)))
                (call $square (i32.add (local.get $body) (i32.const 16))))))))
      (local.set $body (i32.add (local.get $body) (i32.const 56)))
      (br_if $bodies (i32.lt_u (local.get $body) (global.get $end))))
    (local.get $sum))

  (func $run (export "run") (param $n i32) (result i64)
    (local $a i32) (local $b i32)
    (loop $steps
      (local.set $a (i32.const 0))
      (loop $bodies
        (local.set $b (i32.add (local.get $a) (i32.const 56)))
        (block $paired
          (loop $pairs
            (br_if $paired (i32.ge_u (local.get $b) (global.get $end)))
            (call $attract (local.get $a) (local.get $b))
            (local.set $b (i32.add (local.get $b) (i32.const 56)))
            (br $pairs)))
        (call $drift (local.get $a))
        (call $drift (i32.add (local.get $a) (i32.const 8)))
        (call $drift (i32.add (local.get $a) (i32.const 16)))
        (local.set $a (i32.add (local.get $a) (i32.const 56)))
        (br_if $bodies (i32.lt_u (local.get $a) (global.get $end))))
      (br_if $steps (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i64.trunc_f64_s (f64.mul (call $energy) (f64.const 1e12))))

  (func (export "bench") (result i64)
    (call $run (i32.const 60000)))

  ;; For many processes: From 4 to 8 steps.
  (func (export "each") (param $id i32) (result i64)
    (call $run (i32.add (i32.const 4) (i32.rem_u (local.get $id) (i32.const 5))))))
