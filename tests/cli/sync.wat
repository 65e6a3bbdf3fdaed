;; Appends a line to /log, syncs it and writes it to standard output too, then runs for ever. Exits
;; with the first error.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_sync" (func $sync (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "log")
  (data (i32.const 200) "synced\n")
  (data (i32.const 400) "\c8\00\00\00\07\00\00\00")
  (func $check (param i32)
    (if (local.get 0) (then (call $exit (local.get 0)))))
  (func (export "_start")
    (call $check (call $open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 3) (i32.const 1)
      (i64.const 0x55) (i64.const 0) (i32.const 1) (i32.const 300)))
    (call $check (call $write (i32.load (i32.const 300)) (i32.const 400) (i32.const 1)
      (i32.const 408)))
    (call $check (call $sync (i32.load (i32.const 300))))
    (call $check (call $write (i32.const 1) (i32.const 400) (i32.const 1) (i32.const 408)))
    (loop (br 0))))
