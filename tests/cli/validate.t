# gpu-run validate says nothing of what is valid; errors have a byte offset, or line and column.
$ cp $TESTS/../../examples/*.wa* .

$ gpu-run validate fac.wat trap.wat

$ gpu-run validate --verbose fac.wat trap.wat
fac.wat: valid, 163 bytes, 2 functions, 0 imports, 2 exports
trap.wat: valid, 110 bytes, 2 functions, 0 imports, 1 export

$ printf '\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0\n\5\1\3\0\x6a\x0b' > invalid.wasm; gpu-run validate invalid.wasm
gpu-run: invalid.wasm: 0x17: type mismatch: i32.add expects i32, got nothing
[1]

$ printf '\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0\n\5\1\3\0\xff\x0b' > malformed.wasm; gpu-run validate malformed.wasm
gpu-run: malformed.wasm: 0x17: illegal opcode ff
[1]

# Every file is looked at; one bad one makes the exit code.
$ cat > invalid.wat <<'X'
> (module
>   (memory 1)
>   (func (param f32) (result i32)
>     (i32.add
>       (i32.const 1)
>       (local.get 0))))
> X

$ gpu-run validate invalid.wat fac.wat absent.wat
gpu-run: invalid.wat:4:6: type mismatch: i32.add expects i32, got f32
gpu-run: absent.wat: No such file or directory
[1]

$ printf '(module (func (call $nothing)))' > unknown.wat; gpu-run validate unknown.wat
gpu-run: unknown.wat:1:21: unknown func $nothing
[1]

$ printf '(module\n  (func)' > open.wat; gpu-run validate open.wat
gpu-run: open.wat:2:9: unexpected token: end of text, the module is not closed
[1]
