# --profile: the stacks of every mode, and places that cannot be written.
$ echo '(func (export "_start"))' > m.wat

$ gpu-run MODE --profile nowhere/p m.wat; mkdir -p d.svg; gpu-run MODE --profile d m.wat
gpu-run: --profile nowhere/p.folded: No such file or directory
gpu-run: --profile d.svg: Is a directory
[1]

$ echo '(func $spin (loop (br 0))) (func (export "_start") (call $spin))' > spins.wat

$ rm -f p.*; gpu-run MODE --profile p --timeout 500ms spins.wat 2> /dev/null; cut -d' ' -f1 p.folded; grep -c 'spin (' p.svg
_start;spin
1

# Some at once, together; jobs of a batch, each for itself.
$ gpu-run --quiet --instances 3 --profile p --timeout 500ms spins.wat 2>&1 | grep 'spin$'; gpu-run --quiet --resident --instances 3 --profile p --timeout 500ms spins.wat 2>&1 | grep 'spin$'
  100.0%  100.0%  spin
  100.0%  100.0%  spin

$ echo '(func $count (local i32) (loop (br_if 0 (i32.ne (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 30000000))))) (func (export "_start") (call $count))' > counts.wat

$ printf '%s\n' '--profile one counts.wat' '--instances 2 --profile two counts.wat' 'm.wat' > jobs; gpu-run batch jobs 2> /dev/null; cut -d' ' -f1 one.folded two.folded
_start;count
_start;count

$ printf '%s\n' '--profile one m.wat' '--profile one m.wat' > jobs; gpu-run batch jobs
gpu-run: --profile one.folded: two jobs have it; give each its own
[1]

$ gpu-run --instances 2 --profile p m.wat 2>&1 | grep profile
gpu-run: no profile: they ended before anybody looked at them; give them more to do

# On a machine with several programs their names come first.
$ cat > starts.wat <<'X'
> (module
>   (import "gpu" "spawn" (func $spawn (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
>   (memory (export "memory") 1)
>   (data (i32.const 0) "spins\00")
>   (func (export "_start")
>     (drop (call $spawn (i32.const 0) (i32.const 5) (i32.const 0) (i32.const 6)
>       (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64)))))
> X

$ gpu-run --quiet --resident --profile p --timeout 500ms --program spins.wat starts.wat 2> /dev/null; cut -d' ' -f1 p.folded
spins;_start;spin

$ ln -sf /dev/full full.svg; gpu-run MODE --profile full m.wat
gpu-run: --profile full.svg: No space left on device
[1]
