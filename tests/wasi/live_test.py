#!/usr/bin/env python3
"""A process with live streams: what it writes goes out once and in order, what comes in is not lost,
whether it is waited for by reading or by poll_oneoff. $GPURUN is the command."""
import os
import pathlib
import select
import subprocess
import sys
import tempfile

GPURUN = os.environ["GPURUN"]

IMPORTS = """
(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
"""

# One call that writes 24 MiB, and goes on with the rest when less was taken.
LARGE = """(module %s
  (memory (export "memory") 400)
  (func (export "_start") (local $i i32) (local $at i32)
    (loop $fill
      (i32.store (i32.add (i32.const 65536) (local.get $i)) (local.get $i))
      (br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 25165824))))
    (loop $more
      (i32.store (i32.const 0) (i32.add (i32.const 65536) (local.get $at)))
      (i32.store (i32.const 4) (i32.sub (i32.const 25165824) (local.get $at)))
      (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
      (local.set $at (i32.add (local.get $at) (i32.load (i32.const 8))))
      (br_if $more (i32.lt_u (local.get $at) (i32.const 25165824))))))
""" % IMPORTS

# Polls standard input, reads up to 100 bytes, writes what came with its length in front; ends at
# the end of the input.
ECHO = """(module %s
  (memory (export "memory") 1)
  (func (export "_start") (local $n i32)
    (i32.store (i32.const 0) (i32.const 0x200))
    (loop $again
      (i32.store8 (i32.const 0x108) (i32.const 1))
      (if (call $poll (i32.const 0x100) (i32.const 0x180) (i32.const 1) (i32.const 8)) (then unreachable))
      (if (i32.load16_u (i32.const 0x188)) (then unreachable))
      (i32.store (i32.const 4) (i32.const 100))
      (if (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 12)) (then unreachable))
      (local.set $n (i32.load (i32.const 12)))
      (if (i32.eqz (local.get $n)) (then (call $exit (i32.const 7))))
      (i32.store (i32.const 4) (local.get $n))
      (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)) (then unreachable))
      (br $again))))
""" % IMPORTS


def large(folder):
    path = folder / "large.wat"
    path.write_text(LARGE)
    done = subprocess.run([GPURUN, "--device", "cpu", path], stdout=subprocess.PIPE, timeout=200)
    expected = b"".join(i.to_bytes(4, "little") for i in range(0, 24 << 20, 4))
    assert done.returncode == 0, done.returncode
    assert len(done.stdout) == len(expected), f"{len(done.stdout)} bytes instead of {len(expected)}"
    assert done.stdout == expected


def echo(folder):
    path = folder / "echo.wat"
    path.write_text(ECHO)
    process = subprocess.Popen([GPURUN, "--device", "cpu", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for text in [b"first\n", b"a longer second line\n", b"3\n", b"x" * 100, b"last"]:
        process.stdin.write(text)
        process.stdin.flush()
        answer = b""
        while len(answer) < len(text) and select.select([process.stdout], [], [], 20)[0]:
            more = os.read(process.stdout.fileno(), 1000)
            if not more:
                break
            answer += more
        if answer != text:
            process.kill()
        assert answer == text, f"{answer} instead of {text}"
    process.stdin.close()
    assert process.wait(60) == 7


def main():
    failed = 0
    tests = [large, echo]
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            try:
                test(pathlib.Path(folder))
            except AssertionError as error:
                print(f"{test.__name__}: {error}")
                failed += 1
    print(f"{len(tests) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
