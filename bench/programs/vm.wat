;; br_table dispatch: a small machine that interprets a program. The program counts the steps that
;; all numbers from n down to 1 take to reach 1, where an even x becomes x/2 and an odd one 3x+1.
(module
  (memory 1)
  ;; Registers r0 to r7 are words at 0. An instruction is four bytes: operation, a, b, c.
  (data (i32.const 64)
    "\01\01\00\00"   ;;  0  mov r1 r0
    "\02\05\01\03"   ;;  1  and r5 r1 r3
    "\03\05\06\00"   ;;  2  jz  r5 6
    "\04\01\01\04"   ;;  3  mul r1 r1 r4
    "\05\01\01\03"   ;;  4  add r1 r1 r3
    "\08\00\07\00"   ;;  5  jmp 7
    "\06\01\01\03"   ;;  6  shr r1 r1 r3
    "\05\02\02\03"   ;;  7  add r2 r2 r3
    "\07\05\01\03"   ;;  8  sub r5 r1 r3
    "\09\05\01\00"   ;;  9  jnz r5 1
    "\07\00\00\03"   ;; 10  sub r0 r0 r3
    "\09\00\00\00"   ;; 11  jnz r0 0
    "\00\00\00\00")  ;; 12  halt
  (global $program i32 (i32.const 64))

  ;; Runs from instruction 0 until halt.
  (func $interpret
    (local $pc i32) (local $word i32) (local $a i32) (local $b i32) (local $c i32)
    (local.set $pc (global.get $program))
    (loop $next
      (local.set $word (i32.load (local.get $pc)))
      (local.set $pc (i32.add (local.get $pc) (i32.const 4)))
      ;; Registers by address; a target of a jump is the same field.
      (local.set $a (i32.and (i32.shr_u (local.get $word) (i32.const 6)) (i32.const 0x3fc)))
      (local.set $b (i32.and (i32.shr_u (local.get $word) (i32.const 14)) (i32.const 0x3fc)))
      (local.set $c (i32.and (i32.shr_u (local.get $word) (i32.const 22)) (i32.const 0x3fc)))
      (block $jump
        (block $jnz (block $jmp (block $sub (block $shr (block $add (block $mul
        (block $jz (block $and (block $mov (block $halt
          (br_table $halt $mov $and $jz $mul $add $shr $sub $jmp $jnz $halt
            (i32.and (local.get $word) (i32.const 0xff))))
        ;; halt
        (return))
        ;; mov
        (i32.store (local.get $a) (i32.load (local.get $b)))
        (br $next))
        ;; and
        (i32.store (local.get $a)
          (i32.and (i32.load (local.get $b)) (i32.load (local.get $c))))
        (br $next))
        ;; jz
        (br_if $jump (i32.eqz (i32.load (local.get $a))))
        (br $next))
        ;; mul
        (i32.store (local.get $a)
          (i32.mul (i32.load (local.get $b)) (i32.load (local.get $c))))
        (br $next))
        ;; add
        (i32.store (local.get $a)
          (i32.add (i32.load (local.get $b)) (i32.load (local.get $c))))
        (br $next))
        ;; shr
        (i32.store (local.get $a)
          (i32.shr_u (i32.load (local.get $b)) (i32.load (local.get $c))))
        (br $next))
        ;; sub
        (i32.store (local.get $a)
          (i32.sub (i32.load (local.get $b)) (i32.load (local.get $c))))
        (br $next))
        ;; jmp
        (br $jump))
        ;; jnz
        (br_if $next (i32.eqz (i32.load (local.get $a)))))
      (local.set $pc (i32.add (global.get $program) (local.get $b)))
      (br $next)))

  (func $run (export "run") (param $n i32) (result i32)
    (i32.store (i32.const 0) (local.get $n))    ;; r0: the number at hand
    (i32.store (i32.const 8) (i32.const 0))     ;; r2: steps
    (i32.store (i32.const 12) (i32.const 1))    ;; r3
    (i32.store (i32.const 16) (i32.const 3))    ;; r4
    (call $interpret)
    (i32.load (i32.const 8)))

  (func (export "bench") (result i32)
    (call $run (i32.const 4000)))

  ;; For many processes: The numbers up to 10 to 20.
  (func (export "each") (param $id i32) (result i32)
    (call $run (i32.add (i32.const 10) (i32.rem_u (local.get $id) (i32.const 11))))))
