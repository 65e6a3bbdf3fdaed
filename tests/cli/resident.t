# A machine of its own: one launch in which a program runs with all that it starts.
$ cat > hello.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\08\00\00\00\06\00\00\00hello\0a")
>   (func (export "_start")
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))))
> END
> gpu-run --resident --device cpu hello.wat
hello

# Ends of the first process are its own.
$ cat > ends.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
>   (import "gpu" "getpid" (func $getpid (result i32)))
>   (import "gpu" "kill" (func $kill (param i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (func $trap unreachable)
>   (func (export "_start")
>     (drop (call $args (i32.const 0) (i32.const 4)))
>     (block (block (block (block
>       (br_table 0 1 2 3 (i32.sub (i32.load (i32.const 0)) (i32.const 1))))
>       (call $exit (i32.const 3)))
>       (call $trap))
>       (drop (call $kill (call $getpid) (i32.const 9))))
>     (loop $forever (br $forever))))
> END
> gpu-run --resident --device cpu ends.wat
[3]
$ gpu-run --resident --device cpu ends.wat 1
gpu-run: ends.wat: trap: unreachable
   0: trap (0xa6)
   1: _start (0xcd)
[134]
$ gpu-run --resident --device cpu ends.wat 1 2
[137]
$ gpu-run --resident --device cpu --timeout 200ms ends.wat 1 2 3
gpu-run: ends.wat: timeout: the time limit was reached; --timeout raises it
   0: _start (0xda)
[124]
$ gpu-run --resident --device cpu --fuel 1000 ends.wat 1 2 3
gpu-run: ends.wat: trap: out of fuel; --fuel raises the limit
   0: _start (0xda)
[134]
$ timeout --preserve-status -s INT 0.5 gpu-run --resident --device cpu ends.wat 1 2 3
gpu-run: ends.wat: interrupted
   0: _start (0xda)
[130]

# Starts "hello" and waits for it; its exit code is what wait says of how it ended, or 100 and the error.
$ cat > parent.wat <<'END'
> (module
>   (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
>   (import "gpu" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "hello\00")
>   (func (export "_start") (local $error i32)
>     (local.set $error (call $spawn (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 6)
>       (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64)))
>     (if (local.get $error) (then (call $exit (i32.add (i32.const 100) (local.get $error)))))
>     (drop (call $wait (i32.const -1) (i32.const 0) (i32.const 64) (i32.const 72)))
>     (call $exit (i32.add (i32.mul (i32.load (i32.const 72)) (i32.const 10))
>       (i32.load (i32.const 76))))))
> END
> gpu-run --resident --device cpu --program hello.wat parent.wat
hello
$ gpu-run --resident --device cpu --program hello=ends.wat parent.wat
[3]
$ gpu-run --resident --device cpu parent.wat
[144]

# What starts others runs on a machine without being told.
$ gpu-run --device cpu parent.wat
[144]

# What it did, while it runs and afterwards.
$ gpu-run --resident --device cpu --stats --timeout 1.5s ends.wat 1 2 3
    seconds  processes  lanes busy  run queue      memory  host CPU  heartbeat  launches
 +1\.0 +1 +[0-9.]+% +[0-9]+ +[0-9.]+ [KM]iB +[0-9.]+% +[0-9.]+ ms +1 (re)
 +1\.5 +1 +[0-9.]+% +[0-9]+ +[0-9.]+ [KM]iB +[0-9.]+% +[0-9.]+ ms +1 (re)
gpu-run: seconds: driver 0\.0+, .*, run [0-9.]+ (re)
gpu-run: ends.wat: timeout: the time limit was reached; --timeout raises it
   0: _start (0xda)
[124]
$ gpu-run --resident --device cpu --report report.json hello.wat; grep -c '"exits": {"0": 1}' report.json
hello
2
$ gpu-run --resident --device cpu --machine-memory 64MiB --report report.json hello.wat; grep -o '"memory_bytes": [0-9]*' report.json
hello
"memory_bytes": 67108864

# Several processes on one machine are told as several without are.
$ gpu-run --resident --device cpu --instances 3 hello.wat
gpu-run: 3 processes, all exited with 0
hello
$ gpu-run --resident --device cpu --instances 2 --each ends.wat {}
gpu-run: process 0: trap: unreachable in trap at 0xa6
gpu-run: process 1: trap: unreachable in trap at 0xa6
[134]
$ gpu-run --resident --device cpu --instances 2 --timeout 200ms ends.wat 1 2 3
gpu-run: 2 processes, all alike: timeout in _start at 0xda
gpu-run: ends.wat: timeout: the time limit was reached; --timeout raises it (0 of 2 had ended)
[124]

# What does not go together.
$ gpu-run --program hello.wat hello.wat
gpu-run: --program is for a resident machine: --resident
[2]
$ gpu-run --share 50% hello.wat
gpu-run: --share is for a resident machine: --resident
[2]
$ gpu-run --machine-memory 1GiB hello.wat
gpu-run: --machine-memory is for a resident machine: --resident
[2]
$ gpu-run --resident --machine-memory 0 hello.wat
gpu-run: --machine-memory takes a size such as 512MiB or 8GiB, not "0"; gpu-run --help lists the options
[2]
$ gpu-run --resident --device cpu --machine-memory 64KiB hello.wat
gpu-run: hello.wat: the machine cannot hold program "hello" of 11 KiB: nomem
[1]
$ gpu-run --resident --share 0% hello.wat
gpu-run: --share takes a part from 1% to 100%, not "0%"; gpu-run --help lists the options
[2]
$ gpu-run --resident --out folder hello.wat
gpu-run: --out is for many processes: --instances N
[2]
$ gpu-run --resident --instances 4 --out folder hello.wat
gpu-run: --out is not for --resident
[2]
$ gpu-run --resident --invoke f hello.wat
gpu-run: --invoke is not for --resident
[2]
$ gpu-run --resident --poison hello.wat
gpu-run: --poison is not for --resident
[2]
$ gpu-run --device cpu --poison parent.wat
gpu-run: --poison is not for a resident machine, and parent.wat needs one: it starts processes or threads
[2]
$ gpu-run --resident --device cpu --program hello.wat --program hello.wat parent.wat
gpu-run: parent.wat: there is a program "hello" already
[1]
$ gpu-run --resident --device cpu --program nowhere.wat parent.wat
gpu-run: nowhere.wat: No such file or directory
[1]

# Files that one changed are written back; of several each has its own changes, which go with it.
$ cat > write.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "path_open"
>     (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "made")
>   (func (export "_start")
>     (call $exit (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4)
>       (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32)))))
> END
> mkdir several one; gpu-run --resident --device cpu -q --instances 2 --dir several::/ write.wat; ls several
$ gpu-run --resident --device cpu --dir one::/ write.wat; ls one
made
