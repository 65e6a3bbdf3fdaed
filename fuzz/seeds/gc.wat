;; Structures, arrays, i31 and casts.
(module
  (rec
    (type $node (sub
      (struct (field $value i32) (field $small (mut i8)) (field (mut (ref null $node))))))
    (type $leaf (sub $node
      (struct (field i32) (field (mut i8)) (field (mut (ref null $node))) (field f64)))))
  (type $bytes (array (mut i8)))
  (type $words (array (mut i64)))
  (type $functions (array (mut funcref)))
  (data $data "\01\02\03\04\05\06\07\08\ff\fe\fd\fc\fb\fa\f9\f8")
  (elem $elem func $zero $zero)
  (func $zero)

  (func $structures (result i32)
    (local $n (ref null $node))
    (local.set $n
      (struct.new $leaf (i32.const 1) (i32.const -2) (struct.new_default $node) (f64.const 3)))
    (struct.set $node $small (local.get $n) (i32.const 200))
    (i32.add (struct.get $node $value (local.get $n))
      (i32.add (struct.get_s $node $small (local.get $n))
        (struct.get_u $node $small (local.get $n)))))

  (func $arrays (result i32)
    (local $b (ref null $bytes)) (local $w (ref null $words)) (local $f (ref null $functions))
    (local.set $b (array.new $bytes (i32.const 7) (i32.const 10)))
    (local.set $w (array.new_default $words (i32.const 4)))
    (local.set $w (array.new_fixed $words 2 (i64.const 1) (i64.const 2)))
    (local.set $w (array.new_data $words $data (i32.const 0) (i32.const 2)))
    (local.set $f (array.new_elem $functions $elem (i32.const 0) (i32.const 2)))
    (array.init_data $bytes $data (local.get $b) (i32.const 1) (i32.const 8) (i32.const 4))
    (array.init_elem $functions $elem (local.get $f) (i32.const 1) (i32.const 0) (i32.const 1))
    (array.fill $bytes (local.get $b) (i32.const 6) (i32.const 9) (i32.const 3))
    (array.copy $bytes $bytes
      (local.get $b) (i32.const 0) (local.get $b) (i32.const 5) (i32.const 4))
    (array.set $words (local.get $w) (i32.const 1) (i64.const 5))
    (i32.add (i32.wrap_i64 (array.get $words (local.get $w) (i32.const 1)))
      (i32.add (array.get_s $bytes (local.get $b) (i32.const 1))
        (i32.add (array.get_u $bytes (local.get $b) (i32.const 1))
          (array.len (local.get $b))))))

  (func $casts (param $any anyref) (result i32)
    (local $sum i32)
    (local.set $sum
      (i32.add (ref.test (ref $node) (local.get $any)) (ref.test (ref null i31) (local.get $any))))
    (block $number (result (ref i31))
      (block $other (result anyref)
        (drop (br_on_cast $number anyref (ref i31) (local.get $any)))
        (drop (br_on_cast_fail $other anyref (ref null struct) (local.get $any)))
        (drop (ref.cast (ref null $node) (local.get $any)))
        (drop (ref.cast (ref $node) (local.get $any)))
        (return (i32.const 1)))
      (drop)
      (return (i32.const 2)))
    (i31.get_s)
    (i32.add (i31.get_u (ref.i31 (local.get $sum)))))

  (func (export "run") (result i32)
    (drop (ref.eq (ref.null eq) (ref.i31 (i32.const 1))))
    (drop (any.convert_extern (extern.convert_any (ref.i31 (i32.const 2)))))
    (drop (call $casts (struct.new_default $leaf)))
    (drop (call $casts (array.new_default $bytes (i32.const 1))))
    (drop (call $casts (ref.i31 (i32.const -5))))
    (i32.add (call $structures) (call $arrays))))
