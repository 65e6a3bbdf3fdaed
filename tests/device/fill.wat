;; A process finds its memory as the module has it, fills it with its number, and finds nothing
;; else there afterwards. Returns its number, or minus the address of the first surprise.
(module
  (memory 2 2)
  (data (i32.const 65528) "gpu-run!")
  (global $end i32 (i32.const 131072))

  (func (export "fill") (param $id i32) (result i32)
    (local $at i32)
    (loop $look
      (if (i64.ne (i64.load (local.get $at))
                  (select (i64.const 0x216e75722d757067) (i64.const 0)
                          (i32.eq (local.get $at) (i32.const 65528))))
        (then (return (i32.sub (i32.const 0) (local.get $at)))))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $look (i32.lt_u (local.get $at) (global.get $end))))
    (local.set $at (i32.const 0))
    (loop $write
      (i32.store (local.get $at) (local.get $id))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $write (i32.lt_u (local.get $at) (global.get $end))))
    (local.set $at (i32.const 0))
    (loop $check
      (if (i32.ne (i32.load (local.get $at)) (local.get $id))
        (then (return (i32.sub (i32.const 0) (local.get $at)))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $check (i32.lt_u (local.get $at) (global.get $end))))
    (local.get $id)))
