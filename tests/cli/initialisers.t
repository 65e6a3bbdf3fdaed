# What runs before the function: start functions, and `_initialize` of libraries. Each process has its own: what they
# read, write and how they end is the same however they run.
$ cat > lib.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (global $n (mut i32) (i32.const 1))
>   (func (export "_initialize")
>     (drop (call $sizes (i32.const 0) (i32.const 4)))
>     (global.set $n (i32.add (i32.const 40) (i32.load (i32.const 0)))))
>   (func (export "get") (param i32) (result i32) (i32.add (global.get $n) (local.get 0)))
>   (func (export "mixed") (param i64 i32 f64 v128) (result f64 i32 i64)
>     (local.get 2) (i32.add (global.get $n) (local.get 1)) (local.get 0)))
> X
$ gpu-run --device cpu --invoke get lib.wat 1
42
$ gpu-run --device cpu --instances 3 --each --invoke get lib.wat {}
0	41
1	42
2	43
$ gpu-run --device cpu --poison --instances 300 --invoke get lib.wat 1
300	42
$ gpu-run --device cpu --instances 2 --invoke mixed lib.wat 7 {} 1.5 0x00000000000000000000000000000000
1	1.5 41 7
1	1.5 42 7

# Start functions read, write, wait and exit.
$ cat > talk.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\03\00\00\00")
>   (func $start
>     (i32.store (i32.const 116) (i32.const 1))
>     (i64.store (i32.const 124) (i64.const 50000000))
>     (drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 12)))
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (func (export "_start")
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (start $start))
> X
$ printf one:two > in.txt; gpu-run MODE(alone,many,resident) --device cpu --stdin in.txt talk.wat; echo
one:tw
$ printf one:two | gpu-run --quiet --device cpu talk.wat; echo; printf one:two | gpu-run --quiet --device cpu --resident talk.wat; echo
one:tw
one:tw
$ mkdir -p inputs; printf one:two > inputs/a; printf ten:six > inputs/b
> for tier in interp native; do gpu-run --quiet map --device cpu --tier $tier --in inputs talk.wat; echo; done
one:twten:si
one:twten:si
$ cat > leave.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 1)
>   (func $start (call $exit (i32.const 3)))
>   (func (export "_start") unreachable)
>   (start $start))
> X
$ gpu-run MODE(alone,many,resident) --device cpu leave.wat 2> /dev/null
[3]

# They may run for as long as the process may, and are paid for by its fuel.
$ echo '(module (func $s (loop (br 0))) (start $s) (func (export "_start")))' > loop.wat
> for limit in '--timeout 200ms' '--fuel 1000'; do
>   gpu-run MODE(alone,many,resident) --device cpu $limit loop.wat 2> /dev/null; echo $?; done
124
134

# Children and threads of a machine's processes have them, too.
$ cat > parent.wat <<'X'
> (module
>   (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
>   (import "gpu" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "child\00")
>   (func (export "_start")
>     (drop (call $spawn (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 6)
>       (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64)))
>     (drop (call $wait (i32.const -1) (i32.const 0) (i32.const 64) (i32.const 128)))))
> X
$ gpu-run MODE(resident) --device cpu --stdin in.txt --program child=talk.wat parent.wat; echo
one:tw
$ cat > threads.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
>   (import "env" "memory" (memory 1 1 shared))
>   (export "memory" (memory 0))
>   (global $n (mut i32) (i32.const 0))
>   (func $say (param $at i32) (param $letter i32)
>     (i32.store8 offset=12 (local.get $at) (local.get $letter))
>     (i32.store (local.get $at) (i32.add (local.get $at) (i32.const 12)))
>     (i32.store offset=4 (local.get $at) (i32.const 1))
>     (drop (call $write (i32.const 1) (local.get $at) (i32.const 1) (i32.add (local.get $at) (i32.const 8)))))
>   (func $start
>     (global.set $n (i32.const 65))
>     (call $say (i32.const 100) (i32.const 115)))
>   (start $start)
>   (func (export "wasi_thread_start") (param i32 i32)
>     (call $say (i32.const 200) (global.get $n))
>     (i32.atomic.store (i32.const 0) (i32.const 1))
>     (drop (memory.atomic.notify (i32.const 0) (i32.const 1))))
>   (func (export "_start")
>     (call $say (i32.const 300) (i32.const 109))
>     (if (i32.lt_s (call $spawn (i32.const 7)) (i32.const 0)) (then unreachable))
>     (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))))
> X
$ gpu-run MODE(resident) --device cpu threads.wat; echo
smsA

# Their faults end the process, with the place.
$ echo '(module (func $f unreachable) (func $g (call $f)) (start $g) (func (export "_start")))' > trap.wat
> gpu-run MODE(alone,resident) --device cpu trap.wat
gpu-run: trap.wat: trap: unreachable
   0: f (0x28)
   1: g (0x2c)
[134]
$ gpu-run MODE(many) --device cpu trap.wat
gpu-run: process 0: trap: unreachable in f at 0x28
[134]
$ gpu-run MODE(map) --device cpu trap.wat
gpu-run: line 1: trap: unreachable in f at 0x28
[1]
$ echo '(module (memory 1) (data (i32.const 65536) "x") (func (export "_start")))' > data.wat
> gpu-run MODE(alone,resident) --device cpu data.wat
gpu-run: data.wat: trap: out of bounds memory access in its initialisation
[134]
$ gpu-run MODE(many) --device cpu data.wat
gpu-run: process 0: trap: out of bounds memory access in its initialisation
[134]
$ gpu-run --device cpu --instances 3 --report r.json trap.wat; grep -o '"traps": {[^}]*}' r.json | head -1
gpu-run: 3 processes, all alike: trap: unreachable in f at 0x28
"traps": {"unreachable": 3}
$ echo '(module (func (export "_initialize") (param i32)) (func (export "f")))' > bad.wat
> for many in '' '--instances 2'; do gpu-run --device cpu $many --invoke f bad.wat; done
gpu-run: bad.wat: _initialize has parameters or results, so it cannot be called before "f"
gpu-run: bad.wat: _initialize has parameters or results, so it cannot be called before "f"
[1]
