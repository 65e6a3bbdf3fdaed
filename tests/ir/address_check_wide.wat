;; A memory with 64-bit addresses, not the first: the runtime finds it, and the address, which may wrap.
;; show f0 on on2
(module
  (memory 1)
  (memory $wide i64 1)
  (func (param i64) (result i64) (i64.load $wide offset=0x100000000 (local.get 0))))

;; ---- IR
;; define internal { i32, i64 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i64 %0) {
;; on:
;;   %1 = call i64 @native_after_call(i64 %2)
;;   call void @native_set_quantum(ptr %context, i64 %1)
;;   %3 = load i64, ptr %slot0_64
;;   %4 = call ptr @native_access(ptr %context, i32 3, i64 %3, i64 4294967296, i32 8)
;;   %5 = icmp eq ptr %4, null
;;   br i1 %5, label %leave1, label %on2  ; rarely
;; on2:
;;   %6 = call i64 @native_i64_load_x(ptr %4)
;;   store i64 %6, ptr %slot2_64
;;   %7 = load i64, ptr %slot2_64
;;   %8 = load i32, ptr %dirty
;;   call void @native_add_dirty(ptr %context, i32 %8)
;;   %9 = insertvalue { i32, i64 } { i32 0, i64 poison }, i64 %7, 1
;;   ret { i32, i64 } %9
;; }
