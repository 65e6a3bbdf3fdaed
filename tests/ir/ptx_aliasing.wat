;; Two addresses may be the same, whatever the types and widths of what is accessed there: what a load finds is
;; what the newest store left, of which this function need not know the place.
;; ptx f0 has st.global.b32 st.global.b64 ld.global.b32
;; ptx f1 has st.global.b64 st.global.b16 ld.global.b64
;; ptx f1 lacks ld.global.nc
(module
  (memory 1)
  (func (param $p i32) (param $q i32) (result i32)
    (i32.store (local.get $p) (i32.const 1))
    (i64.store (local.get $q) (i64.const 2))
    (i32.load (local.get $p)))
  (func (param $p i32) (param $q i32) (result i64)
    (i64.store (local.get $p) (i64.const 1))
    (i32.store16 (local.get $q) (i32.const 2))
    (i64.load (local.get $p))))
