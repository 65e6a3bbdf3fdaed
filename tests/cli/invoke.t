# Functions called from the command line: arguments, results, traps.
$ cp $TESTS/../../examples/*.wat .

$ gpu-run --invoke fac fac.wat 20
2432902008176640000

$ gpu-run --invoke fac_rec fac.wat 0x14
2432902008176640000

$ cat > types.wat <<X
> (module
>   (func (export "f32") (param f32) (result f32) (local.get 0))
>   (func (export "f64") (param f64) (result f64) (local.get 0))
>   (func (export "i32") (param i32) (result i32) (local.get 0))
>   (func (export "pair") (param i64) (result i64 i32) (local.get 0) (i32.const -1))
>   (func (export "null") (result externref) (ref.null extern))
>   (func (export "none"))
>   (func (export "loop") (loop (br 0))))
> X

$ gpu-run --invoke f32 types.wat 0.1
0.1

$ gpu-run --invoke f64 types.wat 1e-300
1e-300

$ gpu-run --invoke f64 types.wat nan
nan

$ gpu-run --invoke i32 types.wat 4294967295
-1

$ gpu-run --invoke pair types.wat -9223372036854775808
-9223372036854775808
-1

$ gpu-run --invoke null types.wat
null

$ gpu-run --invoke none types.wat

$ gpu-run --invoke report trap.wat 7
17

$ gpu-run --invoke report trap.wat 0
gpu-run: trap.wat: trap: integer divide by zero
   0: mean (0x30)
   1: report (0x39)
[134]

$ gpu-run --fuel 1000 --invoke loop types.wat
gpu-run: types.wat: trap: out of fuel; --fuel raises the limit
   0: loop (0x87)
[134]

$ gpu-run --timeout 50ms --invoke loop types.wat
gpu-run: types.wat: timeout: the time limit was reached; --timeout raises it
   0: loop (0x87)
[124]

$ gpu-run --instances 4 --each --invoke fac fac.wat {}
0	1
1	1
2	2
3	6
