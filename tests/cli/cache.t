Machine code is kept, by module, options and machine; a damaged entry is made again.

$ echo '(module (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3))))' > x.wat
$ export GPURUN_CACHE=$PWD/kept; gpu-run cache | sed "s,$PWD/,,"
kept: 0 entries, 0 bytes, at most 1073741824

$ export GPURUN_CACHE=$PWD/kept; for fuel in "" "" "--fuel 9"; do gpu-run --device cpu --tier native $fuel --invoke f x.wat 5; done; gpu-run cache | sed "s,$PWD/,,; s/[0-9a-f]\{32\}/NAME/; s/[0-9]* bytes/N bytes/; s/used [0-9]* s ago/used N s ago/"
15
15
15
NAME  native  N bytes, used N s ago  x.wat
NAME  native  N bytes, used N s ago  x.wat
kept: 2 entries, N bytes, at most 1073741824

# The limit is kept in the folder. What was not used for longest goes first.
$ export GPURUN_CACHE=$PWD/limited; for name in old new; do sed "s/const 3/const $(( ${#name} + RANDOM ))/" x.wat > $name.wat; gpu-run compile $name.wat; done | sed 's/[0-9]* bytes/N bytes/'; gpu-run cache | sed -n 's/.*ago  //p' | sort
old.wat: 1 functions in N bytes, 0 left to the interpreter
new.wat: 1 functions in N bytes, 0 left to the interpreter
new.wat
old.wat
$ export GPURUN_CACHE=$PWD/limited; touch -d '5 minutes ago' $(grep -l 'old.wat' limited/* -a); gpu-run cache | grep -o 'used 5 min ago.*'; size=$(gpu-run cache | sed -n 's/.*entries, \([0-9]*\) bytes.*/\1/p'); gpu-run cache --cache-size $((size - 1)) | sed -n 's/.*ago  //p'
used 5 min ago  old.wat
new.wat
$ export GPURUN_CACHE=$PWD/limited; gpu-run cache --cache-size 64KiB | tail -1 | sed "s,$PWD/,,; s/[0-9]* bytes/N bytes/"; gpu-run cache | tail -1 | sed "s,$PWD/,,; s/[0-9]* bytes/N bytes/"; gpu-run cache --cache-size much
limited: 1 entries, N bytes, at most 65536
limited: 1 entries, N bytes, at most 65536
gpu-run: --cache-size takes a size, such as 500MiB, not "much"
[2]

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

$ bash damaged 'printf X | dd of=$file bs=1 seek=50 conv=notrunc 2>/dev/null'
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
kept: 0 entries, 0 bytes, at most 1073741824
0

# What somebody who is gone was writing goes too, after a while.
$ export GPURUN_CACHE=$PWD/kept; digits=0123456789abcdef; touch kept/$digits$digits.1.1; touch -d '2 hours ago' kept/$digits$digits.2.2 kept/other; gpu-run cache --clear >/dev/null; ls kept; rm kept/*
0123456789abcdef0123456789abcdef.1.1
other

# Nothing is used that another user could have put there: neither entries nor folders.
$ umask 0; rm -rf kept; GPURUN_CACHE=$PWD/new/kept gpu-run compile x.wat >/dev/null; stat -c %a new new/kept new/kept/*
700
700
600

$ cat > h.wat <<'END'
> (module (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\07\00\00\00")
>   (data (i32.const 16) "Hello.\n")
>   (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
> END

$ cat > planted <<'END'
> # planted COMMAND ARGUMENTS...: gpu-run ARGUMENTS with an entry, or the folder, that the command has been
> # at; and once more without it.
> export GPURUN_CACHE=$PWD/kept
> rm -rf kept; gpu-run compile h.wat >/dev/null
> file=$(echo kept/*); eval "$1"; shift
> { gpu-run "$@"; gpu-run --quiet --tier native h.wat; } 2>&1 | sed "s,$PWD/,,; s/[0-9a-f]\{32\}/NAME/"
> END

$ bash planted 'rm $file; mkfifo $file' --tier native h.wat
gpu-run: ignored kept/NAME: it is no regular file; what it had is made again
Hello.
Hello.

$ bash planted 'rm $file; mkdir $file' --tier native h.wat
gpu-run: ignored kept/NAME: it is no regular file; what it had is made again
Hello.
Hello.

$ bash planted 'mv $file elsewhere; ln -s ../elsewhere $file' --tier native h.wat
gpu-run: ignored kept/NAME: it is a symbolic link; what it had is made again
Hello.
Hello.

$ bash planted 'rm $file; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"$file\")"' --tier native h.wat
gpu-run: ignored kept/NAME: it is no regular file; what it had is made again
Hello.
Hello.

$ bash planted 'chmod g+w $file' --tier native h.wat
gpu-run: ignored kept/NAME: others may write to it; what it had is made again
Hello.
Hello.

$ bash planted 'chmod o+w $file' --tier native h.wat
gpu-run: ignored kept/NAME: others may write to it; what it had is made again
Hello.
Hello.

$ bash planted 'chmod g+w kept' --tier native h.wat
gpu-run: the cache kept is not used: others may write to it
Hello.
Hello.

$ bash planted 'chmod o+w kept' --tier native h.wat
gpu-run: the cache kept is not used: others may write to it
Hello.
Hello.

$ bash planted 'mv kept far; ln -s far kept' --tier native h.wat; rm -r kept far
gpu-run: the cache kept is not used: it is no directory, or a symbolic link
Hello.
Hello.

$ bash planted 'rm -r kept; touch kept' --tier native h.wat; rm kept
gpu-run: the cache kept is not used: it is no directory, or a symbolic link
Hello.
Hello.

$ [ $(id -u) = 0 ] || { echo "skipped: only root can give files away"; exit 77; }; bash planted 'chown 12345 $file' --tier native h.wat
gpu-run: ignored kept/NAME: another user owns it; what it had is made again
Hello.
Hello.

$ [ $(id -u) = 0 ] || { echo "skipped: only root can give files away"; exit 77; }; bash planted 'chown 12345 kept' --tier native h.wat
gpu-run: the cache kept is not used: another user owns it
Hello.
Hello.

$ [ $(id -u) = 0 ] || { echo "skipped: only root can make devices"; exit 77; }; bash planted 'rm $file; mknod $file c 1 3 || ln -s /dev/null $file' --tier native h.wat
gpu-run: ignored kept/NAME: it is (no regular file|a symbolic link); what it had is made again (re)
Hello.
Hello.

# No mode of a run waits for a FIFO there, or fails.
$ bash planted 'rm $file; mkfifo $file' MODE h.wat
Hello.
Hello.

$ bash planted 'chmod o+w kept' MODE h.wat
Hello.
Hello.

# An entry may say that it is larger than it is.
$ bash damaged 'printf "\377\377\377\377\377\377\377\177" | dd of=$file bs=1 seek=16 conv=notrunc 2>/dev/null'
gpu-run: dropped kept/NAME: it has not the size it should have; what it had is made again
18
21

$ bash damaged 'truncate -s 100G $file'
gpu-run: dropped kept/NAME: it has not the size it should have; what it had is made again
18
21

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
