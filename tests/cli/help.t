# What people read first.
$ gpu-run --version
gpu-run 0.1.0

$ gpu-run --help
Runs WebAssembly: programs, functions and test scripts.
Usage: gpu-run [OPTIONS] FILE [ARGUMENTS]
       gpu-run COMMAND [OPTIONS] FILE...

Options:
  -h,--help                   this text; after a command, of the command
  --version                   the version
  --invoke NAME               call this exported function instead of _start
  --device DEVICE             where to run: auto (a GPU if there is one), cpu, cuda, cuda:N
  --tier TIER                 how to run: interp, native (machine code), auto (first interp, then native)
  --layout LAYOUT             how memories of many processes lie on a GPU: linear, interleaved, auto
  --allow-precompiled         run the machine code of a .gpu file, as if it were an executable
  --instances N               as many processes; {} in an argument is the process's number
  --each                      with --instances: a line for each process
  --stats                     say what took how long; with --resident a line a second too
  --trace                     a line for each system call, on standard error
  --profile NAME              show where its time goes; NAME.folded and NAME.svg have its stacks
  --dump DIR                  write the state of processes that trap, for gpu-run inspect
  --report FILE               write what happened to a file, as JSON
  --fuel N                    stop after that many instructions
  --timeout TIME              stop after that time: 10s, 0.5, 200ms
  --stack N                   call stack, in slots of 4 bytes: 1048576
  --heap N                    heap of objects, in words of 4 bytes
  --memory SIZE               most that a memory may grow to: 64KiB, 1GiB
  --output-buffer SIZE        output that a process may be ahead of gpu-run, then it waits: 64KiB
  --dir HOST[::GUEST] ...     let the program use a directory, and write back what it changed there
  --dir-ro HOST[::GUEST] ...  the same, but only to read
  --env NAME[=VALUE] ...      a variable of the program's environment
  --argv0 NAME                the program's name, as it sees it
  --stdin FILE                standard input from a file; all of many processes get all of it
  --out DIR                   with --instances: a new folder for what each wrote and changed, and how it ended
  --resident                  boot the device as a machine of its own, on which the program can start others
  --program [NAME=]FILE ...   with --resident: one more program, for others to start by its name
  --share PERCENT             with --resident: the part of its time that the device may be busy
  --machine-memory SIZE       with --resident: memory for programs and processes, else half of what is free
  --seed N                    random numbers that repeat
  --poison                    watch over gpu-run itself: canaries and poison in its memory
  -q,--quiet                  say nothing but what goes wrong
  --no-color                  no colours, not even on a terminal; as does NO_COLOR in the environment


Commands:
  wast                        run scripts of the official test suite's language
  batch                       run several programs or functions at once, one a line of a file
  map                         run a program for each of many inputs: files of a folder, or lines
  compile                     make machine code of modules, to keep or to ship
  cache                       list the machine code that is kept
  devices                     list the devices that are here
  validate                    check modules without running them
  objdump                     show what is in modules, with the interpreter's code
  inspect                     show what --dump wrote of a process

Examples:
  gpu-run --invoke fac fac.wat 20      call an exported function, print its results
  gpu-run app.wasm                     run a program: its _start function
  gpu-run --timeout 10s app.wasm       the same, but no longer than that
  gpu-run --dir data::/ app.wasm x     the same with an argument, and a folder as its /
  gpu-run --instances 9 --invoke fac fac.wat {}   nine processes at once, {} is 0 to 8
  gpu-run map --in data --out results app.wasm    a process for each file of a folder
  gpu-run --instances 9 --report run.json app.wasm   and what happened, as JSON
  gpu-run --resident --program x=count.wasm app.wasm   a program that can start another as x
  gpu-run --trace app.wasm             a line for each system call
  gpu-run --profile app app.wasm       where its time goes: app.svg, app.folded
  gpu-run --dump dump app.wasm         the state it traps in, if it does: gpu-run inspect dump/0
  gpu-run devices                      where it can run
  gpu-run compile app.wasm             machine code for later runs
  gpu-run compile -o app.gpu app.wasm  and as a file to ship, for --allow-precompiled app.gpu
  gpu-run cache                        what is kept of machine code
  gpu-run validate app.wasm            is it a valid module?
  gpu-run objdump app.wasm | less      what is in it, with the interpreter's code
  gpu-run wast test.wast               run a script of the official test suite's language

A FILE is a binary module, text (.wat), or what compile -o made (.gpu). Options of gpu-run stand
before it; whatever follows is for the program, or the arguments of the function: numbers as wasm's
text writes them, such as -5, 0xff, 1.5e3, inf or nan:0x200000.

Exit codes: 0 or the program's own; 1 bad input; 2 wrong options; 124 the time is over;
130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP;
134 a trap, an exception that nothing caught, or no fuel left.

$ gpu-run objdump --help
show what is in modules, with the interpreter's code
Usage: gpu-run objdump [OPTIONS] FILE...

Arguments:
  FILE ...                    modules (.wasm or .wat)

Options:
  -h,--help                   this text; after a command, of the command
  --headers                   everything but the functions' instructions
  --function F                only this function, by index or name


$ gpu-run validate --help
check modules without running them
Usage: gpu-run validate [OPTIONS] FILE...

Arguments:
  FILE ...                    modules (.wasm or .wat)

Options:
  -h,--help                   this text; after a command, of the command
  -v,--verbose                say something of valid ones too


$ gpu-run wast --help
run scripts of the official test suite's language
Usage: gpu-run wast [OPTIONS] FILE...

Arguments:
  FILE ...                    scripts (.wast)

Options:
  -h,--help                   this text; after a command, of the command
  -q,--quiet                  only the files with failures, and the total
  --device DEVICE             where to run: auto, cpu, cuda, cuda:N
  --tier TIER                 how to run: interp, native, auto
  --poison                    watch over gpu-run itself: canaries and poison in its memory


# The examples of the help, as written.
$ cp $TESTS/../../examples/*.wa* .; cp sum.wast test.wast
$ echo '(func (export "_start"))' > app.wasm

$ gpu-run --invoke fac fac.wat 20
2432902008176640000

$ gpu-run app.wasm

$ gpu-run --timeout 10s app.wasm

$ gpu-run --instances 9 --invoke fac fac.wat {} | head -3
2	1
1	2
1	6

$ gpu-run devices 2> /dev/null | grep -o '^cpu'
cpu

$ gpu-run validate app.wasm

$ gpu-run objdump app.wasm | tail -3
instantiate: 2 words of code
        |    0  enter           frame 3
        |    1  ret

$ gpu-run wast test.wast
test.wast: 5 passed, 0 failed

# Of the other commands.
$ for command in batch devices inspect; do gpu-run $command --help | head -n -1; done
run several programs or functions at once, one a line of a file
Usage: gpu-run batch [OPTIONS] FILE...

Arguments:
  FILE ...                    a file with a job a line: [OPTIONS] FILE [ARGUMENTS]

Options:
  -h,--help                   this text; after a command, of the command
  --device DEVICE             where to run: auto, cpu, cuda, cuda:N
  --stats                     say what took how long
  --report FILE               write what happened to a file, as JSON
  --timeout TIME              stop after that time: 10s, 0.5, 200ms
list the devices that are here
Usage: gpu-run devices [OPTIONS]

Options:
  -h,--help                   this text; after a command, of the command
  --json                      for programs to read
show what --dump wrote of a process
Usage: gpu-run inspect [OPTIONS] DUMP

Arguments:
  DUMP                        DIR/<number>, below the folder of --dump

Options:
  -h,--help                   this text; after a command, of the command
  --memory ADDRESS SIZE       bytes of its memory: 0x400 64
  --strings N                 text in its memory, of so many characters at least
  --memory-number N           which memory, where there are several
