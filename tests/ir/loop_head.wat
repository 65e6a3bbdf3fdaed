;; The head of a loop looks at the quantum, which every turn takes from, and leaves when it is used up. It
;; can be entered again there: the context says so.
;; show f0 begin resumed resume block leave2 on3
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
;;   %5 = call i32 @native_entry(ptr %context)
;;   %6 = icmp ne i32 %5, 0
;;   br i1 %6, label %resumed, label %called  ; rarely
;; resume:
;;   %7 = call i32 @native_get_32(ptr %fp, i32 0)
;;   store i32 %7, ptr %slot0_32
;;   br label %block
;; resumed:
;;   call void @native_set_entry(ptr %context, i32 0)
;;   switch i32 %5, label %nowhere [
;;     i32 1, label %resume
;;   ]
;; block:
;;   %8 = load i64, ptr %quantum
;;   %9 = icmp slt i64 %8, 0
;;   br i1 %9, label %leave2, label %on3  ; rarely
;; leave2:
;;   %10 = load i64, ptr %quantum
;;   %11 = load i32, ptr %dirty
;;   %12 = load i32, ptr %slot0_32
;;   br label %cold4
;; on3:
;;   %13 = sub i64 %8, 2
;;   store i64 %13, ptr %quantum
;;   %14 = load i32, ptr %slot0_32
;;   %15 = call i32 @native_i32_add(i32 %14, i32 -1)
;;   store i32 %15, ptr %slot0_32
;;   %16 = load i32, ptr %slot0_32
;;   %17 = icmp ne i32 %16, 0
;;   br i1 %17, label %block, label %block5
;; }
