;; Threads of a script that share a memory: each waits until the other wakes it, whichever of
;; them happens to go first.
(module $Memory (memory (export "shared") 1 1 shared))

(thread $First (shared (module $Memory))
  (register "mem" $Memory)
  (module
    (memory (import "mem" "shared") 1 1 shared)
    ;; says at 8 that it is about to wait at 0, and waits
    (func (export "wait") (result i32)
      (i32.atomic.store (i32.const 8) (i32.const 1))
      (drop (memory.atomic.notify (i32.const 8) (i32.const 1)))
      (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))
    (func (export "value") (result i32) (i32.atomic.load (i32.const 4))))
  (assert_return (invoke "wait") (i32.const 0))
  (assert_return (invoke "value") (i32.const 42)))

(thread $Second (shared (module $Memory))
  (register "mem" $Memory)
  (module
    (memory (import "mem" "shared") 1 1 shared)
    (func (export "wait_for_first") (result i32)
      (memory.atomic.wait32 (i32.const 8) (i32.const 0) (i64.const -1)))
    (func (export "wake") (result i32)
      (i32.atomic.store (i32.const 4) (i32.const 42))
      (memory.atomic.notify (i32.const 0) (i32.const 1))))
  (assert_return (invoke "wait_for_first") (either (i32.const 0) (i32.const 1)))
  (assert_return (invoke "wake") (i32.const 1)))

(wait $First)
(wait $Second)

;; What a thread does not share it does not see.
(module $Own (func (export "f") (result i32) (i32.const 7)))
(thread $Other
  (module (func (export "g") (result i32) (i32.const 8)))
  (assert_return (invoke "g") (i32.const 8)))
(wait $Other)
(assert_return (invoke "f") (i32.const 7))
