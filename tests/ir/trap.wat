;; No trap is raised: the function leaves at the instruction, here the one at 2 in its code (0x200002 says
;; that, and that the interpreter executes it), with the slots that are live: none.
;; show f0 on block1 block2 left
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
;;   call void @gpurun_leave(i32 1, ptr %fp, i32 -1) [ "deopt"() ]
;;   br label %left
;; left:
;;   %7 = phi i32 [ %8, %leave ], [ 2097154, %block2 ]
;;   %9 = phi i32 [ %10, %leave ], [ %6, %block2 ]
;;   %11 = call i32 @native_left(ptr %context, ptr %fp, ptr %rp, i32 0, i32 %7, i32 %9)
;;   %12 = insertvalue { i32 } poison, i32 %11, 0
;;   ret { i32 } %12
;; }
