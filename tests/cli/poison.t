The watch over gpu-run's own memory changes nothing, and finds what is spoilt.
$ cp $TESTS/../../examples/*.wa* .
$ gpu-run wast --poison sum.wast
sum.wast: 5 passed, 0 failed
$ gpu-run --poison --instances 40 --invoke fac fac.wat 5
40	120
$ gpu-run --poison-test 7 --instances 40 --invoke fac fac.wat 5 2>&1 | sed 's/[0-9][0-9]*: check/N: check/; s/, [0-9]*)/, …)/'
watch.h:N: check failed (process 7, …)
