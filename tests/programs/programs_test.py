#!/usr/bin/env python3
"""Runs the programs of manifest.py and compares what they print, write and exit with.

    programs_test.py --gpu-run PATH --guests DIR [--device cpu] [--instances 1,33,1000] [NAME...]

DIR is what scripts/build-guests made. NAME is a program, a program/case, or a module without its
.wasm (wc.current). PATH may be any command that understands --dir HOST::GUEST, --env K=V and
--argv0 NAME before the module; options that are not understood elsewhere (--device, --instances)
are passed only if given. With more than one of --instances, each case is run with each number of
processes, and all of them must do what one does.

    programs_test.py --native DIR [--bless] [NAME...]

runs what `build-guests --native` made instead, in the scratch folder, and with --bless writes what
it did to expected/. The last line counts cases: N passed, N failed, N skipped.
"""
import argparse
import concurrent.futures
import dataclasses
import difflib
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import manifest  # noqa: E402

TRAP = 134
# How a native program ends where its module traps: a panic of Rust, abort().
NATIVE_TRAPS = (101, -6)
# The number of a native process: {} in what it is expected to print. Nothing else looks like it.
NATIVE_NUMBER = 76543


@dataclasses.dataclass
class Outcome:
    """What one process did. `files` is the folder it could write to."""
    stdout: bytes
    stderr: bytes
    code: int
    files: pathlib.Path


# Scratch folders

def content(program, source):
    if isinstance(source, manifest.Beside):
        return (program.source.parent / source.name).read_bytes()
    return source.encode() if isinstance(source, str) else source


def fill_folder(program, case, folder):
    files = case.files or {}
    if not isinstance(files, dict):
        files = {name: manifest.Beside(name) for name in files}
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(program, source))


# Running

def arguments(case, number):
    """{} is the number of a process. One process alone is told here, many are by gpu-run."""
    return case.args if number is None else [arg.replace("{}", str(number)) for arg in case.args]


def run_command(words, program, case, folder, options, **more):
    return subprocess.run(words, input=content(program, case.stdin), capture_output=True, cwd=folder,
                          timeout=options.timeout, check=False, **more)


def run_native(program, case, folder, options):
    files = folder / "files"
    words = [case.argv0 or program.name, *arguments(case, NATIVE_NUMBER)]
    done = run_command(words, program, case, files, options, env=dict(case.env),
                       executable=(options.native / program.name).resolve())
    code = TRAP if case.code == TRAP and done.returncode in NATIVE_TRAPS else done.returncode
    return [Outcome(done.stdout, done.stderr, code, files)]


def run_module(module, program, case, folder, options, instances):
    files = folder / "files"
    words = list(options.gpu_run)
    if options.device:
        words += ["--device", options.device]
    if case.files is not None:
        words += ["--dir", f"{files}::/"]
    for key, value in case.env.items():
        words += ["--env", f"{key}={value}"]
    if case.argv0:
        words += ["--argv0", case.argv0]
    if instances > 1:
        words += ["--instances", str(instances), "--out", str(folder / "out")]
    words += [str(module), *arguments(case, 0 if instances == 1 else None)]
    done = run_command(words, program, case, folder, options)
    if instances == 1:
        return [Outcome(done.stdout, done.stderr, done.returncode, files)]
    return outcomes_of_many(done, folder / "out", instances)


def outcomes_of_many(done, out, instances):
    """The outcome of each process of a run with --instances N --out DIR.

    The one place that knows the form: DIR/<id>/stdout and DIR/<id>/stderr hold what the process
    printed, other files below DIR/<id> are those that it changed; gpu-run's exit code is that of
    the first process which did not exit with 0.
    """
    outcomes = []
    for number in range(instances):
        folder = out / str(number)
        read = lambda name: (folder / name).read_bytes() if (folder / name).exists() else b""
        outcomes.append(Outcome(read("stdout"), read("stderr"), done.returncode, folder))
    return outcomes


# Comparing

class Mismatch(Exception):
    pass


def is_text(data):
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def expected_file(program, case, what):
    return program.source.parent / "expected" / f"{program.source.stem}.{case.name}.{what.replace('/', '_')}"


def is_numbered(case):
    return any("{}" in arg for arg in case.args)


def bless(program, case, what, data):
    path = expected_file(program, case, what)
    digest = path.with_name(path.name + ".sha256")
    path.unlink(missing_ok=True)
    digest.unlink(missing_ok=True)
    if is_numbered(case):
        data = data.replace(str(NATIVE_NUMBER).encode(), b"{}")
    # An empty output has no file, so that expected/ shows what there is to see.
    if not data and what in ("out", "err"):
        return
    path.parent.mkdir(exist_ok=True)
    # Large outputs would bury what is worth reading.
    if is_text(data) and len(data) <= 20000:
        path.write_bytes(data)
    else:
        digest.write_text(hashlib.sha256(data).hexdigest() + "\n")


def expect(program, case, what, data, number):
    path = expected_file(program, case, what)
    digest = path.with_name(path.name + ".sha256")
    if digest.exists():
        want, got = digest.read_text().strip(), hashlib.sha256(data).hexdigest()
        if want != got:
            raise Mismatch(f"{what}: {len(data)} bytes with SHA-256 {got}, expected {want}")
        return
    want = path.read_bytes() if path.exists() else b""
    if is_numbered(case):
        want = want.replace(b"{}", str(number).encode())
    if want != data:
        lines = difflib.unified_diff(want.decode(errors="replace").splitlines(),
                                     data.decode(errors="replace").splitlines(),
                                     f"expected {what}", f"{what}", lineterm="", n=1)
        raise Mismatch("\n".join(list(lines)[:40]) or f"{what} differs at the end of a line")


def check(program, case, outcome, number, blessing):
    if outcome.code != case.code:
        tail = outcome.stderr.decode(errors="replace")[-2000:]
        raise Mismatch(f"exit code {outcome.code}, expected {case.code}\n{tail}".rstrip())
    compare = lambda what, data: (bless(program, case, what, data) if blessing
                                  else expect(program, case, what, data, number))
    compare("out", outcome.stdout)
    if case.stderr is None:
        compare("err", outcome.stderr)
    for part in case.stderr or ():
        if part.encode() not in outcome.stderr:
            raise Mismatch(f"stderr lacks {part!r}:\n{outcome.stderr.decode(errors='replace')[-2000:]}".rstrip())
    for name in case.written:
        path = outcome.files / name
        if not path.is_file():
            raise Mismatch(f"{name} is not there")
        compare(name, path.read_bytes())
    for name in case.absent:
        if (outcome.files / name).exists():
            raise Mismatch(f"{name} is there")


# What to run

class Test:
    def __init__(self, program, case, module, instances):
        self.program, self.case, self.module, self.instances = program, case, module, instances
        self.name = f"{module}/{case.name}" + (f" x{instances}" if instances > 1 else "")

    def run(self, options, skipped):
        """("passed" or "failed" or "skipped", why)."""
        try:
            with tempfile.TemporaryDirectory(prefix="programs-") as scratch:
                folder = pathlib.Path(scratch)
                (folder / "files").mkdir()
                fill_folder(self.program, self.case, folder / "files")
                (folder / "secret.txt").write_text("outside of what the program is given\n")
                if options.native:
                    outcomes = run_native(self.program, self.case, folder, options)
                else:
                    path = (options.guests / f"{self.module}.wasm").resolve()
                    if not path.exists():
                        return ("skipped", skipped[self.module]) if self.module in skipped else ("failed", f"no {path}")
                    outcomes = run_module(path, self.program, self.case, folder, options, self.instances)
                if not (folder / "secret.txt").exists() or (folder / "made.txt").exists():
                    raise Mismatch("something was changed outside of the folder given")
                for number, outcome in enumerate(outcomes, NATIVE_NUMBER if options.native else 0):
                    check(self.program, self.case, outcome, number, options.bless)
        except Mismatch as why:
            return "failed", str(why)
        except subprocess.TimeoutExpired:
            return "failed", f"no end after {options.timeout} s"
        return "passed", ""


def modules(program):
    return [program.name, f"{program.name}.current"] if program.source.suffix == ".rs" else [program.name]


def select(options):
    tests, known = [], set()
    for program in manifest.programs:
        for module in [program.name] if options.native else modules(program):
            for case in program.cases:
                names = {program.name, module, f"{program.name}/{case.name}", f"{module}/{case.name}"}
                known |= names
                if options.names and not names & set(options.names):
                    continue
                if options.native and not case.native:
                    continue
                if case.only and not options.native and module != f"{program.name}.{case.only}":
                    continue
                for instances in options.instances:
                    if instances == 1 or case.many:
                        tests.append(Test(program, case, module, instances))
    wrong = [name for name in options.names if name not in known]
    if wrong:
        sys.exit(f"programs_test.py: nothing is called {wrong[0]}")
    return tests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu-run", type=shlex.split, default=os.environ.get("GPURUN", "gpu-run"), metavar="COMMAND")
    parser.add_argument("--guests", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--native", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--instances", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="name what passed too")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if not options.native and not options.guests:
        parser.error("--guests or --native is needed")
    if options.bless and not options.native:
        parser.error("--bless takes what native programs do: --native is needed")
    skip_file = (options.guests or options.native) / "skipped.json"
    skipped = json.loads(skip_file.read_text()) if skip_file.exists() else {}

    counts = {"passed": 0, "failed": 0, "skipped": 0}
    tests = select(options)
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for test, (result, why) in zip(tests, pool.map(lambda test: test.run(options, skipped), tests)):
            counts[result] += 1
            if result == "failed":
                print(f"FAILED {test.name}: {why}")
            elif result == "skipped":
                print(f"skipped: {test.name}: {why}")
            elif options.verbose:
                print(f"passed {test.name}")
            sys.stdout.flush()
    print(", ".join(f"{number} {result}" for result, number in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
