;; Division by what may be zero, or overflow, asks first.
;; show f0 on on2
;; show f1 on on2
(module
  (func (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func (param i64 i64) (result i64) (i64.rem_u (local.get 0) (local.get 1))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, i32 %1) {
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = load i32, ptr %slot0_32
;;   %5 = load i32, ptr %slot1_32
;;   %6 = call i1 @native_i32_div_s_traps(i32 %4, i32 %5)
;;   br i1 %6, label %leave1, label %on2  ; rarely
;; on2:
;;   %7 = call i32 @native_i32_div_s(i32 %4, i32 %5)
;;   store i32 %7, ptr %slot2_32
;;   %8 = load i32, ptr %slot2_32
;;   %9 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %9)
;;   %10 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %8, 1
;;   ret { i32, i32 } %10
;; }
;; define internal { i32, i64 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i64 %0, i64 %1) {
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = load i64, ptr %slot0_64
;;   %5 = load i64, ptr %slot2_64
;;   %6 = call i1 @native_i64_rem_u_traps(i64 %4, i64 %5)
;;   br i1 %6, label %leave1, label %on2  ; rarely
;; on2:
;;   %7 = call i64 @native_i64_rem_u(i64 %4, i64 %5)
;;   store i64 %7, ptr %slot4_64
;;   %8 = load i64, ptr %slot4_64
;;   %9 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %9)
;;   %10 = insertvalue { i32, i64 } { i32 0, i64 poison }, i64 %8, 1
;;   ret { i32, i64 } %10
;; }
