;; The head of a loop looks at the quantum, which every turn takes from, and leaves when it is used up. It
;; can be entered again there: that is what the function with .resume is for.
;; show f0 block1 leave2 on3
;; show f0.resume begin resume
(module
  (func (param i32)
    (loop $l
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br_if $l (local.get 0)))))

;; ---- IR
;; define hidden { i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; block1:
;;   %1 = load i64, ptr %quantum
;;   %2 = icmp slt i64 %1, 0
;;   br i1 %2, label %leave2, label %on3  ; rarely
;; leave2:
;;   %3 = load i64, ptr %quantum
;;   %4 = load i32, ptr %dirty
;;   %5 = load i32, ptr %slot0_32
;;   br label %cold4
;; on3:
;;   %6 = sub i64 %1, 2
;;   store i64 %6, ptr %quantum
;;   %7 = load i32, ptr %slot0_32
;;   %8 = call i32 @native_i32_add(i32 %7, i32 -1)
;;   store i32 %8, ptr %slot0_32
;;   %9 = load i32, ptr %slot0_32
;;   %10 = icmp ne i32 %9, 0
;;   br i1 %10, label %block1, label %block5
;; }
;; define internal i32 @f0.resume(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; begin:
;;   %1 = call ptr @native_memory(ptr %context)
;;   store ptr %1, ptr %memory
;;   %2 = call i64 @native_memory_size(ptr %context)
;;   store i64 %2, ptr %memory_size
;;   %3 = call i64 @native_quantum(ptr %context)
;;   store i64 %3, ptr %quantum
;;   store i32 0, ptr %dirty
;;   switch i32 %0, label %nowhere [
;;     i32 0, label %resume
;;   ]
;; resume:
;;   %4 = call i32 @native_get_32(ptr %fp, i32 0)
;;   store i32 %4, ptr %slot0_32
;;   br label %block
;; }
