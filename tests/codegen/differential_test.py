#!/usr/bin/env python3
"""Random modules in all tiers and in wasmtime: what binaryen makes of random bytes, and random_modules.py's.

    differential_test.py [--kind KIND] [--first SEED] [--count N] [--jobs N] [--keep DIRECTORY]
    differential_test.py --make DIRECTORY [--kind KIND] [--first SEED] [--count N]
    differential_test.py --modules DIRECTORY [--device cuda] [--jobs N]

build/tests/differential compares; to look into a failure, --keep the modules. --make only makes them, such as
--modules takes where there is no binaryen; on a GPU half of them run in bursts. --differential names another
program, such as differential_typed, whose machine code treats guest memory by C++'s rules of aliasing.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import random_modules  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FEATURES = ["simd", "bulk-memory", "sign-ext", "nontrapping-float-to-int", "multivalue", "tail-call", "mutable-globals"]
SOME_FEATURES = {"threads": 0.4, "exception-handling": 0.15}  # binaryen's memories are shared; its handlers are legacy
COUNT, COUNT_SANITIZED = 240, 40
BATCH = 40  # modules that one process compares
KINDS = ["binaryen", "overlapping", "binaryen", "any"]  # of the modules that have these seeds, and again
FAR = 40  # one of so many has far locals
MAKERS = {"any": random_modules.Module, "overlapping": random_modules.Overlapping, "far": random_modules.Far}
OPTIMISED = 0.4  # of those that overlap: functions are inlined


def make_module(seed, folder, build, options, without_imports=False):
    """The path of a module, or nothing: binaryen's text of it is not always valid."""
    rng = random.Random(seed)
    path = folder / f"{seed}.wasm"
    kind = options.kind or ("far" if seed % FAR == 7 else KINDS[seed % len(KINDS)])
    if kind in MAKERS:
        text = path.with_suffix(".wat")
        text.write_text(MAKERS[kind](seed).text())
        subprocess.run([build / "tests/differential", "--assemble", text], check=True)
        text.unlink()
        if kind == "overlapping" and rng.random() < OPTIMISED:  # what binaryen does not know stays as it is
            features = [*FEATURES, "reference-types", "threads", "exception-handling", "memory64"]
            subprocess.run(["wasm-opt", "-O3", "--inline-max-combined-binary-size=20000", "--flexible-inline-max-function-size=2000",
                            path, "-o", path, *(f"--enable-{name}" for name in features)], capture_output=True, check=False)
        return path
    source = folder / f"{seed}.bytes"
    source.write_bytes(rng.randbytes(rng.choice([500, 1000, 2000, 6000, 15000])))
    features = FEATURES + [name for name, chance in SOME_FEATURES.items() if rng.random() < chance]
    done = subprocess.run(["wasm-opt", "-ttf", source, "-o", path, *(f"--enable-{name}" for name in features),
                           *rng.choice([[], [], ["-O1"], ["-O3"]]), *(["--remove-imports"] if without_imports else [])],
                          capture_output=True, check=False)
    source.unlink()
    return path if done.returncode == 0 and path.exists() else None


def find_wasmtime(build):
    if os.environ.get("GPURUN_SANITIZE"):
        return None  # it catches signals, and they do
    done = subprocess.run([ROOT / "scripts/find-wasmtime", build / "venv"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


class Tally:
    def __init__(self, device):
        self.device = device
        self.same, self.skipped, self.failures = 0, 0, []
        self.calls = self.calls_with_wasmtime = 0
        self.reasons = collections.Counter()

    def add(self, paths, command, scratch):
        """Compares them, in as many processes as it takes: one that ends early is its module's fault."""
        while paths:
            with tempfile.TemporaryDirectory(dir=scratch) as own:
                # GPUs have the runtime's kernels in it, which take long to assemble.
                cache = own if self.device == "cpu" else scratch / "cache"
                done = subprocess.run([*command, *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      errors="replace", check=False, env={**os.environ, "GPURUN_CACHE": cache})
            count = self.read(done.stdout)
            if count < len(paths) and done.returncode >= 0 and not count:
                self.failures.append(f"exit code {done.returncode}: {done.stdout[-500:]}")
                return
            if count < len(paths):
                self.failures.append(f"{paths[count]}: ended with {done.returncode}: {done.stdout[-2000:]}")
            paths = paths[count + 1:]

    def read(self, text):
        count = 0
        verdicts = re.split(r"^(?=\S+\.wa(?:sm|t): (?:same|skipped|differs))", text, flags=re.MULTILINE)
        for verdict in verdicts[1:]:
            count += 1
            kind = re.match(r"\S+: (\w+)", verdict)[1]
            if kind == "same":
                self.same += 1
                why = verdict.splitlines()[0].partition("; without wasmtime: ")[2]
            elif kind == "skipped":
                self.skipped += 1
                why = verdict.strip().partition("skipped: ")[2]
            else:
                self.failures.append("\n".join(verdict.splitlines()[:3]))
                continue
            if why:
                self.reasons[re.sub(r".*offset \d+: |\S*/\S+: ", "", why)] += 1
        for calls, with_wasmtime in re.findall(r"; (\d+) calls, (\d+) with wasmtime$", text.strip()):
            self.calls += int(calls)
            self.calls_with_wasmtime += int(with_wasmtime)
        return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int)
    parser.add_argument("--kind", choices=["binaryen", *MAKERS], help="only such modules")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="write the modules here")
    parser.add_argument("--make", type=pathlib.Path, help="only make them, without imports, here")
    parser.add_argument("--modules", type=pathlib.Path, help="compare those of a folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--differential", type=pathlib.Path, help="the program")
    options = parser.parse_args()
    if not options.modules and not shutil.which("wasm-opt"):
        print("skipped: wasm-opt is not on PATH")
        return 77
    build = pathlib.Path(os.environ.get("GPURUN_BUILD", ROOT / "build"))
    count = options.count or (COUNT_SANITIZED if os.environ.get("GPURUN_SANITIZE") else COUNT)
    seeds = range(options.first, options.first + count)
    if options.make:
        options.make.mkdir(parents=True, exist_ok=True)
        paths = [path for seed in seeds if (path := make_module(seed, options.make, build, options, True))]
        valid = [path for path in paths if subprocess.run([build / "gpu-run", "validate", path], capture_output=True,
                                                          check=False).returncode == 0]
        for path in set(paths) - set(valid):  # binaryen's, without what it imported
            path.unlink()
        print(f"{len(valid)} modules in {options.make}")
        return 0
    command = [options.differential or build / "tests/differential", "--device", options.device]
    wasmtime = find_wasmtime(build) if options.device == "cpu" else None
    if wasmtime:
        command += ["--wasmtime", wasmtime]
    tally, start = Tally(options.device), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        folder = options.keep or scratch
        folder.mkdir(exist_ok=True)

        def compare(number, batch):
            if options.modules:
                is_burst = options.device != "cpu" and number % 2
                return tally.add(batch, command + ["--bursts"] * is_burst, scratch)
            paths = [path for seed in batch if (path := make_module(seed, folder, build, options))]
            tally.add(paths, command, scratch)
            for path in [] if options.keep else paths:
                path.unlink()

        work = sorted(options.modules.iterdir()) if options.modules else seeds
        batches = [work[at:at + BATCH] for at in range(0, len(work), BATCH)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for _ in pool.map(compare, range(len(batches)), batches):
                pass
    seconds = time.monotonic() - start
    for failure in tally.failures:
        print(failure)
    for reason, number in tally.reasons.most_common():
        print(f"{number:6} {reason}")
    print(f"seeds {seeds[0]} to {seeds[-1]}; " if not options.modules else "", end="")
    print(f"{tally.same} modules alike in {seconds:.0f} s, {tally.calls_with_wasmtime} calls of "
          f"{tally.calls} with wasmtime" + ("" if wasmtime or options.device != "cpu" else ", which is not here"))
    print(f"{tally.same} passed, {len(tally.failures)} failed, {tally.skipped} skipped")
    return 1 if tally.failures or not tally.same else 0


sys.exit(main())
