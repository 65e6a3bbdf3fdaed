#!/usr/bin/env python3
"""sdk/c/gpu.h: every language and target it is for takes it, and it says what the runtime offers.

The rows of src/abi/system_calls.def are compared with what a module that uses the whole header imports.
The last line counts: N passed, N failed, N skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("GPURUN_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
GPU_RUN = os.environ.get("GPURUN", str(ROOT / "build/gpu-run"))
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-deprecated", "-I", str(ROOT / "sdk/c")]
WASM = ["--target=wasm32-wasi"]
TYPES = {"i": "i32", "s": "i32", "v": "i32", "o": "i32", "I": "i64", "f": "f32", "F": "f64"}

# How it is compiled: a name, a compiler, its flags.
WAYS = [*[(f"wasm {standard}", "clang-22", [*WASM, f"-std={standard}"]) for standard in ("c11", "c17", "gnu17")],
        *[(f"wasm {standard}", "clang++-22", [*WASM, "-x", "c++", f"-std={standard}"])
          for standard in ("c++11", "c++20")],
        ("wasm without a C library", "clang-22", ["--target=wasm32", "-ffreestanding", "-nostdlibinc", "-std=c11"]),
        ("this machine, c11", "clang-22", ["-std=c11"]),
        ("this machine, c++11", "clang++-22", ["-x", "c++", "-std=c++11"])]


def rows():
    """{name: (parameters, results)} of the module gpu."""
    text = (ROOT / "src/abi/system_calls.def").read_text()
    return {name: tuple([TYPES[letter] for letter in letters] for letters in (parameters, results))
            for name, parameters, results in re.findall(r'^GPU\((\w+), "(\w*)", "(\w*)"\)', text, re.MULTILINE)}


def declared():
    return re.findall(r"^GPU_IMPORT\((\w+)\)", (ROOT / "sdk/c/gpu.h").read_text(), re.MULTILINE)


def compile_with(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""


def imports(folder):
    """{name: (parameters, results)} of what a module that mentions every function imports."""
    source, module = folder / "all.c", folder / "all.wasm"
    names = ", ".join(f"(void*)gpu_{name}" for name in declared())
    source.write_text(f'#include "gpu.h"\nvoid* volatile all[] = {{{names}}};\n'
                      "int main(void) { return all[0] == 0; }\n")
    wrong = compile_with(["clang-22", *WASM, "-Wno-deprecated", "--no-wasm-opt", "-I", ROOT / "sdk/c", source, "-o", module])
    if wrong:
        raise ValueError(wrong)
    shown = subprocess.run([GPU_RUN, "objdump", module], capture_output=True, text=True, check=True).stdout
    found = re.findall(r'^ +"gpu" "(\w+)" func .*?\(type \d+\)(?: \(param ([^)]*)\))?(?: \(result ([^)]*)\))?$', shown, re.MULTILINE)
    return {name: (parameters.split(), results.split()) for name, parameters, results in found}


def tests(folder):
    """(name, what is wrong or "") of each."""
    for name, compiler, flags in WAYS:
        yield name, compile_with([compiler, *STRICT, *flags, "-c", ROOT / "tests/sdk/header.c", "-o", folder / "x.o"])
    wanted, got = rows(), imports(folder)
    for name in sorted(wanted.keys() | got.keys()):
        same = wanted.get(name) == got.get(name)
        yield f"gpu.{name}", "" if same else f"imported as {got.get(name)}, system_calls.def has {wanted.get(name)}"


def main():
    if not shutil.which("clang-22") or not pathlib.Path("/usr/lib/wasm32-wasi/libc.a").exists():
        print("skipped: no clang-22 or no wasi-libc: scripts/install-deps guests")
        return 77
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="header-") as folder:
        for name, wrong in tests(pathlib.Path(folder)):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"FAILED {name}: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
