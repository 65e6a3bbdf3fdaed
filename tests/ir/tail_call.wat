;; A tail call leaves its arguments in the frame and says so; whoever called goes on with it. Callers in
;; modules with tail calls expect that of every call. Who calls itself begins again.
;; show f0 on
;; show f1 on not_done tail
;; show f2 on
(module
  (func (param i32) (result i32) (return_call 1 (i32.add (local.get 0) (i32.const 1))))
  (func (param i32) (result i32) (call 0 (local.get 0)))
  (func (param i32) (result i32) (return_call 2 (local.get 0))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   %4 = call i32 @native_i32_add(i32 %3, i32 1)
;;   store i32 %4, ptr %slot1_32
;;   %5 = load i32, ptr %slot1_32
;;   call void @native_tail_own(ptr %context, i32 4)
;;   call void @native_set_32(ptr %fp, i32 0, i32 %5)
;;   %6 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %6)
;;   ret { i32, i32 } { i32 4, i32 poison }
;; }
;; define internal { i32, i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = call ptr @native_slot(ptr %fp, i32 1)
;;   %5 = call ptr @native_below(ptr %rp, i32 3)
;;   %6 = load i32, ptr %slot1_32
;;   %7 = call { i32, i32 } @f0(ptr %context, ptr %4, ptr %5, i32 %6)
;;   %8 = extractvalue { i32, i32 } %7, 0
;;   %9 = icmp ne i32 %8, 0
;;   br i1 %9, label %not_done, label %on1  ; rarely
;; not_done:
;;   %10 = icmp eq i32 %8, 4
;;   br i1 %10, label %tail, label %left
;; tail:
;;   %11 = call i32 @native_call_tail(ptr %context, ptr %4, ptr %5)
;;   %12 = icmp eq i32 %11, 0
;;   br i1 %12, label %returned, label %left
;; }
;; define internal { i32, i32 } @f2(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = load i32, ptr %slot1_32
;;   store i32 %4, ptr %slot0_32
;;   br label %block
;; }
