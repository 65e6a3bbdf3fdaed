# What people type first, and mistype.
$ cp $TESTS/../../examples/fac.wat .; mkdir data; echo hello > data/x
$ cat > app.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\20\00\00\00\10\00\00\00")
>   (func (export "_start")
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (i32.store (i32.const 4) (i32.load (i32.const 8)))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
> X

# The word run can be left out. Options stand before it or behind it.
$ echo hi | gpu-run run app.wat
hi

$ gpu-run run --invoke fac fac.wat 5; gpu-run --invoke fac run fac.wat 5; gpu-run run --quiet --instances 2 --invoke=fac fac.wat {}
120
120
2	1

$ gpu-run run; gpu-run run --fule 3 app.wat
gpu-run: no file given; gpu-run --help shows how to call it
gpu-run: unknown option --fule; did you mean --fuel?
[2]

$ gpu-run run --help | head -2
run a program or a function; the word run can be left out
Usage: gpu-run [run] [OPTIONS] FILE [ARGUMENTS]

$ gpu-run -V; gpu-run help devices; gpu-run help | head -3; gpu-run help objdmp
gpu-run 0.1.0
list the devices of this machine
Usage: gpu-run devices [OPTIONS]

Options:
  -h,--help                   show this text; after a command, the command's
  --json                      print JSON

Runs WebAssembly on GPUs and CPUs: programs, functions and test scripts.
Usage: gpu-run [OPTIONS] FILE [ARGUMENTS]
       gpu-run COMMAND [OPTIONS] FILE...
gpu-run: no command objdmp; did you mean objdump?
[2]

# Commands and options that nobody has.
$ gpu-run objdmp fac.wat; gpu-run valid fac.wat; gpu-run nothing; gpu-run mpa; gpu-run vlidate.wasm
gpu-run: objdmp: no such file or command; did you mean objdump?
gpu-run: valid: no such file or command; did you mean validate?
gpu-run: nothing: No such file or directory
gpu-run: mpa: no such file or command; did you mean map?
gpu-run: vlidate.wasm: No such file or directory
[1]

$ gpu-run --instance 3 fac.wat; gpu-run --invok=fac fac.wat; gpu-run --zzz fac.wat; gpu-run -x fac.wat
gpu-run: unknown option --instance; did you mean --instances?
gpu-run: unknown option --invok=fac; did you mean --invoke?
gpu-run: unknown option --zzz; gpu-run --help shows how to call it
gpu-run: unknown option -x; gpu-run --help shows how to call it
[2]

$ gpu-run map --inn data app.wat; gpu-run objdump --header fac.wat; gpu-run compile --targt cpu fac.wat; gpu-run devices --jsn
gpu-run: unknown option --inn; did you mean --in?
gpu-run: objdump has no option --header; did you mean --headers?
gpu-run: compile has no option --targt; did you mean --target?
gpu-run: devices has no option --jsn; did you mean --json?
[2]

# An option behind the file is the program's.
$ gpu-run app.wat --fuel 3 < data/x
gpu-run: --fuel stands behind app.wat, so it goes to the program; options of gpu-run stand before the file
hello

$ gpu-run -- app.wat --fuel 3 < data/x; gpu-run app.wat --help --quiet < data/x; gpu-run app.wat -- --fuel < data/x; gpu-run -q app.wat --fuel < data/x
hello
hello
hello
hello

# One colon is not enough.
$ gpu-run --dir data:/ app.wat < /dev/null; gpu-run --dir-ro data:/x app.wat < /dev/null; gpu-run --dir nowhere:/ app.wat
gpu-run: --dir data:/: no such directory; two colons give it another name in the program: data::/
gpu-run: --dir-ro data:/x: no such directory; two colons give it another name in the program: data::/x
gpu-run: app.wat: --dir nowhere:/: cannot open the directory: no such file or directory
[1]

$ mkdir a:b; gpu-run --dir a:b app.wat < data/x; gpu-run --dir data::/ app.wat < data/x
hello
hello

# Standard input as the file.
$ gpu-run --invoke fac - 5 < fac.wat; cat fac.wat | gpu-run --instances 3 --each --invoke fac - {}
120
0	1
1	1
2	2

$ gpu-run --stdin data/x - < app.wat; gpu-run - < app.wat; gpu-run map --in data - < app.wat
hello
hello

$ gpu-run validate -v - < fac.wat; gpu-run objdump --headers - < fac.wat | head -1; echo 'app.wat' | gpu-run batch -; gpu-run wast - < $TESTS/../../examples/sum.wast
-: valid, 163 bytes, 2 functions, 0 imports, 2 exports
sections:
gpu-run: process 0: exited with 0
-: 5 passed, 0 failed

$ gpu-run - < /dev/null; gpu-run - <&-; gpu-run - < data; gpu-run map --lines - - < /dev/null
gpu-run: -: is empty, expected a WebAssembly module
gpu-run: -: Bad file descriptor
gpu-run: -: is a directory, expected a file
gpu-run: standard input cannot be the program and the lines; gpu-run map --help shows how to call it
[2]

$ gpu-run --dump dump --invoke fac - 3 < fac.wat; gpu-run --stdin - app.wat < data/x
6
hello
