#!/usr/bin/env python3
"""Ctrl-C while many processes write without end: gpu-run ends, its output does too, and what was
printed of them is whole as far as it goes."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time

GPURUN = os.path.abspath(os.environ["GPURUN"])
PROGRAM = """(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 17)
  (data (i32.const 0) "\\00\\00\\01\\00\\00\\00\\10\\00")
  (func (export "_start")
    (memory.fill (i32.const 65536) (i32.const 97) (i32.const 1048576))
    (loop $more
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br $more))))
"""
ENOUGH = 200 << 20  # bytes that processes have written when the signal comes


def unnamed_bytes(pid):
    """Returns how much of the disk the files without a name take that a process has open."""
    total = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            info = os.stat(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        if info.st_nlink == 0:
            total += info.st_blocks * 512
    return total


def interrupt(folder, flags):
    program = folder / "writer.wat"
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [GPURUN, "--device", "cpu", *flags, program], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
    while unnamed_bytes(process.pid) < ENOUGH:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    # Ends with both streams: nobody else has them open.
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, errors)
    assert output == b"a" * len(output), flags
    assert b"interrupted" in errors and b"lost" not in errors, errors
    assert [path.name for path in folder.iterdir()] == ["writer.wat"], list(folder.iterdir())


def main():
    for flags in (["--instances", "4"], ["--resident", "--instances", "4"]):
        with tempfile.TemporaryDirectory() as folder:
            interrupt(pathlib.Path(folder), flags)
            print(" ".join(flags) + ": as expected")


main()
