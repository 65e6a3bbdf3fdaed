What is more than a folder's first files is read when the program reads it, small files whole and large ones in pieces.

$ cat > cat.wat <<'END'
> (module
>   (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
>   (memory (export "memory") 2)
>   ;; 0: vector; 8: count; 12: descriptor; 16: arguments; 32: a place; 64: their text; 65536: contents. The third is a
>   ;; digit: how many MiB of the file are skipped.
>   (func (export "_start") (local $name i32)
>     (drop (call $args (i32.const 16) (i32.const 64)))
>     (local.set $name (i32.load (i32.const 20)))
>     (if (call $open (i32.const 3) (i32.const 0) (local.get $name)
>           (i32.sub (i32.sub (i32.load (i32.const 24)) (i32.const 1)) (local.get $name))
>           (i32.const 0) (i64.const 6) (i64.const 0) (i32.const 0) (i32.const 12))
>       (then unreachable))
>     (drop (call $seek (i32.load (i32.const 12)) (i64.shl (i64.sub (i64.load8_u (i32.load (i32.const 24)))
>       (i64.const 48)) (i64.const 20)) (i32.const 0) (i32.const 32)))
>     (loop
>       (i32.store (i32.const 0) (i32.const 65536))
>       (i32.store (i32.const 4) (i32.const 50000))
>       (if (call $read (i32.load (i32.const 12)) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
>       (i32.store (i32.const 4) (i32.load (i32.const 8)))
>       (if (i32.load (i32.const 8)) (then
>         (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
>         (br 1))))))
> END
$ mkdir in; for i in 1 2 3 4 5 6 7 8 9; do head -c 1000000 /dev/urandom > in/a$i; done; head -c 20000 /dev/urandom > in/small; head -c 300001 /dev/urandom > in/middle; head -c 5000001 /dev/urandom > in/x; : > in/zero
$ for mode in "" "--instances 1" "--resident"; do for file in small middle x zero; do gpu-run --quiet --device cpu $mode --dir-ro in::/ cat.wat $file 0 | cmp - in/$file; done; done
$ for mode in "" "--instances 1" "--resident"; do gpu-run --quiet --device cpu $mode --dir-ro in::/ cat.wat x 3 | cmp - <(tail -c +3145729 in/x); done
