;; Recursive calls: the n-th Fibonacci number, the slow way. Nearly all of the time is calls,
;; returns and the comparison between them.
(module
  (func $fib (export "run") (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2))
      (then (local.get $n))
      (else
        (i32.add
          (call $fib (i32.sub (local.get $n) (i32.const 1)))
          (call $fib (i32.sub (local.get $n) (i32.const 2)))))))

  (func (export "bench") (result i32)
    (call $fib (i32.const 31)))

  ;; For many processes: Recursion as deep as the process number says: 10 to 16.
  (func (export "each") (param $id i32) (result i32)
    (call $fib (i32.add (i32.const 10) (i32.rem_u (local.get $id) (i32.const 7))))))
