;; No trap is raised: the function leaves at the instruction, here the one at 2 in its code (0x200002 says
;; that, and that the interpreter executes it), with the slots that are live: none.
;; show f0 on block1 block2 cold3 written4 left
(module
  (func (param i32) (if (local.get 0) (then (unreachable)))))

;; ---- IR
;; define hidden { i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   store i64 %1, ptr %quantum
;;   %3 = load i32, ptr %slot0_32
;;   %4 = icmp eq i32 %3, 0
;;   br i1 %4, label %block1, label %block2
;; block1:
;;   %5 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %5)
;;   %6 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %6)
;;   ret { i32 } zeroinitializer
;; block2:
;;   %7 = load i64, ptr %quantum
;;   %8 = load i32, ptr %dirty
;;   br label %cold3
;; cold3:
;;   %9 = phi i32 [ 2097154, %block2 ]
;;   %10 = phi i32 [ %8, %block2 ]
;;   %11 = phi i64 [ %7, %block2 ]
;;   br label %written4
;; left:
;;   %12 = phi i32 [ %13, %written ], [ %9, %written4 ]
;;   %14 = phi i32 [ %15, %written ], [ %10, %written4 ]
;;   %16 = call i32 @native_left(ptr %context, ptr %fp, ptr %rp, i32 0, i32 %12, i32 %14)
;;   %17 = insertvalue { i32 } poison, i32 %16, 0
;;   ret { i32 } %17
;; written4:
;;   call void @native_set_quantum(ptr %context, i64 %11)
;;   br label %left
;; }
