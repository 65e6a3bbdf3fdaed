#!/usr/bin/env python3
"""Backtraces of what compilers made with -g name files and lines."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

C = """static int divide(int a, int b) {
    return a / b;
}
__attribute__((noinline)) int mean(int sum, int count) {
    return divide(sum, count);
}
__attribute__((export_name("f"))) int f(int n) {
    int half = mean(n, 2);
    return half + mean(n, n);
}
"""
# Optimised: the frame of divide is gone, its line is not.
PLACES = {"-O0": ["divide", "m.c:2", "mean", "m.c:5", "f", "m.c:9"], "-O2": ["mean", "m.c:2", "f", "m.c:9"]}

RUST = """#[inline(never)]
fn mean(sum: i32, count: usize) -> i32 {
    sum / [0, 1][count]
}
#[no_mangle]
pub extern "C" fn f(n: i32) -> i32 {
    mean(n, n as usize)
}
"""


def gpu_run(folder, *words):
    done = subprocess.run([os.environ["GPURUN"], *words], cwd=folder, capture_output=True, text=True,
                          timeout=30, check=False)
    assert done.returncode == 134, done
    return done.stdout + done.stderr


def check_order(text, places):
    at = 0
    for place in places:
        at = text.find(place, at)
        assert at >= 0, f"{place} is not where it should be:\n{text}"


def c_module(folder, version, level):
    (folder / "m.c").write_text(C)
    subprocess.run(["clang-22", "--target=wasm32", "-nostdlib", "-Wl,--no-entry", "--no-wasm-opt",
                    f"-gdwarf-{version}", level, "m.c", "-o", "m.wasm"], cwd=folder, check=True)
    check_order(gpu_run(folder, "--invoke", "f", "m.wasm", "0"), PLACES[level])
    many = gpu_run(folder, "--instances", "3", "--invoke", "f", "m.wasm", "{}")
    assert ", m.c:2" in many, many


def rust_module(folder):
    (folder / "m.rs").write_text(RUST)
    subprocess.run(["/usr/bin/rustc", "--target", "wasm32-wasi", "-C", "linker=wasm-ld-22", "-C",
                    "linker-flavor=wasm-ld", "-C", "link-arg=--no-fatal-warnings", "-g", "--crate-type",
                    "cdylib", "-A", "warnings", "m.rs", "-o", "m.wasm"], cwd=folder, check=True, capture_output=True)
    check_order(gpu_run(folder, "--invoke", "f", "m.wasm", "0"), ["mean", "m.rs:3", "f (", "m.rs:7"])


def main():
    passed = skipped = 0
    tests = []
    if shutil.which("clang-22") and shutil.which("wasm-ld-22"):
        tests += [(c_module, version, level) for version in (4, 5) for level in PLACES]
    else:
        print("skipped: C: no clang-22 with wasm-ld-22: scripts/install-deps guests")
        skipped += 1
    if pathlib.Path("/usr/lib/rustlib/wasm32-wasi/lib").exists() and shutil.which("wasm-ld-22"):
        tests.append((rust_module,))
    else:
        print("skipped: Rust: no Debian rustc for wasm32-wasi: scripts/install-deps guests")
        skipped += 1
    failed = 0
    for test, *arguments in tests:
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(pathlib.Path(folder), *arguments)
                passed += 1
            except (AssertionError, subprocess.CalledProcessError) as error:
                failed += 1
                print(f"{test.__name__}{tuple(arguments)}: {error}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
