#!/usr/bin/env python3
"""The official WebAssembly test suite: every core file, legacy exceptions, threads.

Found at $GPURUN_SPEC, or at ../shared/spec beside the checkout.
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import wast

here = pathlib.Path(__file__).resolve().parent
beside = pathlib.Path(os.environ["GPURUN_SOURCE"]).parent / "shared/spec"
root = pathlib.Path(os.environ.get("GPURUN_SPEC", beside))
paths = sorted(path for folder in (".", "legacy", "proposals/threads")
               for path in (root / folder).glob("*.wast"))
if not paths:
    print(f"skipped: no WebAssembly test suite at {root} (set GPURUN_SPEC)")
    sys.exit(77)
sys.exit(wast.run_files(root, paths, wast.read_known_failures(here / "known-failures.txt")))
