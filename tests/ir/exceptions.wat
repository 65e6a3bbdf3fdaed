;; A handler is a record below the frames; the call inside it begins below that. throw is the interpreter's:
;; it leaves. Whoever catches is entered again at its handler, with what was thrown in the frame.
;; show f0 on not_done on1
;; show f0.resume resume
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
;; define hidden { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   store i64 %1, ptr %quantum
;;   %3 = call ptr @native_below(ptr %rp, i32 3)
;;   call void @native_handler(ptr %context, ptr %fp, ptr %3, i32 6)
;;   %4 = load i32, ptr %slot0_32
;;   store i32 %4, ptr %slot1_32
;;   %5 = call ptr @native_slot(ptr %fp, i32 1)
;;   %6 = call ptr @native_below(ptr %rp, i32 6)
;;   %7 = load i32, ptr %slot1_32
;;   %8 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %8)
;;   %9 = call { i32 } @f1(ptr %context, ptr %5, ptr %6, i32 %7)
;;   %10 = call i64 @native_quantum(ptr %context)
;;   store i64 %10, ptr %quantum
;;   %11 = extractvalue { i32 } %9, 0
;;   %12 = icmp ne i32 %11, 0
;;   br i1 %12, label %not_done, label %on1  ; rarely
;; not_done:
;;   %13 = shl i32 %11, 20
;;   %14 = or i32 4, %13
;;   %15 = or i32 %14, 16777216
;;   %16 = load i64, ptr %quantum
;;   %17 = load i32, ptr %dirty
;;   br label %cold2
;; on1:
;;   %18 = call ptr @native_memory(ptr %context)
;;   store ptr %18, ptr %memory
;;   %19 = call i64 @native_memory_size(ptr %context)
;;   store i64 %19, ptr %memory_size
;;   br label %block3
;; }
;; define internal i32 @f0.resume(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; resume:
;;   br label %block
;; }
;; define hidden { i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   store i64 %1, ptr %quantum
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   %4 = load i64, ptr %quantum
;;   %5 = load i32, ptr %dirty
;;   %6 = load i32, ptr %slot1_32
;;   br label %cold1
;; }
