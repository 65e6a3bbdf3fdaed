;; Some of many processes need far more stack or memory than the others.
(module
  (memory 1)
  (func $down (param $n i32) (result i32)
    (if (result i32) (i32.eqz (local.get $n))
      (then (i32.load (i32.const 0)))
      (else (i32.add (local.get $n) (call $down (i32.sub (local.get $n) (i32.const 1)))))))

  (func (export "go") (param $id i32) (result i32) (local $pages i32) (local $page i32) (local $sum i32)
    (i32.store (i32.const 0) (local.get $id))
    ;; every 89th grows to 19 MiB, every 1000th to 65 MiB; then all pages are written and read
    (local.set $pages (i32.rem_u (local.get $id) (i32.const 3)))
    (if (i32.eq (i32.rem_u (local.get $id) (i32.const 89)) (i32.const 7))
      (then (local.set $pages (i32.const 300))))
    (if (i32.eq (i32.rem_u (local.get $id) (i32.const 1000)) (i32.const 3))
      (then (local.set $pages (i32.const 1000))))
    (drop (memory.grow (local.get $pages)))
    (loop $write
      (i32.store offset=8 (i32.shl (local.get $page) (i32.const 16)) (i32.add (local.get $id) (local.get $page)))
      (br_if $write (i32.lt_u (local.tee $page (i32.add (local.get $page) (i32.const 1))) (memory.size))))
    (loop $read
      (local.set $page (i32.sub (local.get $page) (i32.const 1)))
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (i32.shl (local.get $page) (i32.const 16)))))
      (br_if $read (local.get $page)))
    ;; every 97th goes deep
    (i32.add (local.get $sum)
      (call $down
        (select (i32.const 30000) (i32.rem_u (local.get $id) (i32.const 50))
          (i32.eq (i32.rem_u (local.get $id) (i32.const 97)) (i32.const 5)))))))
