# --report: places that cannot be written, and runs that were none.
$ echo '(func (export "_start"))' > m.wat

$ gpu-run MODE --report nowhere/r.json m.wat
gpu-run: --report nowhere/r.json: No such file or directory
[1]

$ gpu-run MODE --report . m.wat
gpu-run: --report .: Is a directory
[1]

$ gpu-run MODE --report /dev/full m.wat
gpu-run: --report /dev/full: No space left on device
[1]

$ gpu-run --instances 2 --report /dev/full m.wat
gpu-run: 2 processes, all exited with 0
gpu-run: --report /dev/full: No space left on device
[1]

$ gpu-run --report
gpu-run: --report needs a value; gpu-run --help lists the options
[2]

$ echo kept > r.json; gpu-run MODE --report r.json nowhere.wasm; cat r.json
gpu-run: nowhere.wasm: No such file or directory
kept

$ echo '--report r.json m.wat' > jobs; gpu-run batch jobs
gpu-run: jobs:1: --report is for the whole batch, not for a line
[1]
