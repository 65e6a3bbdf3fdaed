;; Every result is rounded: nothing is contracted, no denormal is flushed, nothing is approximate.
;; ptx f0 calls native_left
;; ptx f0 has mul.rn.f64 add.rn.f64 sqrt.rn.f64 div.rn.f64
;; ptx f0 lacks fma .ftz .approx
;; ptx f1 calls native_left
;; ptx f1 has mul.rn.f32 sub.rn.f32 div.rn.f32
;; ptx f1 lacks fma .ftz .approx .full
(module
  (func (param f64 f64 f64) (result f64)
    (f64.div (f64.add (f64.mul (local.get 0) (local.get 1)) (local.get 2)) (f64.sqrt (local.get 0))))
  (func (param f32 f32 f32) (result f32)
    (f32.div (f32.sub (f32.mul (local.get 0) (local.get 1)) (local.get 2)) (local.get 1))))
