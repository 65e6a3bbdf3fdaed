;; A vector is four words, as it lies in slots.
;; show f0 on on2
(module
  (memory 1)
  (func (param i32 v128) (result v128)
    (f32x4.add
      (i32x4.replace_lane 2 (local.get 1) (local.get 0))
      (v128.load (local.get 0)))))

;; ---- IR
;; define internal { i32, <4 x i32> } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, <4 x i32> %1) {
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = load <4 x i32>, ptr %slot1_128
;;   %5 = load i32, ptr %slot0_32
;;   %6 = call <4 x i32> @native_i32x4_replace_lane(<4 x i32> %4, i32 %5, i32 2)
;;   store <4 x i32> %6, ptr %slot5_128
;;   %7 = load i32, ptr %slot0_32
;;   %8 = zext i32 %7 to i64
;;   %9 = call ptr @native_access(ptr %context, i32 2, i64 %8, i64 0, i32 16)
;;   %10 = icmp eq ptr %9, null
;;   br i1 %10, label %leave1, label %on2  ; rarely
;; on2:
;;   %11 = call <4 x i32> @native_v128_load(ptr %9)
;;   store <4 x i32> %11, ptr %slot9_128
;;   %12 = load <4 x i32>, ptr %slot5_128
;;   %13 = load <4 x i32>, ptr %slot9_128
;;   %14 = call <4 x i32> @native_f32x4_add(<4 x i32> %12, <4 x i32> %13)
;;   store <4 x i32> %14, ptr %slot5_128
;;   %15 = load <4 x i32>, ptr %slot5_128
;;   store <4 x i32> %15, ptr %slot0_128
;;   %16 = load <4 x i32>, ptr %slot0_128
;;   %17 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %17)
;;   %18 = insertvalue { i32, <4 x i32> } { i32 0, <4 x i32> poison }, <4 x i32> %16, 1
;;   ret { i32, <4 x i32> } %18
;; }
