# gpu-run wast counts by file and in total.
$ cp $TESTS/../../examples/*.wa* .

$ gpu-run wast sum.wast
sum.wast: 5 passed, 0 failed

$ gpu-run wast sum.wast sum.wast
sum.wast: 5 passed, 0 failed
sum.wast: 5 passed, 0 failed
2 files, 0 with failures: 10 passed, 0 failed

$ gpu-run wast --quiet sum.wast sum.wast
2 files, 0 with failures: 10 passed, 0 failed

$ cat > bad.wast <<'X'
> (module (func (export "one") (result i32) (i32.const 1)))
> (assert_return (invoke "one") (i32.const 1))
> (assert_return (invoke "one") (i32.const 2))
> (assert_trap (invoke "one") "unreachable")
> (assert_invalid (module) "type mismatch")
> (invoke "two")
> X

$ gpu-run wast bad.wast
bad.wast:3: assert_return: expected (i32.const 2), got: 1
bad.wast:4: assert_trap: expected "unreachable", got: 1
bad.wast:5: assert_invalid: expected "type mismatch", but the module is fine
bad.wast:6: action: no exported func "two"
bad.wast: 1 passed, 4 failed
[1]

$ gpu-run wast --quiet sum.wast bad.wast
bad.wast:3: assert_return: expected (i32.const 2), got: 1
bad.wast:4: assert_trap: expected "unreachable", got: 1
bad.wast:5: assert_invalid: expected "type mismatch", but the module is fine
bad.wast:6: action: no exported func "two"
bad.wast: 1 passed, 4 failed
2 files, 1 with failures: 6 passed, 4 failed
[1]

$ gpu-run wast absent.wast sum.wast
gpu-run: absent.wast: No such file or directory
absent.wast: 0 passed, 1 failed
sum.wast: 5 passed, 0 failed
2 files, 1 with failures: 5 passed, 1 failed
[1]

$ printf '(module' > open.wast; gpu-run wast open.wast
gpu-run: open.wast:1:1: unexpected token: end of text, the module is not closed
open.wast: 0 passed, 1 failed
[1]

$ printf '(assert_what)' > what.wast; gpu-run wast what.wast
gpu-run: what.wast:1:2: unknown operator assert_what
what.wast: 0 passed, 1 failed
[1]
