Machine code is kept, by module, options and machine; a damaged entry is made again.

$ echo '(module (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3))))' > x.wat
$ export GPURUN_CACHE=$PWD/kept; gpu-run cache | sed "s,$PWD/,,"
kept: 0 entries, 0 bytes

$ export GPURUN_CACHE=$PWD/kept; for fuel in "" "" "--fuel 9"; do gpu-run --device cpu --tier native $fuel --invoke f x.wat 5; done; gpu-run cache | sed "s,$PWD/,,; s/[0-9a-f]\{32\}/NAME/; s/[0-9]* bytes/N bytes/"
15
15
15
NAME  native  N bytes
NAME  native  N bytes
kept: 2 entries, N bytes

# What is damaged is dropped with a note, and made again.
$ cat > damaged <<'END'
> # damaged COMMAND: runs x.wat with entries that the command has been at.
> export GPURUN_CACHE=$PWD/kept
> rm -rf kept; gpu-run compile x.wat >/dev/null
> for file in kept/*; do eval "$1"; done
> shift
> gpu-run $* --device cpu --tier native --invoke f x.wat 6 2>&1 | sed "s,$PWD/,,; s/[0-9a-f]\{32\}/NAME/"
> gpu-run --device cpu --tier native --invoke f x.wat 7
> END

$ bash damaged 'truncate -s -1 $file'
gpu-run: dropped kept/NAME: it has not the size it should have; what it had is made again
18
21

$ bash damaged 'truncate -s 20 $file'
gpu-run: dropped kept/NAME: it is cut off; what it had is made again
18
21

$ bash damaged 'truncate -s 0 $file'
gpu-run: dropped kept/NAME: it is cut off; what it had is made again
18
21

$ bash damaged 'printf X | dd of=$file bs=1 seek=2000 conv=notrunc 2>/dev/null'
gpu-run: dropped kept/NAME: its checksum does not match; what it had is made again
18
21

$ bash damaged 'printf X | dd of=$file bs=1 seek=40 conv=notrunc 2>/dev/null'
gpu-run: dropped kept/NAME: its checksum does not match; what it had is made again
18
21

$ bash damaged 'printf X | dd of=$file bs=1 seek=20 conv=notrunc 2>/dev/null'
gpu-run: dropped kept/NAME: it has not the size it should have; what it had is made again
18
21

$ bash damaged 'printf GRCACHE9 | dd of=$file conv=notrunc 2>/dev/null'
gpu-run: dropped kept/NAME: it is of another version, or no entry at all; what it had is made again
18
21

$ bash damaged 'truncate -s 20 $file' --quiet
18
21

$ export GPURUN_CACHE=$PWD/kept; gpu-run cache --clear | sed "s,$PWD/,,"; ls kept | wc -l
kept: 0 entries, 0 bytes
0

# What somebody who is gone was writing goes too, after a while.
$ export GPURUN_CACHE=$PWD/kept; digits=0123456789abcdef; touch kept/$digits$digits.1.1; touch -d '2 hours ago' kept/$digits$digits.2.2 kept/other; gpu-run cache --clear >/dev/null; ls kept; rm kept/*
0123456789abcdef0123456789abcdef.1.1
other

$ GPURUN_CACHE= gpu-run cache
gpu-run: nothing is kept: $GPURUN_CACHE is empty
[1]
$ export GPURUN_CACHE=$PWD/kept; gpu-run compile x.wat | sed 's/in [0-9]* bytes/in N bytes/'
x.wat: 1 functions in N bytes, 0 left to the interpreter

$ gpu-run compile --emit ir x.wat | grep -c 'define.*@f0'
1

$ gpu-run compile --emit asm x.wat | grep -c '^f0:'
1

$ gpu-run compile --emit ptx x.wat | grep -m 1 -o '^.target sm_[0-9]*'
.target sm_75

$ gpu-run compile --emit wasm x.wat
gpu-run: --emit takes ir, asm or ptx, not "wasm"
[2]
