# One process for each of many inputs.
# Prints its arguments after the program's name, a line each, then its standard input. Exits with 3 for the
# argument "three", traps for "trap", writes a line to standard error for "noise", and never ends for "loop".
$ cat > show.wat <<'X'
> (module
>   (import "wasi_snapshot_preview1" "args_sizes_get" (func $arg_sizes (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
>   (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
>   (memory (export "memory") 4)
>   (data (i32.const 512) "\n")
>   (data (i32.const 520) "one line\nand another")
>   (func $print (param $to i32) (param $at i32) (param $size i32)
>     (i32.store (i32.const 0) (local.get $at))
>     (i32.store (i32.const 4) (local.get $size))
>     (drop (call $write (local.get $to) (i32.const 0) (i32.const 1) (i32.const 8))))
>   (func $length (param $at i32) (result i32) (local $end i32)
>     (local.set $end (local.get $at))
>     (loop $next
>       (if (i32.load8_u (local.get $end))
>         (then (local.set $end (i32.add (local.get $end) (i32.const 1))) (br $next))))
>     (i32.sub (local.get $end) (local.get $at)))
>   (func $act (param $word i32)
>     (if (i32.eq (local.get $word) (i32.const 0x65726874)) (then (call $exit (i32.const 3))))
>     (if (i32.eq (local.get $word) (i32.const 0x70617274)) (then (unreachable)))
>     (if (i32.eq (local.get $word) (i32.const 0x73696f6e))
>       (then (call $print (i32.const 2) (i32.const 520) (i32.const 20))))
>     (if (i32.eq (local.get $word) (i32.const 0x706f6f6c)) (then (loop $ever (br $ever)))))
>   (func (export "_start") (local $i i32) (local $at i32)
>     (drop (call $arg_sizes (i32.const 16) (i32.const 20)))
>     (drop (call $args (i32.const 1024) (i32.const 4096)))
>     (local.set $i (i32.const 1))
>     (block $done
>       (loop $next
>         (br_if $done (i32.ge_u (local.get $i) (i32.load (i32.const 16))))
>         (local.set $at (i32.load (i32.add (i32.const 1024) (i32.mul (local.get $i) (i32.const 4)))))
>         (call $print (i32.const 1) (local.get $at) (call $length (local.get $at)))
>         (call $print (i32.const 1) (i32.const 512) (i32.const 1))
>         (call $act (i32.load (local.get $at)))
>         (local.set $i (i32.add (local.get $i) (i32.const 1)))
>         (br $next)))
>     (loop $more
>       (i32.store (i32.const 0) (i32.const 65536))
>       (i32.store (i32.const 4) (i32.const 65536))
>       (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
>       (if (i32.load (i32.const 8))
>         (then (call $print (i32.const 1) (i32.const 65536) (i32.load (i32.const 8))) (br $more))))))
> X

$ mkdir -p in/sub && echo alpha > in/a && echo beta > in/b.txt && echo gamma > in/sub/c && : > in/z

# The files of a folder, in the order of their names.
$ gpu-run map --device cpu --in in show.wat
alpha
beta
gamma

$ gpu-run map --device cpu --in in/ show.wat name {} twice={}{}
name
a
twice=aa
alpha
name
b.txt
twice=b.txtb.txt
beta
name
sub/c
twice=sub/csub/c
gamma
name
z
twice=zz

$ head -c 100000 /dev/zero | tr '\0' x > large && mkdir one && mv large one && gpu-run map --device cpu --in one show.wat | md5sum - one/large | cut -c 1-32 | uniq -c
      2 d5816f35916d1d9482fb0f1ec201101d

# Lines: words are arguments, or {} is the line.
$ printf 'a "b c"\n\nd\\ e' | gpu-run map --device cpu --lines - show.wat first
first
a
b c
first
first
d e

$ printf 'a "b\r\n  c' > lines && gpu-run map --device cpu --lines lines show.wat '<{}>'
<a "b>
<  c>

$ echo text > input && seq 3 | gpu-run map --device cpu --lines - --stdin input show.wat
1
text
2
text
3
text

$ : > empty && gpu-run map --device cpu --lines empty show.wat

$ mkdir nothing && gpu-run map --device cpu --in nothing --out nothing-out show.wat
gpu-run: 0 done, 0 failed

# What fails is listed; the rest is done.
$ printf 'a\nthree\nb\n"c\ntrap\nnoise\n' > lines && gpu-run map --device cpu --lines lines show.wat
a
three
b
trap
line 6: one line
line 6: and another
noise
gpu-run: line 2: exited with 3
gpu-run: line 4: a quote is not closed
gpu-run: line 5: trap: unreachable in act at 0x15f
[1]

$ seq 30 | sed 's/.*/three &/' | gpu-run map --device cpu --lines - show.wat >/dev/null
gpu-run: line 1: exited with 3
gpu-run: line 2: exited with 3
gpu-run: line 3: exited with 3
gpu-run: line 4: exited with 3
gpu-run: line 5: exited with 3
gpu-run: line 6: exited with 3
gpu-run: line 7: exited with 3
gpu-run: line 8: exited with 3
gpu-run: line 9: exited with 3
gpu-run: line 10: exited with 3
gpu-run: line 11: exited with 3
gpu-run: line 12: exited with 3
gpu-run: line 13: exited with 3
gpu-run: line 14: exited with 3
gpu-run: line 15: exited with 3
gpu-run: line 16: exited with 3
gpu-run: line 17: exited with 3
gpu-run: line 18: exited with 3
gpu-run: line 19: exited with 3
gpu-run: line 20: exited with 3
gpu-run: and 10 more failed
[1]

$ printf 'a\nloop\nb\n' | gpu-run map --device cpu --timeout 200ms --lines - show.wat
a
loop
b
gpu-run: line 2: timeout in act at 0x183
[1]

$ printf 'a\nloop\nb\n' | gpu-run map --device cpu --fuel 100000 --quiet --lines - show.wat
a
loop
b
gpu-run: line 2: out of fuel in act at 0x183
[1]

# Outputs in a folder, whole files only; what failed is apart.
$ gpu-run map --device cpu --lines lines --out out show.wat
line 6: one line
line 6: and another
gpu-run: 3 done, 3 failed
gpu-run: line 2: exited with 3
gpu-run: line 4: a quote is not closed
gpu-run: line 5: trap: unreachable in act at 0x15f
[1]

$ cd out && find . -type f | sort && cat 000/000/003 .gpu-run/failed/000/000/002 && sed "s/[0-9a-f]\{16\}/HASH/" .gpu-run/journal
./.gpu-run/failed/000/000/002
./.gpu-run/failed/000/000/005
./.gpu-run/journal
./000/000/001
./000/000/003
./000/000/006
b
three
gpu-run map 1 lines
module HASH
done 000/000/001	HASH
failed 000/000/002	exited with 3
done 000/000/003	HASH
failed 000/000/004	a quote is not closed
failed 000/000/005	trap: unreachable in act at 0x15f
done 000/000/006	HASH

# Only what is missing, or failed.
$ rm out/000/000/001 && sed -i 's/three/four/' lines && gpu-run map --device cpu --lines lines --out out --resume show.wat
gpu-run: 2 done, 2 before, 2 failed
gpu-run: line 4: a quote is not closed
gpu-run: line 5: trap: unreachable in act at 0x15f
[1]

$ cat out/000/000/001 out/000/000/002; ls out/.gpu-run/failed/000/000
a
four
005

$ gpu-run map --device cpu --lines lines --out out --resume show.wat more
gpu-run: out/.gpu-run/journal: these outputs were made with other arguments; give the same ones, or begin anew without --resume
[1]

$ gpu-run map --device cpu --in in --out out --resume show.wat
gpu-run: out/.gpu-run/journal: these outputs were made with other arguments; give the same ones, or begin anew without --resume
[1]

# Everything again.
$ gpu-run map --device cpu --in in --out out -q show.wat && cat out/sub/c && sed "s/[0-9]* [0-9]* [0-9]* [0-9]* [0-9a-f]\{16\}/MARK/; s/[0-9a-f]\{16\}/HASH/" out/.gpu-run/journal
gamma
gpu-run map 1 files
module HASH
done a	MARK
done b.txt	MARK
done sub/c	MARK
done z	MARK

# --resume does inputs again that have changed since, even if size and time are what they were. A file that
# was copied or touched is the same.
$ cp -r in new && gpu-run map --device cpu --in new --out again -q show.wat && echo delta > new/b.txt && touch new/sub/c && cp new/z z && mv z new/z && gpu-run map --device cpu --in new --out again --resume show.wat && cat again/*
gpu-run: 1 done, 3 before, 0 failed
alpha
delta
cat: again/sub: Is a directory
[1]

$ echo omega > other && touch -r new/a other && mv other new/a && gpu-run map --device cpu --in new --out again --resume show.wat && cat again/a; cp -p new/a old; printf gamma | dd of=new/a conv=notrunc 2>/dev/null; touch -r old new/a; for i in 1 2; do gpu-run map --device cpu --in new --out again --resume show.wat; done
gpu-run: 1 done, 3 before, 0 failed
omega
gpu-run: 1 done, 3 before, 0 failed
gpu-run: 0 done, 4 before, 0 failed

# Journals of older versions have no marks: there the time of the output decides.
$ gpu-run map --device cpu --in new --out again -q show.wat; sed -i 's/\t.*//; /^module/d' again/.gpu-run/journal; touch -d '1 hour ago' new/* new/sub/*; echo late > new/sub/c; touch -d 'now + 1 hour' new/sub/c; gpu-run map --device cpu --in new --out again --resume show.wat; cat again/sub/c
gpu-run: 1 done, 3 before, 0 failed
late

# So it is with lines, and with what all of them read. A line that moved has another number.
$ printf 'a\nb\nc\n' > changing; echo common > common; gpu-run map --device cpu --lines changing --stdin common --out numbered -q show.wat; printf 'a\nB\nc\nd\n' > changing; gpu-run map --device cpu --lines changing --stdin common --out numbered --resume show.wat; cat numbered/000/000/*
gpu-run: 2 done, 2 before, 0 failed
a
common
B
common
c
common
d
common

$ echo other > common; gpu-run map --device cpu --lines changing --stdin common --out numbered --resume show.wat; sed -i 's/\t.*//' numbered/.gpu-run/journal; gpu-run map --device cpu --lines changing --stdin common --out numbered --resume show.wat
gpu-run: 4 done, 0 failed
gpu-run: 0 done, 4 before, 0 failed

# If it fails now, the old output goes.
$ cp changing same; gpu-run map --device cpu --lines same --out failing -q show.wat; sed -i s/c/three/ same; gpu-run map --device cpu --lines same --out failing --resume show.wat; ls failing/000/000
gpu-run: 0 done, 3 before, 1 failed
gpu-run: line 3: exited with 3
001
002
004

# A program that has changed since is for what is left. A note says so.
$ (cat show.wat; echo) > changed.wat; gpu-run map --device cpu --lines changing --stdin common --out numbered --resume changed.wat
gpu-run: changed.wat has changed since; what the earlier one has done stays as it is
gpu-run: 0 done, 4 before, 0 failed

# A folder of outputs among the inputs is not an input, nor is what map keeps there.
$ cp -r in more && for i in 1 2; do gpu-run map --device cpu --in more --out more/out show.wat; done; gpu-run map --device cpu --in more/out show.wat
gpu-run: 4 done, 0 failed
gpu-run: 4 done, 0 failed
alpha
beta
gamma

# Many chunks, in order.
$ seq 3000 > numbers && gpu-run map --device cpu --lines numbers --jobs 7 show.wat | cmp - numbers

$ seq 3000 > numbers && gpu-run map --device cpu --lines numbers show.wat | cmp - numbers

# How it is told what went wrong.
$ gpu-run map --help
run a program once for each file of a directory, or each line of a file
Usage: gpu-run map (--in DIR | --lines FILE) [OPTIONS] FILE [ARGUMENTS]

Options:
  -h,--help                   show this text; after a command, the command's
  --in DIR                    start a process for each file of a directory, with the file as standard input
  --lines FILE                start a process for each line of a file, with its words as arguments; - is standard input
  --device DEVICE             where to run: auto (a GPU if there is one), cpu, cuda, cuda:N
  --tier TIER                 how to run: interp, native (machine code), auto (interp, then native)
  --layout LAYOUT             memory layout of many processes on a GPU: linear, interleaved, auto
  --allow-precompiled         run the machine code of a .gpu file; trust it like an executable
  --stats                     print how long each step took
  --trace                     print each system call to standard error
  --profile NAME              show where the time goes; write the stacks to NAME.folded and NAME.svg
  --dump DIR                  write the state of processes that trap, for gpu-run inspect
  --report FILE               write what happened to a file, as JSON
  --fuel N                    a process fails after N instructions
  --timeout TIME              a process fails if it has not ended after this time: 10s, 0.5, 200ms
  --stack SIZE                limit of the call stack: 64KiB; the default is 4MiB
  --heap SIZE                 limit of the heap for objects and exceptions: 64KiB, 1GiB
  --memory SIZE               limit of each linear memory: 64KiB, 1GiB
  --output-buffer SIZE        output that a process can write before it waits for gpu-run: 64KiB
  --dir HOST[::GUEST] ...     give the program a directory; its changes go to NAME.files in --out
  --dir-ro HOST[::GUEST] ...  give the program a directory that it can only read
  --env NAME[=VALUE] ...      set an environment variable of the program, or pass on your own
  --argv0 NAME                the name that the program sees as its own
  --stdin FILE                with --lines: read standard input from a file
  --out DIR                   write outputs to files of a directory, not to standard output
  --seed N                    make random numbers repeat
  --poison                    check gpu-run itself: put canaries and poison into its memory
  --jobs N                    run at most N processes at once
  --resume                    do only what an earlier run with this --out left out, what failed and what changed
  -q,--quiet                  print no progress, nothing but output and errors

Examples:
  gpu-run map --in texts count.wasm                   each file is a standard input; outputs in order
  gpu-run map --in texts --out counts count.wasm      texts/a/b.txt becomes counts/a/b.txt
  gpu-run map --in texts --out counts --resume count.wasm   go on after Ctrl-C; retry what failed
  gpu-run map --in texts count.wasm --title {}        {} is the file's name below texts
  gpu-run map --lines jobs.txt app.wasm               words of a line are arguments, as in a shell
  seq 1000 | gpu-run map --lines - app.wasm -n {}     {} is the whole line

Inputs are sorted by name, or keep the order of the lines. Outputs come in the same order. What
processes write to standard error goes there, with the input's name before each line. An input that
fails does not stop the others; failures are listed at the end.

With --out, the output of line 12345 is 000/012/345 in the directory. An output gets its name once it
is complete. Outputs of failed processes go to .gpu-run/failed; .gpu-run/journal says what is done,
what failed, and why. Without --resume everything is done again.

Processes run in chunks. A process that --timeout stops is tried again with fewer beside it, because
it may have waited for its turn; so a process that never ends takes a multiple of that time.

Exit codes: 0 all processes exited with 0; 1 some failed, or bad input; 2 wrong options;
130 Ctrl-C, 143 SIGTERM, 129 SIGHUP: what is done is kept.

$ gpu-run map show.wat
gpu-run: map takes inputs from --in DIR or --lines FILE; gpu-run map --help shows how to call it
[2]

$ gpu-run map --in in --lines lines show.wat
gpu-run: map takes --in or --lines, not both; gpu-run map --help shows how to call it
[2]

$ gpu-run map --in in
gpu-run: no file given; gpu-run map --help shows how to call it
[2]

$ gpu-run map --in in --instances 3 show.wat
gpu-run: unknown option --instances; gpu-run map --help shows how to call it
[2]

$ gpu-run map --in in --resume show.wat
gpu-run: --resume is for runs with --out; gpu-run map --help shows how to call it
[2]

$ gpu-run map --in in --stdin input show.wat
gpu-run: --stdin is for --lines; with --in each file is a standard input; gpu-run map --help shows how to call it
[2]

$ gpu-run map --in in --jobs 0 show.wat
gpu-run: --jobs takes a number of processes from 1 to 4294967295, not "0"; gpu-run --help lists the options
[2]

$ gpu-run map --device cpu --in absent show.wat
gpu-run: --in absent: No such file or directory
[1]

$ gpu-run map --device cpu --in lines show.wat
gpu-run: --in lines: Not a directory
[1]

$ gpu-run map --device cpu --lines absent show.wat
gpu-run: --lines absent: No such file or directory
[1]

$ gpu-run map --device cpu --lines in show.wat
gpu-run: --lines in: a folder; --in takes folders
[1]

$ gpu-run map --device cpu --in in --out in show.wat
gpu-run: --out in: the inputs are there; give another folder
[1]

$ gpu-run map --device cpu --in in --out lines show.wat
gpu-run: --out lines: Not a directory
[1]

$ gpu-run map --device cpu --in in absent.wasm
gpu-run: absent.wasm: No such file or directory
[1]

$ mkdir -p clash && touch clash/a clash/a.files && gpu-run map --device cpu --in clash --dir in --out clash-out show.wat
gpu-run: --in: a.files is where the files that a's process changes would go; rename one of them
[1]

$ mkdir full && touch full/file && gpu-run map --device cpu --in in --out full show.wat; ls -A full
gpu-run: --out full: is not empty, and not from an earlier map; name another folder
file

$ mkdir -p blocked/.gpu-run blocked/b.txt && gpu-run map --device cpu --in in --out blocked show.wat; cat blocked/a
gpu-run: 1 done, 0 failed
gpu-run: blocked/b.txt: Is a directory
alpha

$ gpu-run map --device cpu --in in show.wat > /dev/full
gpu-run: cannot write to standard output: No space left on device
[1]

$ gpu-run map --device cpu --lines numbers show.wat | head -n 1
1

$ printf 'a\0b\nc\n' | gpu-run map --device cpu --lines - show.wat
c
gpu-run: line 1: a NUL byte, which no argument can have
[1]

$ head -c 20000000 /dev/zero | gpu-run map --device cpu --lines - show.wat
gpu-run: line 1 is longer than 16 MiB
[1]
