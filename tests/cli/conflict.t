# What others change while a program runs is kept, and the program's version is put beside it.
$ rm -rf d; mkdir d; echo first > d/log; rm -f in out; mkfifo in out
> gpu-run MODE(alone,resident) --device cpu --dir d::/ $TESTS/append.wat < in > out & child=$!
> exec 3> in 4< out; read line <&4; echo host >> d/log; exec 3>&-; wait $child; echo "$line, exit code $?"; head d/*
.*'log' in 'd' was changed by others meanwhile and is kept; what the program left is in 'log.gpu-run-conflict-1' (re)
guest, exit code 1
==> d/log <==
first
host

==> d/log.gpu-run-conflict-1 <==
first
guest

# What cannot be written to its place is kept elsewhere.
$ if [ $(id -u) = 0 ]; then as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'; fi
> cp $(command -v gpu-run) $TESTS/append.wat .; chmod 755 . gpu-run
> rm -rf locked kept; mkdir locked kept; echo first > locked/log; chmod 777 kept; chmod 555 locked
> TMPDIR=$PWD/kept $as_nobody ./gpu-run MODE(alone,resident) --device cpu --dir locked::/ append.wat < /dev/null
> echo $?; cat locked/log; cat kept/gpu-run-unwritten-*/log; chmod 755 locked
guest
.*cannot write 'log' in 'locked': permission denied; what the program left is in '.*/kept/gpu-run-unwritten-......' (re)
1
first
first
guest

# Of four that append at the same time, the first to end is written and the others are beside it.
$ rm -rf four; mkdir four; echo first > four/log; for i in 1 2 3 4; do rm -f in$i out$i; mkfifo in$i out$i
> gpu-run MODE(alone,resident) --device cpu --dir four::/ $TESTS/append.wat < in$i > out$i 2> /dev/null & children+=($!); done
> exec 11> in1 12> in2 13> in3 14> in4 21< out1 22< out2 23< out3 24< out4
> for i in 1 2 3 4; do read line <&2$i; done; exec 11>&- 12>&- 13>&- 14>&-
> for child in ${children[@]}; do wait $child; codes+="$? "; done; echo $codes | tr ' ' '\n' | sort | tr '\n' ' '; echo; ls -A four
0 1 1 1 
log
log.gpu-run-conflict-1
log.gpu-run-conflict-2
log.gpu-run-conflict-3

# A run that finds what a killed one left finishes or undoes it, and says so.
$ mkdir -m 700 four/.gpu-run-transaction; echo staged > four/.gpu-run-transaction/00000000
> gpu-run --device cpu --dir four::/ $TESTS/append.wat < /dev/null; ls -A four/.gpu-run-transaction
gpu-run: undid what an interrupted run had begun to write back to 'four'
guest
ls: cannot access 'four/.gpu-run-transaction': No such file or directory
[2]

$ mkdir -m 700 four/.gpu-run-transaction; echo staged > four/.gpu-run-transaction/00000000
> printf 'gpu-run transaction 1\nplace 0 nothing 3 new\nend 1 \n' > four/.gpu-run-transaction/manifest
> gpu-run --device cpu --dir four::/ $TESTS/append.wat < /dev/null; cat four/new
gpu-run: finished what an interrupted run was writing back to 'four'
guest
staged

# It does so however it runs, and leaves what it does not understand.
$ rm -rf four; mkdir four; echo first > four/log
> mkdir -m 700 four/.gpu-run-transaction; echo staged > four/.gpu-run-transaction/00000000
> gpu-run MODE --device cpu --dir four::/ $TESTS/append.wat < /dev/null; ls -A four
> mkdir -m 700 four/.gpu-run-transaction; echo staged > four/.gpu-run-transaction/00000000
> printf 'gpu-run transaction 1\nplace 0 nothing 3 new\nend 1 \n' > four/.gpu-run-transaction/manifest
> gpu-run MODE --device cpu --dir four::/ $TESTS/append.wat < /dev/null; ls -A four; cat four/new
> mkdir -m 700 four/.gpu-run-transaction; echo garbage > four/.gpu-run-transaction/manifest
> gpu-run MODE --device cpu --dir four::/ $TESTS/append.wat < /dev/null
guest
log
guest
log
new
staged
.*'four/.gpu-run-transaction' has what an interrupted run was writing back, and this run cannot deal with it: its manifest, 0x0: expected "gpu-run transaction 1\\0a"; look into that folder and remove it (re)
[1]

# A link that is refused does not hide how the program ended.
$ cat > link.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "../x")
>   (func (export "_start")
>     (drop (call $symlink (i32.const 0) (i32.const 4) (i32.const 3) (i32.const 3) (i32.const 1)))
>     unreachable))
> X
$ rm -rf d; mkdir d; gpu-run MODE(alone,resident) --device cpu --dir d::/ link.wat 2>&1 | sed 's/link.wat: //' | sort
> echo ${PIPESTATUS[0]}; ls -A d
   0: _start \(0x[0-9a-f]+\) (re)
gpu-run: cannot make 'x' in 'd': a symbolic link that leads out of the directory, or could once names have moved
gpu-run: trap: unreachable
134
