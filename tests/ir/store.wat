;; A store notes what it made dirty in a variable, which goes to the context where the function ends.
;; show f0 on on2
(module
  (memory 1)
  (func (param i32 i64) (i64.store16 (local.get 0) (local.get 1))))

;; ---- IR
;; define internal { i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, i64 %1) {
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = load i32, ptr %slot0_32
;;   %5 = load i64, ptr %memory_size
;;   %6 = call i1 @gpurun_is_outside(i64 %5, i32 %4, i64 2)
;;   br i1 %6, label %leave1, label %on2  ; rarely
;; on2:
;;   %7 = call i32 @native_dirty(i32 %8, i32 %4, i64 0)
;;   %9 = load i32, ptr %dirty
;;   %10 = or i32 %9, %7
;;   store i32 %10, ptr %dirty
;;   %11 = load ptr, ptr %memory
;;   %12 = load i64, ptr %slot1_64
;;   call void @native_i64_store16(ptr %11, i32 %4, i32 0, i64 %12)
;;   %13 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %13)
;;   ret { i32 } zeroinitializer
;; }
