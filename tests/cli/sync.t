# What a program syncs is on the host at once, even if gpu-run is killed then.
$ rm -rf d out; mkdir d; echo first > d/log; gpu-run MODE(alone,resident) --device cpu --dir d::/ $TESTS/sync.wat > out & child=$!
> for i in $(seq 1000); do grep -qs synced out && break; sleep 0.01; done; kill -9 $child; wait $child 2> /dev/null; cat d/log; ls -A d
first
synced
log

# The files of many processes are their own.
$ gpu-run MODE(many,map) --device cpu --dir d::/ --timeout 1s $TESTS/sync.wat > /dev/null 2>&1; cat d/log; ls -A d
first
synced
log
