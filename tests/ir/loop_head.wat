;; The head of a loop looks at the quantum, which every turn takes from, and leaves when it is used up. It
;; can be entered again there: the context says so.
;; show f0 begin block1 leave2 on3
;; show r0 resumed resume
(module
  (func (param i32)
    (loop $l
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br_if $l (local.get 0)))))

;; ---- IR
;; define internal { i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; begin:
;;   %1 = call ptr @native_memory(ptr %context)
;;   store ptr %1, ptr %memory
;;   %2 = call i64 @native_memory_size(ptr %context)
;;   store i64 %2, ptr %memory_size
;;   %3 = call i64 @native_quantum(ptr %context)
;;   store i64 %3, ptr %quantum
;;   store i32 0, ptr %dirty
;;   %4 = call i32 @native_dirty_shift(ptr %context)
;;   store i32 %0, ptr %slot0_32
;;   br label %block
;; block1:
;;   %5 = load i64, ptr %quantum
;;   %6 = icmp slt i64 %5, 0
;;   br i1 %6, label %leave2, label %on3  ; rarely, !gpurun.late !5
;; leave2:
;;   %7 = load i32, ptr %slot0_32
;;   %8 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %8)
;;   %9 = load i32, ptr %dirty
;;   call void @gpurun_leave(i32 1, ptr %fp, i32 -1) [ "deopt"(i32 1, i32 %7) ]
;;   br label %left
;; on3:
;;   %10 = sub i64 %5, 2
;;   store i64 %10, ptr %quantum
;;   %11 = load i32, ptr %slot0_32
;;   %12 = call i32 @native_i32_add(i32 %11, i32 -1)
;;   store i32 %12, ptr %slot0_32
;;   %13 = load i32, ptr %slot0_32
;;   %14 = icmp ne i32 %13, 0
;;   br i1 %14, label %block1, label %block4
;; }
;; define internal { i32 } @r0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; resume:
;;   %1 = call i32 @native_get_32(ptr %fp, i32 0)
;;   store i32 %1, ptr %slot0_32
;;   br label %block
;; resumed:
;;   call void @native_set_entry(ptr %context, i32 0)
;;   switch i32 %2, label %nowhere [
;;     i32 1, label %resume
;;   ]
;; }
