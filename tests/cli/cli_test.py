#!/usr/bin/env python3
"""Transcripts of the command line: each *.t file holds commands and what they print.

    $ gpu-run --invoke fac fac.wat 20
    2432902008176640000

Lines that start with "$ " are commands, run by bash in a scratch folder of the file's own, with
gpu-run on PATH and the folder of the transcripts at $TESTS; lines that start with "> " continue
them. The lines below are what the command prints on both of its outputs, then [code] if it does
not exit with 0. A line that ends in " (re)" is a regular expression. "# " starts a comment. A command
that exits with 77 is skipped, and says why.
`cli_test.py --bless` writes what is printed into the files; names of files limit the run to them.

A command with the word MODE runs once for each mode of a run (MODES below) in each tier, with that
mode's options in its place, and prints the same each time. MODE(alone,many,native) names modes, tiers
or both.
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
# Sanitizers do not look into machine code.
TIERS = ("interp",) if os.environ.get("GPURUN_SANITIZE") else ("interp", "native")
# What stands for MODE. A map has one input; its program sees "input" as one more argument.
MODES = {"alone": "--quiet --tier {tier}",
         "many": "--quiet --tier {tier} --instances 1",
         "map": "--quiet map --tier {tier} --lines <(echo input)",
         "resident": "--quiet --tier {tier} --resident"}
MODE = re.compile(r"\bMODE\b(\([a-z,]+\))?")


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


def variants(command):
    """The command in each of its modes."""
    found = MODE.search(command)
    if not found:
        return [command]
    named = found[1].strip("()").split(",") if found[1] else []
    chosen = [name for name in MODES if name in named] or MODES
    asked = [name for name in ("interp", "native") if name in named]
    tiers = [name for name in TIERS if not asked or name in asked] or asked
    return [MODE.sub(lambda _: MODES[name].format(tier=tier), command)
            for name in chosen for tier in tiers]


def run(command, folder):
    environment = dict(os.environ, TESTS=str(HERE),
                       PATH=f"{pathlib.Path(os.environ['GPURUN']).resolve().parent}:{os.environ['PATH']}")
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


def same_line(actual, expected):
    return (re.fullmatch(expected.removesuffix(" (re)"), actual) if expected.endswith(" (re)")
            else actual == expected)


def same(actual, expected):
    return len(actual) == len(expected) and all(map(same_line, actual, expected))


def bless(actual, expected):
    """What is printed, but for lines that a regular expression in the same place still matches."""
    if len(actual) != len(expected):
        return actual
    return [e if same_line(a, e) else a for a, e in zip(actual, expected)]


def main():
    passed = failed = skipped = 0
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    for path in sorted(HERE.glob("*.t")):
        if wanted and path.name not in wanted:
            continue
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
                wrong = None
                for command in variants("\n".join(line[2:] for line in source)):
                    actual = run(command, folder)
                    if actual and actual[-1] == "[77]":
                        print(f"{path.name}: {' '.join(actual[:-1])}")
                        skipped += 1
                        continue
                    if same(actual, expected):
                        passed += 1
                        continue
                    wrong = wrong or actual
                    failed += 1
                    print("\n".join([f"{path.name}:"] + command.splitlines() +
                                    ["expected:"] + expected + ["got:"] + actual))
                blessed += (bless(wrong, expected) if wrong else expected) + blank
        if "--bless" in sys.argv:
            path.write_text("\n".join(blessed) + "\n")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
