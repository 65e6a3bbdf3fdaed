;; No trap is raised: the function leaves at the instruction, here the one at 2 in its code (0x200002 says
;; that, and that the interpreter executes it), with the slots that are live: none.
;; show f0 on block1 block2 cold3 written4 left
(module
  (func (param i32) (if (local.get 0) (then (unreachable)))))

;; ---- IR
;; define internal { i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   %4 = icmp eq i32 %3, 0
;;   br i1 %4, label %block1, label %block2
;; block1:
;;   %5 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %5)
;;   ret { i32 } zeroinitializer
;; block2:
;;   %6 = load i32, ptr %dirty
;;   br label %cold3
;; cold3:
;;   %7 = phi i32 [ 2097154, %block2 ]
;;   %8 = phi i32 [ %6, %block2 ]
;;   br label %written4
;; left:
;;   %9 = phi i32 [ %10, %written ], [ %7, %written4 ]
;;   %11 = phi i32 [ %12, %written ], [ %8, %written4 ]
;;   %13 = call i32 @native_left(ptr %context, ptr %fp, ptr %rp, i32 0, i32 %9, i32 %11)
;;   %14 = insertvalue { i32 } poison, i32 %13, 0
;;   ret { i32 } %14
;; written4:
;;   br label %left
;; }
