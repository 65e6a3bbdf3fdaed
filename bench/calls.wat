;; System calls, for what one of them costs: n of a kind.
(module
  (import "wasi_snapshot_preview1" "clock_time_get"
    (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write"
    (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread"
    (func $fd_pread (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "............................................................64.\n")
  (data (i32.const 16) "input")
  (func $expect (param $error i32)
    (if (local.get $error) (then (unreachable))))
  (func (export "clock") (param $n i32) (result i32)
    (loop $next
      (call $expect (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 8)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (i32.const 1))
  (func (export "write64") (param $n i32) (result i32)
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 64))
    (loop $next
      (call $expect (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (i32.const 1))
  ;; A file "input" of 4 KiB at least in the first directory.
  (func (export "read4k") (param $n i32) (result i32)
    (call $expect
      (call $path_open (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 5) (i32.const 0)
        (i64.const 6) (i64.const 0) (i32.const 0) (i32.const 24)))
    (i32.store (i32.const 0) (i32.const 8192))
    (i32.store (i32.const 4) (i32.const 4096))
    (loop $next
      (call $expect
        (call $fd_pread (i32.load (i32.const 24)) (i32.const 0) (i32.const 1) (i64.const 0)
          (i32.const 8)))
      (call $expect (i32.ne (i32.load (i32.const 8)) (i32.const 4096)))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (i32.const 1))
  (func (export "nothing") (param $n i32) (result i32)
    (loop $next
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (i32.const 1)))
