#!/usr/bin/env python3
"""What a terminal shows while many files are written back, and that a second signal leaves what the next run finishes.

    write_back_test.py [TEST...]
"""
import argparse
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

GPURUN = os.path.abspath(os.environ["GPURUN"])
TIMEOUT = 300
STAGING = ".gpu-run-transaction"
LINE = re.compile(rb"\r\x1b\[Kgpu-run: Writing back files: ([\d,]+) of ([\d,]+)")

# Makes files f0000000, f0000001, ..., says so, and ends or works for ever.
PROGRAM = """(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "f0000000")
  (data (i32.const 200) "ready\\n")
  (func $name (param $number i32) (local $digit i32)
    (local.set $digit (i32.const 107))
    (loop $more
      (i32.store8 (local.get $digit) (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10))))
      (local.set $number (i32.div_u (local.get $number) (i32.const 10)))
      (local.set $digit (i32.sub (local.get $digit) (i32.const 1)))
      (br_if $more (i32.gt_u (local.get $digit) (i32.const 100)))))
  (func (export "_start") (local $number i32)
    (i32.store (i32.const 0) (i32.const 200))
    (i32.store (i32.const 4) (i32.const 6))
    (loop $more
      (call $name (local.get $number))
      (if (call $open (i32.const 3) (i32.const 0) (i32.const 100) (i32.const 8) (i32.const 1) (i64.const 64)
            (i64.const 0) (i32.const 0) (i32.const 8))
        (then unreachable))
      (drop (call $write (i32.load (i32.const 8)) (i32.const 0) (i32.const 1) (i32.const 12)))
      (drop (call $close (i32.load (i32.const 8))))
      (local.set $number (i32.add (local.get $number) (i32.const 1)))
      (br_if $more (i32.lt_u (local.get $number) (i32.const COUNT))))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)))
    (loop $for_ever (br_if $for_ever (i32.const IS_ENDLESS)))))
"""


class Run:
    """A run with a terminal as its standard error."""

    def __init__(self, folder, flags, count, is_endless):
        self.files, self.shown = folder / "files", b""
        self.files.mkdir(exist_ok=True)
        program = folder / "program.wat"
        program.write_text(PROGRAM.replace("COUNT", str(count)).replace("IS_ENDLESS", str(int(is_endless))))
        self.terminal, end = pty.openpty()
        self.process = subprocess.Popen(
            [GPURUN, "--device", "cpu", *flags, "--dir", f"{self.files}::/", str(program)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=end, env=dict(os.environ, TERM="xterm"))
        os.close(end)

    def wait_until_ready(self):
        assert self.process.stdout.readline() == b"ready\n"

    def read(self, seconds):
        """False: nothing comes any more."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:
            piece = b""  # the other end is closed
        self.shown += piece
        return bool(piece)

    def finish(self):
        """Reads to the end. Returns the exit code."""
        while self.read(TIMEOUT):
            pass
        os.close(self.terminal)
        self.process.stdout.close()
        return self.process.wait(timeout=TIMEOUT)


def numbers(shown):
    return [tuple(int(number.replace(b",", b"")) for number in match) for match in LINE.findall(shown)]


def until_slow(folder, attempt):
    """Calls attempt(folder, count) with more and more files, until it takes long enough to show something."""
    count = 5000
    while True:
        inner = folder / str(count)
        inner.mkdir()
        if attempt(inner, count):
            return
        count *= 4
        assert count < 2_000_000, "no progress was shown"


def shows(flags):
    def attempt(folder, count):
        run = Run(folder, flags, count, False)
        assert run.finish() == 0, run.shown
        assert len(os.listdir(run.files)) == count
        found = numbers(run.shown)
        if not found:
            assert run.shown == b"", run.shown
            return False
        assert found == sorted(found) and {all_files for _, all_files in found} == {count}, found
        assert run.shown.endswith(b"\r\x1b[K"), run.shown
        quiet = Run(folder, ["--quiet", *flags], count, False)
        assert quiet.finish() == 0 and quiet.shown == b"", quiet.shown
        return True
    return attempt


def is_interrupted_twice(flags):
    def attempt(folder, count):
        run = Run(folder, flags, count, True)
        run.wait_until_ready()
        run.process.send_signal(signal.SIGINT)
        first = time.monotonic()
        while not numbers(run.shown):
            if not run.read(0.05) or run.process.poll() is not None:
                run.finish()
                return False
        time.sleep(max(0.0, 0.15 - (time.monotonic() - first)))
        run.process.send_signal(signal.SIGINT)
        assert run.finish() == 130, run.shown
        if not (run.files / STAGING).exists():  # it was done by then
            return False
        assert run.shown.endswith(b"\r\x1b[K"), run.shown
        next_run = Run(folder, flags, 1, False)
        assert next_run.finish() == 0, next_run.shown
        assert b"interrupted run" in next_run.shown, next_run.shown
        left = set(os.listdir(run.files))
        expected = count if b"finished what" in next_run.shown else 1
        assert STAGING not in left and len(left) == expected, (len(left), next_run.shown)
        assert (run.files / "f0000000").read_text() == "ready\n"
        return True
    return attempt


def test_progress_alone(folder):
    until_slow(folder, shows([]))


def test_progress_resident(folder):
    until_slow(folder, shows(["--resident"]))


def test_second_signal_alone(folder):
    until_slow(folder, is_interrupted_twice([]))


def test_second_signal_resident(folder):
    until_slow(folder, is_interrupted_twice(["--resident"]))


TESTS = {name.removeprefix("test_"): test for name, test in globals().items() if name.startswith("test_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", default=[], metavar="TEST", help=", ".join(TESTS))
    options = parser.parse_args()
    failed = 0
    for name in options.tests or TESTS:
        with tempfile.TemporaryDirectory(prefix="write-back-") as folder:
            try:
                TESTS[name](pathlib.Path(folder))
                print(f"{name}: passed", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"{name}: FAILED: {error}", flush=True)
    print(f"{len(options.tests or TESTS) - failed} passed, {failed} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
