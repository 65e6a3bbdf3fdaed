#!/usr/bin/env python3
"""Installs the build into a folder, and builds and runs examples/embed against it: by
find_package(gpurun), by pkg-config, with the shared library and with the static one."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["GPURUN_SOURCE"])
BUILD = pathlib.Path(os.environ["GPURUN_BUILD"])
EXAMPLES = SOURCE / "examples/embed"
EXPECTED = {
    "hello": "hello from a guest\n",
    "host_function": "HELLO FROM THE GUEST\nit returned 20\n",
    "thousand": "the sum of the squares below 1000 is 332833500\n",
}
HELLO = """(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\13\\00\\00\\00")
  (data (i32.const 16) "hello from a guest\\n")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""
CONSUMER = """cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
add_compile_options(-Wall -Wextra -Wpedantic -Werror)
find_package(gpurun {version} EXACT REQUIRED)
foreach(source {sources})
  get_filename_component(name ${{source}} NAME_WE)
  foreach(kind gpurun static)
    add_executable(${{name}}_${{kind}} ${{source}})
    target_link_libraries(${{name}}_${{kind}} gpurun::${{kind}})
  endforeach()
endforeach()
"""

passed = failed = 0


def check(what, is_right, detail=""):
    global passed, failed
    passed += is_right
    failed += not is_right
    if not is_right:
        print(f"FAILED: {what}: {detail}")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def check_example(name, program, folder, environment=None):
    words = [program] + ([folder / "hello.wat"] if name == "hello" else [])
    output = run(*words, env=environment)
    check(f"{program}", output == EXPECTED[name], repr(output))


def check_exports(library):
    """Nothing but the interface is to be seen."""
    names = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    strange = sorted(name for name in names if not name.startswith("gpurun_"))
    check("exports", not strange, strange[:5])
    header = (SOURCE / "include/gpurun/gpurun.h").read_text()
    declared = set(re.findall(r"GPURUN_API [^;]*?(gpurun_\w+)\(", header))
    check("declared", names == declared, sorted(names ^ declared)[:5])


def main():
    if not shutil.which("cc") or not shutil.which("c++"):
        print("skipped: no cc and c++ for programs that embed gpu-run; install g++")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "hello.wat").write_text(HELLO)
        run("cmake", "--install", BUILD, "--prefix", folder / "first")
        # It must not matter where it lies.
        prefix = folder / "second"
        (folder / "first").rename(prefix)
        library = next(prefix.glob("lib*/**/libgpurun.so"))
        check_exports(library)
        check("soname", "libgpurun.so.0" in run("readelf", "-d", library))
        version = run(prefix / "bin/gpu-run", "--version").split()[-1]

        sources = sorted(EXAMPLES.glob("*.c*"))
        check("examples", {path.stem for path in sources} == set(EXPECTED))
        (folder / "CMakeLists.txt").write_text(CONSUMER.format(
            version=version, sources=" ".join(map(str, sources))))
        run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_C_COMPILER=cc", "-DCMAKE_CXX_COMPILER=c++")
        run("cmake", "--build", folder / "build")
        for name in EXPECTED:
            for kind in ("gpurun", "static"):
                check_example(name, folder / "build" / f"{name}_{kind}", folder)

        if not shutil.which("pkg-config"):
            print("skipped: pkg-config is not here")
            print(f"{passed} passed, {failed} failed, 1 skipped")
            return failed != 0
        environment = dict(os.environ, PKG_CONFIG_PATH=str(library.parent / "pkgconfig"))
        check("pkg-config's version",
              run("pkg-config", "--modversion", "gpurun", env=environment).strip() == version)
        for name in ("hello", "thousand"):
            program = folder / f"{name}_pkg"
            flags = run("pkg-config", "--cflags", "--libs", "gpurun", env=environment).split()
            run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", EXAMPLES / f"{name}.c", "-o",
                program, *flags)
            check_example(name, program, folder,
                          dict(environment, LD_LIBRARY_PATH=str(library.parent)))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main())
