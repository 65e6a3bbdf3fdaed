;; Exceptions: try_table and its four kinds of handlers.
(module
  (tag $number (param i32))
  (tag $empty)

  (func $raise (param i32)
    (if (local.get 0) (then (throw $number (local.get 0))))
    (throw $empty))

  (func $caught (param i32) (result i32)
    (block $on_number (result i32)
      (block $on_empty
        (try_table (catch $number $on_number) (catch $empty $on_empty)
          (call $raise (local.get 0)))
        (return (i32.const -1)))
      (return (i32.const 0))))

  ;; Throws again what it caught.
  (func $again
    (block $handler (result exnref)
      (try_table (catch_all_ref $handler) (call $raise (i32.const 3)))
      (unreachable))
    (throw_ref))

  (func (export "run") (result i32)
    (block $all
      (try_table (catch_all $all) (call $again))
      (unreachable))
    (block $reference (result i32 exnref)
      (try_table (catch_ref $number $reference) (call $again))
      (unreachable))
    (drop)
    (i32.add (call $caught (i32.const 5)))
    (i32.add (call $caught (i32.const 0)))))
