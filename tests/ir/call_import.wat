;; What is imported is called by the runtime, in the frame; and may be come back from by the loop of
;; the thread, if it blocked.
;; show f1 on on2 resume block
(module
  (import "m" "f" (func (param i32) (result i32)))
  (func (param i32) (result i32) (call 0 (local.get 0))))

;; ---- IR
;; define internal { i32, i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; resume:
;;   %1 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %1, ptr %slot1_32
;;   br label %block
;; block:
;;   %2 = load i32, ptr %slot1_32
;;   %3 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %3)
;;   %4 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %2, 1
;;   ret { i32, i32 } %4
;; on:
;;   %5 = call i64 @native_after_call(i64 %6)
;;   call void @native_set_quantum(ptr %context, i64 %5)
;;   %7 = load i32, ptr %slot0_32
;;   store i32 %7, ptr %slot1_32
;;   %8 = call i32 @native_import(ptr %context, i32 2)
;;   %9 = load i32, ptr %slot1_32
;;   call void @native_set_32(ptr %fp, i32 1, i32 %9)
;;   %10 = call i32 @native_call(ptr %context, ptr %fp, ptr %rp, i32 %8, i32 1, i32 3)
;;   %11 = icmp ne i32 %10, 0
;;   br i1 %11, label %left, label %on2  ; rarely
;; on2:
;;   %12 = call ptr @native_memory(ptr %context)
;;   store ptr %12, ptr %memory
;;   %13 = call i64 @native_memory_size(ptr %context)
;;   store i64 %13, ptr %memory_size
;;   %14 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %14, ptr %slot1_32
;;   br label %block
;; }
