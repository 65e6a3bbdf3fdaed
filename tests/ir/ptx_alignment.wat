;; What says that it is aligned is one access, of which the address is checked; what says less is put together
;; from the words around it, or written byte by byte.
;; ptx f0 lacks prmt
;; ptx f0 lacks ld.global.b8
;; ptx f0 has ld.global.b32
;; ptx f0 calls native_left
;; ptx f1 has prmt
;; ptx f1 calls native_left
;; ptx f2 lacks st.global.b8
;; ptx f3 has st.global.b8
(module
  (memory 1)
  (func (param i32) (result i32) (i32.load offset=4 (local.get 0)))
  (func (param i32) (result i32) (i32.load align=1 (local.get 0)))
  (func (param i32 i64) (i64.store (local.get 0) (local.get 1)))
  (func (param i32 i64) (i64.store align=4 (local.get 0) (local.get 1))))
