# --dump, and inspect: the state of what trapped.
$ cat > x.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1 2)
>   (data (i32.const 1024) "a string in memory")
>   (global $count (export "count") (mut i32) (i32.const 7))
>   (global $ratio (mut f64) (f64.const 0.5))
>   (func $mean (param $sum i32) (param $count i32) (result i32) (local $half i64)
>     (local.set $half (i64.const -2))
>     (i32.div_s (local.get $sum) (local.get $count)))
>   (func (export "report") (param $count i32) (result i32) (local f32 externref)
>     (global.set $count (local.get $count))
>     (i32.store (i32.const 2048) (i32.const 0x12345678))
>     (call $mean (i32.const 120) (local.get $count)))
>   (func $deep (export "deep") (param i32) (call $deep (i32.add (local.get 0) (i32.const 1))))
>   (func (export "_start")))
> X

$ gpu-run --dump d --invoke report x.wat 0; find d -type f | sort
gpu-run: x.wat: trap: integer divide by zero
   0: mean (0xa7)
   1: report (0xc4)
d/0/memory.0
d/0/state
d/module.wasm

$ gpu-run inspect d/0
x.wat, process 0: trap: integer divide by zero
   0: mean (0xa7)
        sum: i32 = 120 (0x78)
        count: i32 = 0 (0x0)
        half: i64 = -2 (0xfffffffffffffffe)
   1: report (0xc4)
        count: i32 = 0 (0x0)
        local 1: f32 = 0
        local 2: ref = null
globals:
        count: i32 = 0 (0x0)
        global 1: f64 = 0.5
memory 0: 65536 bytes

$ gpu-run inspect --memory 0x7f8 24 d/0
000007f8  00 00 00 00 00 00 00 00  78 56 34 12 00 00 00 00  |........xV4.....|
00000808  00 00 00 00 00 00 00 00                           |........|

$ gpu-run inspect --strings 6 d/0; gpu-run inspect --memory 1030 3 d/0
00000400  a string in memory
00000406  6e 67 20                                          |ng |

# Nothing trapped, nothing is there but the module.
$ gpu-run --dump e --invoke report x.wat 2; find e -type f
60
e/module.wasm

$ gpu-run --dump f --invoke deep x.wat 0 2> /dev/null; gpu-run inspect f/0 | sed 's/[0-9]* more/N more/' | tail -6
        local 0: i32 = 261143 (0x3fc17)
      and N more frames
globals:
        count: i32 = 7 (0x7)
        global 1: f64 = 0.5
memory 0: 65536 bytes

# What is no dump, or a broken one.
$ gpu-run inspect; gpu-run inspect nowhere; gpu-run inspect d; gpu-run inspect --memory 1 d/0
gpu-run: no file given; gpu-run --help lists the options
gpu-run: nowhere/state: No such file or directory
gpu-run: d: choose one of the processes in it, such as d/0
gpu-run: --memory takes an address and a size, such as 0x400 64
[2]

$ gpu-run inspect --memory 0x10000 1 d/0; gpu-run inspect --memory-number 1 --strings 4 d/0; gpu-run inspect --strings 0 d/0
gpu-run: 0x10000 is past the end of memory 0, which has 0x10000 bytes
gpu-run: there is no memory 1; the module has 1
gpu-run: --strings takes a number of characters, not "0"; gpu-run --help lists the options
[2]

$ cp -r d b; echo x > b/0/state; gpu-run inspect b/0; head -3 d/0/state > b/0/state; gpu-run inspect b/0
gpu-run: b/0/state: not a dump of gpu-run
gpu-run: b/0/state: does not fit the module beside it, or is cut off
[1]

$ sed 's/^frame .*/frame 99 0/' d/0/state > b/0/state; gpu-run inspect b/0; sed 's/^global.*/global x/' d/0/state > b/0/state; gpu-run inspect b/0
gpu-run: b/0/state:5: a line that no dump has
gpu-run: b/0/state:7: a line that no dump has
[1]

$ cp d/0/state b/0/state; truncate -s 10 b/0/memory.0; gpu-run inspect --strings 4 b/0; rm b/0/memory.0; gpu-run inspect --memory 0 1 b/0; echo > b/module.wasm; gpu-run inspect b/0
gpu-run: b/0/memory.0: is shorter than the memory it is of
gpu-run: b/0/memory.0: no such file or directory
gpu-run: b/0/state:5: a line that no dump has
[1]

# Places that cannot be written.
$ gpu-run --dump x.wat --invoke report x.wat 0; gpu-run --dump /proc/nowhere --invoke report x.wat 0
gpu-run: --dump x.wat: Not a directory
gpu-run: --dump /proc/nowhere: No such file or directory
[1]

$ mkdir -p g; touch g/0; gpu-run --dump g --invoke report x.wat 0
gpu-run: --dump g/0: Not a directory
gpu-run: x.wat: trap: integer divide by zero
   0: mean (0xa7)
   1: report (0xc4)
[134]

# Of many, those that trapped; a hundred of a job at the most.
$ gpu-run --dump m --instances 5 --invoke report x.wat {} 2>&1 | head -2; find m -type f | sort
1	trap: integer divide by zero in mean at 0xa7
1	120
m/0/memory.0
m/0/state
m/module.wasm

$ gpu-run inspect m/0 | head -4; gpu-run --instances 3 --dump n --invoke report x.wat 7; ls n
x.wat, process 0: trap: integer divide by zero
   0: mean (0xa7)
        sum: i32 = 120 (0x78)
        count: i32 = 0 (0x0)
3	17
module.wasm

$ gpu-run --dump many --instances 300 --invoke report x.wat 0 2>&1 | head -1; ls many | wc -l; gpu-run inspect many/$(ls many | grep -v module | tail -1) | sed 's/process [0-9]*/process N/' | head -4
gpu-run: 300 processes trapped, the state of 100 of them is dumped
101
x.wat, process N: trap: integer divide by zero
   0: mean (0xa7)
        sum: i32 = 120 (0x78)
        count: i32 = 0 (0x0)

$ printf '%s\n' '--dump one --invoke report x.wat 0' '--instances 2 --dump two --invoke deep x.wat {}' '--invoke report x.wat 0' > jobs; gpu-run batch jobs 2> /dev/null; ls one two; gpu-run inspect two/1 | tail -1
1	trap: integer divide by zero in mean at 0xa7
2	trap: call stack exhausted in deep at 0xc9
1	trap: integer divide by zero in mean at 0xa7
one:
0
module.wasm

two:
0
1
module.wasm
memory 0: 65536 bytes

$ printf '%s\n' '--dump one x.wat' '--dump one x.wat' > jobs; gpu-run batch jobs
gpu-run: --dump one: two jobs have it; give each its own
[1]

$ mkdir -p full; touch full/1; gpu-run --dump full --instances 3 --invoke report x.wat 0 2>&1 | grep -- --dump
gpu-run: --dump full/1: Not a directory

# The same in every mode.
$ cat > p.wat <<'X'
> (module
>   (memory (export "memory") 1)
>   (global $seen (mut i32) (i32.const 0))
>   (func $mean (param $sum i32) (param $count i32) (result i32)
>     (i32.div_s (local.get $sum) (local.get $count)))
>   (func (export "_start")
>     (i32.store (i32.const 16) (i32.const 0x64636261))
>     (global.set $seen (i32.const 3))
>     (drop (call $mean (i32.const 120) (i32.load (i32.const 20))))))
> X

$ rm -rf p; gpu-run MODE --dump p p.wat 2> /dev/null; find p -type f | sed 's:/[0-9]*/:/N/:' | sort; gpu-run inspect p/[0-9]* | sed 's/process [0-9]*/process N/'; gpu-run inspect --memory 16 4 p/[0-9]*
p/N/memory.0
p/N/state
p/module.wasm
p.wat, process N: trap: integer divide by zero
   0: mean (0x44)
        sum: i32 = 120 (0x78)
        count: i32 = 0 (0x0)
   1: _start (0x5f)
globals:
        global 0: i32 = 3 (0x3)
memory 0: 65536 bytes
00000010  61 62 63 64                                       |abcd|

# An exception that nothing caught, and no fuel left.
$ echo '(tag $t) (func (export "_start") (throw $t))' > throws.wat; rm -rf t; gpu-run MODE(alone,resident,interp) --dump t throws.wat 2> /dev/null; gpu-run inspect t/0
throws.wat, process 0: uncaught exception
   0: _start (0x28)

$ echo '(func (export "_start") (loop (br 0)))' > spins.wat; rm -rf t; gpu-run MODE(alone,resident) --fuel 1000 --dump t spins.wat 2> /dev/null; gpu-run inspect t/0
spins.wat, process 0: out of fuel
   0: _start (0x25)

# What cannot be written is told, and the program's own ending stays what it is.
$ rm -rf q; mkdir q; touch q/0 q/1; gpu-run MODE --dump q p.wat 2>&1 | grep -- --dump
gpu-run: --dump q/[01]: Not a directory (re)

# On a machine: a process that another started, whether that waits for it or not, has its pid as its number, and its own module.
$ cat > starts.wat <<'X'
> (module
>   (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "p\00")
>   (func (export "_start")
>     (if (call $spawn (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 2)
>           (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64))
>       (then (unreachable)))))
> X

$ rm -rf r; for tier in interp native; do gpu-run --quiet --device cpu --tier $tier --resident --dump r --program p.wat starts.wat; done; find r -type f | sed 's:/[0-9]*/:/N/:' | sort -u; gpu-run inspect $(ls -d r/[0-9]* | head -1) | sed 's/process [0-9]*/process N/' | head -4
r/N/memory.0
r/N/state
r/module.1.wasm
r/module.wasm
p.wat, process N: trap: integer divide by zero
   0: mean (0x44)
        sum: i32 = 120 (0x78)
        count: i32 = 0 (0x0)

$ sed -i 's/^module 1$/module 7/' r/[0-9]*/state; gpu-run inspect $(ls -d r/[0-9]* | head -1) 2>&1 | sed 's:/[0-9][0-9]*/:/N/:'; sed -i 's/^module 7$/module x/' r/[0-9]*/state; gpu-run inspect $(ls -d r/[0-9]* | head -1) 2>&1 | sed 's:/[0-9][0-9]*/:/N/:'
gpu-run: r/N/../module.7.wasm: No such file or directory
gpu-run: r/N/state:2: a line that no dump has

# Many on a machine have the numbers that they have elsewhere; a hundred at the most are there.
$ rm -rf s; gpu-run --device cpu --resident --instances 300 --dump s p.wat 2>&1 | grep dumped; ls s | wc -l; rm -rf s; gpu-run --quiet --device cpu --resident --instances 3 --dump s p.wat 2> /dev/null; ls s
gpu-run: 300 processes trapped, the state of 100 of them is dumped
101
0
1
2
module.wasm

$ rm -rf l; seq 300 | gpu-run map --device cpu --jobs 10 --lines - --dump l p.wat 2>&1 | grep dumped; ls l | wc -l
gpu-run: 300 processes trapped, the state of 100 of them is dumped
101
