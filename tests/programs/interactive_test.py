#!/usr/bin/env python3
"""What a person at a terminal, or a script at the other end of a pipe, sees of one program.

    interactive_test.py [--gpu-run PATH] [--guests DIR] [--device cpu] [--resident] [NAME...]

The program is tests/std/c/endings.c, in resident mode too with --resident, and that of examples/shell. The last
line counts tests: N passed, N failed, N skipped.
"""
import contextlib
import os
import pathlib
import pty
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import common  # noqa: E402

PATIENCE = 60  # seconds; what is tested to be quick has a limit of its own
MADE = "made before the end\n"


class Failure(Exception):
    pass


def expect(got, want, what):
    if got != want:
        raise Failure(f"{what}: {got!r}, expected {want!r}")


def expect_part(text, part, what):
    if part not in text:
        raise Failure(f"{what}: {text!r}, expected {part!r} in it")


class Bench:
    """A scratch folder, and the command that runs the program."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        # Within which a program has begun, where nothing tells that it has.
        self.begin_seconds = 2

    def words(self, *args, flags=(), module="c_endings"):
        device = ["--device", self.options.device] if self.options.device else []
        mode = ["--resident"] if self.options.resident and "--instances" not in flags else []
        return [*self.options.gpu_run, *device, *mode, *flags, str(self.options.guests.resolve() / f"{module}.wasm"),
                *args]

    def quoted(self, *args):
        return shlex.join(self.words(*args))

    def run(self, *args, flags=(), **more):
        """Runs it to its end: (exit code, output, standard error)."""
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | more
        done = subprocess.run(self.words(*args, flags=flags), cwd=self.folder, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE, check=False, **more)
        return done.returncode, done.stdout, done.stderr

    def shell(self, script):
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    @contextlib.contextmanager
    def start(self, *args, flags=()):
        process = subprocess.Popen(self.words(*args, flags=flags), cwd=self.folder, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            yield process
        finally:
            process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(OSError):
                    stream.close()
            process.wait()

    def write(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.txt").write_text(text)

    def file(self, name):
        path = self.folder / name
        return path.read_text() if path.exists() else None


def read_until(fd, end, seconds=PATIENCE):
    """What comes, up to `end`. Fails if it does not come in time."""
    got, deadline = b"", time.monotonic() + seconds
    while not got.endswith(end):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise Failure(f"after {seconds} s there is only {got!r}, expected {end!r}")
        try:
            more = os.read(fd, 1)
        except OSError:  # the other end of a terminal has gone
            more = b""
        if not more:
            raise Failure(f"it ended after {got!r}, expected {end!r}")
        got += more
    return got


def wait_for(process, seconds=PATIENCE):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise Failure(f"no end after {seconds} s") from None


# Standard input and output

def prompt(bench):
    """The prompt comes before the answer is given, and the answer to that before the next one."""
    with bench.start("ask") as process:
        expect(read_until(process.stdout.fileno(), b"? "), b"Your name? ", "the prompt")
        for name in (b"Ada", b"Alan"):
            process.stdin.write(name + b"\n")
            process.stdin.flush()
            expect(read_until(process.stdout.fileno(), b"? "), b"Hello, " + name + b".\nYour name? ", "the answer")
        process.stdin.close()
        expect(process.stdout.read(), b"nobody\n", "at the end of input")
        expect(wait_for(process), 0, "exit code")


def terminal(bench):
    """The same at a terminal: Ctrl-D is the end of input."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(bench.folder)
        words = bench.words("ask")
        os.execvp(words[0], words)
    try:
        read_until(fd, b"Your name? ")
        os.write(fd, b"Ada\n")
        read_until(fd, b"Hello, Ada.\r\nYour name? ")
        os.write(fd, b"\x04")
        read_until(fd, b"nobody\r\n")
        expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "exit code")
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


def shell_at_terminal(bench):
    """Lines for the shell and lines for what it started, by turns; Ctrl-D is the end for both."""
    flags = [*([] if bench.options.resident else ["--resident"]),
             *[word for name in ("cat", "upper", "echo") for word in
               ("--program", str(bench.options.guests.resolve() / f"bin/{name}.wasm"))]]
    pid, fd = pty.fork()
    if pid == 0:
        words = bench.words(flags=flags, module="shell")
        os.execvp(words[0], words)
    try:
        for line, answer in ((b"echo one | upper\n", b"ONE\r\n$ "), (b"echo two\n", b"two\r\n$ "),
                             (b"cat | upper\n", b"upper\r\n"), (b"for cat\n", b"for cat\r\n"),
                             (b"\x04", b"FOR CAT\r\n$ ")):
            os.write(fd, line)
            read_until(fd, answer)
        expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "exit code")
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)


def last_line_without_end(bench):
    expect(bench.run("ask", stdin=None, input="Ada\nAl"),
           (0, "Your name? Hello, Ada.\nYour name? Hello, Al.\nYour name? nobody\n", ""), "a pipe")


def input_closed(bench):
    code, out, err = bench.shell(f"{bench.quoted('ask')} <&-")
    expect((code, out, err), (0, "Your name? nobody\n", ""), "no standard input at all")


def input_from_file(bench):
    bench.write(names="Grace\n")
    expect(bench.run("ask", flags=["--stdin", "names.txt"]), (0, "Your name? Hello, Grace.\nYour name? nobody\n", ""),
           "--stdin")


def head(bench):
    """A reader that has had enough ends an endless printer, at once and without a word."""
    begin = time.monotonic()
    code, out, err = bench.shell(f"{bench.quoted('lines')} | head -1; exit ${{PIPESTATUS[0]}}")
    expect((code, out, err), (141, "line 1\n", ""), "| head -1")
    seconds = time.monotonic() - begin
    if seconds > 10:
        raise Failure(f"it took {seconds:.1f} s to see that nobody reads")


def full(bench):
    with open("/dev/full", "w", encoding="ascii") as device:
        code, _, err = bench.run("print", stdout=device)
        expect(code, 1, "exit code")
        expect_part(err, "cannot write to standard output: No space left on device\n", "standard error")
        code, _, err = bench.run("lines", stdout=device)
        expect(code, 1, "exit code of an endless printer")
        expect_part(err, "cannot write to standard output: No space left on device\n", "standard error")


def output_closed(bench):
    code, out, err = bench.shell(f"{bench.quoted('print')} >&-")
    expect((code, out), (1, ""), "no standard output at all")
    expect_part(err, "cannot write to standard output: Bad file descriptor\n", "standard error")


def streams_apart(bench):
    expect(bench.run("complain"), (0, "", "complaint\n"), "standard error")
    expect(bench.run("print"), (0, "something\n", ""), "standard output")


# Ends that the program did not choose: what it had written is there afterwards

def interrupt(bench, what):
    bench.write(old="old\n")
    with bench.start(what, flags=["--dir", ".::/"]) as process:
        read_until(process.stdout.fileno(), b"ready\n")
        time.sleep(0.1)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        expect(wait_for(process), 130, "exit code")
        seconds = time.monotonic() - begin
        expect_part(process.stderr.read().decode(), "c_endings.wasm: interrupted\n", "standard error")
    if seconds > 5:
        raise Failure(f"it took {seconds:.1f} s to stop")
    expect(bench.file("made.txt"), MADE, "made.txt")
    expect(bench.file("old.txt"), None, "old.txt")


def interrupted_loop(bench):
    interrupt(bench, "loop")


def interrupted_sleep(bench):
    interrupt(bench, "sleep")


def interrupted_read(bench):
    interrupt(bench, "wait")


def interrupted_at_terminal(bench):
    """Ctrl-C, as a terminal sends it."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(bench.folder)
        words = bench.words("wait", flags=["--dir", ".::/"])
        os.execvp(words[0], words)
    try:
        read_until(fd, b"ready\r\n")
        os.write(fd, b"\x03")
        read_until(fd, b"interrupted\r\n")
        with contextlib.suppress(Failure):
            read_until(fd, b"never printed")  # the backtrace, to its end
        expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130, "exit code")
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(fd)
    expect(bench.file("made.txt"), MADE, "made.txt")


def interrupted_many(bench):
    """Those that run, those that wait, and those that never began: what was made is in --out."""
    with bench.start("sleep", flags=["--dir", ".::/", "--instances", "50", "--out", "out"]) as process:
        process.stdin.close()  # they get all of it, so they wait for its end
        time.sleep(bench.begin_seconds)
        process.send_signal(signal.SIGINT)
        expect(wait_for(process), 130, "exit code")
    expect(bench.file("out/0.stdout"), "ready\n", "out/0.stdout")
    expect(bench.file("out/0/made.txt"), MADE, "out/0/made.txt")
    expect(bench.file("made.txt"), None, "made.txt in the folder given")


def timeout(bench):
    for what in ("loop", "sleep", "wait"):
        (bench.folder / "made.txt").unlink(missing_ok=True)
        limit = bench.begin_seconds / 2
        with bench.start(what, flags=["--dir", ".::/", "--timeout", str(limit)]) as process:
            begin = time.monotonic()
            expect(wait_for(process), 124, f"exit code of {what}")
            seconds = time.monotonic() - begin
            expect_part(process.stderr.read().decode(), "timeout: the time limit was reached", f"standard error of {what}")
        if seconds > limit + 10:
            raise Failure(f"{what}: it took {seconds:.1f} s to stop after {limit} s")
        expect(bench.file("made.txt"), MADE, f"made.txt of {what}")


def trap(bench):
    bench.write(old="old\n")
    code, out, err = bench.run("trap", flags=["--dir", ".::/"])
    expect((code, out), (134, "ready\n"), "exit code and output")
    expect_part(err, "c_endings.wasm: trap: unreachable\n", "standard error")
    expect((bench.file("made.txt"), bench.file("old.txt")), (MADE, None), "made.txt and old.txt")


# Files

def one_after_another(bench):
    for text in ("one\n", "two\n", "three\n"):
        expect(bench.run("append", "log.txt", text, flags=["--dir", ".::/"]), (0, "", ""), text)
    expect(bench.file("log.txt"), "one\ntwo\nthree\n", "log.txt")


def two_at_once(bench):
    """Both write back what they changed, and leave the other's files alone."""
    with bench.start("wait", flags=["--dir", ".::/"]) as process:
        read_until(process.stdout.fileno(), b"ready\n")
        expect(bench.run("append", "log.txt", "in between\n", flags=["--dir", ".::/"]), (0, "", ""), "the second")
        process.stdin.close()
        expect(wait_for(process), 0, "exit code of the first")
    expect((bench.file("made.txt"), bench.file("log.txt")), (MADE, "in between\n"), "made.txt and log.txt")


def read_only(bench):
    bench.write(given="1\n", other="2\n", third="3\n")
    refused = ["write", "truncate", "make a file", "make a folder", "link", "symlink", "rename", "remove"]
    expect(bench.run("change", flags=["--dir-ro", ".::/"]),
           (0, "".join(f"{what}: refused\n" for what in refused) + "read: done\n", ""), "--dir-ro")
    expect({path.name: path.read_text() for path in bench.folder.iterdir()},
           {"given.txt": "1\n", "other.txt": "2\n", "third.txt": "3\n"}, "the folder")


def no_folder(bench):
    code, out, err = bench.run("append", "log.txt", "text")
    expect((code, out), (1, ""), "without --dir")
    expect_part(err, "log.txt: ", "standard error")
    expect(list(bench.folder.iterdir()), [], "the folder")


TESTS = [prompt, terminal, shell_at_terminal, last_line_without_end, input_closed, input_from_file, head, full, output_closed,
         streams_apart, interrupted_loop, interrupted_sleep, interrupted_read, interrupted_at_terminal,
         interrupted_many, timeout, trap, one_after_another, two_at_once, read_only, no_folder]


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--resident", action="store_true", help="in resident mode")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    common.check_names(parser, options.names, [test.__name__ for test in TESTS])
    common.need_guests(options.guests)
    counts = common.Counts(options.verbose)
    lacking = common.skipped_modules(options.guests).get("c_endings")
    for test in TESTS:
        if options.names and test.__name__ not in options.names:
            continue
        if lacking:
            counts.add("skipped", test.__name__, lacking)
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
            try:
                test(Bench(options, pathlib.Path(scratch)))
                counts.add("passed", test.__name__, f"{time.monotonic() - begin:.2f} s")
            except (Failure, subprocess.TimeoutExpired) as why:
                counts.add("failed", test.__name__, why)
    return counts.finish()


if __name__ == "__main__":
    sys.exit(main())
