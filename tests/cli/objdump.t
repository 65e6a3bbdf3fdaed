# What is in a module: sections, declarations, and functions with the interpreter's code.
$ cp $TESTS/../../examples/*.wa* .

$ gpu-run objdump trap.wat
sections:
    id  name            offset      size     count
     1  type               0xa        12         2
     3  function          0x18         3         2
     7  export            0x1d        10         1
    10  code              0x29        19         2
     0  custom            0x3e        48         -  "name"

types:
     0  (func (param i32 i32) (result i32))
     1  (func (param i32) (result i32))

functions:
 index      offset      size  name and type
     0        0x2b         7  $mean (type 0) (param i32 i32) (result i32)
     1        0x33         9  $report (type 1) (param i32) (result i32)

exports:
    "report" func 1 $report (type 1) (param i32) (result i32)

custom sections:
    "name" 43 bytes at 0x43

func 0 $mean (type 0) (param $sum i32) (param $count i32) (result i32): 7 bytes of wasm, 3 words of code, 4 slots
        |    0  enter           frame 7
  0x2c  local.get $sum
  0x2e  local.get $count
  0x30  i32.div_s
        |    1  i32_div_s       s2 = s0, s1
  0x31  end
        |    2  ret_32          s2

func 1 $report (type 1) (param $count i32) (result i32): 9 bytes of wasm, 5 words of code, 3 slots
        |    0  enter           frame 6
  0x34  i32.const 120
  0x37  local.get $count
  0x39  call $mean
        |    1  const_32        s1 = 120
        |    2  copy_32         s2 = s0
        |    3  call            $mean, s1
  0x3b  end
        |    4  ret_32          s1

instantiate: 2 words of code
        |    0  enter           frame 3
        |    1  ret

$ gpu-run objdump --function fac fac.wat
func 0 $fac (type 0) (param $n i64) (result i64) (local $product i64): 39 bytes of wasm, 7 words of code, 8 slots
        |    0  enter           frame 11, zero 2 from s2
  0x2f  i64.const 1
  0x31  local.set $product
        |    1  const_64_k      s2 = 1
  0x33  block $B1
  0x35    loop $L2
  0x37      local.get $n
  0x39      i64.const 1
  0x3b      i64.le_u
  0x3c      br_if $B1
        |    2  br_i64_le_u_k   s0, 1 -> 6
  0x3e      local.get $product
  0x40      local.get $n
  0x42      i64.mul
        |    3  i64_mul         s2 = s2, s0
  0x43      local.set $product
  0x45      local.get $n
  0x47      i64.const 1
  0x49      i64.sub
        |    4  i64_add_k       s0 = s0, -1
  0x4a      local.set $n
  0x4c      br $L2
        |    5  br              -> 2
  0x4e    end
  0x4f  end
  0x50  local.get $product
  0x52  end
        |    6  ret_64          s2

$ gpu-run objdump --function 1 fac.wat | head -3
func 1 $fac_rec (type 0) (param $n i64) (result i64): 21 bytes of wasm, 9 words of code, 8 slots
        |    0  enter           frame 11
  0x55  local.get $n

$ gpu-run objdump --function fad fac.wat
gpu-run: fac.wat: there is no function "fad"; did you mean "fac"?
[1]

$ gpu-run objdump --function 2 fac.wat
gpu-run: fac.wat: there is no function 2: the module has 2, counted from 0
[1]

# One of everything.
$ cat > all.wat <<'X'
> (module
>   (rec (type $node (sub (struct (field (mut i32)) (field (ref null $node)))))
>        (type $leaf (sub $node (struct (field (mut i32)) (field (ref null $node)) (field i8)))))
>   (type $bytes (array (mut i8)))
>   (type $f (func (param i32) (result i32)))
>   (import "env" "log" (func $log (param i32)))
>   (import "env" "zero" (global $zero i32))
>   (table $t 4 8 funcref)
>   (table $u 1 (ref null $f) (ref.null $f))
>   (memory $m 1 2)
>   (memory $n i64 1 3 shared)
>   (tag $oops (param i32))
>   (global $g (mut i64) (i64.add (i64.const 40) (i64.const 2)))
>   (elem $e (table $t) (i32.const 1) func $id $all)
>   (elem $p (ref null $f) (ref.func $id) (ref.null $f))
>   (elem declare func $log)
>   (data $d (memory $m) (global.get $zero) "hello\n\00\ff, this is longer than what is shown of it")
>   (data $q "passive")
>   (export "memory" (memory $m))
>   (export "with space" (func $id))
>   (start $begin)
>   (func $begin)
>   (func $id (type $f) (local.get 0))
>   (func $all (param $x i32) (param f64) (result i32) (local $v v128) (local i64 i64) (local $r (ref null $node))
>     (block $a
>       (loop $b
>         (br_if $b (i32.lt_s (local.get $x) (i32.const 3)))
>         (br_table $a $b $a (local.get $x)))
>       (unreachable))
>     (br_if 0 (i32.const 1) (local.get $x))
>     (if (param i32) (result i32) (local.get $x) (then (nop)) (else (drop) (i32.const 0)))
>     (drop)
>     (block $h (result exnref)
>       (try_table (catch $oops 1) (catch_all_ref $h) (throw $oops (i32.const 1)))
>       (unreachable))
>     (drop)
>     (i64.store offset=8 align=1 (local.get $x) (i64.const -1))
>     (i32.store8 $n offset=70000 (i64.const 1) (i32.const 2))
>     (memory.copy $m $m (i32.const 0) (i32.const 8) (i32.const 4))
>     (memory.init $m $q (i32.const 0) (i32.const 0) (i32.const 7))
>     (table.init $t $e (i32.const 0) (i32.const 0) (i32.const 1))
>     (call $log (i32.const 1))
>     (drop (call_indirect $t (type $f) (i32.const 1) (i32.const 2)))
>     (local.set $v (v128.const f32x4 1 2 nan -0))
>     (local.set $v (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31 (local.get $v) (local.get $v)))
>     (drop (f32x4.extract_lane 1 (local.get $v)))
>     (local.set $r (struct.new $node (i32.const 1) (ref.null none)))
>     (struct.set $node 0 (local.get $r) (i32.const 2))
>     (drop (ref.test (ref $leaf) (local.get $r)))
>     (drop (array.new_fixed $bytes 2 (i32.const 1) (i32.const 2)))
>     (drop (select (result f32) (f32.const nan:0x200001) (f32.const -0.1) (local.get $x)))
>     (drop (f64.const 1e300))
>     (drop (ref.func $log))
>     (drop (ref.null extern))
>     (drop (i32.atomic.rmw.cmpxchg $n (i64.const 0) (i32.const 1) (i32.const 2)))
>     (return_call $id (local.get $x))))
> X

# The interpreter's code changes more often than this file should: wasm alone.
$ gpu-run objdump all.wat | grep -v ' | ' | sed 's/, [0-9]* words of code.*//'
sections:
    id  name            offset      size     count
     1  type               0xa        45         6
     2  import            0x39        23         2
     3  function          0x52         4         3
     4  table             0x58        14         2
     5  memory            0x68         7         2
    13  tag               0x71         3         1
     6  global            0x76         9         1
     7  export            0x81        23         2
     8  start             0x9a         1         -
     9  elem              0x9d        22         3
    12  data count        0xb5         1         2
    10  code              0xb9       265         3
    11  data             0x1c4        64         2
     0  custom           0x207       139         -  "name"

types:
     0  (sub (struct (field (mut i32)) (field (ref null 0))))
     1  (sub 0 (struct (field (mut i32)) (field (ref null 0)) (field i8)))
     2  (array (mut i8))
     3  (func (param i32) (result i32))
     4  (func (param i32))
     5  (func)
     6  (func (param i32 f64) (result i32))

imports:
    "env" "log" func 0 $log (type 4) (param i32)
    "env" "zero" global 0 i32

functions:
 index      offset      size  name and type
     1        0xbb         2  $begin (type 5)
     2        0xbe         4  $id (type 3) (param i32) (result i32)
     3        0xc4       254  $all (type 6) (param i32 f64) (result i32)

tables:
     0  4 8 funcref
     1  1 (ref null 3) = ref.null 3

memories:
     0  1 2
     1  i64 1 3 shared

globals:
     1  (mut i64) = i64.const 40 i64.const 2 i64.add

tags:
     0  (type 4) (param i32)

exports:
    "memory" memory 0 1 2
    "with space" func 2 $id (type 3) (param i32) (result i32)

start: func 1 $begin

elem segments:
     0  active in table 0 at i32.const 1, 2 of (ref func): $id $all
     1  passive, 2 of (ref null 3): (ref.func $id) (ref.null 3)
     2  declarative, 1 of (ref func): $log

data segments:
     0  active in memory 0 at global.get 0, 49 bytes at 0x1ca: "hello\0a\00\ff, this is longer than wh"...
     1  passive, 7 bytes at 0x1fd: "passive"

custom sections:
    "name" 134 bytes at 0x20c

func 1 $begin (type 5): 2 bytes of wasm
  0x0bc  end

func 2 $id (type 3) (param i32) (result i32): 4 bytes of wasm
  0x0bf  local.get 0
  0x0c1  end

func 3 $all (type 6) (param $x i32) (param f64) (result i32) (local $v v128) (local i64 i64) (local $r (ref null 0)): 254 bytes of wasm
  0x0cc  block $B1
  0x0ce    loop $L2
  0x0d0      local.get $x
  0x0d2      i32.const 3
  0x0d4      i32.lt_s
  0x0d5      br_if $L2
  0x0d7      local.get $x
  0x0d9      br_table $B1 $L2 $B1
  0x0de    end
  0x0df    unreachable
  0x0e0  end
  0x0e1  i32.const 1
  0x0e3  local.get $x
  0x0e5  br_if 0
  0x0e7  local.get $x
  0x0e9  if $I3 (param i32) (result i32)
  0x0eb    nop
  0x0ec  else
  0x0ed    drop
  0x0ee    i32.const 0
  0x0f0  end
  0x0f1  drop
  0x0f2  block $B4 (result exnref)
  0x0f4    try_table $T5 (catch 0 1) (catch_all_ref $B4)
  0x0fc      i32.const 1
  0x0fe      throw 0
  0x100    end
  0x101    unreachable
  0x102  end
  0x103  drop
  0x104  local.get $x
  0x106  i64.const -1
  0x108  i64.store offset=8 align=1
  0x10b  i64.const 1
  0x10d  i32.const 2
  0x10f  i32.store8 1 offset=70000
  0x115  i32.const 0
  0x117  i32.const 8
  0x119  i32.const 4
  0x11b  memory.copy
  0x11f  i32.const 0
  0x121  i32.const 0
  0x123  i32.const 7
  0x125  memory.init 1
  0x129  i32.const 0
  0x12b  i32.const 0
  0x12d  i32.const 1
  0x12f  table.init 0
  0x133  i32.const 1
  0x135  call $log
  0x137  i32.const 1
  0x139  i32.const 2
  0x13b  call_indirect (type 3)
  0x13e  drop
  0x13f  v128.const i32x4 0x3f800000 0x40000000 0x7fc00000 0x80000000
  0x151  local.set $v
  0x153  local.get $v
  0x155  local.get $v
  0x157  i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 31
  0x169  local.set $v
  0x16b  local.get $v
  0x16d  f32x4.extract_lane 1
  0x170  drop
  0x171  i32.const 1
  0x173  ref.null none
  0x175  struct.new 0
  0x178  local.set $r
  0x17a  local.get $r
  0x17c  i32.const 2
  0x17e  struct.set 0 0
  0x182  local.get $r
  0x184  ref.test (ref 1)
  0x187  drop
  0x188  i32.const 1
  0x18a  i32.const 2
  0x18c  array.new_fixed 2 2
  0x190  drop
  0x191  f32.const nan:0x200001
  0x196  f32.const -0.1
  0x19b  local.get $x
  0x19d  select (result f32)
  0x1a0  drop
  0x1a1  f64.const 1e+300
  0x1aa  drop
  0x1ab  ref.func $log
  0x1ad  drop
  0x1ae  ref.null extern
  0x1b0  drop
  0x1b1  i64.const 0
  0x1b3  i32.const 1
  0x1b5  i32.const 2
  0x1b7  i32.atomic.rmw.cmpxchg 1
  0x1bc  drop
  0x1bd  local.get $x
  0x1bf  return_call $id
  0x1c1  end

instantiate: 33 words of code

# More than one file: each under its name; what cannot be read is said, the rest is done.
$ gpu-run objdump --headers fac.wat absent.wat trap.wat | grep :
gpu-run: absent.wat: No such file or directory
fac.wat:
sections:
types:
functions:
exports:
custom sections:
trap.wat:
sections:
types:
functions:
exports:
custom sections:

$ printf '(module)' > nothing.wat; gpu-run objdump nothing.wat
sections:
    id  name            offset      size     count

instantiate: 2 words of code
       |    0  enter           frame 3
       |    1  ret
