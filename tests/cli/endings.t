# How runs end, and what becomes of the output.
$ cp $TESTS/../../examples/*.wa* .
$ cat > x.wat <<'X'
> (module
>   (tag $oops (param i32))
>   (memory 1 1 shared)
>   (func (export "loop") (loop (br 0)))
>   (func $deep (export "deep") (call $deep))
>   (func (export "throw") (throw $oops (i32.const 7)))
>   (func (export "wait") (result i32)
>     (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))
>   (func (export "load") (result i32) (i32.load (i32.const -1)))
>   (func (export "two") (result i32 i64) (i32.const 1) (i64.const 2))
>   (global (export "g") i32 (i32.const 1)))
> X

$ gpu-run --invoke load x.wat
gpu-run: x.wat: trap: out of bounds memory access
   0: load (0x90)
[134]

$ gpu-run --invoke throw x.wat
gpu-run: x.wat: trap: an exception was thrown that nothing caught
   0: throw (0x7c)
[134]

$ gpu-run --invoke wait x.wat
gpu-run: x.wat: trap: deadlock: it waits for a notification that cannot come
   0: wait (0x8b)
[134]

$ gpu-run --stack 512 --invoke deep x.wat 2>&1 | tail -3
  18: deep (0x75)
  19: deep (0x75)
  ...

# Names of C++ and Rust as their source has them.
$ cat > names.wat <<'X'
> (module
>   (func $_ZN3geo5Shape4areaEid (unreachable))
>   (func $_ZN4core9panicking5panic17h0123456789abcdefE (call $_ZN3geo5Shape4areaEid))
>   (func $_RNvNtCs1234_4main4work3run (export "run")
>     (call $_ZN4core9panicking5panic17h0123456789abcdefE)))
> X

$ gpu-run --invoke run names.wat; gpu-run --instances 2 --invoke run names.wat
gpu-run: names.wat: trap: unreachable
   0: geo::Shape::area(int, double) (0x22)
   1: core::panicking::panic (0x26)
   2: main::work::run (0x2b)
2	trap: unreachable in geo::Shape::area(int, double) at 0x22
gpu-run: 2 processes, all alike: trap: unreachable in geo::Shape::area(int, double) at 0x22
[134]

$ gpu-run objdump --function 'geo::Shape::area(int, double)' names.wat
;; geo::Shape::area(int, double)
func 0 $_ZN3geo5Shape4areaEid (type 0): 3 bytes of wasm, 2 words of code, 0 slots
        |    0  enter           frame 3
  0x22  unreachable
        |    1  unreachable
  0x23  end

$ gpu-run --invoke g x.wat
gpu-run: x.wat: export "g" is a global, not a function
[1]

$ timeout --preserve-status -s INT 2 gpu-run --invoke loop x.wat
gpu-run: x.wat: interrupted
   0: loop (0x6f)
[130]

$ printf '(module (func $f (unreachable)) (start $f))' > start.wat; gpu-run start.wat; gpu-run --invoke f start.wat
gpu-run: start.wat: no _start function, so it is not a program; --invoke NAME calls another function
gpu-run: start.wat: no exported function "f": the module exports none
[1]

$ printf '(module (func (export "_start") (param i32)))' > params.wat; gpu-run MODE params.wat 1
gpu-run: params.wat: _start takes 1 argument, got 0
[1]

$ printf '(module (memory 65536) (func (export "_start")))' > large.wat; gpu-run MODE --memory 1GiB large.wat
gpu-run: large.wat: a memory of 65536 pages does not fit the limit of 16384 pages; --memory raises it
[1]

# The exit code says how a program ended, however it runs.
$ echo '(module (func $deep (call $deep)) (func (export "_start") (call $deep)))' > deep.wat
> echo '(module (tag $oops) (func (export "_start") (throw $oops)))' > throw.wat
> echo '(module (func (export "_start") unreachable))' > trap.wat
> echo '(module (func (export "_start") (loop (br 0))))' > loop.wat
> echo '(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32))) (func (export "_start") (call $exit (i32.const 3))))' > exit.wat
$ for what in deep.wat throw.wat trap.wat exit.wat '--fuel 1000 loop.wat' '--timeout 100ms loop.wat'; do
>   gpu-run MODE(alone,many,resident) --device cpu $what 2> /dev/null; echo $what: $?; done
deep.wat: 134
throw.wat: 134
trap.wat: 134
exit.wat: 3
--fuel 1000 loop.wat: 134
--timeout 100ms loop.wat: 124
$ for what in deep.wat throw.wat trap.wat exit.wat '--fuel 1000 loop.wat' '--timeout 100ms loop.wat'; do
>   gpu-run MODE(map) --device cpu $what; echo $?; done
gpu-run: line 1: trap: call stack exhausted in deep at 0x24
1
gpu-run: line 1: uncaught exception in _start at 0x28
1
gpu-run: line 1: trap: unreachable in _start at 0x23
1
gpu-run: line 1: exited with 3
1
gpu-run: line 1: out of fuel in _start at 0x25
1
gpu-run: line 1: timeout in _start at 0x25
1

# A reader that has had enough ends it without a word; a full disk does not.
$ gpu-run objdump fac.wat | head -1
sections:

$ { sleep 0.5; trap '' PIPE; gpu-run objdump fac.wat; echo $? >&2; } | true
141

$ gpu-run objdump fac.wat > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]

$ gpu-run --invoke two x.wat > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]

$ gpu-run wast sum.wast > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]

$ gpu-run --help > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]

$ gpu-run validate -v fac.wat > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]

$ gpu-run devices 2> /dev/null > /dev/full
[1]
