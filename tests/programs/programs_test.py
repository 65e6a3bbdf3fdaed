#!/usr/bin/env python3
"""Runs the programs of manifest.py and compares what they print, write and exit with.

    programs_test.py [--gpu-run PATH] [--guests DIR] [--device cpu] [--instances 1,33,1000] [--resident] [--tier native] [NAME...]

DIR is what scripts/build-guests made (build/guests). NAME is a program, a program/case, or a module without its
.wasm (wc.current). PATH may be any command that understands --dir HOST::GUEST, --env K=V and
--argv0 NAME before the module; options that are not understood elsewhere (--device, --instances)
are passed only if given. With more than one of --instances, each case is run with each number of
processes, and all of them must do what one does: with --out, where output and files of each are
compared, or with --grouped as gpu-run shows them without, where they must be one group.

    programs_test.py --native DIR [--bless] [NAME...]

runs what `build-guests --native` made instead, in the scratch folder, and with --bless writes what
it did to expected/. The last line counts cases: N passed, N failed, N skipped.
"""
import collections
import concurrent.futures
import dataclasses
import difflib
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import common  # noqa: E402
import manifest  # noqa: E402

TRAP = 134
# How a native program ends where its module traps: a panic of Rust, abort().
NATIVE_TRAPS = (101, -6)
SIGTERM = 15
# The number of a native process: {} in what it is expected to print. Nothing else looks like it.
NATIVE_NUMBER = 76543


@dataclasses.dataclass
class Outcome:
    """What one process did. What it wrote lies in the first of `folders` that has it; none: it was not kept."""
    stdout: bytes
    stderr: bytes
    code: object  # a number, or what gpu-run says of an end that has none
    folders: list

    def find(self, name):
        return next((folder / name for folder in self.folders if (folder / name).exists()), None)


class Mismatch(Exception):
    pass


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


def known_programs(program, case):
    """{name by which it can be started: program} of what a resident program may start; itself too."""
    return {name.split("/")[-1]: name for name in [program.name, *case.programs]}


def run_native(program, case, folder, options):
    files = folder / "files"
    words = [case.argv0 or program.name, *arguments(case, NATIVE_NUMBER)]
    env = dict(case.env)
    if program.resident:
        (folder / "bin").mkdir()
        for name, other in known_programs(program, case).items():
            (folder / "bin" / name).symlink_to((options.native / other).resolve())
        env["GPU_PROGRAMS"] = str(folder / "bin")
    done = run_command(words, program, case, files, options, env=env,
                       executable=(options.native / program.name).resolve())
    code = TRAP if case.code == TRAP and done.returncode in NATIVE_TRAPS else done.returncode
    if code == -SIGTERM:
        code = 128 + SIGTERM
    return [Outcome(done.stdout, done.stderr, code, [files])]


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
    words += ["--tier", options.tier or "interp"]
    if program.resident or options.resident:
        words += ["--resident"]
    if program.resident:
        words += ["--quiet"]  # what becomes of children is the program's to tell
        for name, other in known_programs(program, case).items():
            if other != program.name:
                words += ["--program", f"{name}={options.guests.resolve() / other}.wasm"]
    if instances > 1:
        (folder / "stdin").write_bytes(content(program, case.stdin))
        words += ["--instances", str(instances), "--stdin", str(folder / "stdin")]
        words += [] if options.grouped else ["--out", str(folder / "out")]
    words += [str(module), *arguments(case, 0 if instances == 1 else None)]
    done = run_command(words, program, case, folder, options)
    if instances == 1:
        return [Outcome(done.stdout, done.stderr, done.returncode, [files])]
    untouched(program, case, folder)
    if options.grouped:
        return [outcome_of_equals(done, instances)]
    return outcomes_of_many(done, folder / "out", files, instances)


def code_of(ending):
    """"exited with 3" is 3, and every trap is 134."""
    number = re.fullmatch(r"exited with (\d+)", ending)
    return int(number[1]) if number else TRAP if ending.startswith("trap: ") else ending


def no_form(done):
    tail = done.stderr.decode(errors="replace")[-2000:]
    return Mismatch(f"not what gpu-run says of many processes; exit code {done.returncode}\n{tail}".rstrip())


def outcomes_of_many(done, out, files, instances):
    """The outcome of each process of a run with --instances N --out DIR.

    DIR/<id>.stdout and DIR/<id>.stderr hold what the process printed, files below DIR/<id> are
    those that it changed. A line "gpu-run: N processes, all exited with 0" on standard error tells how they
    ended; one that should not be there is held against all.
    """
    endings = collections.Counter()
    for line in done.stderr.decode(errors="replace").splitlines():
        if found := re.fullmatch(r"gpu-run: (\d+) process(?:es, all(?: alike:)?|:) (.*)", line):
            endings[code_of(found[2])] += int(found[1])
    if endings.total() != instances:
        raise no_form(done)
    if len(endings) > 1:
        raise Mismatch(f"processes ended differently: {dict(endings)}")
    code, = endings
    if done.returncode != code:
        raise Mismatch(f"all ended with {code}, gpu-run with {done.returncode}")
    return [Outcome((out / f"{number}.stdout").read_bytes(), (out / f"{number}.stderr").read_bytes(), code,
                    [out / str(number), files]) for number in range(instances)]


def outcome_of_equals(done, instances):
    """The one outcome of processes that all did the same, without --out."""
    first, _, rest = done.stderr.partition(b"\n")
    found = re.fullmatch(rf"gpu-run: {instances} processes, all(?: alike:)? (.*)", first.decode(errors="replace"))
    if not found:
        raise no_form(done)
    return Outcome(done.stdout, rest, code_of(found[1]), [])


def untouched(program, case, folder):
    """Many processes write to layers of their own, not to what they were given."""
    fresh = folder / "fresh"
    fresh.mkdir()
    fill_folder(program, case, fresh)
    if tree(folder / "files") != tree(fresh):
        raise Mismatch("the folder given was changed")


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# Comparing

def is_larger(path, size):
    return path.exists() and path.stat().st_size > size


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
    for name in case.written if outcome.folders else ():
        path = outcome.find(name)
        if not path or not path.is_file():
            raise Mismatch(f"{name} is not there")
        compare(name, path.read_bytes())
    for name in case.absent:
        # What many were given stays as it is: that one of them removed it cannot be seen there.
        if outcome.folders and (outcome.folders[0] / name).exists():
            raise Mismatch(f"{name} is there")


# What to run

class Test:
    def __init__(self, program, case, module, instances):
        self.program, self.case, self.module, self.instances = program, case, module, instances
        self.name = f"{module}/{case.name}" + (f" x{instances}" if instances > 1 else "")

    def run(self, options, skipped):
        """("passed" or "failed" or "skipped", why)."""
        begin = time.monotonic()
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
        return "passed", f"{time.monotonic() - begin:.2f} s"


def modules(program):
    both = program.source.suffix == ".rs" and not program.threads
    return [program.name, f"{program.name}.current"] if both else [program.name]


def select(options):
    tests, known = [], set()
    for program in manifest.programs:
        for module in [program.name] if options.native else modules(program):
            for case in program.cases:
                names = {program.name, module, f"{program.name}/{case.name}", f"{module}/{case.name}"}
                known |= names
                if options.names and not names & set(options.names):
                    continue
                if options.first and (case is not program.cases[0] or manifest.ROOT / "examples" not in program.source.parents):
                    continue
                if options.native and not (program.native and case.native):
                    continue
                if options.most_bytes and is_larger(options.guests / f"{module}.wasm", options.most_bytes):
                    continue
                if case.only and not options.native and module != f"{program.name}.{case.only}":
                    continue
                for instances in options.instances:
                    if instances == 1 or case.many and not program.resident and not (options.grouped and is_numbered(case)):
                        tests.append(Test(program, case, module, instances))
    wrong = [name for name in options.names if name not in known]
    if wrong:
        sys.exit(f"programs_test.py: nothing is called {wrong[0]}")
    return compiling_first(tests, options) if options.tier else tests


def compiling_first(tests, options):
    """A test of each module, the largest before all, and then the others: these find its machine code in the cache.
    In the order of the list all jobs at once would make that of the same module."""
    first, others = {}, []
    for test in tests:
        if test.module in first:
            others.append(test)
        else:
            first[test.module] = test

    def size(test):
        path = options.guests / f"{test.module}.wasm"
        return path.stat().st_size if path.exists() else 0
    return sorted(first.values(), key=size, reverse=True) + others


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--native", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--bless", action="store_true")
    parser.add_argument("--instances", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    parser.add_argument("--first", action="store_true", help="only the first case of each program of examples/")
    parser.add_argument("--resident", action="store_true", help="programs that do not need it too")
    parser.add_argument("--most-bytes", type=int, help="leave out larger modules, which take long to compile")
    parser.add_argument("--tier", help="how to run")
    parser.add_argument("--grouped", action="store_true", help="many processes without --out")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.bless and not options.native:
        parser.error("--bless takes what native programs do: --native is needed")
    if not options.native:
        common.need_guests(options.guests)
    skipped = common.skipped_modules(options.native or options.guests)

    counts = common.Counts(options.verbose)
    tests = select(options)
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for test, (result, why) in zip(tests, pool.map(lambda test: test.run(options, skipped), tests)):
            counts.add(result, test.name, why)
    return counts.finish()


if __name__ == "__main__":
    sys.exit(main())
