# Files that are no files, or not to be read (exit code 1).
$ cp $TESTS/../../examples/*.wa* .

$ gpu-run MODE fac.wat/x
gpu-run: fac.wat/x: Not a directory
[1]

$ gpu-run ''
gpu-run: no file given; gpu-run --help shows how to call it
[2]

$ mkdir -p folder; gpu-run MODE folder; gpu-run wast folder; gpu-run objdump folder
gpu-run: folder: is a directory, expected a .wasm or .wat file
gpu-run: folder: is a directory, expected a file
folder: 0 passed, 1 failed
gpu-run: folder: is a directory, expected a .wasm or .wat file
[1]

$ gpu-run MODE /dev/null
gpu-run: /dev/null: is empty, expected a WebAssembly module
[1]

$ gpu-run MODE /dev/zero
gpu-run: /dev/zero: 0x0: magic header not detected: a module begins with \0asm, text with (
[1]

$ gpu-run <(yes)
gpu-run: /dev/fd/63: 0x0: magic header not detected: a module begins with \0asm, text with (
[1]

# Root may read everything, nobody may not.
$ cp fac.wat secret.wat; chmod 000 secret.wat; chmod 755 .
$ if [ $(id -u) = 0 ]; then as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'; fi
> if $as_nobody test -x $(command -v gpu-run) 2> /dev/null; then
>   $as_nobody gpu-run --invoke fac secret.wat 3
> else
>   echo nobody cannot run it
> fi; true
gpu-run: secret.wat: Permission denied|nobody cannot run it (re)

# A pipe is as good as a file.
$ mkfifo pipe; cat fac.wat > pipe & gpu-run --invoke fac pipe 5
120

$ gpu-run --invoke fac /dev/stdin 5 < fac.wat
120

$ gpu-run --invoke fac <(cat fac.wat) 5
120

$ ln -sf nowhere link.wat; gpu-run MODE link.wat
gpu-run: link.wat: No such file or directory
[1]

$ ln -sfn loop.wat loop.wat; gpu-run MODE loop.wat
gpu-run: loop.wat: Too many levels of symbolic links
[1]

# Names that would harm a terminal.
$ gpu-run $'\e[31mred.wat'
gpu-run: \1b[31mred.wat: No such file or directory
[1]

$ echo '(func (export "\1b[31m"))' > red.wat; gpu-run --invoke red red.wat
gpu-run: red.wat: no exported function "red"; there is "\1b[31m"
[1]

$ printf '\xff\xfe(module)' > utf16.wat; gpu-run validate utf16.wat
gpu-run: utf16.wat: 0x0: magic header not detected: a module begins with \0asm, text with (
[1]

$ printf '   \n\n' > blank.wat; gpu-run validate -v blank.wat
blank.wat: valid, 8 bytes, 0 functions, 0 imports, 0 exports

$ printf '\0' > zero; gpu-run validate zero
gpu-run: zero: 0x1: unexpected end of the header: 1 bytes of 8
[1]

$ printf '\0asm\1\0' > cut; gpu-run validate cut
gpu-run: cut: 0x6: unexpected end of the header: 6 bytes of 8
[1]
