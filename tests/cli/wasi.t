# Doors into WASI: rights, directories, the older version. Each in every mode of a run.
$ cat > rights.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "path_filestat_get" (func $stat (param i32 i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "path_create_directory" (func $mkdir (param i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $set_size (param i32 i64) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 16) "a.dnx")
>   (global $at (mut i32) (i32.const 1024))
>   (func $put (param $byte i32)
>     (i32.store8 (global.get $at) (local.get $byte))
>     (global.set $at (i32.add (global.get $at) (i32.const 1))))
>   (func $digits (param $n i32)
>     (if (i32.ge_u (local.get $n) (i32.const 10)) (then (call $digits (i32.div_u (local.get $n) (i32.const 10)))))
>     (call $put (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10)))))
>   (func $say (param $n i32) (call $digits (local.get $n)) (call $put (i32.const 32)))
>   (func $end (call $put (i32.const 10)))
>   (func $open (param $name i32) (param $oflags i32) (param $rights i64) (result i32)
>     (call $path_open (i32.const 3) (i32.const 1) (local.get $name) (i32.const 1) (local.get $oflags)
>       (local.get $rights) (i64.const -1) (i32.const 0) (i32.const 8)))
>   (func $size (param $name i32)
>     (call $say (call $stat (i32.const 3) (i32.const 1) (local.get $name) (i32.const 1) (i32.const 64)))
>     (call $say (i32.load (i32.const 96))))
>   (func (export "_start")
>     ;; What Go's O_RDONLY asks for: fd_filestat_set_size is in it.
>     (call $say (call $open (i32.const 16) (i32.const 0) (i64.const 0xff7febe)))
>     (i32.store (i32.const 0) (i32.const 32)) (i32.store (i32.const 4) (i32.const 8))
>     (call $say (call $read (i32.load (i32.const 8)) (i32.const 0) (i32.const 1) (i32.const 12)))
>     (call $say (i32.load (i32.const 12)))
>     (call $say (call $write (i32.load (i32.const 8)) (i32.const 0) (i32.const 1) (i32.const 12)))
>     (call $say (call $set_size (i32.load (i32.const 8)) (i64.const 1)))
>     (call $end)
>     ;; To write, to make, to truncate.
>     (call $say (call $open (i32.const 16) (i32.const 0) (i64.const 0x40)))
>     (call $say (call $open (i32.const 19) (i32.const 1) (i64.const 2)))
>     (call $say (call $open (i32.const 16) (i32.const 8) (i64.const 2)))
>     (call $end)
>     ;; Directories: for writing, with and without O_DIRECTORY; with rights they cannot have; their sizes.
>     (call $say (call $open (i32.const 17) (i32.const 2) (i64.const 0x42)))
>     (call $say (call $open (i32.const 18) (i32.const 0) (i64.const 0x42)))
>     (call $say (call $open (i32.const 17) (i32.const 2) (i64.const 0x6)))
>     (call $say (call $open (i32.const 18) (i32.const 0) (i64.const 0)))
>     (call $end)
>     (call $size (i32.const 17)) (call $size (i32.const 18))
>     (call $say (call $mkdir (i32.const 3) (i32.const 20) (i32.const 1)))
>     (call $size (i32.const 17)) (call $size (i32.const 20))
>     (call $end)
>     (i32.store (i32.const 0) (i32.const 1024))
>     (i32.store (i32.const 4) (i32.sub (global.get $at) (i32.const 1024)))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))))
> X

# Success is 0, isdir 31, noent 44, notcapable 76.
$ mkdir -p in/d; printf hello > in/a; gpu-run MODE --dir-ro in::/ rights.wat; cat in/a; ls in
0 0 5 76 76 
76 76 76 
31 31 0 0 
0 4096 0 4096 76 0 4096 44 4096 
helloa
d

$ rm -rf new; mkdir -p new/d; printf hello > new/a; gpu-run MODE --dir new::/ rights.wat
0 0 5 76 0 
0 0 0 
31 31 0 0 
0 4096 0 4096 0 0 4096 0 4096 

# wasi_unstable: whence is cur, end, set; a filestat has its size at 24; a clock's subscription has 56 bytes.
$ cat > unstable.wat <<'X'
> (module
>   (import "wasi_unstable" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
>   (import "wasi_unstable" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
>   (import "wasi_unstable" "fd_filestat_get" (func $stat (param i32 i32) (result i32)))
>   (import "wasi_unstable" "path_filestat_get" (func $path_stat (param i32 i32 i32 i32 i32) (result i32)))
>   (import "wasi_unstable" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_unstable" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_unstable" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 16) "a")
>   (global $at (mut i32) (i32.const 1024))
>   (func $put (param $byte i32)
>     (i32.store8 (global.get $at) (local.get $byte))
>     (global.set $at (i32.add (global.get $at) (i32.const 1))))
>   (func $say (param $n i32)
>     (if (i32.ge_u (local.get $n) (i32.const 10)) (then (call $put (i32.add (i32.const 48) (i32.div_u (local.get $n) (i32.const 10))))))
>     (call $put (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
>     (call $put (i32.const 32)))
>   (func $seek_to (param $distance i64) (param $whence i32)
>     (call $say (call $seek (i32.load (i32.const 8)) (local.get $distance) (local.get $whence) (i32.const 24)))
>     (call $say (i32.load (i32.const 24))))
>   (func (export "_start")
>     (call $say (call $path_open (i32.const 3) (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 0)
>       (i64.const 0xff7febe) (i64.const -1) (i32.const 0) (i32.const 8)))
>     (call $seek_to (i64.const 2) (i32.const 2))
>     (call $seek_to (i64.const 1) (i32.const 0))
>     (call $seek_to (i64.const -1) (i32.const 1))
>     (call $put (i32.const 10))
>     (call $say (call $stat (i32.load (i32.const 8)) (i32.const 64)))
>     (call $say (i32.load8_u (i32.const 80))) (call $say (i32.load (i32.const 84))) (call $say (i32.load (i32.const 88)))
>     (call $say (call $path_stat (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 128)))
>     (call $say (i32.load8_u (i32.const 144))) (call $say (i32.load (i32.const 148))) (call $say (i32.load (i32.const 152)))
>     (call $put (i32.const 10))
>     ;; A clock with an identifier, due in a millisecond.
>     (i64.store (i32.const 256) (i64.const 7)) (i64.store (i32.const 272) (i64.const -1))
>     (i32.store (i32.const 280) (i32.const 1)) (i64.store (i32.const 288) (i64.const 1000000))
>     (call $say (call $poll (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 24)))
>     (call $say (i32.load (i32.const 24))) (call $say (i32.load (i32.const 512)))
>     (call $put (i32.const 10))
>     (i32.store (i32.const 0) (i32.const 1024))
>     (i32.store (i32.const 4) (i32.sub (global.get $at) (i32.const 1024)))
>     (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))
>     (call $exit (i32.const 0))))
> X

$ gpu-run MODE --dir-ro in::/ unstable.wat
0 0 2 0 3 0 4 
0 4 1 5 0 4 1 5 
0 1 7 

$ echo '(import "wasi_unstable" "sock_accept" (func (param i32 i32 i32) (result i32))) (func (export "_start"))' > accept.wat; gpu-run MODE accept.wat
gpu-run: accept.wat: unknown import wasi_unstable.sock_accept (func); that module has no such function
[1]
