#!/usr/bin/env python3
"""Packages the build as `make package` does, unpacks both packages and runs what is in them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["GPURUN_SOURCE"])
BUILD = pathlib.Path(os.environ["GPURUN_BUILD"])
EXPECTED = ["bin/gpu-run", "include/gpurun/gpurun.h", "include/gpurun/gpurun.hpp",
            "lib/libgpurun.so", "lib/libgpurun.so.0", "lib/libgpurun.a",
            "lib/cmake/gpurun/gpurun-config.cmake", "lib/pkgconfig/gpurun.pc",
            "share/man/man1/gpu-run.1", "share/bash-completion/completions/gpu-run",
            "share/doc/gpu-run/copyright", "share/gpu-run/sdk/c/gpu.h"]
GLIBC = (2, 36)  # Debian 12

passed = failed = 0


def check(what, is_right, detail=""):
    global passed, failed
    passed += is_right
    failed += not is_right
    if not is_right:
        print(f"FAILED: {what}: {detail}")


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def check_tree(root, is_static):
    for name in EXPECTED:
        check(f"{root}/{name}", (root / name).exists(), "is not there")
    output = run(root / "bin/gpu-run", "--device", "cpu", "--invoke", "fac",
                 SOURCE / "examples/fac.wat", "20")
    check("fac", output == "2432902008176640000\n", output)
    for file in ("bin/gpu-run", "lib/libgpurun.so"):
        symbols = run("objdump", "-T", root / file)
        newest = max(tuple(map(int, version.split(".")))
                     for version in re.findall(r"GLIBC_([0-9.]+)", symbols))
        check(f"{file}: glibc", newest <= GLIBC, newest)
        needed = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", root / file)))
        others = needed - {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
        check(f"{file}: libraries", not is_static or not others, others)


def check_packages(folder, is_static, scratch):
    deb, tarball = next(folder.glob("*.deb")), next(folder.glob("*.tar.gz"))
    depends = run("dpkg-deb", "-f", deb, "Depends").strip()
    check("depends", depends == "libc6 (>= 2.36)", depends)
    run("dpkg-deb", "-x", deb, scratch / "deb")
    check_tree(scratch / "deb/usr", is_static)
    (scratch / "tar").mkdir()
    run("tar", "-C", scratch / "tar", "--strip-components=1", "-xf", tarball)
    check_tree(scratch / "tar", is_static)


def main():
    for tool in ("dpkg-deb", "objdump"):
        if not shutil.which(tool):
            print(f"skipped: no {tool} here")
            return 77
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        # Without the debug information of a dev build, which takes long to compress.
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", scratch / "made", "-D",
            "CPACK_STRIP_FILES=ON")
        cache = (BUILD / "CMakeCache.txt").read_text()
        check_packages(scratch / "made", "GPURUN_STATIC:BOOL=ON" in cache, scratch)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
