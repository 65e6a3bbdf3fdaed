;; What a trap looks like: mean divides by the count that it is given, and nobody checks it.
(module
  (func $mean (param $sum i32) (param $count i32) (result i32)
    (i32.div_s (local.get $sum) (local.get $count)))

  (func $report (export "report") (param $count i32) (result i32)
    (call $mean (i32.const 120) (local.get $count))))
