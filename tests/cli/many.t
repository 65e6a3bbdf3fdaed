# Many processes: the table of what happened, and the exit code.
$ cat > x.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (import "gpu" "instance_id" (func $id (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 16) "Hello.\n")
>   (func $broken unreachable)
>   (func (export "_start")
>     (i32.store (i32.const 0) (i32.const 16))
>     (i32.store (i32.const 4) (i32.const 7))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (if (i32.eq (call $id) (i32.const 5)) (then (call $broken)))
>     (if (i32.gt_u (call $id) (i32.const 97)) (then (call $exit (i32.const 3)))))
>   (func (export "f") (param i32) (result i32)
>     (i32.div_u (i32.const 10) (local.get 0)))
>   (func (export "exit") (param i32)
>     (call $exit (local.get 0))))
> X

$ gpu-run --instances 100 x.wat
gpu-run: 97 of 100 processes (the first is 0): exited with 0
Hello.
gpu-run: 2 of 100 processes (the first is 98): exited with 3
Hello.
gpu-run: process 5: trap: unreachable in broken at 0xae
Hello.
gpu-run: 100 processes ended like this:
     count   share      first  ending
        97   97.0%          0  exited with 0
         2    2.0%         98  exited with 3
         1    1.0%          5  trap: unreachable in broken at 0xae
[134]

$ gpu-run --instances 100 --out out x.wat; cat out/99.stdout; sed -n "1p;6p;99p" out/results.jsonl
gpu-run: 100 processes ended like this:
     count   share      first  ending
        97   97.0%          0  exited with 0
         2    2.0%         98  exited with 3
         1    1.0%          5  trap: unreachable in broken at 0xae
Hello.
{"process": 0, "ending": "exit", "exit_code": 0}
{"process": 5, "ending": "trap", "exit_code": 134, "trap": "unreachable", "function": "broken", "offset": 174}
{"process": 98, "ending": "exit", "exit_code": 3}

$ gpu-run --instances 3 --invoke f x.wat {}
1	trap: integer divide by zero in f at 0xe9
1	10
1	5
gpu-run: 3 processes ended like this:
     count   share      first  ending
         2   66.7%          1  returned
         1   33.3%          0  trap: integer divide by zero in f at 0xe9
[134]

$ gpu-run --instances 30 --invoke exit x.wat {} 2>&1 | tail -12
         1    3.3%          9  exited with 9
         1    3.3%         10  exited with 10
         1    3.3%         11  exited with 11
         1    3.3%         12  exited with 12
         1    3.3%         13  exited with 13
         1    3.3%         14  exited with 14
         1    3.3%         15  exited with 15
         1    3.3%         16  exited with 16
         1    3.3%         17  exited with 17
         1    3.3%         18  exited with 18
         1    3.3%         19  exited with 19
            and 10 other endings

# Quiet: nothing but output, and what goes wrong.
$ gpu-run --quiet --instances 100 x.wat
Hello.
Hello.
Hello.
gpu-run: 100 processes ended like this:
     count   share      first  ending
        97   97.0%          0  exited with 0
         2    2.0%         98  exited with 3
         1    1.0%          5  trap: unreachable in broken at 0xae
[134]

$ gpu-run -q --instances 5 x.wat
Hello.

$ echo '(func $f unreachable) (func (export "_start") (call $f))' > trap.wat; gpu-run -q --instances 2 trap.wat
gpu-run: 2 processes, all alike: trap: unreachable in f at 0x24
[134]

$ gpu-run -q nowhere.wasm; gpu-run -q --invoke f x.wat 0
gpu-run: nowhere.wasm: No such file or directory
gpu-run: x.wat: trap: integer divide by zero
   0: f (0xe9)
[134]

# Colours are for terminals.
$ terminal() { script -qec "$1" /dev/null < /dev/null | tr -d '\r' | sed 's/\x1b/ESC/g'; }; terminal 'gpu-run nowhere.wasm'; terminal 'gpu-run --instances 100 --out out2 --device cpu x.wat'
ESC[1;31mgpu-run:ESC[0m nowhere.wasm: No such file or directory
ESC[1mgpu-run:ESC[0m 100 processes ended like this:
     count   share      first  ending
        97   97.0%          0  exited with 0
ESC[31m         2    2.0%         98  exited with 3ESC[0m
ESC[31m         1    1.0%          5  trap: unreachable in broken at 0xaeESC[0m

$ terminal() { script -qec "$1" /dev/null < /dev/null | tr -d '\r' | sed 's/\x1b/ESC/g'; }; terminal 'NO_COLOR=1 gpu-run nowhere.wasm'; terminal 'gpu-run --no-color nowhere.wasm'; terminal 'NO_COLOR= gpu-run nowhere.wasm'
gpu-run: nowhere.wasm: No such file or directory
gpu-run: nowhere.wasm: No such file or directory
ESC[1;31mgpu-run:ESC[0m nowhere.wasm: No such file or directory

# A terminal shows the same, and a bar while they run.
$ terminal() { script -qec "TERM=xterm $1" /dev/null < /dev/null | tr -d '\r'; }; terminal 'gpu-run --device cpu --no-color --instances 3 --invoke f x.wat {}'
1	trap: integer divide by zero in f at 0xe9
1	10
1	5
gpu-run: 3 processes ended like this:
     count   share      first  ending
         2   66.7%          1  returned
         1   33.3%          0  trap: integer divide by zero in f at 0xe9

$ cat > long.wat <<'X'
> (func (export "f") (param i32) (local $n i32)
>   (local.set $n (i32.const 500000))
>   (loop (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
> X

$ script -qec 'TERM=xterm gpu-run --device cpu --tier interp --instances 400 --invoke f long.wat {}' /dev/null < /dev/null | tr '\r' '\n' | sed 's/\x1b\[K//' | grep -o '^gpu-run: \[#[#.]*\] [0-9]* done' | head -1
gpu-run: \[#[#.]{23}\] [0-9]+ done (re)

$ cat > slow.wat <<'X'
> (func (export "_start") (local $n i32)
>   (local.set $n (i32.const 500000))
>   (loop (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
> X

$ script -qec 'TERM=xterm gpu-run --resident --device cpu --tier interp --instances 400 slow.wat' /dev/null < /dev/null | tr '\r' '\n' | sed 's/\x1b\[K//' | grep -o '^gpu-run: \[#[#.]*\] [0-9]* done' | head -1
gpu-run: \[#[#.]{23}\] [0-9]+ done (re)

$ TERM=xterm gpu-run --device cpu --tier interp --instances 400 --invoke f long.wat {}
400	

# Tiers.
$ for tier in interp auto native fast; do gpu-run --tier $tier --invoke f x.wat 2; echo $?; done
5
0
5
0
5
0
gpu-run: unknown tier "fast"; --tier takes interp, native or auto
2

$ gpu-run --tier
gpu-run: --tier needs a value; gpu-run --help lists the options
[2]
