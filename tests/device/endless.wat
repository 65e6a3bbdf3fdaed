;; Three ways never to end, for the test that everything can be stopped.
(module
  (memory 1)
  (func (export "loop") (result i32)
    (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br $again))
    (unreachable))
  (func $deeper (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (i32.add (call $deeper (i32.sub (local.get $n) (i32.const 1))) (i32.const 1)))
      (else (i32.const 0))))
  (func (export "recurse") (result i32)
    (loop $again
      (drop (call $deeper (i32.const 500)))
      (br $again))
    (unreachable))
  (func (export "fill") (result i32)
    (local $value i32)
    (loop $again
      (local.set $value (i32.add (local.get $value) (i32.const 1)))
      (memory.fill (i32.const 1) (local.get $value) (i32.const 65534))
      (memory.copy (i32.const 3) (i32.const 0) (i32.const 65533))
      (br $again))
    (unreachable)))
