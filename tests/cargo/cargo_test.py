#!/usr/bin/env python3
"""gpu-run as cargo's runner: `cargo run` and `cargo test` of the crate beside this file."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def cargo():
    """(command, target, environment) of a cargo that makes modules, or None."""
    debian = pathlib.Path("/usr/bin/cargo")
    linker = shutil.which("wasm-ld-22")
    if debian.exists() and linker and pathlib.Path("/usr/lib/rustlib/wasm32-wasi/lib").exists():
        # Its linker is an old one, and today's warns of the libraries' metadata.
        flags = "-C linker-flavor=wasm-ld -C link-arg=--no-fatal-warnings"
        return [str(debian)], "wasm32-wasi", {
            "RUSTC": "/usr/bin/rustc", "CARGO_TARGET_WASM32_WASI_LINKER": linker,
            "CARGO_TARGET_WASM32_WASI_RUSTFLAGS": flags}
    other = shutil.which("cargo")
    if other and shutil.which("rustc"):
        root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout
        if (pathlib.Path(root.strip()) / "lib/rustlib/wasm32-wasip1/lib").exists():
            return [other], "wasm32-wasip1", {}
    return None


def main():
    found = cargo()
    if found is None:
        print("skipped: no cargo that makes WASI modules: scripts/install-deps guests")
        return 77
    command, target, settings = found
    build = pathlib.Path(os.environ["GPURUN_BUILD"]) / "cargo"
    runner = f"CARGO_TARGET_{target.upper().replace('-', '_')}_RUNNER"

    def run(*words, with_runner=os.environ["GPURUN"]):
        environment = dict(os.environ, **settings, CARGO_TARGET_DIR=str(build), CARGO_HOME=str(build / "home"),
                           **{runner: with_runner})
        done = subprocess.run([*command, words[0], "--offline", "--locked", "-q", "--target", target, *words[1:]],
                              cwd=HERE, env=environment, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    def expect(what, result, code, *texts):
        codes = code if isinstance(code, tuple) else (code,)
        good = result[0] in codes and all(text in result[1] + result[2] for text in texts)
        if not good:
            print(f"{what}: expected {code}, {texts}; got {result[0]}\n{result[1]}{result[2]}")
        return good

    results = [
        expect("run", run("run", "--", "1", "2", "6"), 0, "3\n"),
        expect("run with the program's exit code", run("run"), 3, "mean: no numbers"),
        expect("test", run("test"), 0, "3 passed; 0 failed; 1 ignored"),
        expect("one test", run("test", "--lib", "--", "of_one"), 0, "1 passed; 0 failed"),
        expect("a test that fails", run("test", "--lib", "--", "--ignored"), (101, 134), "trap: unreachable",
               "mean::tests::is_wrong (", "src/lib.rs:30"),
        expect("many processes", run("run", "--", "{}", "4", with_runner=os.environ["GPURUN"] + " --instances 3"),
               0, "2\n", "3\n"),
    ]
    print(f"{results.count(True)} passed, {results.count(False)} failed, 0 skipped")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
