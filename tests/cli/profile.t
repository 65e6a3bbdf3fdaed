# --profile: what it is not for, and places that cannot be written.
$ echo '(func (export "_start"))' > m.wat

$ gpu-run --profile nowhere/p m.wat; mkdir d.svg; gpu-run --profile d m.wat
gpu-run: --profile nowhere/p.folded: No such file or directory
gpu-run: --profile d.svg: Is a directory
[1]

$ gpu-run --profile p --instances 2 m.wat; gpu-run map --profile p --in . m.wat
gpu-run: --profile is for one process, without --instances
gpu-run: unknown option --profile; gpu-run map --help shows how to call it
[2]

$ echo '--profile p m.wat' > jobs; gpu-run batch jobs
gpu-run: jobs:1: --profile is for one process
[1]

$ ln -s /dev/full full.svg; gpu-run --profile full m.wat
gpu-run: --profile full.svg: No space left on device
[1]
