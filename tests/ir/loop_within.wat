;; A loop within another is entered by way of that one's head, so that both stay loops with one entry. Slots
;; are read from the frame where it begins.
;; show r0 resumed resume resume1 block on_way here
(module
  (func (param i32 i32)
    (loop $outer
      (local.set 1 (i32.const 5))
      (loop $inner
        (br_if $inner (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
      (br_if $outer (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))

;; ---- IR
;; define internal { i32 } @r0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, i32 %1) {
;; resume:
;;   %2 = call i32 @native_get_32(ptr %fp, i32 0)
;;   store i32 %2, ptr %slot0_32
;;   store i32 0, ptr %entry
;;   br label %block
;; resume1:
;;   %3 = call i32 @native_get_32(ptr %fp, i32 0)
;;   store i32 %3, ptr %slot0_32
;;   %4 = call i32 @native_get_32(ptr %fp, i32 1)
;;   store i32 %4, ptr %slot1_32
;;   store i32 0, ptr %entry
;;   br label %block2
;; resumed:
;;   call void @native_set_entry(ptr %context, i32 0)
;;   switch i32 %5, label %nowhere [
;;     i32 1, label %resume
;;     i32 2, label %block
;;   ]
;; block:
;;   %6 = load i32, ptr %entry
;;   %7 = icmp ne i32 %6, 0
;;   br i1 %7, label %on_way, label %here  ; rarely
;; on_way:
;;   switch i32 %6, label %nowhere5 [
;;     i32 2, label %resume1
;;   ]
;; here:
;;   store i32 0, ptr %entry
;;   %8 = load i64, ptr %quantum
;;   %9 = icmp slt i64 %8, 0
;;   br i1 %9, label %leave6, label %on7  ; rarely, !gpurun.late !5
;; }
