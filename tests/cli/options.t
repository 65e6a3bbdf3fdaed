# Options: their values, their places, and what is wrong with them (exit code 2).
$ cp $TESTS/../../examples/*.wa* .
$ cat > x.wat <<'X'
> (module
>   (memory (export "m") 1)
>   (func (export "neg") (param i32) (result i32) (i32.sub (i32.const 0) (local.get 0)))
>   (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
>   (func $down (export "down") (param i32) (result i32)
>     (if (result i32) (local.get 0)
>       (then (i32.add (i32.const 1) (call $down (i32.sub (local.get 0) (i32.const 1)))))
>       (else (i32.const 0)))))
> X

# What follows the file is not gpu-run's.
$ gpu-run --invoke neg x.wat -5
5

$ gpu-run --invoke neg x.wat --fuel
gpu-run: --fuel stands behind x.wat, so it goes to the program; options of gpu-run stand before the file
gpu-run: x.wat: argument 1 of neg: "--fuel" is not a value of type i32
[1]

$ gpu-run --invoke=neg -- x.wat 5
-5

$ gpu-run --invoke grow --invoke neg x.wat 5
-5

$ gpu-run -x x.wat
gpu-run: unknown option -x; gpu-run --help shows how to call it
[2]

$ gpu-run --invoke
gpu-run: --invoke needs a value; gpu-run --help lists the options
[2]

$ gpu-run --timeout
gpu-run: --timeout needs a value; gpu-run --help lists the options
[2]

$ gpu-run --fuel 3 wast sum.wast
gpu-run: --fuel is not for wast; gpu-run wast --help lists its options
[2]

$ gpu-run wast --fuel 3 sum.wast
gpu-run: wast has no option --fuel; gpu-run wast --help lists its options
[2]

$ gpu-run objdump --header x.wat
gpu-run: objdump has no option --header; did you mean --headers?
[2]

$ gpu-run objdump x.wat --function
gpu-run: --function needs a value; gpu-run --help lists the options
[2]

$ gpu-run devices x.wat
gpu-run: devices takes no argument x.wat; gpu-run devices --help lists its options
[2]

# Numbers.
$ gpu-run --fuel -1 --invoke neg x.wat 5
gpu-run: --fuel takes a number of instructions, not "-1"; gpu-run --help lists the options
[2]

$ gpu-run --fuel 0 --invoke neg x.wat 5
gpu-run: x.wat: trap: out of fuel; --fuel raises the limit
   0: neg (0x3b)
[134]

$ gpu-run --fuel 18446744073709551615 --invoke neg x.wat 5
-5

$ gpu-run --fuel 18446744073709551616 --invoke neg x.wat 5
gpu-run: --fuel takes a number of instructions, not "18446744073709551616"; gpu-run --help lists the options
[2]

$ gpu-run --timeout 0 --invoke neg x.wat 5
gpu-run: --timeout takes a time such as 10s or 200ms, not "0"; gpu-run --help lists the options
[2]

$ gpu-run --timeout nan --invoke neg x.wat 5
gpu-run: --timeout takes a time such as 10s or 200ms, not "nan"; gpu-run --help lists the options
[2]

$ gpu-run --timeout 1e300 --invoke neg x.wat 5
-5

$ gpu-run --timeout 10h --invoke neg x.wat 5
gpu-run: --timeout takes a time such as 10s or 200ms, not "10h"; gpu-run --help lists the options
[2]

$ gpu-run --memory 64KiB --invoke grow x.wat 1
-1

$ gpu-run --memory 128k --invoke grow x.wat 1
1

$ gpu-run --memory 0 --invoke grow x.wat 1
gpu-run: x.wat: a memory of 1 pages does not fit the limit of 0 pages; --memory raises it
[1]

$ gpu-run --memory x --invoke grow x.wat 1
gpu-run: --memory takes a size such as 64KiB or 1GiB, not "x"; gpu-run --help lists the options
[2]

$ gpu-run --memory 64KiX --invoke grow x.wat 1
gpu-run: --memory takes a size such as 64KiB or 1GiB, not "64KiX"; gpu-run --help lists the options
[2]

$ gpu-run --memory 99999999TiB --invoke grow x.wat 1
gpu-run: --memory takes a size such as 64KiB or 1GiB, not "99999999TiB"; gpu-run --help lists the options
[2]

$ gpu-run --stack 0 --invoke down x.wat 10
gpu-run: x.wat: a stack of 0 bytes is too small; --stack takes at least 256
[1]

$ gpu-run --stack 256 --invoke down x.wat 100
gpu-run: x.wat: trap: call stack exhausted; --stack makes it larger
   0: down (0x4a)
   1: down (0x55)
   2: down (0x55)
   3: down (0x55)
   4: down (0x55)
   5: down (0x55)
   6: down (0x55)
   7: down (0x55)
   8: down (0x55)
   9: down (0x55)
  10: down (0x55)
  11: down (0x55)
[134]

$ gpu-run --stack 99999999999 --invoke down x.wat 10
gpu-run: --stack takes a size below 16GiB, such as 64KiB or 4MiB, not "99999999999"; gpu-run --help lists the options
[2]

$ gpu-run --device cpu --stack 16383MiB --invoke down x.wat 10
gpu-run: x.wat: stack and heap together may take 8192 MiB, not 17[0-9]{3}; ask for less with --stack or --heap (re)
[1]

$ gpu-run --device cpu --heap 16383MiB --invoke down x.wat 10
gpu-run: x.wat: stack and heap together may take 8192 MiB, not 17[0-9]{3}; ask for less with --stack or --heap (re)
[1]

$ gpu-run --heap 0 --invoke down x.wat 10
10

$ gpu-run --device cpu --memory 1TiB --invoke grow x.wat 1
1

$ gpu-run --device nowhere --invoke neg x.wat 5
gpu-run: unknown device "nowhere"; --device takes auto, cpu, cuda or cuda:N
[2]

# Sizes that no machine has.
$ cat > wide.wat <<'X'
> (module
>   (memory i64 1)
>   (func (export "grow") (result i64) (memory.grow (i64.const 0xffffffff)))
>   (func (export "many") (param v128 v128 v128 v128 v128 v128 v128 v128
>                                v128 v128 v128 v128 v128 v128 v128 v128)))
> X

$ gpu-run --device cpu --invoke grow wide.wat
-1

$ gpu-run --device cpu --memory 99999TiB --invoke grow wide.wat
gpu-run: wide.wat: no address space left for a memory of up to 68719476736 MiB; a smaller --memory asks for less
[1]

$ gpu-run --stack 256 --invoke many wide.wat $(yes 0x00000000000000000000000000000000 | head -16)
gpu-run: wide.wat: the arguments do not fit the stack; --stack makes it larger
[1]

$ echo '(memory i64 0x1000000000000) (func (export "f"))' > huge.wat; gpu-run --device cpu --invoke f huge.wat
gpu-run: huge.wat: a memory of 281474976710656 pages does not fit the limit of 65536 pages; --memory raises it
[1]

$ echo '(table i64 0xffffffffffff funcref) (func (export "f"))' > table.wat; gpu-run --device cpu --invoke f table.wat
gpu-run: table.wat: a table of 281474976710655 elements is larger than the limit of 10000000
[1]

$ gpu-run --instances 0 --invoke f huge.wat
gpu-run: --instances takes a number of processes from 1 to 4294967295, not "0"; gpu-run --help lists the options
[2]

# Completions and the manual page.
$ gpu-run completions; gpu-run completions tcsh; gpu-run man x
gpu-run: completions are for bash, zsh or fish
gpu-run: completions are for bash, zsh or fish
gpu-run: man takes no argument x; gpu-run man --help lists its options
[2]

$ gpu-run completions bash > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]
