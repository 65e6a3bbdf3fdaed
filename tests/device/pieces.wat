;; Each of many processes reads a few bytes of a file that is too large to be loaded as a whole.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread" (func $pread (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "gpu" "instance_id" (func $id (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "big")
  (data (i32.const 16) "\40\00\00\00\08\00\00\00")  ;; 8 bytes at 64
  (func $must (param $errno i32) (if (local.get $errno) (then unreachable)))
  (func (export "_start")
    (call $must (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 0)
                            (i64.const 6) (i64.const 6) (i32.const 0) (i32.const 32)))
    ;; far apart, and across the ends of pieces
    (call $must (call $pread (i32.load (i32.const 32)) (i32.const 16) (i32.const 1)
                  (i64.sub (i64.mul (i64.extend_i32_u (i32.add (i32.rem_u (call $id) (i32.const 200)) (i32.const 1)))
                                    (i64.const 131072))
                           (i64.const 4))
                  (i32.const 40)))
    (call $must (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 40)))))
