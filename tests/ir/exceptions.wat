;; A handler is a record below the frames; the call inside it begins below that. throw is the interpreter's:
;; it leaves. Whoever catches is entered again at its handler, with what was thrown in the frame.
;; show f0 on not_done on1
;; show r0 resumed resume
;; show f1 on
(module
  (tag $t (param i32))
  (func (param i32) (result i32)
    (block $h (result i32)
      (try_table (catch $t $h)
        (call 1 (local.get 0)))
      (i32.const -1)))
  (func (param i32) (throw $t (local.get 0))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = call ptr @native_below(ptr %rp, i32 3)
;;   call void @native_handler(ptr %context, ptr %fp, ptr %3, i32 6)
;;   %4 = load i32, ptr %slot0_32
;;   store i32 %4, ptr %slot1_32
;;   %5 = call ptr @native_slot(ptr %fp, i32 1)
;;   %6 = call ptr @native_below(ptr %rp, i32 6)
;;   %7 = load i32, ptr %slot1_32
;;   %8 = call { i32 } @f1(ptr %context, ptr %5, ptr %6, i32 %7)
;;   %9 = extractvalue { i32 } %8, 0
;;   %10 = icmp ne i32 %9, 0
;;   br i1 %10, label %not_done, label %on1  ; rarely
;; not_done:
;;   %11 = shl i32 %9, 20
;;   %12 = or i32 4, %11
;;   %13 = or i32 %12, 25165824
;;   %14 = load i32, ptr %dirty
;;   call void @gpurun_leave(i32 2, ptr %fp, i32 1) [ "deopt"() ]
;;   br label %left
;; on1:
;;   %15 = call ptr @native_memory(ptr %context)
;;   store ptr %15, ptr %memory
;;   %16 = call i64 @native_memory_size(ptr %context)
;;   store i64 %16, ptr %memory_size
;;   br label %block2
;; }
;; define internal { i32, i32 } @r0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; resume:
;;   br label %block
;; resumed:
;;   call void @native_set_entry(ptr %context, i32 0)
;;   switch i32 %1, label %nowhere [
;;     i32 1, label %resume
;;   ]
;; }
;; define internal { i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = load i32, ptr %slot1_32
;;   %5 = load i32, ptr %dirty
;;   call void @gpurun_leave(i32 1, ptr %fp, i32 -1) [ "deopt"(i32 9, i32 %4) ]
;;   br label %left
;; }
