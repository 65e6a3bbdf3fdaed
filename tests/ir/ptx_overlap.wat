;; Memory has no types: a store of one width may change what a load of another reads, so the load stays.
;; ptx f0 has st.global.b64 ld.global.b32
;; ptx f1 has st.global.b32 ld.global.b64
;; ptx f2 has st.global.b32 ld.global.b64
(module
  (memory 1)
  (func (param $p i32) (param $q i32) (result i32)
    (i32.store (local.get $p) (i32.const 1))
    (i64.store (local.get $q) (i64.const 2))
    (i32.load (local.get $p)))
  (func (param $p i32) (param $q i32) (result f64)
    (f64.store (local.get $p) (f64.const 1))
    (i32.store (local.get $q) (i32.const 2))
    (f64.load (local.get $p)))
  (func (param $p i32) (param $q i32) (result i64)
    (i64.store (local.get $p) (i64.const 1))
    (f32.store (local.get $q) (f32.const 2))
    (i64.load (local.get $p))))
