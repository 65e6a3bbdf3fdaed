#!/usr/bin/env python3
"""The commands of README.md: those at its top, and its sections on programs, many inputs and resident mode. Each
prints what is written below it. readme_test.py [--guests DIR]; DIR only tells which compilers are lacking here."""
import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import common  # noqa: E402

sys.path.insert(0, str(common.ROOT / "tests/cli"))
import cli_test  # noqa: E402


# What has been done when this test runs.
BEFORE = ("make", "scripts/install-deps c")


def transcript(text, title):
    """Commands of a section and what they print: the indented parts that begin with one."""
    section = re.search(rf"^## {title}$(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]
    parts = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    return [line[4:] for part in parts if part.startswith("    $ ") for line in part.splitlines()]


def main():
    options = common.parser(__doc__).parse_args()
    common.need_guests(options.guests)
    lacking = [why for name, why in common.skipped_modules(options.guests).items() if name in ("unique_chars", "btree")]
    if lacking:
        print(f"skipped: README.md: {lacking[0]}")
        return 77
    os.environ["GPURUN"] = str(pathlib.Path(options.gpu_run[0]).resolve())
    os.environ["PATH"] = "/usr/bin:" + os.environ["PATH"]  # the compilers of the packages
    text = (common.ROOT / "README.md").read_text()
    lines = [line for title in ("Four commands", "Programs", "Many inputs", "Programs that start others")
             for line in transcript(text, title)]
    counts = common.Counts(options.verbose)
    with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
        os.symlink(common.ROOT / "examples", f"{scratch}/examples")
        os.symlink(common.ROOT / "sdk", f"{scratch}/sdk")
        os.symlink(pathlib.Path(os.environ["GPURUN"]).parent, f"{scratch}/build")
        for source, expected in cli_test.parse("\n".join(lines)):
            command = "\n".join(line[2:] for line in source)
            if command in BEFORE:
                continue
            actual = cli_test.run(command, scratch)
            if cli_test.same(actual, expected):
                counts.add("passed", command, "")
            else:
                counts.add("failed", command, "\n".join(["expected:", *expected, "got:", *actual]))
    return counts.finish()


if __name__ == "__main__":
    sys.exit(main())
