;; An access of memory 0 compares its address with the size that the function keeps, and leaves if it
;; is outside: the interpreter finds the trap. The size is read again after what may change it.
;; show f0 on on2 leave1 left
(module
  (memory 1)
  (func (param i32) (result i32) (i32.load offset=4 (local.get 0))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   %4 = load i64, ptr %memory_size
;;   %5 = call i1 @gpurun_is_outside(i64 %4, i32 %3, i64 8)
;;   br i1 %5, label %leave1, label %on2  ; rarely
;; leave1:
;;   %6 = load i32, ptr %slot0_32
;;   %7 = load i32, ptr %dirty
;;   call void @gpurun_leave(i32 1, ptr %fp, i32 -1) [ "deopt"(i32 1, i32 %6) ]
;;   br label %left
;; on2:
;;   %8 = load ptr, ptr %memory
;;   %9 = call i32 @native_i32_load(ptr %8, i32 %3, i32 4)
;;   store i32 %9, ptr %slot1_32
;;   %10 = load i32, ptr %slot1_32
;;   %11 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %11)
;;   %12 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %10, 1
;;   ret { i32, i32 } %12
;; left:
;;   %13 = phi i32 [ %14, %leave ], [ 2097153, %leave1 ]
;;   %15 = phi i32 [ %16, %leave ], [ %7, %leave1 ]
;;   %17 = call i32 @native_left(ptr %context, ptr %fp, ptr %rp, i32 0, i32 %13, i32 %15)
;;   %18 = insertvalue { i32, i32 } poison, i32 %17, 0
;;   ret { i32, i32 } %18
;; }
