Several modules in one launch: a job a line.
$ cp $TESTS/../../examples/*.wa* .
$ printf '%s\n' '# two jobs' '--instances 3 --invoke fac fac.wat {}' '' "--invoke 'fac_rec' fac.wat 5" > jobs
$ gpu-run batch jobs
gpu-run: job 1, fac.wat
2	1
1	2
gpu-run: job 2, fac.wat
1	120
$ printf '%s\n' '--instances 3 --invoke fac "fac.wat {}' > jobs
$ gpu-run batch jobs
gpu-run: jobs:1: a quote is not closed
[1]
$ printf '%s\n' '--device cpu --invoke fac fac.wat 1' > jobs
$ gpu-run batch jobs
gpu-run: jobs:1: --device is for the whole batch, not for a line
[1]
$ printf '%s\n' '--nonsense fac.wat 1' > jobs
$ gpu-run batch jobs
gpu-run: jobs:1: unknown option --nonsense
[1]
$ printf '%s\n' '# nothing' > jobs
$ gpu-run batch jobs
gpu-run: jobs: no jobs in it; a job is a line: [OPTIONS] FILE [ARGUMENTS]
[1]
$ gpu-run batch nowhere
gpu-run: nowhere: No such file or directory
[1]
$ gpu-run batch jobs jobs
gpu-run: batch takes one file
[2]
