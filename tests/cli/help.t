# What people read first.
$ gpu-run --version
gpu-run 0.1.0

$ gpu-run --help
Runs WebAssembly on GPUs and CPUs: programs, functions and test scripts.
Usage: gpu-run [OPTIONS] FILE [ARGUMENTS]
       gpu-run COMMAND [OPTIONS] FILE...

Options:
  -h,--help                   show this text; after a command, the command's
  -V,--version                show the version
  --invoke NAME               call this exported function instead of _start
  --device DEVICE             where to run: auto (a GPU if there is one), cpu, cuda, cuda:N
  --tier TIER                 how to run: interp, native (machine code), auto (interp, then native)
  --layout LAYOUT             memory layout of many processes on a GPU: linear, interleaved, auto
  --allow-precompiled         run the machine code of a .gpu file; trust it like an executable
  --instances N               start N processes; {} in an argument becomes the process's number
  --each                      with --instances: print a line for each process
  --stats                     print how long each step took; with --resident also a line every second
  --trace                     print each system call to standard error
  --profile NAME              show where the time goes; write the stacks to NAME.folded and NAME.svg
  --dump DIR                  write the state of processes that trap, for gpu-run inspect
  --report FILE               write what happened to a file, as JSON
  --fuel N                    stop after N instructions
  --timeout TIME              stop after this time: 10s, 0.5, 200ms
  --stack SIZE                limit of the call stack: 64KiB; the default is 4MiB
  --heap SIZE                 limit of the heap for objects and exceptions: 64KiB, 1GiB
  --memory SIZE               limit of each linear memory: 64KiB, 1GiB
  --output-buffer SIZE        output that a process can write before it waits for gpu-run: 64KiB
  --dir HOST[::GUEST] ...     give the program a directory; write its changes back at the end
  --dir-ro HOST[::GUEST] ...  give the program a directory that it can only read
  --env NAME[=VALUE] ...      set an environment variable of the program, or pass on your own
  --argv0 NAME                the name that the program sees as its own
  --stdin FILE                read standard input from a file; each of many processes gets all of it
  --out DIR                   with --instances: write output, changed files and ending of each process to a new directory
  --resident                  boot the device as a machine on which programs can start others
  --program [NAME=]FILE ...   with --resident: add a program that others can start by its name
  --share PERCENT             with --resident: limit how much of the time the device is busy
  --machine-memory SIZE       with --resident: memory for programs and processes; the default is half of what is free
  --seed N                    make random numbers repeat
  --poison                    check gpu-run itself: put canaries and poison into its memory
  -q,--quiet                  print nothing but output and errors
  --no-color                  never use colours; NO_COLOR does the same


Commands:
  run                         run a program or a function; the word run can be left out
  map                         run a program once for each file of a directory, or each line of a file
  batch                       run several programs or functions at once, one in each line of a file
  compile                     make machine code of modules, to keep or to ship
  cache                       list the machine code that is kept
  devices                     list the devices of this machine
  validate                    check modules without running them
  objdump                     show what is in modules, with the interpreter's code
  inspect                     show the state of a process that --dump wrote
  wast                        run scripts of the official WebAssembly test suite
  help                        show the options of a command
  man                         print the manual page
  completions                 print completions for a shell: bash, zsh or fish

Examples:
  gpu-run app.wasm                     run a program: its _start function
  gpu-run --dir data::/ app.wasm x     with an argument, and with data as its /
  gpu-run --timeout 10s app.wasm       for at most ten seconds
  gpu-run --invoke fac fac.wat 20      call an exported function and print its results
  gpu-run --instances 9 --invoke fac fac.wat {}   run nine processes at once; {} is 0 to 8
  gpu-run map --in data --out results app.wasm    run a process for each file of a directory
  gpu-run --instances 9 --report run.json app.wasm   write what happened as JSON
  gpu-run --resident --program x=count.wasm app.wasm   run a program that can start another as x
  gpu-run --trace app.wasm             print each system call
  gpu-run --profile app app.wasm       show where the time goes: app.svg, app.folded
  gpu-run --dump dump app.wasm         keep the state if it traps, for gpu-run inspect dump/0
  gpu-run devices                      list the devices of this machine
  gpu-run compile app.wasm             make machine code for later runs
  gpu-run compile -o app.gpu app.wasm  make a file to ship, for --allow-precompiled app.gpu
  gpu-run cache                        list the machine code that is kept
  gpu-run validate app.wasm            check a module
  gpu-run objdump app.wasm | less      show what is in a module, with the interpreter's code
  gpu-run wast test.wast               run a script of the official test suite

FILE is a binary module, text (.wat), a file that compile -o made (.gpu), or - for standard
input. Options of gpu-run stand before FILE. Whatever follows it goes to the program, or is an
argument of the function: a number as in wasm's text format, such as -5, 0xff, 1.5e3, inf or
nan:0x200000. Sizes are in bytes, with or without a unit: 65536, 64KiB, 64k, 1GiB.

Exit codes: 0, or the exit code of the program; 1 bad input; 2 wrong options;
124 the time limit was reached; 129 SIGHUP; 130 Ctrl-C; 143 SIGTERM;
134 a trap, an exception that was not caught, or no fuel left.

$ gpu-run objdump --help
show what is in modules, with the interpreter's code
Usage: gpu-run objdump [OPTIONS] FILE...

Arguments:
  FILE ...                    modules (.wasm or .wat)

Options:
  -h,--help                   show this text; after a command, the command's
  --headers                   leave out the functions' instructions
  --function F                show this function, by index or name


$ gpu-run validate --help
check modules without running them
Usage: gpu-run validate [OPTIONS] FILE...

Arguments:
  FILE ...                    modules (.wasm or .wat)

Options:
  -h,--help                   show this text; after a command, the command's
  -v,--verbose                print a line for valid modules too


$ gpu-run wast --help
run scripts of the official WebAssembly test suite
Usage: gpu-run wast [OPTIONS] FILE...

Arguments:
  FILE ...                    scripts (.wast)

Options:
  -h,--help                   show this text; after a command, the command's
  -q,--quiet                  print only files with failures, and the total
  --device DEVICE             where to run: auto, cpu, cuda, cuda:N
  --tier TIER                 how to run: interp, native, auto
  --poison                    check gpu-run itself: put canaries and poison into its memory


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
run several programs or functions at once, one in each line of a file
Usage: gpu-run batch [OPTIONS] FILE...

Arguments:
  FILE ...                    a file with a job in each line: [OPTIONS] FILE [ARGUMENTS]

Options:
  -h,--help                   show this text; after a command, the command's
  --device DEVICE             where to run: auto, cpu, cuda, cuda:N
  --stats                     print how long each step took
  --report FILE               write what happened to a file, as JSON
  --timeout TIME              stop after this time: 10s, 0.5, 200ms
list the devices of this machine
Usage: gpu-run devices [OPTIONS]

Options:
  -h,--help                   show this text; after a command, the command's
  --json                      print JSON
show the state of a process that --dump wrote
Usage: gpu-run inspect [OPTIONS] DUMP

Arguments:
  DUMP                        DIR/<number>, below the directory of --dump

Options:
  -h,--help                   show this text; after a command, the command's
  --memory ADDRESS SIZE       show bytes of its memory: 0x400 64
  --strings N                 show text in its memory of at least N characters
  --memory-number N           which memory, if there are several
