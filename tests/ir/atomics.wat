;; An atomic access is in bounds and aligned, or leaves. Of what a narrow compare and exchange expects,
;; as many bits count as it stores.
;; show f0 on on2
;; show f1 on on2
(module
  (memory 1 1 shared)
  (func (param i32 i64) (result i64) (i64.atomic.rmw.add offset=8 (local.get 0) (local.get 1)))
  (func (param i32 i32 i32) (result i32)
    (i32.atomic.rmw8.cmpxchg_u (local.get 0) (local.get 1) (local.get 2))))

;; ---- IR
;; define internal { i32, i64 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, i64 %1) {
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = load i32, ptr %slot0_32
;;   %5 = zext i32 %4 to i64
;;   %6 = call ptr @native_access(ptr %context, i32 2, i64 %5, i64 8, i32 8)
;;   %7 = icmp eq ptr %6, null
;;   %8 = call i1 @native_is_unaligned(ptr %context, ptr %6, i32 8)
;;   %9 = or i1 %7, %8
;;   br i1 %9, label %leave1, label %on2  ; rarely
;; on2:
;;   %10 = call i32 @native_dirty_at(ptr %context, ptr %6)
;;   %11 = load i32, ptr %dirty
;;   %12 = or i32 %11, %10
;;   store i32 %12, ptr %dirty
;;   %13 = load i64, ptr %slot1_64
;;   %14 = call i64 @native_i64_atomic_rmw_add(ptr %6, i64 %13)
;;   store i64 %14, ptr %slot3_64
;;   %15 = load i64, ptr %slot3_64
;;   %16 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %16)
;;   %17 = insertvalue { i32, i64 } { i32 0, i64 poison }, i64 %15, 1
;;   ret { i32, i64 } %17
;; }
;; define internal { i32, i32 } @f1(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, i32 %1, i32 %2) {
;; on:
;;   %3 = call i64 @native_after_call(i64 %4)
;;   call void @native_set_quantum(ptr %context, i64 %3)
;;   %5 = load i32, ptr %slot0_32
;;   %6 = zext i32 %5 to i64
;;   %7 = call ptr @native_access(ptr %context, i32 2, i64 %6, i64 0, i32 1)
;;   %8 = icmp eq ptr %7, null
;;   br i1 %8, label %leave1, label %on2  ; rarely
;; on2:
;;   %9 = call i32 @native_dirty_at(ptr %context, ptr %7)
;;   %10 = load i32, ptr %dirty
;;   %11 = or i32 %10, %9
;;   store i32 %11, ptr %dirty
;;   %12 = load i32, ptr %slot1_32
;;   %13 = and i32 %12, 255
;;   %14 = load i32, ptr %slot2_32
;;   %15 = call i32 @native_i32_atomic_rmw8_cmpxchg_u(ptr %7, i32 %13, i32 %14)
;;   store i32 %15, ptr %slot3_32
;;   %16 = load i32, ptr %slot3_32
;;   %17 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %17)
;;   %18 = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %16, 1
;;   ret { i32, i32 } %18
;; }
