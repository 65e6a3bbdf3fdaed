;; A call in the module: the arguments are arguments, the frame begins behind ours. Whoever is called
;; and did not end has written its frame; we write ours. Memory is read again.
;; show f0 on not_done on1 cold2
(module
  (memory 1)
  (func (param i32) (result i32)
    (i32.add (local.get 0) (call 1 (i32.const 7) (i64.const 8))))
  (func (param i32 i64) (result i32) (unreachable)))

;; ---- IR
;; define hidden { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   store i64 %1, ptr %quantum
;;   %3 = load i32, ptr %slot0_32
;;   store i32 %3, ptr %slot1_32
;;   store i32 7, ptr %slot2_32
;;   store i64 8, ptr %slot3_64
;;   %4 = call ptr @native_slot(ptr %fp, i32 2)
;;   %5 = call ptr @native_below(ptr %rp, i32 3)
;;   %6 = load i32, ptr %slot2_32
;;   %7 = load i64, ptr %slot3_64
;;   %8 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %8)
;;   %9 = call { i32, i32 } @f1(ptr %context, ptr %4, ptr %5, i32 %6, i64 %7)
;;   %10 = call i64 @native_quantum(ptr %context)
;;   store i64 %10, ptr %quantum
;;   %11 = extractvalue { i32, i32 } %9, 0
;;   %12 = icmp ne i32 %11, 0
;;   br i1 %12, label %not_done, label %on1  ; rarely
;; not_done:
;;   %13 = shl i32 %11, 20
;;   %14 = or i32 5, %13
;;   %15 = or i32 %14, 8388608
;;   %16 = load i64, ptr %quantum
;;   %17 = load i32, ptr %dirty
;;   %18 = load i32, ptr %slot1_32
;;   br label %cold2
;; on1:
;;   %19 = call ptr @native_memory(ptr %context)
;;   store ptr %19, ptr %memory
;;   %20 = call i64 @native_memory_size(ptr %context)
;;   store i64 %20, ptr %memory_size
;;   %21 = extractvalue { i32, i32 } %9, 1
;;   store i32 %21, ptr %slot2_32
;;   %22 = load i32, ptr %slot1_32
;;   %23 = load i32, ptr %slot2_32
;;   %24 = call i32 @native_i32_add(i32 %22, i32 %23)
;;   store i32 %24, ptr %slot1_32
;;   %25 = load i32, ptr %slot1_32
;;   %26 = load i64, ptr %quantum
;;   call void @native_set_quantum(ptr %context, i64 %26)
;;   %27 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %27)
;;   %28 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %25, 1
;;   ret { i32, i32 } %28
;; cold2:
;;   %29 = phi i32 [ %15, %not_done ]
;;   %30 = phi i32 [ %17, %not_done ]
;;   %31 = phi i32 [ 2, %not_done ]
;;   %32 = phi i32 [ %18, %not_done ]
;;   call void @native_set_32(ptr %fp, i32 1, i32 %32)
;;   br label %written3
;; }
