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
