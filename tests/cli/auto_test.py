#!/usr/bin/env python3
"""--tier auto: begins in the interpreter, and goes on by machine code that is made meanwhile."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# Takes a while; the result shows if anything is lost or done twice.
SPIN = """(module
  (func $mix (param i64) (result i64)
    (i64.add (i64.mul (local.get 0) (i64.const 6364136223846793005)) (i64.const 1442695040888963407)))
  (func (export "spin") (param i64) (result i64) (local i64)
    (loop
      (local.set 1 (call $mix (local.get 1)))
      (local.set 0 (i64.sub (local.get 0) (i64.const 1)))
      (br_if 0 (i64.ne (local.get 0) (i64.const 0))))
    (local.get 1))
  (func (export "trap") (param i64) (result i64) (local i64)
    (loop
      (local.set 1 (call $mix (local.get 1)))
      (local.set 0 (i64.sub (local.get 0) (i64.const 1)))
      (br_if 0 (i64.ne (local.get 0) (i64.const 0))))
    (i64.div_u (local.get 1) (local.get 0)))
  (memory (export "memory") 1)
  (func (export "_start") (drop (call 1 (i64.const 10_000_000)))))
"""
LONG = "60_000_000"  # of spin: some seconds


def run(folder, *words, code=0):
    """What is printed, and the report."""
    path = folder / "report.json"
    path.unlink(missing_ok=True)
    done = subprocess.run([os.environ["GPURUN"], "--device", "cpu", "--report", str(path), *words],
                          cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == code, (words, done)
    return done.stdout + done.stderr, json.loads(path.read_text())


def same(folder, *words, code=0):
    """The report of --tier auto, which prints what the interpreter does and ends as it does."""
    expected, _ = run(folder, "--tier", "interp", *words, code=code)
    printed, report = run(folder, *words, code=code)
    assert printed == expected, (printed, expected)
    return report


def switches(folder):
    report = same(folder, "--invoke", "spin", "spin.wat", LONG)
    native = report["jobs"][0]["native"]
    assert report["tier"] == "switched" and native["source"] == "compiled", report
    # What is called nowhere stays in the interpreter.
    assert 1 <= native["functions"] <= 2 and native["interpreted_seconds"] > 0, report
    # It is there the next time, once it is worth linking.
    report = same(folder, "--invoke", "spin", "spin.wat", LONG)
    native = report["jobs"][0]["native"]
    assert report["tier"] == "switched" and native["source"] == "cache", report
    assert native["interpreted_seconds"] < 0.5, report


def goes_on(folder):
    """What was compiled is kept even if the program ends before the rest is."""
    body = """(i64.store (i32.wrap_i64 (local.get 0)) (i64.div_u (local.get 1) (i64.rem_s (local.get 0)
      (i64.load (i32.wrap_i64 (local.get 1))))))""" * 2000
    (folder / "large.wat").write_text(f"""(module (memory 1)
      (func $small (param i32) (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
      (func $large (param i64 i64)
        (loop (if (i64.eqz (local.get 1)) (then {body}))
          (br_if 0 (i64.ne (local.tee 0 (i64.sub (local.get 0) (i64.const 1))) (i64.const 0)))))
      (func (export "_start")
        (call $small (i32.const 100000000))
        (call $large (i64.const 60000000) (i64.const 1))))""")
    report = same(folder, "large.wat")
    first = report["jobs"][0]["native"]
    assert first["source"] == "compiled" and first["functions"] == 1, report
    assert len(list((folder / "kept").iterdir())) == 1
    report = same(folder, "large.wat")
    native = report["jobs"][0]["native"]
    assert native["functions"] >= 1 and native["interpreted_seconds"] < first["interpreted_seconds"], report


def traps(folder):
    report = same(folder, "--invoke", "trap", "spin.wat", LONG, code=134)
    assert report["tier"] == "switched", report


def fuel(folder):
    report = same(folder, "--fuel", "300000000", "--invoke", "spin", "spin.wat", LONG, code=134)
    assert report["tier"] == "switched" and report["endings"]["others"] == {"out of fuel": 1}, report


def many(folder):
    report = same(folder, "--instances", "4", "--invoke", "spin", "spin.wat", "2{}_000_000")
    assert report["tier"] == "switched", report
    first = report["jobs"][0]["native"]["interpreted_seconds"]
    report = same(folder, "--instances", "4", "--invoke", "spin", "spin.wat", "2{}_000_000")
    # It begins with what the first run left, and may compile more.
    assert report["tier"] == "switched", report
    assert report["jobs"][0]["native"]["interpreted_seconds"] < first, report


def map_chunks(folder):
    """What one launch began is there for those that follow."""
    (folder / "lines").write_text("x\n" * 60)
    path = folder / "report.json"
    subprocess.run([os.environ["GPURUN"], "map", "--quiet", "--device", "cpu", "--jobs", "2", "--report",
                    str(path), "--lines", "lines", "spin.wat"], cwd=folder, check=True, timeout=100)
    native = json.loads(path.read_text())["jobs"][0]["native"]
    assert native["source"] == "compiled" and native["interpreted_seconds"] is None, native


def short(folder):
    """Nobody compiles what is over soon."""
    report = same(folder, "--invoke", "spin", "spin.wat", "1000")
    assert report["tier"] == "interp", report
    assert not (folder / "kept").exists()


def looked_at(folder):
    """Dumps have all variables, and profiles all places, even if there is machine code."""
    subprocess.run([os.environ["GPURUN"], "compile", "spin.wat"], cwd=folder, check=True, capture_output=True)
    for option in ("--dump", "--profile"):
        report = same(folder, option, "seen", "--invoke", "spin", "spin.wat", "1000")
        assert report["tier"] == "interp", report
    _, report = run(folder, "--tier", "native", "--profile", "seen", "--invoke", "spin", "spin.wat", "1000")
    assert report["tier"] == "native", report


def slow_to_compile(loop):
    """A module whose hot function has a part that LLVM has work with for long, and that is never reached."""
    body = """(i64.store (i32.wrap_i64 (local.get 0)) (i64.div_u (local.get 1) (i64.rem_s (local.get 0)
      (i64.load (i32.wrap_i64 (local.get 1))))))""" * 2000
    return f"""(module (memory (export "memory") 1) (func (export "_start") (local i64 i64)
      (local.set 1 (i64.load (i32.const 8)))
      (loop (local.set 0 (i64.add (local.get 0) (i64.const 1)))
        (br_if 0 (i64.lt_u (local.get 0) (i64.const {loop}))))
      (if (i64.ne (local.get 1) (i64.const 0)) (then {body})))
      (func (export "trap") (call 0) unreachable))"""


def ends_promptly(folder):
    """However it ends, it does not wait for the compiler, which would have left something in the cache."""
    for words, code in (([], 0), (["--invoke", "trap"], 134), (["--timeout", "700ms"], 124)):
        loop = 200_000_000 if code != 124 else 1_000_000_000_000
        (folder / "slow.wat").write_text(slow_to_compile(loop))
        _, report = run(folder, *words, "slow.wat", code=code)
        assert report["tier"] == "interp" and not (folder / "kept").exists(), (words, report)
    subprocess.run([os.environ["GPURUN"], "compile", "slow.wat"], cwd=folder, check=True, capture_output=True)
    assert (folder / "kept").exists()


def interrupted(folder):
    """Wherever the compiler is."""
    (folder / "slow.wat").write_text(slow_to_compile(1_000_000_000_000))
    for seconds in (0.2, 0.6, 1.0, 1.4, 1.8):
        process = subprocess.Popen([os.environ["GPURUN"], "--device", "cpu", "slow.wat"], cwd=folder,
                                   stderr=subprocess.PIPE)
        time.sleep(seconds)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        taken = time.monotonic() - begin
        assert process.returncode == 130 and taken < 0.5, (process.returncode, taken)


def main():
    passed = failed = 0
    chosen = sys.argv[1:]
    for test in (switches, goes_on, traps, fuel, many, map_chunks, short, looked_at, ends_promptly, interrupted):
        if chosen and test.__name__ not in chosen:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            os.environ["GPURUN_CACHE"] = str(folder / "kept")
            (folder / "spin.wat").write_text(SPIN)
            try:
                test(folder)
                passed += 1
            except AssertionError as error:
                failed += 1
                print(f"{test.__name__}: {error}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
