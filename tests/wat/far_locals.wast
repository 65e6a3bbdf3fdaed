;; Locals that are farther from the first than instructions of the interpreter's code can say. The module is bytes,
;; for it has half a million locals; [i64 * 3] below are three of them. Made of this text:
;;
;; (module
;;   (type $pair (func (param i32 i64) (result i64 i32)))
;;   (memory 1) (tag $t (param i64)) (table funcref (elem $swap $i64s)) (elem declare func $swap)
;;   ;; It writes all over its frame.
;;   (func $swap (type $pair) (local i64 i64 i64 i64)
;;     (local.set 2 (i64.const -1)) (local.set 3 (i64.const -1)) (local.set 4 (i64.const -1)) (local.set 5 (i64.const -1))
;;     (i64.add (local.get 1) (i64.const 1)) (i32.mul (local.get 0) (i32.const 2)))
;;   (func $throw (param i64) (throw $t (local.get 0)))
;;   (func $i64s (export "i64s") (param i64) (result i64 i64 i64) (local [i64 * 49999])
;;     (local.set 49999 (local.get 0)) (local.set 30000 (i64.mul (local.tee 49998 (local.get 49999)) (i64.const 2)))
;;     (local.get 49998) (local.get 30000) (local.get 40000))
;;   (func (export "mixed") (param i32) (result i32 i64 f32 f64 v128 i32)
;;     (local [v128 * 20000]) (local $i i32) (local $l i64) (local $f f32) (local $d f64) (local $v v128) (local $r externref)
;;     (local.set $i (local.get 0)) (local.set $l (i64.extend_i32_s (local.tee $i (i32.add (local.get $i) (i32.const 1)))))
;;     (local.set $f (f32.convert_i32_s (local.get $i))) (local.set $d (f64.promote_f32 (local.get $f)))
;;     (local.set $v (i64x2.splat (local.get $l)))
;;     (local.get $i) (local.get $l) (local.get $f) (local.get $d) (local.get $v) (ref.is_null (local.get $r)))
;;   (func $sum (export "sum") (param i32) (result i64) (local [i64 * 40000]) (local $own i64)
;;     (local.set $own (i64.add (local.get $own) (i64.extend_i32_u (local.get 0))))
;;     (if (i32.eqz (local.get 0)) (then (return (local.get $own))))
;;     (i64.add (call $sum (i32.sub (local.get 0) (i32.const 1))) (local.get $own)))
;;   (func (export "calls") (param i32) (result i64 i64 i32) (local [f64 * 40000]) (local $i i32) (local $l i64) (local $kept i64)
;;     (local.set $i (local.get 0)) (local.set $l (i64.const 5)) (local.set $kept (i64.const 9))
;;     (call $swap (local.get $i) (local.get $l)) (local.set $i) (local.set $l)
;;     (call_indirect (type $pair) (local.get $i) (local.get $l) (i32.const 0)) (local.set $i) (local.set $l)
;;     (call_ref $pair (local.get $i) (local.get $l) (ref.func $swap)) (local.set $i) (local.set $l)
;;     (local.get $kept) (local.get $l) (local.get $i))
;;   (func (export "trap") (param i32) (result i64) (local [i64 * 40000]) (local $at i32)
;;     (local.set $at (local.get 0))
;;     (i64.load (local.get $at)))
;;   (func (export "mismatch") (param i32) (result i64 i32) (local [i64 * 40000])
;;     (call_indirect (type $pair) (i32.const 1) (i64.const 2) (local.get 0)))
;;   (func (export "catch") (param i32) (result i64 i64) (local [i64 * 40000]) (local $caught i64) (local $thrown i64)
;;     (loop $again
;;       (local.set $caught (i64.add (local.get $caught)
;;         (block $handler (result i64)
;;           (try_table (catch $t $handler)
;;             (call $throw (local.tee $thrown (i64.add (local.get $thrown) (i64.const 2)))))
;;           (unreachable))))
;;       (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
;;     (local.get $caught) (local.get $thrown)))
(module binary
  "\00\61\73\6d\01\00\00\00\01\35\08\60\02\7f\7e\02\7e\7f\60\01\7e\00\60\01\7e\03\7e\7e\7e\60\01\7f\06\7f\7e\7d"
  "\7c\7b\7f\60\01\7f\01\7e\60\01\7f\03\7e\7e\7f\60\01\7f\02\7e\7f\60\01\7f\02\7e\7e\03\0a\09\00\01\02\03\04\05"
  "\04\06\07\04\05\01\70\01\02\02\05\03\01\00\01\0d\03\01\00\01\07\38\07\04\69\36\34\73\00\02\05\6d\69\78\65\64"
  "\00\03\03\73\75\6d\00\04\05\63\61\6c\6c\73\00\05\04\74\72\61\70\00\06\08\6d\69\73\6d\61\74\63\68\00\07\05\63"
  "\61\74\63\68\00\08\09\0c\02\00\41\00\0b\02\00\02\03\00\01\00\0a\9d\03\09\1e\01\04\7e\42\7f\21\02\42\7f\21\03"
  "\42\7f\21\04\42\7f\21\05\20\01\42\01\7c\20\00\41\02\6c\0b\06\00\20\00\08\00\0b\27\01\cf\86\03\7e\20\00\21\cf"
  "\86\03\20\cf\86\03\22\ce\86\03\42\02\7e\21\b0\ea\01\20\ce\86\03\20\b0\ea\01\20\c0\b8\02\0b\5d\07\a0\9c\01\7b"
  "\01\7f\01\7e\01\7d\01\7c\01\7b\01\6f\20\00\21\a1\9c\01\20\a1\9c\01\41\01\6a\22\a1\9c\01\ac\21\a2\9c\01\20\a1"
  "\9c\01\b2\21\a3\9c\01\20\a3\9c\01\bb\21\a4\9c\01\20\a2\9c\01\fd\12\21\a5\9c\01\20\a1\9c\01\20\a2\9c\01\20\a3"
  "\9c\01\20\a4\9c\01\20\a5\9c\01\20\a6\9c\01\d1\0b\29\01\c1\b8\02\7e\20\c1\b8\02\20\00\ad\7c\21\c1\b8\02\20\00"
  "\45\04\40\20\c1\b8\02\0f\0b\20\00\41\01\6b\10\04\20\c1\b8\02\7c\0b\63\03\c0\b8\02\7c\01\7f\02\7e\20\00\21\c1"
  "\b8\02\42\05\21\c2\b8\02\42\09\21\c3\b8\02\20\c1\b8\02\20\c2\b8\02\10\00\21\c1\b8\02\21\c2\b8\02\20\c1\b8\02"
  "\20\c2\b8\02\41\00\11\00\00\21\c1\b8\02\21\c2\b8\02\20\c1\b8\02\20\c2\b8\02\d2\00\14\00\21\c1\b8\02\21\c2\b8"
  "\02\20\c3\b8\02\20\c2\b8\02\20\c1\b8\02\0b\15\02\c0\b8\02\7e\01\7f\20\00\21\c1\b8\02\20\c1\b8\02\29\03\00\0b"
  "\0f\01\c0\b8\02\7e\41\01\42\02\20\00\11\00\00\0b\3b\01\c2\b8\02\7e\03\40\20\c1\b8\02\02\7e\1f\40\01\00\00\00"
  "\20\c2\b8\02\42\02\7c\22\c2\b8\02\10\01\0b\00\0b\7c\21\c1\b8\02\20\00\41\01\6b\22\00\0d\00\0b\20\c1\b8\02\20"
  "\c2\b8\02\0b"
)
(assert_return (invoke "i64s" (i64.const 21)) (i64.const 21) (i64.const 42) (i64.const 0))
(assert_return (invoke "mixed" (i32.const 6))
  (i32.const 7) (i64.const 7) (f32.const 7) (f64.const 7) (v128.const i64x2 7 7) (i32.const 1))
(assert_return (invoke "sum" (i32.const 9)) (i64.const 45))
(assert_exhaustion (invoke "sum" (i32.const 100)) "call stack exhausted")
(assert_return (invoke "sum" (i32.const 3)) (i64.const 6))
(assert_return (invoke "calls" (i32.const 3)) (i64.const 9) (i64.const 8) (i32.const 24))
(assert_return (invoke "trap" (i32.const 65528)) (i64.const 0))
(assert_trap (invoke "trap" (i32.const 65529)) "out of bounds memory access")
(assert_return (invoke "mismatch" (i32.const 0)) (i64.const 3) (i32.const 2))
(assert_trap (invoke "mismatch" (i32.const 1)) "indirect call type mismatch")
(assert_trap (invoke "mismatch" (i32.const 2)) "undefined element")
(assert_return (invoke "catch" (i32.const 50)) (i64.const 2550) (i64.const 100))
