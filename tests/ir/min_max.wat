;; Minimum and maximum: one function of the runtime each, which knows NaN and the zeros.
;; show f0 on
(module
  (func (param f64 f64 f32 f32) (result f32)
    (f32.max (f32.demote_f64 (f64.min (local.get 0) (local.get 1)))
             (f32.min (local.get 2) (local.get 3)))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i64 %0, i64 %1, i32 %2, i32 %3) {
;; on:
;;   %4 = call i64 @native_after_call(i64 %5)
;;   call void @native_set_quantum(ptr %context, i64 %4)
;;   %6 = load i64, ptr %slot0_64
;;   %7 = load i64, ptr %slot2_64
;;   %8 = bitcast i64 %6 to double
;;   %9 = bitcast i64 %7 to double
;;   %10 = call double @native_f64_min(double %8, double %9)
;;   %11 = bitcast double %10 to i64
;;   store i64 %11, ptr %slot6_64
;;   %12 = load i64, ptr %slot6_64
;;   %13 = bitcast i64 %12 to double
;;   %14 = call float @native_f32_demote_f64(double %13)
;;   %15 = bitcast float %14 to i32
;;   store i32 %15, ptr %slot6_32
;;   %16 = load i32, ptr %slot4_32
;;   %17 = load i32, ptr %slot5_32
;;   %18 = bitcast i32 %16 to float
;;   %19 = bitcast i32 %17 to float
;;   %20 = call float @native_f32_min(float %18, float %19)
;;   %21 = bitcast float %20 to i32
;;   store i32 %21, ptr %slot7_32
;;   %22 = load i32, ptr %slot6_32
;;   %23 = load i32, ptr %slot7_32
;;   %24 = bitcast i32 %22 to float
;;   %25 = bitcast i32 %23 to float
;;   %26 = call float @native_f32_max(float %24, float %25)
;;   %27 = bitcast float %26 to i32
;;   store i32 %27, ptr %slot6_32
;;   %28 = load i32, ptr %slot6_32
;;   %29 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %29)
;;   %30 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %28, 1
;;   ret { i32, i32 } %30
;; }
