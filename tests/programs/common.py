"""What the tests of this folder share: their options, and counting."""
import argparse
import json
import os
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def parser(text):
    result = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--gpu-run", type=shlex.split, default=os.environ.get("GPURUN", str(ROOT / "build/gpu-run")),
                        metavar="COMMAND")
    result.add_argument("--guests", type=pathlib.Path, default=ROOT / "build/guests", metavar="DIR",
                        help="what scripts/build-guests made")
    result.add_argument("--device")
    result.add_argument("--verbose", action="store_true", help="name what passed too, and how long it took")
    return result


def skipped_modules(folder):
    """{module: why there is none}, as scripts/build-guests left it."""
    path = folder / "skipped.json"
    return json.loads(path.read_text()) if path.exists() else {}


def need_guests(folder):
    if not folder.is_dir():
        print(f"skipped: no {folder}: scripts/build-guests build/guests makes it")
        sys.exit(77)


class Counts:
    def __init__(self, verbose):
        self.verbose = verbose
        self.numbers = {"passed": 0, "failed": 0, "skipped": 0}

    def add(self, result, name, why):
        self.numbers[result] += 1
        if result == "failed":
            print(f"FAILED {name}: {why}", flush=True)
        elif result == "skipped":
            print(f"skipped: {name}: {why}", flush=True)
        elif self.verbose:
            print(f"passed {name}: {why}", flush=True)

    def finish(self):
        """Prints the last line; the exit code."""
        print(", ".join(f"{number} {result}" for result, number in self.numbers.items()))
        return 1 if self.numbers["failed"] else 0


def check_names(arguments, names, known):
    for name in names:
        if name not in known:
            arguments.error(f"nothing is called {name}; there are {' '.join(known)}")
