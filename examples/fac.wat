;; The factorial of a number, once with a loop and once by recursion.
(module
  (func (export "fac") (param $n i64) (result i64)
    (local $product i64)
    (local.set $product (i64.const 1))
    (block $done
      (loop $next
        (br_if $done (i64.le_u (local.get $n) (i64.const 1)))
        (local.set $product (i64.mul (local.get $product) (local.get $n)))
        (local.set $n (i64.sub (local.get $n) (i64.const 1)))
        (br $next)))
    (local.get $product))

  (func $fac_rec (export "fac_rec") (param $n i64) (result i64)
    (if (result i64) (i64.eqz (local.get $n))
      (then (i64.const 1))
      (else
        (i64.mul (local.get $n)
          (call $fac_rec (i64.sub (local.get $n) (i64.const 1))))))))
