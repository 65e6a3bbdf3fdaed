;; Atomics of guests are seen by all lanes of the device, in one order, and by nobody outside it.
;; ptx f0 calls native_left
;; ptx f0 has atom .gpu
;; ptx f0 lacks .sys .cta
;; ptx f1 has fence.sc.gpu
;; ptx f1 lacks .sys .cta
(module
  (memory 1 1 shared)
  (func (param i32 i32) (result i32) (i32.atomic.rmw.add (local.get 0) (local.get 1)))
  (func (param i32) (result i64) (i64.atomic.load (local.get 0))))
