#!/usr/bin/env python3
"""Every example of --help, of gpu-run and of its commands, runs as it stands there."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["GPURUN_SOURCE"])
# A program that the examples can have: it prints, and reads what it is given.
PROGRAM = """(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\07\\00\\00\\00")
  (data (i32.const 16) "Hello.\\n")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""


def examples(*command):
    """The commands of the section, which two spaces part from what they do."""
    text = subprocess.run([os.environ["GPURUN"], *command, "--help"], capture_output=True, text=True, check=True).stdout
    section = text.split("\nExamples:\n")[1].split("\n\n")[0]
    return [line.strip().split("  ")[0] for line in section.splitlines()]


def main():
    passed = failed = 0
    commands = examples() + examples("map")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(SOURCE / "examples/fac.wat", folder / "fac.wat")
        shutil.copy(SOURCE / "examples/sum.wast", folder / "test.wast")
        (folder / "app.wasm").write_text(PROGRAM)  # text is a module as well as bytes are
        shutil.copy(folder / "app.wasm", folder / "count.wasm")
        (folder / "jobs.txt").write_text("one 'line of words'\nanother\n")
        for name in ("data", "texts"):
            (folder / name).mkdir()
            (folder / name / "file").write_text("text")
        (folder / "bin").mkdir()
        (folder / "bin/gpu-run").symlink_to(os.path.abspath(os.environ["GPURUN"]))
        if not shutil.which("less"):
            (folder / "bin/less").symlink_to("/bin/cat")
        path = f"{folder}/bin:{os.environ['PATH']}"
        for command in commands:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True,
                                  text=True, timeout=30, env=dict(os.environ, PATH=path),
                                  stdin=subprocess.DEVNULL, check=False)
            if done.returncode == 0:
                passed += 1
            else:
                failed += 1
                print(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    if len(commands) < 15:
        failed += 1
        print(f"--help has only {len(commands)} examples")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
