;; A call in the module: the arguments are arguments, the frame begins behind ours. Whoever is called
;; and did not end has written its frame; we write ours. Memory is read again.
;; show f0 on not_done on1
(module
  (memory 1)
  (func (param i32) (result i32)
    (i32.add (local.get 0) (call 1 (i32.const 7) (i64.const 8))))
  (func (param i32 i64) (result i32) (unreachable)))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   store i32 7, ptr %slot2_32
;;   store i64 8, ptr %slot3_64
;;   %4 = call ptr @native_slot(ptr %fp, i32 2)
;;   %5 = call ptr @native_below(ptr %rp, i32 3)
;;   %6 = load i32, ptr %slot2_32
;;   %7 = load i64, ptr %slot3_64
;;   %8 = call { i32, i32 } @f1(ptr %context, ptr %4, ptr %5, i32 %6, i64 %7)
;;   %9 = extractvalue { i32, i32 } %8, 0
;;   %10 = icmp ne i32 %9, 0
;;   br i1 %10, label %not_done, label %on1  ; rarely
;; not_done:
;;   %11 = shl i32 %9, 20
;;   %12 = or i32 5, %11
;;   %13 = or i32 %12, 8388608
;;   %14 = load i32, ptr %slot1_32
;;   %15 = load i32, ptr %dirty
;;   call void @gpurun_leave(i32 2, ptr %fp, i32 2) [ "deopt"(i32 9, i32 %14) ]
;;   br label %left
;; on1:
;;   %16 = call ptr @native_memory(ptr %context)
;;   store ptr %16, ptr %memory
;;   %17 = call i64 @native_memory_size(ptr %context)
;;   store i64 %17, ptr %memory_size
;;   %18 = extractvalue { i32, i32 } %8, 1
;;   store i32 %18, ptr %slot2_32
;;   %19 = load i32, ptr %slot1_32
;;   %20 = load i32, ptr %slot2_32
;;   %21 = call i32 @native_i32_add(i32 %19, i32 %20)
;;   store i32 %21, ptr %slot1_32
;;   %22 = load i32, ptr %slot1_32
;;   %23 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %23)
;;   %24 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %22, 1
;;   ret { i32, i32 } %24
;; }
