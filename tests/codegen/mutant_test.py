#!/usr/bin/env python3
"""The random modules find machine code that treats guest memory by C++'s rules of aliasing, as that for GPUs once did:
build/tests/differential_typed has such code, for the CPU."""
import os
import pathlib
import re
import subprocess
import sys

build = pathlib.Path(os.environ.get("GPURUN_BUILD", "build"))
test = pathlib.Path(__file__).resolve().parent / "differential_test.py"
done = subprocess.run([sys.executable, test, "--kind", "overlapping", "--count", "40", "--differential",
                       build / "tests/differential_typed"], capture_output=True, text=True, check=False)
if done.returncode == 77:
    print(done.stdout, end="")
    sys.exit(77)
found = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\s*\Z", done.stdout)
if found and int(found[1]) > 0 and int(found[2]) > 0 and " native: " in done.stdout:
    print(f"{found[2]} modules found it, {found[1]} did not")
    print("1 passed, 0 failed, 0 skipped")
    sys.exit(0)
print(done.stdout[-1000:] + done.stderr[-1000:])
sys.exit(1)
