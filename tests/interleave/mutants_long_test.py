#!/usr/bin/env python3
"""All mutants of mutants_test.cpp, on all cores."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

tests = pathlib.Path(os.environ["GPURUN_BUILD"]) / "tests/interleave_tests"

def run(part):
    return subprocess.run([tests, "--gtest_color=no", "--gtest_filter=Mutants.*"], capture_output=True, text=True,
                          env=os.environ | {"GPURUN_MUTANTS": f"{part}/{parts}"})


parts = os.cpu_count() * 4
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(run, range(parts)))
totals = [0, 0, 0, 0]
for result in results:
    print(result.stdout, result.stderr, sep="")
    if last := re.search(r"^(\d+) mutants, (\d+) tried, (\d+) caught, (\d+) listed$", result.stdout, re.M):
        totals = [int(last[1])] + [total + int(number) for total, number in zip(totals[1:], last.groups()[1:])]
print("{} mutants, {} tried, {} caught, {} listed".format(*totals))
sys.exit(any(result.returncode for result in results) or totals[0] != totals[1])
