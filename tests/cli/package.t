.gpu files: a module with its machine code, to ship. The machine code runs if it is trusted.

$ cat > x.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 1)
>   (func (export "_start") (call $exit (i32.const 3)))
>   (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
>   (func (export "g") unreachable))
> END

$ gpu-run compile -o x.gpu x.wat 2>&1 | sed 's/[0-9]* bytes/N bytes/g; s/(.*)/(CPU)/'
gpu-run: x.gpu: N bytes; host (CPU): 3 functions in N bytes, 0 left to the interpreter; cuda-burst: 3 functions in N bytes, 0 left to the interpreter; cuda-space: 3 functions in N bytes, 0 left to the interpreter; cuda-machine: 3 functions in N bytes, 0 left to the interpreter; cuda-interleaved: 3 functions in N bytes, 0 left to the interpreter

$ gpu-run compile -o y.gpu x.wat 2>/dev/null; cmp x.gpu y.gpu; gpu-run --quiet compile -o cpu.gpu --target cpu x.wat

$ for option in "--allow-precompiled" "--instances 3 --allow-precompiled" "--allow-precompiled --fuel 100" "--tier interp" "--tier native --allow-precompiled"; do GPURUN_CACHE= gpu-run --device cpu $option --invoke f x.gpu 5; done
15
3	15
15
15
15

# Without --allow-precompiled the module is run like any other, and a note says so.
$ for option in "" "--instances 3" "--fuel 100" "--tier interp" "--tier native"; do GPURUN_CACHE= gpu-run --device cpu $option --invoke f x.gpu 5; done 2>&1 | uniq
gpu-run: x.gpu: its machine code is not used, since nothing checks what it does; --allow-precompiled trusts it
15
gpu-run: x.gpu: its machine code is not used, since nothing checks what it does; --allow-precompiled trusts it
3	15
15
gpu-run: x.gpu: its machine code is not used, since nothing checks what it does; --allow-precompiled trusts it
15

$ GPURUN_CACHE= gpu-run --device cpu x.gpu
gpu-run: x.gpu: its machine code is not used, since nothing checks what it does; --allow-precompiled trusts it
[3]

$ GPURUN_CACHE= gpu-run --quiet --device cpu x.gpu
[3]

$ GPURUN_CACHE= gpu-run --device cpu --allow-precompiled x.gpu
[3]

$ gpu-run --device cpu --allow-precompiled --invoke g x.gpu
gpu-run: x.gpu: trap: unreachable
   0: g (0x79)
[134]

$ gpu-run --device cpu --allow-precompiled --resident x.gpu
[3]

$ echo 1 > lines; gpu-run map --allow-precompiled --device cpu --lines lines x.gpu
gpu-run: line 1: exited with 3
[1]

$ echo --allow-precompiled --invoke f x.gpu 7 > jobs; gpu-run batch --device cpu jobs
1	21

$ gpu-run validate -v x.gpu; gpu-run objdump --headers x.gpu | head -3
x.gpu: valid, 139 bytes, 3 functions, 1 import, 4 exports
sections:
    id  name            offset      size     count
     1  type               0xa        13         3

$ GPURUN_CACHE= gpu-run --device cpu --tier native --allow-precompiled --stats --invoke f x.gpu 5 2>&1 | grep tier
gpu-run: x.gpu: tier native, 3 functions of machine code, 0 in the interpreter, from the file

# A file whose machine code does something else than its module shows which of the two ran.
$ cat > honest.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "\10\00\00\00\08\00\00\00")
>   (data (i32.const 16) "honest.\nforged.\n")
>   (func (export "_start")
>     (i32.store (i32.const 0) (i32.add (i32.const 16) (i32.const 0)))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
> END

$ sed 's/const 16) (i32.const 0)/const 16) (i32.const 8)/' honest.wat > forged.wat; gpu-run --quiet compile -o honest.gpu --target cpu honest.wat; gpu-run --quiet compile -o forged.gpu --target cpu forged.wat; python3 - <<'END'
> # The module of one with the machine code of the other.
> import struct
> def parts(name):
>     content = open(name, "rb").read()[20:]
>     size = struct.unpack("<Q", content[:8])[0]
>     return content[:8 + size], content[8 + size:]
> content = parts("honest.gpu")[0] + parts("forged.gpu")[1]
> h = 0xcbf29ce484222325
> for i in range(0, len(content) - 7, 8):
>     h = ((h ^ int.from_bytes(content[i:i + 8], "little")) * 0x100000001b3) & (1 << 64) - 1
>     h ^= h >> 29
> for byte in content[len(content) & ~7:]:
>     h = ((h ^ byte) * 0x100000001b3) & (1 << 64) - 1
> start = open("honest.gpu", "rb").read()[:12]
> open("mixed.gpu", "wb").write(start + struct.pack("<Q", h ^ h >> 32) + content)
> END

$ gpu-run MODE --device cpu mixed.gpu
honest.

$ gpu-run MODE(native) --device cpu --allow-precompiled mixed.gpu
forged.

# It begins natively wherever it has an image; elsewhere it is a module like any other.
$ gpu-run --quiet compile -o cuda.gpu --target cuda x.wat; GPURUN_CACHE= gpu-run --device cpu --stats --allow-precompiled --invoke f cuda.gpu 5 2>&1 | grep -v seconds
gpu-run: cuda.gpu: tier interp
15

# An image that does not fit is left where it is, with a note.
$ grep -q ' avx512f ' /proc/cpuinfo && cpu=+amx-complex || cpu=+avx512f; gpu-run --quiet compile -o other.gpu --target cpu --cpu x86-64,$cpu x.wat; GPURUN_CACHE= gpu-run --device cpu --stats --allow-precompiled --tier native --invoke f other.gpu 5 2>&1 | sed 's/lacks.*/lacks SOMETHING/; s/compiled:.*/compiled/' | grep -v seconds
gpu-run: other.gpu: its machine code for host is not used: this CPU lacks SOMETHING
gpu-run: other.gpu: tier native, 3 functions of machine code, 0 in the interpreter, compiled
15

$ python3 - <<'END'
> # The same file of another version of gpu-run: its key is another, and its checksum right.
> import struct
> data = bytearray(open("cpu.gpu", "rb").read())
> content = data[20:]
> at = content.index(b" 22.")
> content[at + 1:at + 3] = b"21"
> h = 0xcbf29ce484222325
> for i in range(0, len(content) - 7, 8):
>     h = ((h ^ int.from_bytes(content[i:i + 8], "little")) * 0x100000001b3) & (1 << 64) - 1
>     h ^= h >> 29
> for byte in content[len(content) & ~7:]:
>     h = ((h ^ byte) * 0x100000001b3) & (1 << 64) - 1
> data[12:20] = struct.pack("<Q", h ^ h >> 32)
> open("old.gpu", "wb").write(data[:20] + content)
> END

$ GPURUN_CACHE= gpu-run --device cpu --allow-precompiled --invoke f old.gpu 5
gpu-run: old.gpu: its machine code for host is not used: it was made by another version of gpu-run
15

$ GPURUN_CACHE= gpu-run --quiet --device cpu --allow-precompiled --invoke f old.gpu 5
15

# What is damaged is not run.
$ : > bad.gpu; gpu-run MODE bad.gpu
gpu-run: bad.gpu: is empty, expected a WebAssembly module
[1]

$ head -c 3 x.gpu > bad.gpu; gpu-run bad.gpu
gpu-run: bad.gpu: is cut off: a .gpu file begins with 20 bytes
[1]

$ head -c 19 x.gpu > bad.gpu; gpu-run bad.gpu
gpu-run: bad.gpu: is cut off: a .gpu file begins with 20 bytes
[1]

$ head -c 1000 x.gpu > bad.gpu; gpu-run MODE bad.gpu
gpu-run: bad.gpu: is damaged: its checksum does not match
[1]

$ cp x.gpu bad.gpu; printf X | dd of=bad.gpu bs=1 seek=500 conv=notrunc 2>/dev/null; gpu-run validate bad.gpu
gpu-run: bad.gpu: is damaged: its checksum does not match
[1]

$ cp x.gpu bad.gpu; printf '\2' | dd of=bad.gpu bs=1 seek=4 conv=notrunc 2>/dev/null; gpu-run bad.gpu
gpu-run: bad.gpu: is a .gpu file of version 2, this gpu-run reads version 1
[1]

$ gpu-run compile -o a.gpu x.wat x.wat
gpu-run: -o takes one module, and makes one file of it
[2]

$ gpu-run compile --target cpu x.wat
gpu-run: --target and --cpu are for a file to ship: -o FILE
[2]

$ gpu-run compile -o a.gpu --target gpu x.wat
gpu-run: --target takes cpu, cuda or all, not "gpu"
[2]

$ gpu-run compile -o a.gpu --cpu nothing x.wat
gpu-run: LLVM knows no CPU nothing
[1]

$ gpu-run compile -o a.gpu --emit ir x.wat
gpu-run: --emit prints what is made; -o makes a file to run
[2]

$ gpu-run compile -o no/a.gpu x.wat
gpu-run: -o no/a.gpu: No such file or directory
[1]
