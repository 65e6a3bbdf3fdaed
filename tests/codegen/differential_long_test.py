#!/usr/bin/env python3
"""The long form of differential_test.py: 20,000 modules; 1,000 where sanitizers look at what makes machine code."""
import os
import pathlib
import sys

test = pathlib.Path(__file__).resolve().parent / "differential_test.py"
count = 1000 if os.environ.get("GPURUN_SANITIZE") else 20000
os.execv(sys.executable, [sys.executable, str(test), "--first", "1000", "--count", str(count),
                          "--jobs", str(os.cpu_count())])
