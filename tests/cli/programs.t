# Programs: what they are given, and what is said when it cannot be given.
$ cat > hello.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 16) "Hello.\n")
>   (func (export "_start")
>     (i32.store (i32.const 0) (i32.const 16))
>     (i32.store (i32.const 4) (i32.const 7))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
> X

# Prints its arguments, variables and input, exits with the length of the input.
$ cat > show.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $arg_sizes (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "environ_sizes_get" (func $env_sizes (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "environ_get" (func $env (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 1)
>   (func $print (param $at i32) (param $size i32)
>     (i32.store (i32.const 0) (local.get $at))
>     (i32.store (i32.const 4) (local.get $size))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (func (export "_start")
>     (drop (call $arg_sizes (i32.const 16) (i32.const 20)))
>     (drop (call $args (i32.const 1024) (i32.const 4096)))
>     (call $print (i32.const 4096) (i32.load (i32.const 20)))
>     (drop (call $env_sizes (i32.const 16) (i32.const 20)))
>     (drop (call $env (i32.const 1024) (i32.const 4096)))
>     (call $print (i32.const 4096) (i32.load (i32.const 20)))
>     (i32.store (i32.const 0) (i32.const 4096))
>     (i32.store (i32.const 4) (i32.const 1000))
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (call $print (i32.const 4096) (i32.load (i32.const 8)))
>     (call $exit (i32.load (i32.const 8)))))
> X

$ gpu-run MODE hello.wat
Hello.

$ gpu-run --instances 3 hello.wat
gpu-run: 3 processes, all exited with 0
Hello.

$ gpu-run --instances 3 --each hello.wat
gpu-run: process 0: exited with 0
Hello.
gpu-run: process 1: exited with 0
Hello.
gpu-run: process 2: exited with 0
Hello.

$ gpu-run --instances 3 hello.wat 2> /dev/null
Hello.

# Arguments, variables, input.
$ gpu-run MODE(alone,resident) show.wat one 'two words' '' {} | tr '\0' '|'; echo
show.wat|one|two words||{}|

$ gpu-run MODE(alone,many,resident) --argv0 /bin/show --env A=1 --env B= --env C=x=y show.wat | tr '\0' '|'; echo
/bin/show|A=1|B=|C=x=y|

$ gpu-run MODE(map) --argv0 /bin/show --env A=1 --env B= --env C=x=y show.wat {} {} | tr '\0' '|'; echo
/bin/show|input|input|A=1|B=|C=x=y|

$ FROM_OUTSIDE=yes gpu-run MODE(alone,many,resident) --env FROM_OUTSIDE --env NOT_SET_ANYWHERE show.wat | tr '\0' '|'; echo
show.wat|FROM_OUTSIDE=yes|

$ echo input | gpu-run MODE(alone,many,resident) show.wat | tr '\0' '|'; echo ${PIPESTATUS[1]}
show.wat|input
6

$ echo input > in.txt; gpu-run --stdin in.txt --instances 2 show.wat {} 2>&1 | tr '\0' '|'; echo ${PIPESTATUS[0]}
gpu-run: process 0: exited with 6
show.wat|0|input
gpu-run: process 1: exited with 6
show.wat|1|input
6

$ gpu-run MODE(alone,many,resident) --env =x hello.wat
gpu-run: --env takes NAME=VALUE or NAME, not "=x"
[1]

$ gpu-run MODE(alone,many,resident) --env '' hello.wat
gpu-run: --env takes NAME=VALUE or NAME, not ""
[1]

$ gpu-run MODE --stdin nowhere hello.wat
gpu-run: --stdin nowhere: No such file or directory
[1]

$ gpu-run MODE(alone,many,resident) --seed -1 hello.wat
gpu-run: --seed takes a number, not "-1"; gpu-run --help lists the options
[2]

# Imports that there are none of.
$ echo '(import "env" "f" (func)) (func (export "_start"))' > env.wat; gpu-run MODE env.wat
gpu-run: env.wat: unknown import env.f (func); the runtime offers wasi_snapshot_preview1, wasi_unstable, gpu, wasix_32v1 and wasi
[1]

$ echo '(import "wasi_snapshot_preview1" "fd_wriet" (func)) (func (export "_start"))' > typo.wat; gpu-run MODE typo.wat
gpu-run: typo.wat: unknown import wasi_snapshot_preview1.fd_wriet (func); that module has no such function
[1]

$ echo '(import "env" "table" (table 1 funcref)) (func (export "_start"))' > table.wat; gpu-run MODE table.wat
gpu-run: table.wat: unknown import env.table (table); the runtime offers wasi_snapshot_preview1, wasi_unstable, gpu, wasix_32v1 and wasi
[1]

# All of them are named, up to twenty; and what the module was built for, if that can be told.
$ echo '(import "env" "f" (func)) (import "env" "g" (global i32)) (import "wasi_unstable" "fd_close" (func (param i32) (result i32))) (import "x" "y" (tag)) (func (export "_start"))' > several.wat; gpu-run MODE several.wat
gpu-run: several.wat: unknown imports env.f (func), env.g (global), x.y (tag); the runtime offers wasi_snapshot_preview1, wasi_unstable, gpu, wasix_32v1 and wasi
[1]

$ (for i in $(seq 25); do echo "(import \"m\" \"f$i\" (func))"; done; printf '(import "%0200d" "" (func)) (func (export "_start"))' 0) > lots.wat; gpu-run lots.wat; (printf '(import "%0200d" "" (func)) (func (export "_start"))' 0) > long.wat; gpu-run long.wat
gpu-run: lots.wat: unknown imports m.f1 (func), m.f2 (func), m.f3 (func), m.f4 (func), m.f5 (func), m.f6 (func), m.f7 (func), m.f8 (func), m.f9 (func), m.f10 (func), m.f11 (func), m.f12 (func), m.f13 (func), m.f14 (func), m.f15 (func), m.f16 (func), m.f17 (func), m.f18 (func), m.f19 (func), m.f20 (func) and 6 more; the runtime offers wasi_snapshot_preview1, wasi_unstable, gpu, wasix_32v1 and wasi
gpu-run: long.wat: unknown import 00000000000000000000000000000000000000000000000000000000000000000000000000000000.... (func); the runtime offers wasi_snapshot_preview1, wasi_unstable, gpu, wasix_32v1 and wasi
[1]

$ echo '(import "env" "invoke_ii" (func)) (import "env" "emscripten_resize_heap" (func)) (func (export "_start"))' > em.wat; gpu-run MODE em.wat
gpu-run: em.wat: unknown imports env.invoke_ii (func), env.emscripten_resize_heap (func); it was made by Emscripten and needs its JavaScript; build it with -sSTANDALONE_WASM, or by wasi-sdk for wasm32-wasip1
[1]

$ echo '(import "a" "a" (func)) (import "a" "b" (func)) (func (export "c"))' > minified.wat; gpu-run --invoke c minified.wat
gpu-run: minified.wat: unknown imports a.a (func), a.b (func); it was made by Emscripten and needs its JavaScript; build it with -sSTANDALONE_WASM, or by wasi-sdk for wasm32-wasip1
[1]

$ echo '(import "wbg" "__wbg_log_1" (func)) (import "__wbindgen_placeholder__" "__wbindgen_throw" (func)) (func (export "f"))' > bindgen.wat; gpu-run --invoke f bindgen.wat
gpu-run: bindgen.wat: unknown imports wbg.__wbg_log_1 (func), __wbindgen_placeholder__.__wbindgen_throw (func); it was made by wasm-bindgen and needs JavaScript; build it as a program, for wasm32-wasip1
[1]

$ echo '(import "gojs" "runtime.wasmExit" (func)) (func (export "_start"))' > go.wat; gpu-run MODE go.wat
gpu-run: go.wat: unknown import gojs.runtime.wasmExit (func); it was made by Go for JavaScript; build it with GOOS=wasip1 GOARCH=wasm
[1]

$ echo '(import "wasi:cli/stdout@0.2.0" "get-stdout" (func)) (func (export "_start"))' > later.wat; gpu-run MODE later.wat
gpu-run: later.wat: unknown import wasi:cli/stdout@0.2.0.get-stdout (func); it was made for WASI 0.2 or later; build it for wasm32-wasip1
[1]

$ printf '\0asm\15\0\1\0' > component.wasm; gpu-run MODE component.wasm; gpu-run validate component.wasm
gpu-run: component.wasm: is a component, for WASI 0.2 or later; gpu-run runs core modules: build it for wasm32-wasip1
gpu-run: component.wasm: is a component, for WASI 0.2 or later; gpu-run runs core modules: build it for wasm32-wasip1
[1]

$ printf '\0asm\15\0\1' > cut.wasm; gpu-run cut.wasm; printf '\0asm\2\0\0\0' > future.wasm; gpu-run future.wasm
gpu-run: cut.wasm: 0x7: unexpected end of the header: 7 bytes of 8
gpu-run: future.wasm: 0x4: unknown binary version: expected 1
[1]

# A memory that is imported is made as the module wants it.
$ echo '(import "env" "memory" (memory 1 4 shared)) (func (export "pages") (result i32) memory.size)' > memory.wat; gpu-run --device cpu --invoke pages memory.wat
1

$ echo '(import "wasi_snapshot_preview1" "fd_close" (func (param i64) (result i32))) (func (export "_start"))' > type.wat; gpu-run MODE type.wat
gpu-run: type.wat: incompatible import type: expected (func (param i64) (result i32)), got (func (param i32) (result i32)) (import "wasi_snapshot_preview1" "fd_close")
[1]

# Modules that are no programs.
$ echo '(func (export "f"))' > lib.wat; gpu-run MODE lib.wat
gpu-run: lib.wat: no _start function, so it is not a program; --invoke NAME calls another function
[1]

$ echo '(memory (export "_start") 1)' > not.wat; gpu-run MODE not.wat
gpu-run: not.wat: export "_start" is a memory, not a function
[1]

$ echo '(func (export "_start") (param i32))' > param.wat; gpu-run MODE param.wat 1
gpu-run: param.wat: _start takes 1 argument, got 0
[1]

# Directories.
$ gpu-run MODE --dir nowhere hello.wat; gpu-run MODE --dir-ro nowhere::/x hello.wat
gpu-run: hello.wat: --dir nowhere: cannot open the directory: no such file or directory
gpu-run: hello.wat: --dir-ro nowhere::/x: cannot open the directory: no such file or directory
[1]

$ gpu-run MODE --dir in.txt hello.wat
gpu-run: hello.wat: --dir in.txt: cannot open the directory: not a directory
[1]

$ gpu-run --dir '' hello.wat; gpu-run --dir .:: hello.wat
gpu-run: hello.wat: --dir : not a path that a program can use
gpu-run: hello.wat: --dir .::: not a path that a program can use
[1]

$ gpu-run MODE --dir .::/a --dir-ro .::/a hello.wat
gpu-run: hello.wat: --dir-ro .::/a: another directory has the same path in the program
[1]

$ gpu-run --dir
gpu-run: --dir needs a value; gpu-run --help lists the options
[2]

# Where many leave what they did.
$ gpu-run --instances 3 --out out show.wat {} < /dev/null; find out | sort; cat out/2.stdout | tr '\0' '|'; echo
gpu-run: 3 processes, all exited with 0
out
out/0.stderr
out/0.stdout
out/1.stderr
out/1.stdout
out/2.stderr
out/2.stdout
out/results.jsonl
show.wat|2|

$ gpu-run --instances 3 --out out --stdin in.txt show.wat {}; rm -r out; gpu-run --instances 3 --out out --stdin in.txt show.wat {}; cat out/2.stdout | tr '\0' '|'
gpu-run: --out out: is not empty; remove what is there, or name another folder
gpu-run: 3 processes, all exited with 6
show.wat|2|input

$ gpu-run --instances 2 --out in.txt hello.wat
gpu-run: --out in.txt: Not a directory
[1]

$ gpu-run --instances 2 --out in.txt/x hello.wat
gpu-run: --out in.txt/x: Not a directory
[1]

$ printf -- '--out out3 hello.wat\n--out ./out3 hello.wat\n' > jobs; gpu-run batch jobs
gpu-run: --out ./out3: two jobs have it; give each its own
[1]

# A file that a process calls stdout, and what it writes there, are two things.
$ cat > name.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "path_open"
>     (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\06\00\00\00")
>   (data (i32.const 16) "stdout")
>   (func (export "_start")
>     (drop (call $open (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 6) (i32.const 1)
>       (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32)))
>     (drop (call $write (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i32.const 36)))))
> X
$ mkdir empty; gpu-run --instances 2 --out named --dir empty::/ name.wat; wc -c named/1.stdout named/1/stdout
gpu-run: 2 processes, all exited with 0
0 named/1.stdout
6 named/1/stdout
6 total

# Standard input of many: all of it for each, if they read at all.
$ echo piped | gpu-run --instances 3 show.wat 2>&1 | tr '\0' '|'
gpu-run: 3 processes, all exited with 6
show.wat|piped
$ echo piped | gpu-run --instances 3 --stdin in.txt show.wat 2>&1 | tr '\0' '|'
gpu-run: 3 processes, all exited with 6
show.wat|input
$ gpu-run --instances 2 show.wat <&- 2>&1 | tr '\0' '|'; echo
gpu-run: 2 processes, all exited with 0
show.wat|
$ (sleep 0.5; echo late) | gpu-run --timeout 100ms --instances 2 show.wat
gpu-run: timeout: standard input did not end within the time limit; --timeout raises it
[124]
$ (sleep 0.5; echo late) | gpu-run --instances 2 hello.wat
gpu-run: 2 processes, all exited with 0
Hello.
$ printf -- 'show.wat\n--stdin in.txt show.wat\n' > jobs; echo piped | gpu-run batch jobs 2>&1 | tr '\0' '|'
gpu-run: job 1, show.wat
gpu-run: process 0: exited with 6
show.wat|piped
gpu-run: job 2, show.wat
gpu-run: process 0: exited with 6
show.wat|input
$ gpu-run MODE --stdin . show.wat
gpu-run: --stdin .: is a directory, expected a file
[1]

# Messages that cannot be written do not change how a program ends.
$ gpu-run MODE(alone,many,resident) --stdin in.txt show.wat 2> /dev/full > /dev/null
[6]

# What a guest notes shows while it runs, however much it is.
$ cat > notes.wat <<'X'
> (module
>   (import "gpu" "debug_i32" (func $debug (param i32)))
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\06\00\00\00")
>   (func (export "_start") (local $i i32)
>     (loop $next
>       (call $debug (local.get $i))
>       (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 9000))))
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (call $debug (i32.load8_u (i32.const 16)))))
> X
$ mkfifo pipe; : > notes.txt; (gpu-run notes.wat < pipe 2>> notes.txt &) ; exec 9> pipe; while [ $(wc -l < notes.txt) -lt 9000 ]; do sleep 0.05; done; tail -n 1 notes.txt; echo A >&9; exec 9>&-; while [ $(wc -l < notes.txt) -lt 9001 ]; do sleep 0.05; done; tail -n 1 notes.txt
8999
65
$ gpu-run MODE notes.wat < /dev/null 2>&1 | wc -l
9001
$ for flags in '--instances 3' '--resident --instances 3'; do gpu-run --quiet $flags notes.wat < /dev/null 2>&1 | wc -l; done
27003
27003

$ gpu-run --out out hello.wat; gpu-run --each hello.wat
gpu-run: --out is for many processes: --instances N
gpu-run: --each is for many processes: --instances N
[2]
