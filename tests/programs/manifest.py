"""The programs of examples/, tests/programs and tests/std, and what they must do.

scripts/build-guests makes modules of them, programs_test.py runs the cases. What a case must print
stands beside the source in expected/: SOURCE.CASE.out, .err for standard error where it is
compared, and SOURCE.CASE.FILE for a file that it writes; of what is not text, a SHA-256 with
.sha256 added to the name. `programs_test.py --native DIR --bless` writes these from programs
compiled for this machine, so that they do not come from what they are to check.
"""
import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@dataclasses.dataclass
class Beside:
    """A file in the folder of the program's source."""
    name: str


@dataclasses.dataclass
class Case:
    name: str
    args: list
    stdin: object = ""          # text or Beside
    files: object = ()          # names beside the source, or {name: text or Beside}; None: no --dir at all
    env: dict = dataclasses.field(default_factory=dict)
    argv0: str = ""
    code: int = 0               # 134: a trap, or a panic or abort of the native program
    stderr: list = None         # parts that it must contain, instead of the file .err
    written: tuple = ()         # files that must be there afterwards, as in expected/
    absent: tuple = ()          # files that must not
    native: bool = True         # whether the native program can show what is right
    many: bool = True           # whether equal processes must print equal things
    only: str = ""              # "current": the current Rust alone
    programs: tuple = ()        # of a resident program: names of others in this file that it may start


@dataclasses.dataclass
class Program:
    name: str
    source: pathlib.Path
    cases: list
    flags: list
    native_flags: list
    libraries: list
    extra: list                 # sources that are compiled into the module as well, and headers
    resident: bool              # whether it needs gpu-run --resident, and sdk/c/gpu.h
    threads: bool               # whether it is made for wasm32-wasip1-threads; needs --resident too
    native: bool                # whether this machine can have it too


programs = []


def program(name, source, *cases, flags=(), native_flags=(), libraries=(), extra=(), resident=False, threads=False,
            native=True):
    programs.append(Program(name, ROOT / source, list(cases), list(flags), list(native_flags), list(libraries),
                            [ROOT / path for path in extra], resident or threads, threads, native))


def case(name, *args, **options):
    return Case(name, [str(arg) for arg in args], **options)


# Examples

UNICODE = "na\u00efve caf\u00e9 \u2014 \u65e5\u672c\u8a9e \U0001f980\n"
VERSE = "the loom\tremembers   every thread\nthe thread remembers  nothing\n\nthe end"

program("hello", "examples/hello/hello.rs", case("all"), case("no_directory", files=None))

program("unique_chars", "examples/unique_chars/unique_chars.rs",
        case("example", files=["input.txt"]),
        case("one", files={"input.txt": "aaaaaaaa"}),
        case("empty", files={"input.txt": ""}),
        case("large", files={"input.txt": "".join(chr(0x20 + i * 7 % 0x2000) for i in range(30000))}),
        case("missing", files={}, code=134, stderr=["panicked at", "unique_chars.rs:4:", "NotFound"], native=True),
        case("no_directory", files=None, code=134, stderr=["panicked at"], native=False))

program("sha256sum", "examples/sha256sum/sha256sum.rs",
        case("stdin", stdin="abc"),
        case("empty", "-"),
        case("files", "a.txt", "b/c.txt", "-", "long.txt", stdin=UNICODE,
             files={"a.txt": "a\n", "b/c.txt": VERSE, "long.txt": "0123456789" * 5000}),
        *[case(f"length_{n}", "x", files={"x": "x" * n}) for n in (55, 56, 63, 64, 65, 4095, 4096, 4097)],
        case("missing", "here", "gone", "here", files={"here": "here"}, code=1))

program("wc", "examples/wc/wc.rs",
        case("stdin", stdin=VERSE),
        case("files", "one", "two", "three", files={"one": VERSE, "two": UNICODE, "three": ""}),
        case("options", "-lL", "-m", "one", "two", files={"one": VERSE, "two": UNICODE}),
        case("top", "--top", 4, "-w", "one", "-", stdin=VERSE.upper(), files={"one": VERSE}),
        case("missing", "gone", "one", files={"one": VERSE}, code=1),
        case("wrong_option", "-z", code=2),
        case("wrong_number", "--top", "many", code=2))

JSON = r'{"name":"gpu","tags":[],"none":{},"n":[0,-1,2.50,1e10,-3.25E-7,12345678901234567890],' \
       r'"t":true,"f":false,"z":null,"s":"\u00e9\ud83d\ude00 \"q\" \\ \/ \b\f\n\r\t \u0001","a":{"b":{"c":[[1],[2,[3]]]}}}'

program("json", "examples/json/json.rs",
        case("pretty", stdin=JSON),
        case("compact", "--compact", stdin=f"  [ {JSON} ,\n\t{JSON}]  \n"),
        case("sorted", "--sort", "--indent", 4, stdin=JSON),
        case("scalar", stdin='"' + UNICODE.strip() + '"'),
        case("deep", "--indent", 0, stdin="[" * 500 + "]" * 500),
        case("too_deep", stdin="[" * 501 + "]" * 501, code=1),
        case("many", "--compact", stdin="[" + ",".join(f'{{"id":{i},"x":"{i * i}"}}' for i in range(400)) + "]"),
        case("error_comma", stdin='{"a": 1,\n "b": [1, 2,]}', code=1),
        case("error_end", stdin='{"a": "b', code=1),
        case("error_unicode", stdin='["\u00e9\u00e9", \u65e5]', code=1),
        case("error_surrogate", stdin=r'["\ud800"]', code=1),
        case("error_trailing", stdin="1 2", code=1),
        case("error_option", "--what", code=2))

program("nbody", "examples/nbody/nbody.c",
        case("default"),
        case("few", 3),
        case("more", 5000),
        case("wrong", "-1", code=2), libraries=["-lm"])

program("life", "examples/life/life.c",
        case("glider", 10, 10, 20, stdin=".#\n..#\n###\n"),
        case("noise", 64, 24, 100, 7),
        case("nothing", 5, 4, 3),
        case("larger", 200, 100, 20, 42),
        case("wrong", 5, "five", 1, code=2),
        case("too_large", 2, 2, 1, stdin="###\n", code=2),
        case("usage", code=2))

BTREE = "\n".join(["# a comment", "fill 1 200", "check", "get k00077", "fill 400 201", "check",
                   *[f"del k{i:05}" for i in range(1, 401) if i % 3], "check", "count",
                   "list k00030 k00060", "put name a value with spaces", "put name another", "get name", "get nobody",
                   *[f"del k{i:05}" for i in range(3, 401, 3)], "check", "list", "del name", "del name", "check",
                   "fill 1 60", "check", "list k00055"])

program("btree", "examples/btree/btree.c",
        case("script", "x.db", stdin=BTREE, files={}, code=1, written=["x.db"]),
        case("new", "x.db", "put", "key", "value", files={}, written=["x.db"]),
        case("open", "three.db", "list", files=["three.db"], written=["three.db"]),
        case("delete", "three.db", "del", "two", files=["three.db"], written=["three.db"]),
        case("missing_key", "three.db", "get", "four", files=["three.db"], code=1),
        case("folder", "sub/x.db", files={"sub/other": ""}, stdin="fill 1 40\ncheck\n", written=["sub/x.db", "sub/other"]),
        case("no_database", "x.db", "list", files={"x.db": "not a database, but long enough to read" * 40}, code=3),
        case("wrong_command", "x.db", "drop", "all", files={}, code=2),
        case("usage", code=2))

program("longest", "examples/longest/longest.c", case("verse", stdin=VERSE), case("empty"),
        case("cut", stdin="short " + "x" * 1000))

program("mandelbrot", "examples/mandelbrot/mandelbrot.cpp",
        case("default"),
        case("small", 40, 30, 50),
        case("file", 64, 48, 200, "out.ppm", files={}, written=["out.ppm"]),
        case("usage", "wide", "high", code=2))

program("inventory", "examples/inventory/inventory.cpp",
        case("file", "movements.txt", files=["movements.txt"], code=1),
        case("stdin", stdin=Beside("movements.txt"), code=1),
        case("fine", stdin="d1 a in 5 x 1.5\nd1 a in 7 y 2\nd2 a out 2 x\nd2 a out 1 y\n"),
        case("missing", "none.txt", files={}, code=2))

program("logsum", "examples/logsum/logsum.go",
        case("files", "monday.log", "tuesday.log", files=["monday.log", "tuesday.log"]),
        case("stdin", "-top", 2, stdin=Beside("monday.log")),
        case("json", "-json", "tuesday.log", files=["tuesday.log"]),
        case("missing", "-top", 1, "monday.log", "wednesday.log", files=["monday.log"], code=1),
        case("empty"))

# A shell and its programs, whose modules lie in a folder of their own: some of their names are those of
# other examples. They are known to the shell by the last part.

POEM = Beside("poem.txt")
program("bin/cat", "examples/shell/cat.c",
        case("stdin", stdin=POEM),
        case("files", "poem.txt", "-", "b", stdin="from standard input\n", files={"poem.txt": POEM, "b": "no end"}),
        case("missing", "gone", "b", files={"b": "here\n"}, code=1))
program("bin/wc", "examples/shell/wc.c",
        case("all", stdin=POEM), case("lines", "-l", stdin=POEM), case("words", "-w", stdin=POEM),
        case("bytes", "-c", stdin=POEM), case("empty"), case("wrong", "-x", code=2))
program("bin/sort", "examples/shell/sort.c",
        case("lines", stdin=POEM), case("numbers", "-n", stdin="10 a\n9 b\n-3 c\n9 a"),
        case("reversed", "-rn", stdin="10 a\n9 b\n-3 c\n9 a\n"), case("empty"), case("wrong", "-x", code=2))
program("bin/uniq", "examples/shell/uniq.c",
        case("lines", stdin="a\na\nb\na\n"), case("counts", "-c", stdin="a\na\nb\na\n"), case("empty"),
        case("wrong", "-x", code=2))
program("bin/head", "examples/shell/head.c",
        case("ten", stdin="".join(f"{i}\n" for i in range(20))), case("two", 2, stdin=POEM), case("none", 0, stdin=POEM),
        case("short", 3, stdin="no end"), case("wrong", "two", code=2))
program("bin/echo", "examples/shell/echo.c", case("words", "one", "two words", ""), case("none"),
        case("no_end", "-n", "one"))
program("bin/true", "examples/shell/true.c", case("all"))
program("bin/false", "examples/shell/false.c", case("all", code=1))
program("bin/yes", "examples/shell/yes.c")
program("bin/upper", "examples/shell/upper.c", case("poem", stdin=POEM))
program("bin/words", "examples/shell/words.c", case("poem", stdin=POEM), case("no_end", stdin="Twice: twice"))
SHELL = ["bin/" + name for name in "cat wc sort uniq head echo true false yes upper words".split()]


def shell(name, commands, **options):
    return case(name, "-c", commands, programs=SHELL, **options)


program("shell", "examples/shell/shell.c",
        shell("one", "echo hello, world"),
        shell("pipe", "words < poem.txt | sort | head 5", files=["poem.txt"]),
        shell("long_pipe", "cat poem.txt | words | sort | uniq -c | sort -rn | head 3 | upper", files=["poem.txt"]),
        shell("cut_off", "yes no | head 3; yes | head 20000 | wc; cat poem.txt | true", files=["poem.txt"]),
        shell("files", "echo one > a; echo two >> a; cat < a | upper > b; echo -n three >> b; wc < b; cat a b; > c true; wc < c",
              files={}, written=["a", "b", "c"]),
        shell("codes", "false; echo $?; true; echo $?; nothing; echo $?; cat gone; echo $?; false | true; echo $?", files={}),
        shell("and_or", "true && echo 1; false && echo 2; true || echo 3; false || echo 4; false && echo 5 || echo 6; "
                        "true || echo 7 && echo 8"),
        shell("exit", "echo one; exit 3; echo two", code=3),
        shell("last_code", "echo one; false", code=1),
        shell("quotes", "echo 'a  $HOME \"b\"' \"a  $NAME 'b'\" c\\ d \"\" e'f'\"g\" $NAME$NOBODY. '#' # echo h\n"
                        "echo \"\\\"\" '|' \\| \\\\", env={"NAME": "value"}),
        shell("wrong_files", "cat < gone; echo $?; echo x > no/where; echo $?; cat < gone | wc", files={}),
        shell("wrong_syntax", "echo one |\n| wc\necho 'one\necho > \necho &\necho one &&; echo two\n;\necho two"),
        case("stdin", stdin="echo one\n\n# nothing\necho two | upper\ncat\nthe rest is\nfor cat\n", programs=SHELL),
        case("stdin_shared", stdin="head 1\ncat", programs=SHELL),
        shell("nested", "shell -c 'echo inner | upper; exit 4'; echo $?"),
        shell("deep", "shell -c \"shell -c 'shell -c \\\"echo deep\\\"'\""),
        case("usage", "file", code=2), resident=True)

# Stacks of 64 KiB, for thousands of them.
SMALL = ["-Wl,-z,stack-size=65536"]
program("tree", "examples/tree/tree.c",
        case("default"), case("one", 1), case("chain", 50, 1), case("star", 200, 199), case("wrong", 0, code=2),
        resident=True, flags=SMALL)
program("jobs", "examples/jobs/jobs.c",
        case("few", 100, 7), case("hundreds", 600, 200), case("fewer_than_at_once", 20, 64), case("one", 1, 1),
        case("none", 0), case("wrong", 1, 0, code=2), resident=True, flags=SMALL)

# Programs with threads

program("sieve", "examples/sieve/sieve.c",
        case("default"),
        *[case(f"threads_{n}", 300000, n) for n in (1, 2, 13)],
        case("few", 30),
        case("none", 2),
        case("wrong", "many", code=2), threads=True)

program("philosophers", "examples/philosophers/philosophers.c",
        case("default"),
        case("two", 2, 300),
        case("slow", 9, 10, 500),
        case("wrong", 1, code=2), threads=True)

# Programs that measure, for bench/: they print times.

program("bench/instant", "bench/resident/instant.c", resident=True, flags=[*SMALL, "-nostartfiles"], native=False)
program("bench/spawns", "bench/resident/spawns.c", resident=True, flags=SMALL, native=False)
program("bench/load", "bench/resident/load.c", extra=["bench/resident/work.h"], resident=True, flags=SMALL, native=False)
program("bench/work", "bench/resident/work.c", extra=["bench/resident/work.h"], flags=SMALL, native=False)

# Programs that tests look at from other sides too

program("words", "tests/programs/words.c", case("verse", stdin=VERSE * 3))
program("sha256", "tests/programs/sha256.c", case("thousand", 1000), flags=["-O0"])

# Rust's standard library, an area each

PANICS = {
    "message": "said 1 and \"two\"",
    "index": "index out of bounds: the len is 3 but the index is 7",
    "divide": "attempt to divide by zero",
    "overflow": "no room",
    "unwrap": "called `Option::unwrap()` on a `None` value",
    "result": "ParseIntError { kind: InvalidDigit }",
    "slice": "byte index 2 is not a char boundary",
    "borrow": "already mutably borrowed",
    "unreachable": "internal error: entered unreachable code: came to unreachable",
    "assert": "count of [1, 2, 3]",
    "todo": "not yet implemented",
}

program("rust_collections", "tests/std/rust/collections.rs", case("all"))
program("rust_strings", "tests/std/rust/strings.rs", case("all"))
program("rust_fs", "tests/std/rust/fs.rs",
        case("all", files={"given.txt": "it was here\n"}, written=["a.txt", "b.txt", "given.txt", "seek.bin"],
             absent=["d", "g", "bad", "large.txt"]),
        case("many", "many", files={}, absent=["many"]))
program("rust_io", "tests/std/rust/io.rs",
        case("all", stdin="first line\nxyuntil;here\nthird\nand the\nrest"))
program("rust_env", "tests/std/rust/env.rs",
        case("all", "one", "two words", "", UNICODE.strip(), "{", argv0="env-test",
             env={"NAME": "value", "EMPTY": "", "UNICODE": UNICODE.strip(), "EQUALS": "a=b=c"}),
        case("none", argv0="env-test"),
        *[case(f"exit_{code}", "--exit", code, argv0="env-test", code=code) for code in (0, 1, 3, 42, 125)])
program("rust_time", "tests/std/rust/time.rs", case("all"))
program("rust_panics", "tests/std/rust/panics.rs",
        case("none", "nothing"),
        *[case(kind, kind, code=134, stderr=["before, on standard error", "panicked at", message])
          for kind, message in PANICS.items()],
        case("capacity", "capacity", code=134, stderr=["panicked at", "capacity overflow"]),
        case("abort", "abort", code=134, stderr=["before, on standard error"]),
        case("hook", "hook", code=134, stderr=["hook: hooked in panics.rs"]),
        case("stack", "stack", code=134, stderr=["before, on standard error"]))
program("rust_sleep", "tests/std/rust/sleep.rs", case("all"))
program("rust_shared", "tests/std/rust/shared.rs", case("all"), case("timeout", "timeout", only="current"))
program("rust_iterators", "tests/std/rust/iterators.rs", case("all"))
program("rust_threads", "tests/std/rust/threads.rs",
        *[case(area, area) for area in ("joining", "channels", "locks", "conditions", "scopes", "locals")],
        case("end_exit", "end", "exit", code=7),
        case("end_abort", "end", "abort", code=134, stderr=[]),
        # Elsewhere a panic ends its thread alone; where nothing unwinds, the process.
        case("end_panic", "end", "panic", code=134, stderr=["panicked at", "a thread panics"], native=False), threads=True)
program("rust_async", "tests/std/rust/asynchronous.rs", case("all"))
# A machine has what the target lacks: what is right is what the target's documentation says.
program("rust_lacks", "tests/std/rust/lacks.rs", case("all", native=False))

# The C library

program("c_hello", "tests/std/c/hello.c", case("all", files=None))
program("c_stdio", "tests/std/c/stdio.c",
        case("all", files={}, stdin="17 word rest of the line\ngtext line\nup to;1 2 3\n\t40 stop", absent=["stream.txt"]))
program("c_files", "tests/std/c/files.c",
        case("modes", "modes", files={"given.txt": "it was here\n"}, written=["a.txt", "given.txt"]),
        case("descriptors", "descriptors", files={}, written=["b.bin"]),
        case("vectors", "vectors", files={}, written=["v.bin"]),
        case("folders", "folders", files={}, written=["f/two", "f/at2"], absent=["d"]),
        case("deletion", "deletion", files={}, absent=["many"]),
        case("links", "links", files={}, written=["f/two"], absent=["l.txt", "hard"]),
        case("times", "times", files={}, written=["a.txt"]),
        case("gone", "gone", files={"a.txt": "open many times"}, absent=["gone"]))
program("c_clocks", "tests/std/c/clocks.c", case("all"))
program("c_args", "tests/std/c/args.c",
        case("none", argv0="args-test"),
        case("words", "one", "two words", "", UNICODE.strip(), "-x", "--", argv0="args-test"),
        case("env", argv0="args-test", env={"NAME": "value", "EMPTY": "", "UNICODE": UNICODE.strip(), "EQUALS": "a=b=c"}),
        case("long", "x" * 5000, *range(300), argv0="args-test"),
        case("exit", "exit", 7, argv0="args-test", code=7),
        case("_exit", "_exit", 9, argv0="args-test", code=9),
        case("return", "return", 125, argv0="args-test", code=125),
        case("abort", "abort", argv0="args-test", code=134, stderr=[]))
program("c_heap", "tests/std/c/heap.c", case("all"))
program("c_isolation", "tests/std/c/isolation.c",
        case("all", "{}", files={"base.txt": "here before\n"}, written=["common.txt", "base.txt", "sub/deep.txt"]))

program("c_mixed", "tests/std/c/mixed.c",
        case("fine", 12), case("trap", 20, code=134, stderr=[], native=False), case("three", 21, code=3))
program("c_endings", "tests/std/c/endings.c",
        case("exit", "exit", files={"old.txt": "old"}, code=5, written=["made.txt"], absent=["old.txt"]),
        case("trap", "trap", files={"old.txt": "old"}, code=134, stderr=[], written=["made.txt"], native=False,
             absent=["old.txt"]),
        case("change", "change", files={"given.txt": "1\n", "other.txt": "2\n", "third.txt": "3\n"},
             written=["given.txt", "link.txt", "taken.txt", "new.txt"]),
        case("ask", "ask", stdin="Ada\nAlan\n"))
# A native program may go where it wants: what is right is that nothing is allowed.
program("c_escapes", "tests/std/c/escapes.c", case("all", files={}, native=False))

program("c_processes", "tests/std/c/processes.c",
        *[case(name, name) for name in "exits waits family pipes descriptors polls writers megabyte many".split()],
        case("arguments", "arguments", env={"OWN": "environment", "X": "1 2"}),
        case("wrong_spawns", "wrong_spawns"),
        case("kills", "kills", code=143, stderr=[]),
        case("files", "files", files={"given.txt": "123456789"}, written=["child.txt"], absent=["parent.txt"]),
        # Where nothing is, a native program crashes.
        case("faults", "faults", native=False),
        resident=True, flags=SMALL)
# No storms on the machine that tests.
program("c_storms", "tests/std/c/storms.c",
        case("families", "families", 200), case("pipes", "pipes", 200), case("descriptors", "descriptors", 5000),
        case("full", "full", 1000000), resident=True, flags=SMALL, native=False)
# This machine has no WASIX: what is right is what its own runtime does.
program("c_wasix", "tests/std/c/wasix.c",
        *[case(name, name, env={"NAME": "value"}) for name in ("spawns", "spawn2", "spawn3")],
        *[case(name, name) for name in ("pipes", "joins", "ids")],
        case("fd_ops", "fd_ops", files={"given.txt": "given"}, written=["made.txt"]),
        case("wrong_spawns", "wrong_spawns", files={"given.txt": "given"}),
        resident=True, flags=SMALL, native=False)

program("c_threads", "tests/std/c/threads.c",
        *[case(area, area, files={}) for area in ("create", "mutexes", "conditions", "timeouts", "barriers", "storage",
                                                  "others", "heap", "growth")],
        case("files", "files", files={}, absent=["lines.txt"]),
        *[case(f"end_{how}", "end", how, code=code) for how, code in (("exit", 7), ("_exit", 9), ("return", 5))],
        case("end_abort", "end", "abort", code=134, stderr=[]),
        case("end_fault", "end", "fault", code=134, stderr=[], native=False),
        # What is too many differs from machine to machine.
        case("full", "full", native=False), threads=True)

# Elsewhere who waits goes on waiting.
program("c_closing", "tests/std/c/closing.c", case("all"), threads=True, resident=True, native=False)

SETJMP = ["-isystem", "tests/std/c/setjmp", "-mexception-handling", "-mllvm", "-wasm-enable-sjlj"]
# What clang emits by itself are the exceptions of before WebAssembly 3.0.
program("c_jumps", "tests/std/c/jumps.c", case("all"), extra=["tests/std/c/setjmp/setjmp.c"],
        flags=[*SETJMP, "-mllvm", "-wasm-use-legacy-eh=false"])
program("c_jumps_legacy", "tests/std/c/jumps.c", case("all"), extra=["tests/std/c/setjmp/setjmp.c"], flags=SETJMP)
