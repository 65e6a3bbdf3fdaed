;; A handler is a record below the frames; the call inside it begins below that. throw is the interpreter's:
;; it leaves. Whoever catches is entered again at its handler, with what was thrown in the frame.
;; show f0 on not_done on2 resumed resume
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
;; resume:
;;   br label %block
;; resumed:
;;   call void @native_set_entry(ptr %context, i32 0)
;;   switch i32 %1, label %nowhere [
;;     i32 1, label %resume
;;   ]
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = call ptr @native_below(ptr %rp, i32 3)
;;   call void @native_handler(ptr %context, ptr %fp, ptr %4, i32 6)
;;   %5 = load i32, ptr %slot0_32
;;   store i32 %5, ptr %slot1_32
;;   %6 = call ptr @native_slot(ptr %fp, i32 1)
;;   %7 = call ptr @native_below(ptr %rp, i32 6)
;;   %8 = load i32, ptr %slot1_32
;;   %9 = call { i32 } @f1(ptr %context, ptr %6, ptr %7, i32 %8)
;;   %10 = extractvalue { i32 } %9, 0
;;   %11 = icmp ne i32 %10, 0
;;   br i1 %11, label %not_done, label %on2  ; rarely
;; not_done:
;;   %12 = shl i32 %10, 20
;;   %13 = or i32 4, %12
;;   %14 = or i32 %13, 25165824
;;   %15 = load i32, ptr %dirty
;;   br label %cold3
;; on2:
;;   %16 = call ptr @native_memory(ptr %context)
;;   store ptr %16, ptr %memory
;;   %17 = call i64 @native_memory_size(ptr %context)
;;   store i64 %17, ptr %memory_size
;;   br label %block4
;; }
;; define internal { i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = load i32, ptr %dirty
;;   %5 = load i32, ptr %slot1_32
;;   br label %cold1
;; }
