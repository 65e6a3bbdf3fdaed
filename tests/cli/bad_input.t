# What cannot be used is refused with a message and exit code 1; wrong options with 2.
$ cp $TESTS/../../examples/*.wat .

$ touch empty; gpu-run validate empty
gpu-run: empty: is empty, expected a WebAssembly module
[1]

$ printf 'MZ\0\0' > windows.exe; gpu-run validate windows.exe
gpu-run: windows.exe: 0x0: magic header not detected: a module begins with \0asm, text with (
[1]

$ printf '\0asm\2\0\0\0' > newer.wasm; gpu-run validate newer.wasm
gpu-run: newer.wasm: 0x4: unknown binary version: expected 1
[1]

$ printf '\0asm\1\0\0\0\1\4\1`' > cut.wasm; gpu-run validate cut.wasm
gpu-run: cut.wasm: 0x9: unexpected end: length out of bounds: section 1 has 4 bytes, 2 are left
[1]

$ mkdir folder; gpu-run validate folder
gpu-run: folder: is a directory, expected a .wasm or .wat file
[1]

$ gpu-run validate absent.wasm
gpu-run: absent.wasm: No such file or directory
[1]

$ printf '(module\n  (func (result i32)\n    i32.foo))\n' > typing_error.wat; gpu-run validate typing_error.wat
gpu-run: typing_error.wat:3:5: unknown operator i32.foo
[1]

$ printf '(module (func (result i32) f32.const 1))' > invalid.wat; gpu-run validate invalid.wat
gpu-run: invalid.wat:1:39: type mismatch: end expects i32, got f32
[1]

$ gpu-run validate fac.wat trap.wat

$ gpu-run --invoke nothing fac.wat 1
gpu-run: fac.wat: no exported function "nothing"; there are "fac", "fac_rec"
[1]

$ gpu-run --invoke fac fac.wat
gpu-run: fac.wat: fac takes 1 argument, got 0
[1]

$ gpu-run --invoke fac fac.wat 1 2
gpu-run: fac.wat: fac takes 1 argument, got 2
[1]

$ gpu-run --invoke fac fac.wat one
gpu-run: fac.wat: argument 1 of fac: "one" is not a value of type i64
[1]

$ gpu-run --invoke fac fac.wat 18446744073709551616
gpu-run: fac.wat: argument 1 of fac: "18446744073709551616" does not fit an i64
[1]

$ gpu-run MODE fac.wat
gpu-run: fac.wat: no _start function, so it is not a program; --invoke NAME calls another function
[1]

$ printf '(module (import "a" "b" (func)) (func (export "_start")))' > imports.wat; gpu-run MODE imports.wat
gpu-run: imports.wat: unknown import a.b (func); the runtime offers wasi_snapshot_preview1, wasi_unstable, gpu, wasix_32v1 and wasi
[1]

$ gpu-run
gpu-run: no file given; gpu-run --help shows how to call it
[2]

$ gpu-run --no-such-option fac.wat
gpu-run: unknown option --no-such-option; gpu-run --help shows how to call it
[2]

$ gpu-run MODE(alone,many,resident) --fuel lots fac.wat
gpu-run: --fuel takes a number of instructions, not "lots"; gpu-run --help lists the options
[2]

$ gpu-run validate
gpu-run: no file given; gpu-run --help lists the options
[2]
