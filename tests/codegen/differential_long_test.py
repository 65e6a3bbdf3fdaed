#!/usr/bin/env python3
"""The long form of differential_test.py: 20,000 modules."""
import os
import pathlib
import sys

test = pathlib.Path(__file__).resolve().parent / "differential_test.py"
os.execv(sys.executable, [sys.executable, str(test), "--first", "1000", "--count", "20000"])
