;; What is imported is called by the runtime, in the frame.
;; show f1 on on1
(module
  (import "m" "f" (func (param i32) (result i32)))
  (func (param i32) (result i32) (call 0 (local.get 0))))

;; ---- IR
;; define hidden { i32, i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   store i64 %1, ptr %quantum
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = call i32 @native_import(ptr %context, i32 2)
;;   %5 = load i32, ptr %slot1_32
;;   call void @native_set_32(ptr %fp, i32 1, i32 %5)
;;   %6 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %6)
;;   %7 = call i32 @native_call(ptr %context, ptr %fp, ptr %rp, i32 %4, i32 1, i32 3)
;;   %8 = call i64 @native_quantum(ptr %context)
;;   store i64 %8, ptr %quantum
;;   %9 = icmp ne i32 %7, 0
;;   br i1 %9, label %left, label %on1  ; rarely
;; on1:
;;   %10 = call ptr @native_memory(ptr %context)
;;   store ptr %10, ptr %memory
;;   %11 = call i64 @native_memory_size(ptr %context)
;;   store i64 %11, ptr %memory_size
;;   %12 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %12, ptr %slot1_32
;;   %13 = load i32, ptr %slot1_32
;;   %14 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %14)
;;   %15 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %15)
;;   %16 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %13, 1
;;   ret { i32, i32 } %16
;; }
