;; Appends a line to /log, says so, and ends when its input has.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "log")
  (data (i32.const 200) "guest\n")
  (data (i32.const 400) "\c8\00\00\00\06\00\00\00")
  (func (export "_start")
    (drop (call $open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 3) (i32.const 1)
      (i64.const 0x44) (i64.const 0) (i32.const 1) (i32.const 300)))
    (drop (call $write (i32.load (i32.const 300)) (i32.const 400) (i32.const 1) (i32.const 408)))
    (drop (call $write (i32.const 1) (i32.const 400) (i32.const 1) (i32.const 408)))
    (drop (call $read (i32.const 0) (i32.const 400) (i32.const 1) (i32.const 408)))))
