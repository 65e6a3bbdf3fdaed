What runs before the function: once for one process, in the template of many; it may use WASI.
$ cat > lib.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (global $n (mut i32) (i32.const 1))
>   (func (export "_initialize")
>     (drop (call $sizes (i32.const 0) (i32.const 4)))
>     (global.set $n (i32.add (i32.const 40) (i32.load (i32.const 0)))))
>   (func (export "get") (param i32) (result i32) (i32.add (global.get $n) (local.get 0))))
> X
$ gpu-run --device cpu --invoke get lib.wat 1
42
$ gpu-run --device cpu --instances 3 --each --invoke get lib.wat {}
0	41
1	42
2	43
$ gpu-run --device cpu --poison --instances 300 --invoke get lib.wat 1
300	42
$ cat > loud.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_write"
>     (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\08\00\00\00\03\00\00\00hi\n")
>   (func $start (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16))))
>   (func (export "_start"))
>   (start $start))
> X
$ gpu-run --device cpu loud.wat
hi
$ gpu-run --device cpu --instances 3 loud.wat
gpu-run: loud.wat: its initialisation writes output, which only one process alone can have
[1]

# Of one process it may sleep and read, too.
$ cat > slow.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\06\00\00\00")
>   (func $start
>     (i32.store (i32.const 116) (i32.const 1))
>     (i64.store (i32.const 124) (i64.const 50000000))
>     (drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 12)))
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (func (export "_start")
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (start $start))
> X
$ echo input | gpu-run --device cpu slow.wat
input
