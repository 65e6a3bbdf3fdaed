#!/usr/bin/env python3
"""gpu-run map, interrupted, killed and out of room in the middle of its work: --resume finishes it, with nothing
missing, nothing done twice and no file half written. And what shows only on a terminal, or while it runs.

    map_test.py [--files N] [--device DEVICE] [TEST...]
"""
import argparse
import os
import pathlib
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

GPURUN = os.path.abspath(os.environ["GPURUN"])
TIMEOUT = 300

# Copies its input to its output, after some work that takes time.
PROGRAM = """(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start") (local $i i32)
    (local.set $i (i32.const 20000))
    (loop $work
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (br_if $work (local.get $i)))
    (loop $more
      (i32.store (i32.const 0) (i32.const 65536))
      (i32.store (i32.const 4) (i32.const 65536))
      (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (if (i32.load (i32.const 8))
        (then
          (i32.store (i32.const 4) (i32.load (i32.const 8)))
          (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
          (br $more))))))
"""


# Works for a while, then copies a byte of input to its output; without one it works for ever.
WORK = """(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32)
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 1))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $i (i32.const 5000000))
    (loop $work
      (local.set $i (i32.sub (local.get $i) (i32.load (i32.const 8))))
      (br_if $work (local.get $i)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""


class Skip(Exception):
    pass


class Inputs:
    """A folder of files, and what must come of them."""

    def __init__(self, folder, count):
        self.folder, self.expected = folder / "in", {}
        for number in range(count):
            name = f"{number % 7}/{number:06}.txt"
            text = f"file {number}\n" * (1 + number % 97)
            self.expected[name] = text.encode()
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(self.expected[name])


def outputs(out):
    """What is there, but for what map keeps for itself."""
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*")
            if path.is_file() and path.relative_to(out).parts[0] != ".gpu-run"}


def check_whole(inputs, out):
    """Every output that is there is whole; how many there are."""
    found = outputs(out)
    for name, text in found.items():
        assert inputs.expected.get(name) == text, f"{name} is not whole: {len(text)} bytes"
    return len(found)


def check_all(inputs, out):
    """All is there, and was noted once."""
    assert check_whole(inputs, out) == len(inputs.expected), "outputs are missing"
    left = [str(path) for path in (out / ".gpu-run").rglob("*") if path.is_file() and path.name != "journal"]
    assert not left, f"left behind: {left}"
    noted = [line.removeprefix("done ").split("\t")[0] for line in (out / ".gpu-run/journal").read_text().splitlines()
             if line.startswith("done ")]
    assert sorted(noted) == sorted(inputs.expected), "the journal does not have each input once"


class Runs:
    """How map is called for a folder of inputs and outputs."""

    def __init__(self, options, folder):
        self.inputs = Inputs(folder, options.files)
        self.out = folder / "out"
        (folder / "copy.wat").write_text(PROGRAM)
        self.words = [GPURUN, "map", "--device", options.device, "--in", str(self.inputs.folder)]
        self.program = [str(folder / "copy.wat")]

    def command(self, *more, out=None):
        return [*self.words, "--out", str(out or self.out), *more, *self.program]

    def run(self, *more, out=None, **how):
        return subprocess.run(self.command(*more, out=out), capture_output=True, text=True, timeout=TIMEOUT, check=False,
                              **how)

    def start(self, *more):
        return subprocess.Popen(self.command(*more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_some(self, process, at_least):
        """Until a run has noted so many inputs."""
        journal, end = self.out / ".gpu-run/journal", time.monotonic() + TIMEOUT
        while process.poll() is None and time.monotonic() < end:
            if journal.exists() and journal.read_bytes().count(b"\n") > at_least:
                return
            time.sleep(0.005)

    def finish(self, done_before):
        """--resume does what is left; and then there is nothing left."""
        done = self.run("--resume")
        assert done.returncode == 0, done.stderr
        match = re.fullmatch(r"gpu-run: (\d+) done(?:, (\d+) before)?, 0 failed\n", done.stderr)
        assert match, done.stderr
        now, before = int(match[1]), int(match[2] or 0)
        assert now + before == len(self.inputs.expected), done.stderr
        assert before <= done_before, done.stderr
        check_all(self.inputs, self.out)
        again = self.run("--resume")
        assert again.stderr == f"gpu-run: 0 done, {len(self.inputs.expected)} before, 0 failed\n", again.stderr
        check_all(self.inputs, self.out)


def check_signal(options, folder, number, told):
    """A signal ends the run: what is done stays, and the exit code is what a shell shows of the signal."""
    runs = Runs(options, folder)
    process = runs.start("--jobs", "50")
    runs.wait_for_some(process, options.files // 5)
    process.send_signal(number)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 128 + number, (process.returncode, errors)
    assert errors.endswith(f"gpu-run: {told}; --resume goes on from here\n"), errors
    done = int(re.match(r"gpu-run: (\d+) done", errors)[1])
    assert 0 < done < options.files, errors
    assert check_whole(runs.inputs, runs.out) == done
    runs.finish(done)


def test_interrupted(options, folder):
    check_signal(options, folder, signal.SIGINT, "interrupted")


def test_terminated(options, folder):
    check_signal(options, folder, signal.SIGTERM, "ended by SIGTERM")


def test_hung_up(options, folder):
    check_signal(options, folder, signal.SIGHUP, "ended by SIGHUP")


def test_killed(options, folder):
    """SIGKILL, again and again."""
    runs = Runs(options, folder)
    random.seed(1)
    for attempt in range(4):
        process = runs.start("--resume", "--jobs", "50")
        runs.wait_for_some(process, options.files * (attempt + 1) // 6)
        time.sleep(random.random() * 0.03)
        process.kill()
        process.communicate(timeout=TIMEOUT)
        assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
        done = check_whole(runs.inputs, runs.out)
    assert done > 0
    runs.finish(done)


def test_torn_journal(options, folder):
    """A line of the journal that was cut short does not count."""
    runs = Runs(options, folder)
    assert runs.run().returncode == 0
    journal = runs.out / ".gpu-run/journal"
    journal.write_bytes(journal.read_bytes()[:-3])
    done = runs.run("--resume")
    assert done.stderr == f"gpu-run: 1 done, {options.files - 1} before, 0 failed\n", done.stderr
    check_all(runs.inputs, runs.out)


def mount(folder, size, *more):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *more]), "tmpfs", str(folder)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip("no tmpfs can be mounted here: " + done.stderr.strip())


def test_disk_full(options, folder):
    """No room for all outputs."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a small tmpfs")
    runs = Runs(options, folder)
    runs.out = folder / "small/out"
    runs.out.parent.mkdir()
    # A page for each file, and some for folders and the journal.
    mount(runs.out.parent, f"{options.files * 4 // 2}k")
    try:
        full = runs.run()
        assert full.returncode == 1, full.stderr
        assert "No space left on device" in full.stderr and "--resume goes on" in full.stderr, full.stderr
        done = check_whole(runs.inputs, runs.out)
        assert 0 < done < options.files, done
        still = runs.run("--resume")
        assert still.returncode == 1 and "No space left on device" in still.stderr, still.stderr
        done = check_whole(runs.inputs, runs.out)
        mount(runs.out.parent, f"{options.files * 4 * 2}k", "remount")
        runs.finish(done)
    finally:
        subprocess.run(["umount", str(runs.out.parent)], check=False)


def test_time_limit(options, folder):
    """A launch takes longer than the time that its processes may take; only the one that never ends fails."""
    (folder / "work.wat").write_text(WORK)
    command = [GPURUN, "map", "--device", options.device, "--in", str(folder / "in")]
    (folder / "in").mkdir()
    (folder / "in/00").write_bytes(b"x")
    begin = time.monotonic()
    subprocess.run([*command, str(folder / "work.wat")], stdout=subprocess.DEVNULL, check=True, timeout=TIMEOUT)
    limit = 0.3 + 6 * (time.monotonic() - begin)
    for number in range(60):
        (folder / f"in/{number:02}").write_bytes(b"x")
    (folder / "in/30").write_bytes(b"")
    done = subprocess.run([*command, "--timeout", f"{limit:.3f}", str(folder / "work.wat")], capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1, done
    assert re.fullmatch(r"gpu-run: 30: timeout in .*\n", done.stderr), done.stderr
    assert done.stdout == "x" * 59, done.stdout


def test_no_permission(options, folder):
    """A folder that nobody may write, and an input that nobody may read."""
    runs = Runs(options, folder)
    runs.out.mkdir()
    how = {}
    if os.geteuid() == 0:  # who may write and read everything
        nobody = 65534
        how = {"user": nobody, "group": nobody, "extra_groups": []}
        folder.chmod(0o755)
        os.chown(runs.out, nobody, nobody)
        try:
            subprocess.run([GPURUN, "--version"], capture_output=True, check=True, **how)
        except PermissionError:
            raise Skip("only root can run gpu-run from where it is") from None
    runs.out.chmod(0o500)
    done = runs.run(**how)
    assert done.returncode == 1 and "Permission denied" in done.stderr, done.stderr
    runs.out.chmod(0o700)
    name = min(runs.inputs.expected)
    (runs.inputs.folder / name).chmod(0)
    done = runs.run(**how)
    assert done.returncode == 1, done.stderr
    assert f"gpu-run: {name}: cannot read it: Permission denied\n" in done.stderr, done.stderr
    assert check_whole(runs.inputs, runs.out) == options.files - 1


def test_two_at_once(options, folder):
    """The second one is told to wait."""
    runs = Runs(options, folder)
    process = runs.start("--jobs", "10")
    runs.wait_for_some(process, 1)
    second = runs.run("--resume")
    assert second.returncode == 1 and "another gpu-run map writes there" in second.stderr, second.stderr
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    check_all(runs.inputs, runs.out)


def test_long_input_of_lines(options, folder):
    """Lines that come slowly are worked on as they come; Ctrl-C ends the wait for more."""
    (folder / "copy.wat").write_text(PROGRAM)
    (folder / "text").write_text("text\n")
    process = subprocess.Popen([GPURUN, "map", "--device", options.device, "--lines", "-", "--stdin", str(folder / "text"),
                                str(folder / "copy.wat")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    for _ in range(3):
        process.stdin.write(b"a line\n")
        assert process.stdout.readline() == b"text\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=TIMEOUT) == 130
    assert process.stderr.read() == b"gpu-run: interrupted\n"


def on_terminal(command):
    """What a command shows where standard error is a terminal."""
    main, terminal = pty.openpty()
    environment = dict(os.environ, TERM="xterm")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal,
                               env=environment)
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(main, 65536):
            shown += piece
    except OSError:
        pass  # the other end is closed
    os.close(main)
    assert process.wait(timeout=TIMEOUT) == 0, shown
    return shown.decode()


def test_progress(options, folder):
    """A line on a terminal; none elsewhere, or where nobody wants it."""
    runs = Runs(options, folder)
    shown = on_terminal(runs.command("--jobs", "50"))
    assert re.search(r"\r\x1b\[Kgpu-run: \[#*\.*\] \d+ done, \d+/s, \d+ %, \d+:\d\d left", shown), repr(shown)
    assert re.search(rf"gpu-run:(\x1b\[0m)? {options.files} done, 0 failed", shown), repr(shown)
    assert on_terminal(runs.command("--quiet", out=folder / "quiet")) == ""
    assert "\r" not in runs.run(out=folder / "pipe").stderr


TESTS = {name.removeprefix("test_"): test for name, test in globals().items() if name.startswith("test_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("tests", nargs="*", default=[], metavar="TEST", help=", ".join(TESTS))
    options = parser.parse_args()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in options.tests or TESTS:
        with tempfile.TemporaryDirectory(prefix="map-") as folder:
            begin = time.monotonic()
            try:
                TESTS[name](options, pathlib.Path(folder))
                result = "passed"
            except Skip as why:
                result = "skipped"
                print(f"skipped: map {name}: {why}")
            except (AssertionError, subprocess.TimeoutExpired) as why:
                result = "failed"
                print(f"failed: {name}: {why}")
            counts[result] += 1
            if options.tests:
                print(f"{name}: {result}, {time.monotonic() - begin:.1f} s")
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
