;; Nested loops over memory: the product of two n by n matrices of i32, n at most 144. Returns
;; the exclusive or of all elements of the product.
(module
  (memory 4)
  (global $a i32 (i32.const 0))       ;; rows of the left matrix
  (global $b i32 (i32.const 82944))   ;; of the right one
  (global $c i32 (i32.const 165888))   ;; of their product

  ;; a[i] = 7 i + 3, b[i] = 5 i ^ 11
  (func $fill (param $count i32)
    (local $i i32)
    (loop $next
      (i32.store (i32.add (global.get $a) (i32.shl (local.get $i) (i32.const 2)))
        (i32.add (i32.mul (local.get $i) (i32.const 7)) (i32.const 3)))
      (i32.store (i32.add (global.get $b) (i32.shl (local.get $i) (i32.const 2)))
        (i32.xor (i32.mul (local.get $i) (i32.const 5)) (i32.const 11)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $count)))))

  (func $run (export "run") (param $n i32) (result i32)
    (local $row i32) (local $column i32) (local $k i32) (local $stride i32)
    (local $left i32) (local $right i32) (local $sum i32) (local $out i32) (local $check i32)
    (call $fill (i32.mul (local.get $n) (local.get $n)))
    (local.set $stride (i32.shl (local.get $n) (i32.const 2)))
    (local.set $out (global.get $c))
    (loop $rows
      (local.set $column (i32.const 0))
      (loop $columns
        (local.set $left
          (i32.add (global.get $a) (i32.mul (local.get $row) (local.get $stride))))
        (local.set $right
          (i32.add (global.get $b) (i32.shl (local.get $column) (i32.const 2))))
        (local.set $sum (i32.const 0))
        (local.set $k (local.get $n))
        (loop $products
          (local.set $sum
            (i32.add (local.get $sum)
              (i32.mul (i32.load (local.get $left)) (i32.load (local.get $right)))))
          (local.set $left (i32.add (local.get $left) (i32.const 4)))
          (local.set $right (i32.add (local.get $right) (local.get $stride)))
          (br_if $products (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
        (i32.store (local.get $out) (local.get $sum))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $check (i32.xor (local.get $check) (local.get $sum)))
        (local.set $column (i32.add (local.get $column) (i32.const 1)))
        (br_if $columns (i32.lt_u (local.get $column) (local.get $n))))
      (local.set $row (i32.add (local.get $row) (i32.const 1)))
      (br_if $rows (i32.lt_u (local.get $row) (local.get $n))))
    (local.get $check))

  (func (export "bench") (result i32)
    (call $run (i32.const 144)))

  ;; For many processes: Matrices of 8 to 16 rows.
  (func (export "each") (param $id i32) (result i32)
    (call $run (i32.add (i32.const 8) (i32.rem_u (local.get $id) (i32.const 9))))))
