;; Conversions that may trap ask first; those that saturate are functions without branches here. Bits are
;; kept as integers.
;; show f0 on on2
;; show f1 on
;; show f2 on
(module
  (func (param f64) (result i32) (i32.trunc_f64_u (local.get 0)))
  (func (param f32) (result i64) (i64.trunc_sat_f32_s (local.get 0)))
  (func (param f64) (result i64) (i64.reinterpret_f64 (f64.promote_f32 (f32.demote_f64 (local.get 0))))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i64 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i64, ptr %slot0_64
;;   %4 = bitcast i64 %3 to double
;;   %5 = call i1 @native_i32_trunc_f64_u_traps(double %4)
;;   br i1 %5, label %leave1, label %on2  ; rarely
;; on2:
;;   %6 = bitcast i64 %3 to double
;;   %7 = call i32 @native_i32_trunc_f64_u(double %6)
;;   store i32 %7, ptr %slot2_32
;;   %8 = load i32, ptr %slot2_32
;;   %9 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %9)
;;   %10 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %8, 1
;;   ret { i32, i32 } %10
;; }
;; define internal { i32, i64 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   %4 = bitcast i32 %3 to float
;;   %5 = call i64 @native_i64_trunc_sat_f32_s(float %4)
;;   store i64 %5, ptr %slot1_64
;;   %6 = load i64, ptr %slot1_64
;;   %7 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %7)
;;   %8 = insertvalue { i32, i64 } { i32 0, i64 poison }, i64 %6, 1
;;   ret { i32, i64 } %8
;; }
;; define internal { i32, i64 } @f2(ptr noalias %context, ptr %fp, ptr %rp, i64 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i64, ptr %slot0_64
;;   %4 = bitcast i64 %3 to double
;;   %5 = call float @native_f32_demote_f64(double %4)
;;   %6 = bitcast float %5 to i32
;;   store i32 %6, ptr %slot2_32
;;   %7 = load i32, ptr %slot2_32
;;   %8 = bitcast i32 %7 to float
;;   %9 = call double @native_f64_promote_f32(float %8)
;;   %10 = bitcast double %9 to i64
;;   store i64 %10, ptr %slot2_64
;;   %11 = load i64, ptr %slot2_64
;;   %12 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %12)
;;   %13 = insertvalue { i32, i64 } { i32 0, i64 poison }, i64 %11, 1
;;   ret { i32, i64 } %13
;; }
