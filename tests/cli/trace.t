# --trace: a line for each system call.
$ cat > t.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "path_open"
>     (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (import "gpu" "instance_id" (func $id (result i32)))
>   (import "gpu" "debug_i32" (func $debug (param i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 16) "Hello.\n")
>   (data (i32.const 32) "in.txt")
>   (data (i32.const 64) "a line that is longer than what a trace keeps of it\n")
>   (func $print (param i32 i32)
>     (i32.store (i32.const 0) (local.get 0))
>     (i32.store (i32.const 4) (local.get 1))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (func (export "_start")
>     (call $print (i32.const 16) (i32.const 7))
>     (call $print (i32.const 64) (i32.const 52))
>     (call $print (i32.const -1) (i32.const 52))
>     (drop (call $close (i32.const 99)))
>     (drop (call $seek (i32.const 1) (i64.const -1) (i32.const 0) (i32.const 8)))
>     (drop (call $open (i32.const 3) (i32.const 1) (i32.const 32) (i32.const 6) (i32.const 0)
>       (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8)))
>     (drop (call $open (i32.const 3) (i32.const 1) (i32.const 33) (i32.const 5) (i32.const 0)
>       (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 8)))
>     (i64.store offset=24 (i32.const 1024) (i64.const 1000000))
>     (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 8)))
>     (call $debug (call $id))
>     (call $exit (i32.const 3)))
>   (func (export "often") (param i32)
>     (loop (drop (call $close (i32.const 99)))
>       (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))
> X

$ mkdir d; echo x > d/in.txt; gpu-run --trace --dir d::/ t.wat > out; cat out
fd_write(1, "Hello.\0a", 1, 8) = success, 7
fd_write(1, "a line that is longer than what "..., 1, 8) = success, 52
fd_write(1, 0, 1, 8) = fault
fd_close(99) = badf
fd_seek(1, 0xffffffffffffffff, 0, 8) = spipe
path_open(3, 1, "in.txt", 6, 0, 2, 0, 0, 8) = success, 4
path_open(3, 1, "n.txt", 5, 0, 2, 0, 0, 8) = noent
poll_oneoff(0x400, 0x800, 1, 8) = success, 1
instance_id() = 0
0
debug_i32(0)
proc_exit(3)
Hello.
a line that is longer than what a trace keeps of it

$ gpu-run --trace --dir d::/ t.wat 2> /dev/null | wc -l
2

# However it runs; of many and on a machine with the number of the process, in a map with how the input ended.
$ gpu-run MODE --trace --dir d::/ t.wat 2>&1 > /dev/null | sed 's/^process [0-9]*: //; /line 1: exited with 3/d'
fd_write(1, "Hello.\0a", 1, 8) = success, 7
fd_write(1, "a line that is longer than what "..., 1, 8) = success, 52
fd_write(1, 0, 1, 8) = fault
fd_close(99) = badf
fd_seek(1, 0xffffffffffffffff, 0, 8) = spipe
path_open(3, 1, "in.txt", 6, 0, 2, 0, 0, 8) = success, 4
path_open(3, 1, "n.txt", 5, 0, 2, 0, 0, 8) = noent
poll_oneoff(0x400, 0x800, 1, 8) = success, 1
instance_id() = 0
0
debug_i32(0)
proc_exit(3)

# Of many, with the number of the process.
$ gpu-run --trace --instances 2 t.wat 2>&1 | grep 'fd_close\|process [01]: [01]$' | sort
process 0: 0
process 0: fd_close(99) = badf
process 1: 1
process 1: fd_close(99) = badf

# None is lost, however many there are.
$ gpu-run --trace --invoke often t.wat 10000 2>&1 | sort | uniq -c
  10000 fd_close(99) = badf

$ gpu-run --trace --instances 2 --invoke often t.wat 40000 2>&1 | sort | uniq -c
      1 2	
  40000 process 0: fd_close(99) = badf
  40000 process 1: fd_close(99) = badf

$ gpu-run --trace --timeout 1s --invoke often t.wat 0 2>&1 | grep -c timeout
1
