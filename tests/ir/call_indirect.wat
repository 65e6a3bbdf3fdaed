;; The runtime looks into the table and compares types. A function of this module, compiled: its address
;; is in the table of functions; any other is called by the runtime, and what is no function to call is a trap.
;; show f0 on look own other not_done3 trap
(module
  (table 2 funcref)
  (func (param i32 i32) (result i32)
    (call_indirect (param i32) (result i32) (local.get 0) (local.get 1))))

;; ---- IR
;; define internal { i32, i32 } @f0(ptr noalias %context, ptr %fp, ptr %rp, i32 %0, i32 %1) {
;; on:
;;   %2 = call i64 @native_after_call(i64 %3)
;;   call void @native_set_quantum(ptr %context, i64 %2)
;;   %4 = load i32, ptr %slot0_32
;;   store i32 %4, ptr %slot2_32
;;   %5 = load i32, ptr %slot1_32
;;   %6 = zext i32 %5 to i64
;;   %7 = call i32 @native_own_callee(ptr %context, i32 2, i32 1, i64 %6)
;;   %8 = icmp eq i32 %7, -1
;;   br i1 %8, label %other, label %look  ; rarely
;; own:
;;   %9 = call ptr @native_slot(ptr %fp, i32 2)
;;   %10 = call ptr @native_below(ptr %rp, i32 3)
;;   %11 = load i32, ptr %slot2_32
;;   %12 = call { i32, i32 } %13(ptr %context, ptr %9, ptr %10, i32 %11)
;;   %14 = extractvalue { i32, i32 } %12, 0
;;   %15 = icmp ne i32 %14, 0
;;   br i1 %15, label %not_done, label %on1  ; rarely
;; look:
;;   %16 = zext i32 %7 to i64
;;   %17 = getelementptr inbounds [1 x ptr], ptr @gpurun_functions, i32 0, i64 %16
;;   %13 = load ptr, ptr %17
;;   %18 = icmp eq ptr %13, null
;;   br i1 %18, label %other, label %own  ; rarely
;; other:
;;   %19 = load i32, ptr %slot2_32
;;   call void @native_set_32(ptr %fp, i32 2, i32 %19)
;;   %20 = load i32, ptr %slot1_32
;;   call void @native_set_32(ptr %fp, i32 1, i32 %20)
;;   %21 = call i32 @native_call_indirect(ptr %context, ptr %fp, ptr %rp, i32 2)
;;   %22 = icmp ne i32 %21, 0
;;   br i1 %22, label %not_done3, label %on2  ; rarely
;; not_done3:
;;   %23 = icmp eq i32 %21, 5
;;   br i1 %23, label %trap, label %left
;; trap:
;;   %24 = load i32, ptr %slot1_32
;;   %25 = load i32, ptr %slot2_32
;;   %26 = load i32, ptr %dirty
;;   call void @gpurun_leave(i32 1, ptr %fp, i32 -1) [ "deopt"(i32 9, i32 %24, i32 17, i32 %25) ]
;;   br label %left4
;; }
