#!/usr/bin/env python3
"""The command when the host fails: it ends by itself, with the right output or with an exit code and
a message. With --all every point, else some of each kind."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(os.environ["GPURUN_BUILD"]) / "tests" / "faulty-gpu-run"
KINDS = ["allocation", "thread", "open", "read", "write", "rename", "sync", "mmap"]
WAYS = ["once", "lasting"]
COPY = """(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 1024))
    (loop $again
      (i32.store (i32.const 4) (i32.const 1000))
      (if (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))
        (then (call $exit (i32.const 9))))
      (i32.store (i32.const 4) (i32.load (i32.const 8)))
      (if (i32.load (i32.const 8))
        (then
          (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))
            (then (call $exit (i32.const 9))))
          (br $again))))))"""
MODES = {
    "alone": (["copy.wat"], b"input\n"),
    "instances": (["--instances", "3", "copy.wat"], None),
    "resident": (["--resident", "copy.wat"], b"input\n"),
    "map": (["map", "--in", "in", "--out", "out", "copy.wat"], b""),
}


def run(arguments, folder, kind, number, how):
    shutil.rmtree(folder / "out", ignore_errors=True)
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    environment = dict(os.environ, GPURUN_FAULT=f"{kind} {number} {how}", GPURUN_CACHE="",
                       GPURUN_FAULT_CALLS=str(calls), TMPDIR=str(folder))
    done = subprocess.run([TOOL, "--device", "cpu", *arguments] if arguments[0] != "map" else
                          [TOOL, "map", "--device", "cpu", *arguments[1:]], cwd=folder,
                          input=b"input\n", capture_output=True, timeout=120, env=environment)
    return done, int(calls.read_text()) if calls.exists() else 0


def stored(folder):
    return sorted(path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file())


def main():
    most = 10 ** 9 if "--all" in sys.argv else 8
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "copy.wat").write_text(COPY)
        (folder / "in").mkdir()
        for text in ("a", "b"):
            (folder / "in" / text).write_text(text)
        for mode, (arguments, output) in MODES.items():
            for kind, kind_name in enumerate(KINDS):
                right, calls = run(arguments, folder, kind, 0, 0)
                assert right.returncode == 0, right
                assert output is None or right.stdout == output, right
                files, points, answers = stored(folder), 0, 0
                for how, how_name in enumerate(WAYS):
                    for number in range(1, calls + 1, max(1, -(-calls // most))):
                        done, _ = run(arguments, folder, kind, number, how)
                        points += 1
                        if done.returncode == 0:
                            good = done.stdout == right.stdout and stored(folder) == files
                        else:
                            answers += 1
                            good = done.returncode > 0 and done.stderr
                        passed, failed = (passed + 1, failed) if good else (passed, failed + 1)
                        if not good:
                            print(f"{mode}, {kind_name} {number}, {how_name}: {done}")
                print(f"{mode:10} {kind_name:10} {calls:5} calls: {points:5} points, {answers:5} "
                      "ended with a message", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
