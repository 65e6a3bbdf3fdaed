;; What is imported is called by the runtime, in the frame; and may be come back from by the loop of
;; the thread, if it blocked.
;; show f1 on on1
;; show r1 resume block
(module
  (import "m" "f" (func (param i32) (result i32)))
  (func (param i32) (result i32) (call 0 (local.get 0))))

;; ---- IR
;; define internal { i32, i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = call i32 @native_import(ptr %context, i32 2)
;;   %5 = load i32, ptr %slot1_32
;;   call void @native_set_32(ptr %fp, i32 1, i32 %5)
;;   %6 = call i32 @native_call(ptr %context, ptr %fp, ptr %rp, i32 %4, i32 1, i32 3)
;;   %7 = icmp ne i32 %6, 0
;;   br i1 %7, label %left, label %on1  ; rarely
;; on1:
;;   %8 = call ptr @native_memory(ptr %context)
;;   store ptr %8, ptr %memory
;;   %9 = call i64 @native_memory_size(ptr %context)
;;   store i64 %9, ptr %memory_size
;;   %10 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %10, ptr %slot1_32
;;   br label %block2
;; }
;; define internal { i32, i32 } @r1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
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
;; }
