#!/usr/bin/env python3
"""Assembles the runtime's PTX for GPUs that the ptxas at hand knows.

    assemble_test.py [--all]

For the oldest and the newest that a file is for, one of them if another variant is for the other, and
with --all for every generation.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WANTED = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]

source = pathlib.Path(os.environ["GPURUN_SOURCE"])
build = pathlib.Path(os.environ["GPURUN_BUILD"])

found = subprocess.run([source / "scripts/find-ptxas", source / "build/venv"], capture_output=True,
                       text=True)
if found.returncode != 0:
    print("skipped: no ptxas on PATH, and nvidia-cuda-nvcc could not be installed")
    sys.exit(77)
ptxas = found.stdout.strip()
known = set(re.findall(r"\bsm_\d+\b", subprocess.run([ptxas, "--help"], capture_output=True,
                                                     text=True).stdout))


def assemble(ptx, chip):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        return subprocess.run([ptxas, "--warning-as-error", "-v", f"-arch={chip}", ptx,
                               "-o", cubin.name], capture_output=True, text=True)


def chosen(ptx, chips):
    if "--all" in sys.argv:
        return chips
    variants = sorted(build.glob(ptx.stem.rsplit("_", 1)[0] + "_[0-9]*.ptx"))
    if len(variants) == 1:
        return [chips[0], chips[-1]]
    return [chips[0 if ptx == variants[0] else -1]]


passed = failed = skipped = 0
jobs = []
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for ptx in sorted(build.glob("*.ptx")):
        floor = int(re.search(r"\.target sm_(\d+)", ptx.read_text()).group(1))
        chips = [chip for chip in WANTED if int(chip[3:]) >= floor]
        for chip in chosen(ptx, chips):
            if chip in known:
                jobs.append((ptx, chip, pool.submit(assemble, ptx, chip)))
            else:
                print(f"skipped: {ptx.name} for {chip}: this ptxas does not know it")
                skipped += 1
for ptx, chip, job in jobs:
    result = job.result()
    usage = re.findall(r"Used \d+ registers.*", result.stderr)
    print(f"{ptx.name} {chip}: {'; '.join(usage) or result.stdout + result.stderr}")
    passed += result.returncode == 0
    failed += result.returncode != 0
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)
