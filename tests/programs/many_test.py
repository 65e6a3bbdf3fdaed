#!/usr/bin/env python3
"""Thousands of processes at once: memory, different ends, isolation, exact counts.

    many_test.py [--gpu-run PATH] [--guests DIR] [--device cpu] [--large] [NAME...]

--large adds 100,000 processes of unique_chars. The last line counts tests: N passed, N failed,
N skipped.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import common  # noqa: E402

PATIENCE = 300  # seconds
KIB = 1024


class Failure(Exception):
    pass


def expect(got, want, what):
    if got != want:
        raise Failure(f"{what}: {got!r}, expected {want!r}")


class Run:
    """A run of many processes, to its end: code, stdout and stderr as bytes, peak memory in bytes."""

    def __init__(self, options, folder, count, module, *args, flags=()):
        device = ["--device", options.device] if options.device else []
        words = [*options.gpu_run, *device, "--instances", str(count), *flags,
                 str(options.guests.resolve() / f"{module}.wasm"), *args]
        with open(folder / "stdout", "w+b") as out, open(folder / "stderr", "w+b") as err:
            process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            deadline = time.monotonic() + PATIENCE
            # wait4 alone tells the peak of this one process, and it has no timeout.
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > deadline:
                    process.kill()
                    process.wait()
                    raise Failure(f"no end after {PATIENCE} s")
                time.sleep(0.01)
            process.returncode = self.code = os.waitstatus_to_exitcode(status)
            self.peak = usage.ru_maxrss * KIB
            out.seek(0)
            err.seek(0)
            self.stdout, self.stderr = out.read(), err.read()

    def tail(self):
        return self.stderr.decode(errors="replace")[-1000:]

    def groups(self):
        """[(number of processes, the first of them, how they ended)], in the order of their output."""
        found = re.findall(rb"^gpu-run: (?:process (\d+):|(\d+) of \d+ processes \(the first is (\d+)\):|"
                           rb"(\d+) processes, all(?: alike:)?) (.*)$", self.stderr, re.MULTILINE)
        if not found:
            raise Failure(f"not what gpu-run says of many processes; exit code {self.code}\n{self.tail()}")
        return [(int(count or all_of_them or 1), int(one or first or 0), ending.decode())
                for one, count, first, all_of_them, ending in found]

    def expect_equal(self, count, output):
        """All did the same, and exited with 0."""
        expect(self.groups(), [(count, 0, "exited with 0")], "groups")
        expect((self.code, self.stdout), (0, output), "exit code and output")


# A hello of C keeps its stack of 1 MiB, of which it touches a page or two, and its data: this is
# for all that a process leaves behind, its output among it.
BYTES_PER_PROCESS = 32 * KIB


def memory(options, folder):
    """10,000 hellos take what they touch, not what they may have."""
    few, many = 100, 10000
    base = Run(options, folder, few, "c_hello")
    run = Run(options, folder, many, "c_hello")
    base.expect_equal(few, b"Hello, world!\n")
    run.expect_equal(many, b"Hello, world!\n")
    each = (run.peak - base.peak) / (many - few)
    if each > BYTES_PER_PROCESS:
        raise Failure(f"{each / KIB:.1f} KiB a process, expected {BYTES_PER_PROCESS / KIB:.0f} KiB at most; "
                      f"{base.peak >> 20} MiB for {few}, {run.peak >> 20} MiB for {many}")
    return f"{each / KIB:.1f} KiB a process, {run.peak >> 20} MiB in all"


def different_ends(options, folder):
    """Every tenth traps, every seventh of the others exits with 3, one never ends, the rest are fine."""
    count, looper = 1000, 501
    run = Run(options, folder, count, "c_mixed", "{}", str(looper), flags=["--timeout", options.timeout])
    wanted, output = {}, {}
    for number in range(count):
        output[number] = f"process {number} begins\n"
        if number == looper:
            wanted[number] = "stopped"
        elif number % 10 == 0:
            wanted[number] = "trap"
        elif number % 7 == 0:
            wanted[number] = "exited with 3"
        else:
            wanted[number] = "exited with 0"
            output[number] += f"process {number} ends with {number * (number + 1) // 2}\n"
    groups = run.groups()
    kinds = {"trap: unreachable in main": "trap", "interrupted": "stopped", "timeout": "stopped"}
    got = {number: next((kind for begin, kind in kinds.items() if ending.startswith(begin)), ending)
           for _, number, ending in groups}
    expect(collections.Counter(got.values()), collections.Counter(wanted.values()), "how many ended how")
    expect([number for number in wanted if got.get(number) != wanted[number]], [], "those that ended differently")
    # Outputs stand in the order in which the processes are named.
    expect(run.stdout == "".join(output[number] for _, number, _ in groups).encode(), True, "every output as it is")
    expect(run.code, 124, "exit code")
    return ", ".join(f"{number} {what}" for what, number in collections.Counter(got.values()).items())


def isolation(options, folder):
    """Each writes its number through memory, files and output, and finds its own alone."""
    count = 10240
    (folder / "files").mkdir()
    (folder / "files/base.txt").write_text("here before\n")
    run = Run(options, folder, count, "c_isolation", "{}", flags=["--dir", "files::/"])
    groups = run.groups()
    expect(collections.Counter(ending for _, _, ending in groups), {"exited with 0": count}, "endings")
    expect(sorted(number for _, number, _ in groups), list(range(count)), "processes")
    expect(run.stdout == b"".join(b"process %d of its own: ok\n" % number for _, number, _ in groups), True,
           "every output as it is")
    expect(run.stderr == b"".join(b"gpu-run: process %d: exited with 0\n%d on standard error\n" % (number, number)
                                  for _, number, _ in groups), True, "every standard error as it is")
    expect([(path.name, path.read_text()) for path in (folder / "files").iterdir()], [("base.txt", "here before\n")],
           "the folder given")
    expect(run.code, 0, "exit code")


def isolation_of_files(options, folder):
    """The same, for what they leave in --out."""
    count = 500
    (folder / "files").mkdir()
    (folder / "files/base.txt").write_text("here before\n")
    run = Run(options, folder, count, "c_isolation", "{}", flags=["--dir", "files::/", "--out", "out"])
    expect(run.code, 0, "exit code")
    names = [f"{number}{ending}" for number in range(count) for ending in ("", ".stdout", ".stderr")]
    expect(sorted(path.name for path in (folder / "out").iterdir()), sorted(names + ["results.jsonl"]), "out")
    lines = [json.loads(line) for line in (folder / "out/results.jsonl").read_text().splitlines()]
    expect(lines, [{"process": number, "ending": "exit", "exit_code": 0} for number in range(count)], "results.jsonl")
    for number in range(count):
        own = folder / "out" / str(number)
        text = f"{number} wrote this\n"
        expect({str(path.relative_to(own)): path.read_text() for path in own.rglob("*") if path.is_file()},
               {f"private-{number}.txt": text, "common.txt": text, "sub/deep.txt": text,
                "base.txt": "here before\n" + text}, f"out/{number}")
        expect((folder / f"out/{number}.stdout").read_text(), f"process {number} of its own: ok\n", "stdout")
        expect((folder / f"out/{number}.stderr").read_text(), f"{number} on standard error\n", "stderr")


def unique_chars_of(options, folder, count):
    (folder / "input.txt").write_bytes((common.ROOT / "examples/unique_chars/input.txt").read_bytes())
    output = (common.ROOT / "examples/unique_chars/expected/unique_chars.example.out").read_bytes()
    Run(options, folder, count, "unique_chars", flags=["--dir", ".::/"]).expect_equal(count, output)


def unique_chars(options, folder):
    unique_chars_of(options, folder, 10240)


def unique_chars_large(options, folder):
    unique_chars_of(options, folder, 100000)


def sleepers(options, folder):
    """Those that sleep do not hold up each other: one after another they would take minutes."""
    count = 1000
    begin = time.monotonic()
    run = Run(options, folder, count, "rust_sleep")
    seconds = time.monotonic() - begin
    run.expect_equal(count, (common.ROOT / "tests/std/rust/expected/sleep.all.out").read_bytes())
    if seconds > 20:
        raise Failure(f"{seconds:.0f} s")


TESTS = {memory: "c_hello", different_ends: "c_mixed", isolation: "c_isolation", isolation_of_files: "c_isolation",
         unique_chars: "unique_chars", sleepers: "rust_sleep"}
LARGE = {unique_chars_large: "unique_chars"}


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="those that take long on a CPU too")
    parser.add_argument("--timeout", default="5s", help="what suffices for all but those that never end")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    tests = TESTS | LARGE if options.large or options.names else TESTS
    common.check_names(parser, options.names, [test.__name__ for test in tests])
    common.need_guests(options.guests)
    skipped = common.skipped_modules(options.guests)
    counts = common.Counts(options.verbose)
    for test, module in tests.items():
        if options.names and test.__name__ not in options.names:
            continue
        if module in skipped:
            counts.add("skipped", test.__name__, skipped[module])
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
            try:
                found = test(options, pathlib.Path(scratch))
                counts.add("passed", test.__name__, f"{time.monotonic() - begin:.2f} s" + (f", {found}" if found else ""))
            except Failure as why:
                counts.add("failed", test.__name__, why)
    return counts.finish()


if __name__ == "__main__":
    sys.exit(main())
