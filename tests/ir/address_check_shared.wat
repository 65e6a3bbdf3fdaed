;; Accesses by the same address are checked once, by the first, as far as the farthest reaches: to 24 here. What
;; is written to the address in between ends that.
;; show f0 on on2 on4
(module
  (memory 1)
  (func (param i32) (result i32)
    (i64.store offset=16 (local.get 0) (i64.extend_i32_u (i32.load offset=4 (local.get 0))))
    (i32.load offset=8 (local.tee 0 (i32.load (local.get 0))))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   %4 = load i64, ptr %memory_size
;;   %5 = call i1 @gpurun_is_outside(i64 %4, i32 %3, i64 24)
;;   br i1 %5, label %leave1, label %on2  ; rarely
;; on2:
;;   %6 = load ptr, ptr %memory
;;   %7 = call i32 @native_i32_load(ptr %6, i32 %3, i32 4)
;;   store i32 %7, ptr %slot2_32
;;   %8 = load i32, ptr %slot2_32
;;   %9 = call i64 @native_i64_extend_i32_u(i32 %8)
;;   store i64 %9, ptr %slot2_64
;;   %10 = load i32, ptr %slot0_32
;;   %11 = call i32 @native_dirty(i32 %12, i32 %10, i64 16)
;;   %13 = load i32, ptr %dirty
;;   %14 = or i32 %13, %11
;;   store i32 %14, ptr %dirty
;;   %15 = load ptr, ptr %memory
;;   %16 = load i64, ptr %slot2_64
;;   call void @native_i64_store(ptr %15, i32 %10, i32 16, i64 %16)
;;   %17 = load i32, ptr %slot0_32
;;   %18 = load ptr, ptr %memory
;;   %19 = call i32 @native_i32_load(ptr %18, i32 %17, i32 0)
;;   store i32 %19, ptr %slot0_32
;;   %20 = load i32, ptr %slot0_32
;;   %21 = load i64, ptr %memory_size
;;   %22 = call i1 @gpurun_is_outside(i64 %21, i32 %20, i64 12)
;;   br i1 %22, label %leave3, label %on4  ; rarely
;; on4:
;;   %23 = load ptr, ptr %memory
;;   %24 = call i32 @native_i32_load(ptr %23, i32 %20, i32 8)
;;   store i32 %24, ptr %slot1_32
;;   %25 = load i32, ptr %slot1_32
;;   %26 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %26)
;;   %27 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %25, 1
;;   ret { i32, i32 } %27
;; }
