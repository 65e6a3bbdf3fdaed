# What a program syncs is on the host at once, even if gpu-run is killed then.
$ mkdir d; echo first > d/log; gpu-run --device cpu --dir d::/ $TESTS/sync.wat > out & child=$!
> for i in $(seq 1000); do grep -qs synced out && break; sleep 0.01; done; kill -9 $child; wait $child 2> /dev/null; cat d/log; ls -A d
first
synced
log

$ gpu-run --device cpu --resident --dir d::/ $TESTS/sync.wat > out2 & child=$!
> for i in $(seq 1000); do grep -qs synced out2 && break; sleep 0.01; done; kill -9 $child; wait $child 2> /dev/null; cat d/log; ls -A d
first
synced
synced
log

# The files of many processes are their own.
$ gpu-run --device cpu --instances 2 --dir d::/ --timeout 1s $TESTS/sync.wat > /dev/null 2>&1; cat d/log; ls -A d
first
synced
synced
log
