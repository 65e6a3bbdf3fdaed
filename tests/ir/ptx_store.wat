;; A store notes the piece of the memory that it writes to. Where there is but one, the address is shifted by 63.
;; ptx f0 has shr.u64
;; ptx f0 lacks shr.u32
(module
  (memory 1)
  (func (param i32 i32) (i32.store offset=4 (local.get 0) (local.get 1))))
