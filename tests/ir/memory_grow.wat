;; memory.grow is done by the interpreter's function, in the frame; then the memory is read again.
;; show f0 on on2
(module
  (memory 1)
  (func (param i32) (result i32)
    (drop (memory.grow (local.get 0)))
    (i32.load8_u (i32.const 0))))

;; ---- IR
;; define hidden { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   store i64 %1, ptr %quantum
;;   %3 = load i32, ptr %slot0_32
;;   call void @native_set_32(ptr %fp, i32 0, i32 %3)
;;   %4 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %4)
;;   %5 = call i32 @native_operate(ptr %context, ptr %fp, ptr %rp, i32 1)
;;   %6 = call i64 @native_quantum(ptr %context)
;;   store i64 %6, ptr %quantum
;;   %7 = call ptr @native_memory(ptr %context)
;;   store ptr %7, ptr %memory
;;   %8 = call i64 @native_memory_size(ptr %context)
;;   store i64 %8, ptr %memory_size
;;   %9 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %9, ptr %slot1_32
;;   %10 = icmp ne i32 %5, 0
;;   br i1 %10, label %leave1, label %on2  ; rarely
;; on2:
;;   store i32 0, ptr %slot1_32
;;   %11 = load i32, ptr %slot1_32
;;   %12 = load i64, ptr %memory_size
;;   %13 = call i1 @native_is_outside(i64 %12, i32 %11, i32 0, i32 1)
;;   br i1 %13, label %leave4, label %on5  ; rarely
;; }
