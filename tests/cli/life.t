# How processes wait, stop and end, which is the same however they run.
#
# A wait for a notification that nobody gives ends by its time limit.
$ cat > wait.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1 1 shared)
>   (data (i32.const 0) "\08\00\00\00\02\00\00\00?\0a")
>   (func (export "_start")
>     (i32.store8 (i32.const 8) (i32.add (i32.const 48)
>       (memory.atomic.wait32 (i32.const 64) (i32.const 0) (i64.const 20000000))))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))))
> END
> gpu-run MODE --device cpu wait.wat
2
$ cat > alone.wat <<'END'
> (module (memory 1 1 shared)
>   (func (export "wait") (param i64) (result i32)
>     (memory.atomic.wait64 (i32.const 0) (i64.const 0) (local.get 0))))
> END
> for count in '' '--instances 1' '--instances 3'; do
>   gpu-run --device cpu $count --invoke wait alone.wat 20000000; done
2
1	2
3	2
$ gpu-run --device cpu --timeout 100ms --instances 2 --invoke wait alone.wat 60000000000
2	timeout in wait at 0x33
gpu-run: 2 processes, all alike: timeout in wait at 0x33
[124]
$ gpu-run --device cpu --instances 2 --invoke wait alone.wat -1
2	waits for a notification that cannot come in wait at 0x33
gpu-run: 2 processes, all alike: waits for a notification that cannot come in wait at 0x33
[134]

# Signals stop a run; what it has changed is written back.
$ cat > stay.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "path_open"
>     (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "made")
>   (func (export "_start")
>     (drop (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4)
>       (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32)))
>     (loop $forever (br $forever))))
> END
> for signal in INT TERM HUP; do
>   rm -rf d; mkdir d
>   timeout --preserve-status -s $signal 0.7 gpu-run MODE(alone,resident) --device cpu --dir d::/ stay.wat 2>/dev/null
>   echo $? $(ls d); done
130 made
143 made
129 made
$ timeout --preserve-status -s TERM 0.7 gpu-run MODE(alone,resident,interp) --device cpu stay.wat
gpu-run: stay.wat: ended by SIGTERM
   0: _start (0x7c)
[143]

# Output that cannot be written loses no files.
$ cat > print.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "path_open"
>     (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "made")
>   (data (i32.const 16) "\00\04\00\00\00\04\00\00")
>   (func (export "_start") (local $i i32)
>     (drop (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4)
>       (i32.const 1) (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 32)))
>     (memory.fill (i32.const 1024) (i32.const 46) (i32.const 1024))
>     (loop $more
>       (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 32)))
>       (br_if $more (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 300))))))
> END
> rm -rf d; mkdir d; gpu-run MODE(alone,resident) --device cpu --dir d::/ print.wat 2>/dev/null >/dev/full; echo $? $(ls d)
1 made
$ gpu-run --device cpu --report r.json --dir d::/ print.wat >/dev/full; grep -o '"others": {[^}]*}' r.json | head -1
gpu-run: print.wat: cannot write to standard output: No space left on device
"others": {"failed": 1}

# Whatever ended a run, its processes are in the report, and what they had written is told.
$ cat > hi.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\03\00\00\00")
>   (data (i32.const 16) "hi\n")
>   (func (export "_start")
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
>     (drop (call $read (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8)))
>     (loop $forever (br $forever))))
> END
> others() { grep -o '"others": {[^}]*}' r.json | head -1; }
> gpu-run MODE(alone,many,resident) --device cpu --timeout 300ms --report r.json hi.wat 2> /dev/null; echo $?; others
> timeout --preserve-status -s TERM 0.7 gpu-run MODE(alone,many,resident) --device cpu --report r.json hi.wat 2> /dev/null; echo $?; others
hi
124
"others": {"timeout": 1}
hi
143
"others": {"interrupted": 1}
$ others() { grep -o '"others": {[^}]*}' r.json | head -1; }
> gpu-run --device cpu -q --resident --instances 2 --timeout 300ms --report r.json hi.wat; others
> mkfifo never; exec 9<> never
> for many in '--instances 2' '--resident --instances 2'; do
>   timeout --preserve-status -s TERM 0.7 gpu-run --device cpu $many --report r.json hi.wat < never; echo $?; others
>   gpu-run --device cpu --timeout 300ms $many --report r.json hi.wat < never; echo $?; others; done
gpu-run: 2 processes, all alike: timeout in _start at 0x97
hi
gpu-run: hi.wat: timeout: the time limit was reached; --timeout raises it (0 of 2 had ended)
"others": {"timeout": 2}
gpu-run: ended by SIGTERM before standard input had ended
143
"others": {"interrupted": 2}
gpu-run: timeout: standard input did not end within the time limit; --timeout raises it
124
"others": {"timeout": 2}
gpu-run: ended by SIGTERM before standard input had ended
143
"others": {"interrupted": 2}
gpu-run: timeout: standard input did not end within the time limit; --timeout raises it
124
"others": {"timeout": 2}
$ rm -f r.json; gpu-run MODE(alone,resident) --device cpu --report r.json --dir d::/ print.wat > /dev/full; echo $?; grep -c '"failed": 1\|exit_code": 1' r.json
gpu-run: print.wat: cannot write to standard output: No space left on device
1
[1-9] (re)
$ rm -f r.json; gpu-run MODE --device cpu --report r.json --dir d::/ print.wat | head -c 1; echo " ${PIPESTATUS[0]}"; grep -o '"exit_code": 141' r.json
. 141
"exit_code": 141

# What nobody reads any more need not run on.
$ cat > many_lines.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "gpu" "instance_id" (func $id (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\02\00\00\00")
>   (data (i32.const 16) ".\n")
>   (func (export "_start")
>     (loop $forever (br_if $forever (i32.gt_u (call $id) (i32.const 1))))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
> END
> (seq 2; sleep 0.5; seq 20) | timeout 10 gpu-run -q map --device cpu --jobs 2 --lines - many_lines.wat | true; echo ${PIPESTATUS[1]}
141

# What many write goes to the host while they run, and is all there in the end.
$ for size in 1 4KiB 1MiB; do gpu-run --device cpu -q --output-buffer $size --instances 2 --each --dir d::/ print.wat | wc -c; done
614400
614400
614400
$ sed 's/i32.const 300/i32.const 3000/' print.wat > large.wat
> for size in 4KiB 1MiB; do gpu-run --device cpu -q --output-buffer $size --resident --instances 2 --each --dir d::/ large.wat | tr -d . | wc -c; done
> gpu-run --device cpu -q --resident --instances 2 --each --dir d::/ large.wat | wc -c
0
0
6144000
$ TMPDIR=/nowhere gpu-run --device cpu -q --resident --instances 2 --dir d::/ large.wat > /dev/null
gpu-run: large.wat: cannot keep output of processes in /nowhere: No such file or directory; TMPDIR names another folder
[1]
$ TMPDIR=/nowhere gpu-run --device cpu -q --instances 2 --dir d::/ print.wat | wc -c; echo ${PIPESTATUS[0]}
gpu-run: cannot keep output of processes in /nowhere: No such file or directory; TMPDIR names another folder
0
1

# A fault of a child is told, though its parent may not ask.
$ cat > parent.wat <<'END'
> (module
>   (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
>   (import "gpu" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "child\00")
>   (func (export "_start")
>     (drop (call $spawn (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 6)
>       (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64)))
>     (drop (call $wait (i32.const -1) (i32.const 0) (i32.const 64) (i32.const 128)))))
> END
> echo '(module (func $f unreachable) (func (export "_start") (call $f)))' > trap.wat
> gpu-run --device cpu --tier interp --program child=trap.wat --resident parent.wat
gpu-run: child, process 16386: trap: unreachable
   0: f (0x24)
   1: _start (0x28)
$ gpu-run MODE(resident) --device cpu --program child=trap.wat parent.wat
$ gpu-run --resident --device cpu --fuel 1000 --program child=<(echo '(module (func (export "_start") (loop (br 0))))') parent.wat
gpu-run: child, process 16386: out of fuel
   0: _start (0x25)
$ gpu-run MODE(alone,resident) --device cpu trap.wat
gpu-run: trap.wat: trap: unreachable
   0: f (0x24)
   1: _start (0x28)
[134]

# Of a deep stack twenty frames are told, however it runs and whoever started it.
$ cat > deep.wat <<'END'
> (module
>   (func $deep (block $h (try_table (catch_all $h) (call $deep)) (return)) (call $deep))
>   (func (export "_start") (call $deep)))
> END
> gpu-run MODE(alone,resident) --device cpu deep.wat 2>&1 | tail -4
  17: deep (0x2b)
  18: deep (0x2b)
  19: deep (0x2b)
  ...
$ for tier in interp native; do
>   gpu-run --resident --device cpu --tier $tier --program child=deep.wat parent.wat 2>&1 | sed '2,19d'; done
gpu-run: child, process 16386: trap: call stack exhausted
  18: deep (0x2b)
  19: deep (0x2b)
  ...
gpu-run: child, process 16386: trap: call stack exhausted
  18: deep (0x2b)
  19: deep (0x2b)
  ...

# System calls of a machine's processes are traced as those of others.
$ gpu-run --resident --device cpu --trace --program child=trap.wat parent.wat
process 16385: spawn("child", 5, 0, 6, 0, 0, 0, 0xffffffff, 64) = 0
gpu-run: child, process 16386: trap: unreachable
   0: f (0x24)
   1: _start (0x28)
process 16385: wait(0xffffffff, 0, 64, 128) = 0

# Who has waited goes before those who never yield. Beside a thousand of these, 20 children one after another take less
# time than it takes until one of the thousand has its turn again: one more of them is told that time, and ends when it
# has waited longer for its turn. Where there are lanes for all of them it would wait for ever: an argument leaves it out.
$ cat > spawner.wat <<'END'
> (module
>   (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
>   (import "gpu" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
>   (import "gpu" "kill" (func $kill (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "hog\00")
>   (data (i32.const 32) "nop\00")
>   (func $start (param $name i32) (param $size i32) (param $pid i32)
>     (if (call $spawn (local.get $name) (i32.const 3) (local.get $name) (local.get $size)
>       (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (local.get $pid)) (then unreachable)))
>   (func $finish (param $pid i32)
>     (drop (call $wait (i32.load (local.get $pid)) (i32.const 0) (i32.const 68) (i32.const 128))))
>   (func $now (result i64)
>     (drop (call $clock (i32.const 1) (i64.const 1) (i32.const 256)))
>     (i64.load (i32.const 256)))
>   (func (export "_start") (local $i i32) (local $taken i64)
>     (loop $hogs
>       (call $start (i32.const 0) (i32.const 4) (i32.add (i32.const 1024) (i32.shl (local.get $i) (i32.const 2))))
>       (br_if $hogs (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))
>     (local.set $i (i32.const 0))
>     (local.set $taken (call $now))
>     (loop $nops
>       (call $start (i32.const 32) (i32.const 4) (i32.const 64))
>       (call $finish (i32.const 64))
>       (br_if $nops (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20))))
>     (local.set $taken (i64.sub (call $now) (local.get $taken)))
>     ;; An argument for the hog: a letter for each four bits.
>     (loop $letters
>       (i32.store8 offset=3 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))
>         (i32.add (i32.const 97) (i32.and (i32.wrap_i64 (local.get $taken)) (i32.const 15))))
>       (local.set $taken (i64.shr_u (local.get $taken) (i64.const 4)))
>       (br_if $letters (i32.gt_u (local.get $i) (i32.const 1))))
>     (drop (call $sizes (i32.const 264) (i32.const 268)))
>     (if (i32.eq (i32.load (i32.const 264)) (i32.const 1))
>       (then (call $start (i32.const 0) (i32.const 24) (i32.const 64)) (call $finish (i32.const 64))))
>     (local.set $i (i32.const 0))
>     (loop $kills
>       (drop (call $kill (i32.load offset=1024 (i32.shl (local.get $i) (i32.const 2))) (i32.const 9)))
>       (br_if $kills (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000))))))
> END
$ cat > hog.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
>   (memory (export "memory") 1)
>   (func $now (result i64)
>     (drop (call $clock (i32.const 1) (i64.const 1) (i32.const 256)))
>     (i64.load (i32.const 256)))
>   (func (export "_start") (local $at i32) (local $taken i64) (local $last i64) (local $gap i64)
>     (drop (call $sizes (i32.const 0) (i32.const 4)))
>     (drop (call $args (i32.const 16) (i32.const 64)))
>     (loop $for_ever (br_if $for_ever (i32.eq (i32.load (i32.const 0)) (i32.const 1))))
>     (local.set $at (i32.load (i32.const 20)))
>     (loop $letters
>       (local.set $taken (i64.or (i64.shl (local.get $taken) (i64.const 4))
>         (i64.extend_i32_u (i32.sub (i32.load8_u (local.get $at)) (i32.const 97)))))
>       (br_if $letters (i32.load8_u (local.tee $at (i32.add (local.get $at) (i32.const 1))))))
>     (local.set $last (call $now))
>     (loop $turns
>       (local.set $gap (i64.sub (call $now) (local.get $last)))
>       (local.set $last (i64.add (local.get $last) (local.get $gap)))
>       (br_if $turns (i64.lt_u (local.get $gap) (local.get $taken))))))
> END
> echo '(module (func (export "_start")))' > nop.wat
> gpu-run MODE(resident) --device cpu --program hog.wat --program nop.wat spawner.wat
