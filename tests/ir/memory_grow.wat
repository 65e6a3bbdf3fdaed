;; memory.grow is done by the interpreter's function, in the frame; then the memory is read again.
;; show f0 on on2
(module
  (memory 1)
  (func (param i32) (result i32)
    (drop (memory.grow (local.get 0)))
    (i32.load8_u (i32.const 0))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   call void @native_set_32(ptr %fp, i32 0, i32 %3)
;;   %4 = call i32 @native_operate(ptr %context, ptr %fp, ptr %rp, i32 1)
;;   %5 = call ptr @native_memory(ptr %context)
;;   store ptr %5, ptr %memory
;;   %6 = call i64 @native_memory_size(ptr %context)
;;   store i64 %6, ptr %memory_size
;;   %7 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %7, ptr %slot1_32
;;   %8 = icmp ne i32 %4, 0
;;   br i1 %8, label %leave1, label %on2  ; rarely
;; on2:
;;   store i32 0, ptr %slot1_32
;;   %9 = load i32, ptr %slot1_32
;;   %10 = load i64, ptr %memory_size
;;   %11 = call i1 @gpurun_is_outside(i64 %10, i32 %9, i64 1)
;;   br i1 %11, label %leave3, label %on4  ; rarely
;; }
