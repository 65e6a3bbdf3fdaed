#!/usr/bin/env python3
"""--profile: shares of functions, collapsed stacks and the picture."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

MODULE = """(module
  (func $spin (param i32)
    (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func $little (call $spin (i32.const 10000000)))
  (func $much (call $spin (i32.const 60000000)))
  (func (export "_start") (call $little) (call $much))
  (func $down (param i32)
    (if (local.get 0)
      (then (call $down (i32.sub (local.get 0) (i32.const 1))))
      (else (call $spin (i32.const 30000000)))))
  (func (export "<deep> & \\"odd\\"") (call $down (i32.const 1000)))
  (func (export "for_ever") (loop (br 0)))
  (func (export "short")))
"""


def gpu_run(folder, *words, code=0):
    done = subprocess.run([os.environ["GPURUN"], "--device", "cpu", "--profile", "p", *words], cwd=folder,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, (words, done)
    stacks = {}
    for line in (folder / "p.folded").read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";"))] = int(count)
    picture = xml.etree.ElementTree.parse(folder / "p.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    return done.stderr, stacks, titles


def shares(folder, *mode, least=20, most=18):
    said, stacks, titles = gpu_run(folder, *mode, "m.wat")
    total = sum(stacks.values())
    much, little = (stacks.get(("_start", name, "spin"), 0) for name in ("much", "little"))
    assert total > least and much + little > 0.9 * total, stacks
    assert 2 < much / max(1, little) < most, stacks
    assert re.search(r"^ +\d+\.\d%  +\d+\.\d%  spin$", said, re.MULTILINE), said
    assert any(title.startswith("much (") for title in titles), titles


def shares_of_many(folder):
    shares(folder, "--instances", "3")


def shares_on_machine(folder):
    # A machine parks for each look, seldom where that takes long.
    shares(folder, "--resident", least=5, most=60)
    shares(folder, "--resident", "--instances", "3", least=5, most=60)


def deep_and_odd(folder):
    _, stacks, titles = gpu_run(folder, "--invoke", '<deep> & "odd"', "m.wat")
    # A sample may be taken on the way down, too.
    deepest = max((stack for stack in stacks if stack[-1] == "spin"), key=len)
    assert deepest[0] == "..." and 100 < len(deepest) < 200, deepest
    assert any(title.startswith("spin (") for title in titles), titles


def ends_badly(folder):
    said, stacks, _ = gpu_run(folder, "--timeout", "300ms", "--invoke", "for_ever", "m.wat", code=124)
    assert list(stacks) == [("for_ever",)] and "timeout" in said, (said, stacks)


def too_short(folder):
    said, stacks, titles = gpu_run(folder, "--invoke", "short", "m.wat")
    assert "no profile" in said and not stacks and not titles, (said, stacks, titles)


def main():
    passed = failed = 0
    for test in (shares, shares_of_many, shares_on_machine, deep_and_odd, ends_badly, too_short):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "m.wat").write_text(MODULE)
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
