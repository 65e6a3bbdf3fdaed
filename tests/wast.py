"""Runs spec scripts, one gpu-run each, and counts files: what tests/spec and tests/wat share."""
import concurrent.futures
import os
import pathlib
import re
import subprocess

TIMEOUT = 120  # seconds for one file; ten times what the slowest takes under a sanitizer


def read_known_failures(path):
    """{"file.wast": "reason"} from lines of "file.wast  reason"; # starts a comment."""
    known = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, reason = line.split(None, 1)
            known[name] = reason
    return known


def run_file(path):
    try:
        tier = os.environ.get("GPURUN_TEST_TIER", "interp")
        result = subprocess.run([os.environ["GPURUN"], "wast", "--tier", tier, path], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace",
                                timeout=TIMEOUT)
        return result.returncode, result.stdout
    except subprocess.TimeoutExpired as expired:
        return -1, f"{path}: no end after {expired.timeout} s\n"


def run_files(root, paths, known):
    """Prints a line a file and the counts; returns an exit code."""
    passed = failed = skipped = assertions = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (code, output) in zip(paths, pool.map(run_file, paths)):
            name = str(pathlib.Path(path).relative_to(root))
            counts = re.findall(r"(\d+) passed", output)
            assertions += int(counts[-1]) if counts else 0
            if name in known and code != 0:
                print(f"skipped: {name}: known failure: {known[name]}")
                skipped += 1
            elif name in known:
                print(f"{name}: passes, but is on the list of known failures")
                failed += 1
            elif code != 0:
                print(f"{name}: FAILED\n{output}")
                failed += 1
            else:
                passed += 1
    print(f"{len(paths)} files, {assertions} assertions passed")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
