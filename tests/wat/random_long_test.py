#!/usr/bin/env python3
"""Random programs in two engines: V8 (node) says what they do, gpu-run must do the same, with
handlers in the legacy and in the new form. To look into a failure, --keep DIRECTORY."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import random_programs

PROGRAMS = 600
ARGUMENTS = [("0", "0", "0"), ("-3", "-5", "-7.5"), ("77", "81985529216486895", "1e9")]

# Prints [program, function, number of the arguments, outcome] a line.
IN_NODE = """
const fs = require('fs');
const all = JSON.parse(process.argv[1]);
for (const path of process.argv.slice(2)) {
  const module = new WebAssembly.Module(fs.readFileSync(path));
  const exported = new WebAssembly.Instance(module).exports;
  for (const [name, call] of Object.entries(exported)) {
    all.slice(0, call.length ? all.length : 1).forEach(([i, l, d], number) => {
      let outcome;
      try {
        const result = call.length ? call(Number(i), BigInt(l), Number(d)) : call();
        outcome = BigInt.asIntN(64, result).toString();
      } catch (error) {
        outcome = error instanceof WebAssembly.Exception ? 'exception' : 'trap';
      }
      console.log(JSON.stringify([path, name, number, outcome]));
    });
  }
}
"""


def assertion(name, number, outcome):
    i, l, d = ARGUMENTS[number]
    arguments = f" (i32.const {i}) (i64.const {l}) (f64.const {d})" if name != "sum" else ""
    invoke = f'(invoke "{name}"{arguments})'
    if outcome == "trap":
        return f'(assert_trap {invoke} "")'
    if outcome == "exception":
        return f"(assert_exception {invoke})"
    return f"(assert_return {invoke} (i64.const {outcome}))"


def run_in_node(paths):
    # V8's stack must hold as many frames as a program's fuel pays for.
    command = ["sh", "-c", 'ulimit -s unlimited; exec "$@"', "sh", "node", "--stack-size=60000",
               "-e", IN_NODE, json.dumps(ARGUMENTS)]
    result = subprocess.run(command + [str(path) for path in paths], stdout=subprocess.PIPE,
                            text=True, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="seed of the first program")
    parser.add_argument("--count", type=int, default=PROGRAMS)
    parser.add_argument("--keep", type=pathlib.Path, help="write the scripts here")
    options = parser.parse_args()
    for tool in ("node", "wat2wasm"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not on PATH")
            return 77
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        programs = {}
        for seed in range(options.first, options.first + options.count):
            path = folder / f"{seed}.wat"
            programs[str(path.with_suffix(".wasm"))] = program = random_programs.Program(seed)
            path.write_text(program.text(legacy=True))
            subprocess.run(["wat2wasm", "--enable-all", path, "-o", path.with_suffix(".wasm")],
                           check=True)
        scripts = {}
        for path, name, number, outcome in run_in_node(programs):
            scripts.setdefault(path, []).append(assertion(name, number, outcome))
        paths = []
        for path, assertions in scripts.items():
            program = programs[path]
            for legacy in [True, False] if program.portable else [True]:
                paths.append(pathlib.Path(path).with_suffix(".legacy.wast" if legacy else ".wast"))
                paths[-1].write_text(program.text(legacy) + "\n".join(assertions) + "\n")
        result = subprocess.run([os.environ.get("GPURUN", "build/gpu-run"), "wast", *paths],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    passed = len(re.findall(r"^\S+\.wast: \d+ passed, 0 failed$", result.stdout, re.MULTILINE))
    if passed < len(paths):
        print("\n".join(result.stdout.splitlines()[:50]))
    print(f"{passed} passed, {len(paths) - passed} failed, 0 skipped")
    return 0 if paths and passed == len(paths) else 1


sys.exit(main())
