#!/usr/bin/env python3
"""Random modules in both tiers: what binaryen makes of random bytes, and random_programs.py's.

    differential_test.py [--first SEED] [--count N] [--keep DIRECTORY]

build/tests/differential compares; to look into a failure, --keep the modules.
"""
import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "wat"))
import random_programs  # noqa: E402

FEATURES = ["simd", "bulk-memory", "sign-ext", "nontrapping-float-to-int", "multivalue", "tail-call",
            "mutable-globals", "threads", "exception-handling"]
COUNT = 40
BATCH = 20  # modules that one process compares


def make_module(seed, folder):
    """The path of a module, or nothing: binaryen's text of it is not always valid."""
    path = folder / f"{seed}.wasm"
    if seed % 4 == 3:
        path = path.with_suffix(".wat")
        path.write_text(random_programs.Program(seed).text(legacy=True))
        return path
    rng = random.Random(seed)
    source = folder / f"{seed}.bytes"
    source.write_bytes(rng.randbytes(rng.choice([500, 2000, 8000, 30000])))
    flags = [f"--enable-{feature}" for feature in FEATURES]
    done = subprocess.run(["wasm-opt", "-ttf", source, "-o", path, *flags, *rng.choice([[], ["-O1"], ["-O3"]])],
                          capture_output=True, check=False)
    return path if done.returncode == 0 and path.exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    if not shutil.which("wasm-opt"):
        print("skipped: wasm-opt is not on PATH")
        return 77
    differential = pathlib.Path(os.environ["GPURUN_BUILD"]) / "tests/differential"
    failed = made = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for first in range(options.first, options.first + options.count, BATCH):
            paths = [path for seed in range(first, min(first + BATCH, options.first + options.count))
                     if (path := make_module(seed, folder))]
            made += len(paths)
            done = subprocess.run([differential, *paths], stdout=subprocess.PIPE, text=True, check=False,
                                  env={**os.environ, "GPURUN_CACHE": ""})
            if done.returncode != 0:
                failed += 1
                print(f"seeds from {first} on:\n{done.stdout}")
    print(f"{made} modules")
    print(f"{options.count // BATCH - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
