;; Accesses by the same address are checked once, by the first, as far as the farthest reaches: to 24 here. What
;; is written to the address in between ends that.
;; show f0 on on2 on5
(module
  (memory 1)
  (func (param i32) (result i32)
    (i64.store offset=16 (local.get 0) (i64.extend_i32_u (i32.load offset=4 (local.get 0))))
    (i32.load offset=8 (local.tee 0 (i32.load (local.get 0))))))

;; ---- IR
;; define hidden { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i32, ptr %slot0_32
;;   %4 = load i64, ptr %memory_size
;;   %5 = call i1 @native_is_outside(i64 %4, i32 %3, i64 24)
;;   br i1 %5, label %leave1, label %on2  ; rarely
;; on2:
;;   %6 = load ptr, ptr %memory
;;   %7 = call ptr @native_address(ptr %6, i32 %3, i32 4)
;;   %8 = call i32 @native_i32_load(ptr %7)
;;   store i32 %8, ptr %slot2_32
;;   %9 = load i32, ptr %slot2_32
;;   %10 = call i64 @native_i64_extend_i32_u(i32 %9)
;;   store i64 %10, ptr %slot2_64
;;   %11 = load i32, ptr %slot0_32
;;   %12 = call i32 @native_dirty(ptr %context, i32 %11, i32 16)
;;   %13 = load i32, ptr %dirty
;;   %14 = or i32 %13, %12
;;   store i32 %14, ptr %dirty
;;   %15 = load ptr, ptr %memory
;;   %16 = call ptr @native_address(ptr %15, i32 %11, i32 16)
;;   %17 = load i64, ptr %slot2_64
;;   call void @native_i64_store(ptr %16, i64 %17)
;;   %18 = load i32, ptr %slot0_32
;;   %19 = load ptr, ptr %memory
;;   %20 = call ptr @native_address(ptr %19, i32 %18, i32 0)
;;   %21 = call i32 @native_i32_load(ptr %20)
;;   store i32 %21, ptr %slot0_32
;;   %22 = load i32, ptr %slot0_32
;;   %23 = load i64, ptr %memory_size
;;   %24 = call i1 @native_is_outside(i64 %23, i32 %22, i64 12)
;;   br i1 %24, label %leave4, label %on5  ; rarely
;; on5:
;;   %25 = load ptr, ptr %memory
;;   %26 = call ptr @native_address(ptr %25, i32 %22, i32 8)
;;   %27 = call i32 @native_i32_load(ptr %26)
;;   store i32 %27, ptr %slot1_32
;;   %28 = load i32, ptr %slot1_32
;;   %29 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %29)
;;   %30 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %28, 1
;;   ret { i32, i32 } %30
;; }
