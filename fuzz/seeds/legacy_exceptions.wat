;; Exceptions as compilers emitted them before try_table: try, catch, rethrow, delegate.
(module
  (tag $number (param i32))

  (func $raise (param i32)
    (throw $number (local.get 0)))

  (func $caught (param i32) (result i32)
    (try (result i32)
      (do (call $raise (local.get 0)) (i32.const -1))
      (catch $number (i32.add (i32.const 1)))
      (catch_all (i32.const -2))))

  (func $rethrown (result i32)
    (try (result i32)
      (do
        (try $inner
          (do (call $raise (i32.const 6)))
          (catch_all (rethrow $inner)))
        (i32.const 0))
      (catch $number)))

  (func $delegated (result i32)
    (try $outer (result i32)
      (do
        (try
          (do (call $raise (i32.const 7)))
          (delegate $outer))
        (i32.const 0))
      (catch $number)))

  (func (export "run") (result i32)
    (i32.add (call $caught (i32.const 4))
      (i32.add (call $rethrown) (call $delegated)))))
