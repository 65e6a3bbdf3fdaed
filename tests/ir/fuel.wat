;; metered
;; A block that costs fuel takes it from the context, and leaves if there is too little.
;; show f0 on on2
(module
  (func (param i32) (result i32) (i32.mul (local.get 0) (i32.add (local.get 0) (i32.const 3)))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = call i1 @native_charge(ptr %context, i32 5)
;;   %4 = xor i1 %3, true
;;   br i1 %4, label %leave1, label %on2  ; rarely
;; on2:
;;   %5 = load i32, ptr %slot0_32
;;   %6 = call i32 @native_i32_add(i32 %5, i32 3)
;;   store i32 %6, ptr %slot2_32
;;   %7 = load i32, ptr %slot0_32
;;   %8 = load i32, ptr %slot2_32
;;   %9 = call i32 @native_i32_mul(i32 %7, i32 %8)
;;   store i32 %9, ptr %slot1_32
;;   %10 = load i32, ptr %slot1_32
;;   %11 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %11)
;;   %12 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %10, 1
;;   ret { i32, i32 } %12
;; }
