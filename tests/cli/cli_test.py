#!/usr/bin/env python3
"""Transcripts of the command line: each *.t file holds commands and what they print.

    $ gpu-run --invoke fac fac.wat 20
    2432902008176640000

Lines that start with "$ " are commands, run by bash in a scratch folder of the file's own, with
gpu-run on PATH and the folder of the transcripts at $TESTS; lines that start with "> " continue
them. The lines below are what the command prints on both of its outputs, then [code] if it does
not exit with 0. A line that ends in " (re)" is a regular expression. "# " starts a comment.
`cli_test.py --bless` writes what is printed into the files.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT = 20  # seconds for a command


def parse(text):
    """[(lines of the command or comment, expected lines)], in order."""
    steps = []
    for line in text.splitlines():
        if line.startswith(("$ ", "# ")) or not steps:
            steps.append(([line], []))
        elif line.startswith("> ") and not steps[-1][1]:
            steps[-1][0].append(line)
        else:
            steps[-1][1].append(line)
    return steps


def run(command, folder):
    environment = dict(os.environ, TESTS=str(HERE),
                       PATH=f"{pathlib.Path(os.environ['GPURUN']).parent}:{os.environ['PATH']}")
    process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return output.decode(errors="replace").splitlines() + [f"[no end after {TIMEOUT} s]"]
    lines = output.decode(errors="replace").splitlines()
    return lines + ([f"[{process.returncode}]"] if process.returncode != 0 else [])


def same(actual, expected):
    return len(actual) == len(expected) and all(
        re.fullmatch(e.removesuffix(" (re)"), a) if e.endswith(" (re)") else a == e
        for a, e in zip(actual, expected))


def main():
    passed = failed = 0
    for path in sorted(HERE.glob("*.t")):
        blessed = []
        with tempfile.TemporaryDirectory() as folder:
            for source, expected in parse(path.read_text()):
                blank = [""] if expected and expected[-1] == "" else []
                blessed += source
                if not source[0].startswith("$ "):
                    blessed += expected
                    continue
                if blank:  # the empty line before the next command
                    expected = expected[:-1]
                actual = run("\n".join(line[2:] for line in source), folder)
                if same(actual, expected):
                    blessed += expected + blank
                    passed += 1
                else:
                    blessed += actual + blank
                    failed += 1
                    print("\n".join([f"{path.name}:"] + source +
                                    ["expected:"] + expected + ["got:"] + actual))
        if "--bless" in sys.argv:
            path.write_text("\n".join(blessed) + "\n")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
