#!/usr/bin/env python3
"""What programs see of a terminal: a process alone, and one on a machine, have it as their standard streams."""
import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cli_test  # noqa: E402

PATIENCE = 20  # seconds
# Prints the file type of each standard stream, or "s" if it may be sought in. If its input is a terminal it first
# prints a prompt and the line that it reads, up to the end of the input.
PROGRAM = r"""(module
  (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $stat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "> ")
  (func $put (param $fd i32) (param $at i32) (param $size i32)
    (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $size))
    (drop (call $write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $look (param $fd i32)
    (drop (call $stat (local.get $fd) (i32.const 16)))
    (i32.store8 (i32.add (i32.const 200) (local.get $fd)) (i32.add (i32.const 48) (i32.load8_u (i32.const 16))))
    (if (i64.ne (i64.and (i64.load (i32.const 24)) (i64.const 0x24)) (i64.const 0))
      (then (i32.store8 (i32.add (i32.const 200) (local.get $fd)) (i32.const 115)))))
  (func (export "_start")
    (call $look (i32.const 0)) (call $look (i32.const 1)) (call $look (i32.const 2))
    (i32.store8 (i32.const 203) (i32.const 10))
    (if (i32.eq (i32.load8_u (i32.const 200)) (i32.const 50))
      (then
        (call $put (i32.const 1) (i32.const 100) (i32.const 2))
        (i32.store (i32.const 0) (i32.const 300)) (i32.store (i32.const 4) (i32.const 100))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (call $put (i32.const 1) (i32.const 300) (i32.load (i32.const 8)))
        ;; It is still a terminal when the input has ended.
        (i32.store (i32.const 0) (i32.const 300)) (i32.store (i32.const 4) (i32.const 100))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (call $look (i32.const 0))))
    (call $put (i32.const 1) (i32.const 200) (i32.const 4))))"""


def run(mode, more, folder, terminals):
    """Runs it with the streams in `terminals` on a terminal: what came there, and from the others."""
    shown, side = pty.openpty()
    streams = [side if number in terminals else other
               for number, other in enumerate((subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE))]
    process = subprocess.Popen(["bash", "-c", f"exec gpu-run {mode} --device cpu {more} program.wat"], cwd=folder,
                               stdin=streams[0], stdout=streams[1], stderr=streams[2])
    os.close(side)
    text = b""
    has_answered = False
    while select.select([shown], [], [], PATIENCE)[0]:
        try:
            got = os.read(shown, 4096)
        except OSError:  # all have closed it
            got = b""
        text += got
        if b"> " in text and not has_answered:
            has_answered = True
            os.write(shown, b"hi\n\x04")
        if not got:
            break
    process.wait(PATIENCE)
    os.close(shown)
    return (text + (process.stdout.read() if process.stdout else b"")).decode().replace("\r\n", "\n")


def main():
    os.environ["PATH"] = f"{pathlib.Path(os.environ['GPURUN']).parent}:{os.environ['PATH']}"
    # By mode: which streams are a terminal, more options, and what is printed. The terminal itself shows what is typed.
    alone = (({0, 1, 2}, "", "> hi\nhi\n222\n"), ({1, 2}, "", "022\n"), ({2}, "", "002\n"), (set(), "", "000\n"),
             ({0, 1, 2}, "--stdin line", "022\n"))
    many = ({0, 1, 2}, "", "000\n"), (set(), "", "000\n")
    wanted = {"alone": alone, "resident": alone, "many": many, "map": many}
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "program.wat").write_text(PROGRAM)
        (pathlib.Path(folder) / "line").write_text("a line\n")
        for name, cases in wanted.items():
            for tier in cli_test.TIERS:
                mode = cli_test.MODES[name].format(tier=tier)
                for terminals, more, expected in cases:
                    got = run(mode, more, folder, terminals)
                    if got == expected:
                        passed += 1
                    else:
                        failed += 1
                        print(f"{mode} {more}, terminals {sorted(terminals)}: {got!r}, expected {expected!r}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
