;; Bulk operations, several memories, a 64-bit memory.
(module
  (memory $m 1 3)
  (memory $n 1)
  (memory $wide i64 1 2)
  (data $text "some bytes")
  (data (memory $n) (i32.const 8) "more")

  (func (export "run") (result i32)
    (memory.init $m $text (i32.const 100) (i32.const 0) (i32.const 10))
    (data.drop $text)
    (memory.fill $n (i32.const 32) (i32.const 0xaa) (i32.const 64))
    (memory.copy $m $n (i32.const 96) (i32.const 8) (i32.const 40))
    (memory.copy $m $m (i32.const 98) (i32.const 96) (i32.const 12))
    (memory.copy $wide $m (i64.const 4) (i32.const 96) (i32.const 12))
    (drop (memory.grow $m (i32.const 1)))
    (drop (memory.grow $wide (i64.const 5)))
    (i64.store $wide offset=0x100 (memory.size $wide) (i64.const -1))
    (i64.store32 $wide (i64.const 65532) (i64.load16_s $wide offset=2 (i64.const 254)))
    (i32.add
      (i32.load16_u $m offset=4 align=1 (i32.const 95))
      (i32.add (i32.load $n (i32.const 9)) (memory.size $m)))))
