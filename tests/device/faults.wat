;; What may go wrong in one of many processes, by its number. scripts/gpu-check knows the answers.
(module
  (memory 1 4)
  (func $deeper (param $n i32) (result i32)
    (i32.add (call $deeper (i32.add (local.get $n) (i32.const 1))) (i32.const 1)))

  (func (export "go") (param $id i32) (result i32)
    (local $sum i32)
    ;; every tenth traps
    (if (i32.eqz (i32.rem_u (local.get $id) (i32.const 10))) (then unreachable))
    ;; every seventh returns early
    (if (i32.eqz (i32.rem_u (local.get $id) (i32.const 7))) (then (return (i32.const -1))))
    ;; some exhaust the stack
    (if (i32.eq (i32.rem_u (local.get $id) (i32.const 101)) (i32.const 1))
      (then (return (call $deeper (i32.const 0)))))
    ;; some exhaust their memory, then go beyond it
    (if (i32.eq (i32.rem_u (local.get $id) (i32.const 103)) (i32.const 2))
      (then
        (loop $grow (br_if $grow (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (i32.store (i32.shl (memory.size) (i32.const 16)) (local.get $id))))
    ;; some never end
    (if (i32.eq (i32.rem_u (local.get $id) (i32.const 1009)) (i32.const 3))
      (then (loop $for_ever (br $for_ever))))
    ;; the others add up the numbers from their own down to 1, by way of memory
    (loop $next
      (i32.store (i32.const 1000) (i32.add (i32.load (i32.const 1000)) (local.get $id)))
      (br_if $next (local.tee $id (i32.sub (local.get $id) (i32.const 1)))))
    (i32.load (i32.const 1000))))
