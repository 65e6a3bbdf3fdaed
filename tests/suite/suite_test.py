#!/usr/bin/env python3
"""The jobs of bench/suite do the same in gpu-run, on the host and compiled for GPUs by hand; its runner finds differences."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

source = pathlib.Path(os.environ["GPURUN_SOURCE"])
gpu_run = os.environ["GPURUN"]
built = source / "build/bench-suite"
folder, here = source / "bench/suite", source / "tests/suite"
sys.dont_write_bytecode = True
sys.path.insert(0, str(folder))
import jobs  # noqa: E402

COUNT = 9
NATIVE = ["sha256", "json"]  # jobs that are run by machine code, too
passed = failed = skipped = 0


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)


def check(name, problem):
    global passed, failed
    passed += not problem
    failed += bool(problem)
    if problem:
        print(f"FAILED: {name}: {problem}")


def expected(job, *words):
    return run(built / "host", "--instances", COUNT, "--each", *words, job.name).stdout


def in_gpu_run(job, tier, number):
    done = run(gpu_run, "--device", "cpu", "--tier", tier, "--instances", COUNT, "--each", "--invoke", "run",
               built / f"wasm/{job.name}.wasm", number)
    return done.stdout if done.returncode == 0 else done.stderr


def check_job(job):
    wanted = expected(job)
    problems = [] if len(wanted.split()) == 2 * COUNT and len(set(wanted.split()[1::2])) > 1 else [f"host: {wanted!r}"]
    for tier in ["interp", *(["native"] if job.name in NATIVE else [])]:
        found = in_gpu_run(job, tier, "{}")
        problems += [f"{tier}: {found!r}, on the host {wanted!r}"] if found != wanted else []
    if in_gpu_run(job, "interp", "0") != expected(job, "--same"):
        problems.append("other results than on the host with the same input for all")
    return problems


def make_drivers(scratch):
    """Objects of a CUDA driver without a GPU, which by-hand finds in place of NVIDIA's."""
    objects = [pathlib.Path(scratch) / f"{name}.o" for name in ("fake_driver", "fake_driver_rest")]
    for path in objects:
        done = run("clang++-22", "-std=c++20", "-O1", "-fPIC", f"-I{source}/src", "-c", here / f"{path.stem}.cpp", "-o", path)
        check(path.name, done.stderr if done.returncode else "")
    return objects


def by_hand_on_host(job, drivers, scratch):
    """Runs by-hand with a driver that has the job's kernel, compiled for the host. Finds arenas that are too small."""
    place = pathlib.Path(scratch) / job.name
    place.mkdir()
    kernel = run("clang-22", "-O1", "-fPIC", "-ffp-contract=off", "-Wno-ignored-attributes", "-Wno-unknown-attributes",
                 "-nostdlibinc", f"-I{folder}/by_hand/include", f"-I{folder}", "-include", here / "fake_driver.h",
                 f'-Dsuite_job="{job.name}.c"', "-c", folder / "by_hand/kernel.c", "-o", place / "kernel.o")
    linked = run("clang++-22", "-shared", place / "kernel.o", *drivers, "-o", place / "libcuda.so.1")
    if kernel.returncode or linked.returncode:
        return kernel.stderr + linked.stderr
    for words in ((), ("--same",)):
        done = run(built / "by-hand", "--instances", COUNT, "--block", 32, "--each", "--arena", job.arena, "--stack", job.stack,
                   *words, built / f"ptx/{job.name}.ptx", env={**os.environ, "LD_LIBRARY_PATH": str(place)})
        if done.returncode or done.stdout != expected(job, *words):
            return f"{words}: {done.stderr} {done.stdout!r}"
    return ""


def find_ptxas():
    return shutil.which("ptxas") or next((source / "build/venv").glob("**/bin/ptxas"), None)


def assemble(job, ptxas, scratch):
    done = run(ptxas, "-arch=sm_90", built / f"ptx/{job.name}.ptx", "-o", pathlib.Path(scratch) / f"{job.name}.cubin")
    return done.stderr if done.returncode else ""


def check_runner(scratch):
    out, wrong = pathlib.Path(scratch) / "rows.json", pathlib.Path(scratch) / "wrong"
    words = [folder / "run", "--device", "cpu", "--gpu-run", gpu_run, "--build", built, "--count", COUNT, "--cpu-count", 4,
             "--jobs", "fib,queens", "--engines", "host,interp,native", "--inputs", "both", "--repeat", 1, "--out", out]
    done = run(*words)
    found = json.loads(out.read_text()) if out.exists() else {"rows": []}
    rates = [row.get("per_second", 0) for row in found["rows"]]
    check("runner", "" if done.returncode == 0 and len(rates) == 12 and min(rates) > 0 else done.stdout + done.stderr)
    mean = found.get("summary", {}).get("distinct", {}).get("means", {}).get("best/host", {})
    check("runner's means", "" if mean.get("jobs") == 2 and mean.get("least") <= mean.get("geometric_mean") else str(mean))
    # A gpu-run whose fourth process says something else.
    wrong.write_text(f'#!/bin/sh\n"{gpu_run}" "$@" | sed "s/^3\\t.*/3\\t12345/"\n')
    wrong.chmod(wrong.stat().st_mode | stat.S_IXUSR)
    done = run(*words, "--binary", f"wrong={wrong}")
    errors = [row["error"] for row in json.loads(out.read_text())["rows"] if "error" in row]
    is_found = done.returncode == 1 and len(errors) == 4 and all(re.search("^1 outputs differ", error) for error in errors)
    check("a wrong output is found", "" if is_found else f"{errors} {done.stdout}")
    done = run(*words, "--seconds", 0)
    check("a runner without time", "" if done.returncode == 1 and "0 runs" in done.stdout else done.stdout + done.stderr)


if not shutil.which("clang-22") or not pathlib.Path("/usr/lib/wasm32-wasi/libc.a").exists():
    print("skipped: no clang-22 or wasi-libc")
    sys.exit(77)
made = run(folder / "build", built)
if made.returncode != 0:
    print(made.stdout + made.stderr)
    sys.exit(1)
check("all sources are jobs", set(path.stem for path in folder.glob("*.c")) ^ {job.name for job in jobs.JOBS})
ptxas = find_ptxas()
with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for job, problems in zip(jobs.JOBS, pool.map(check_job, jobs.JOBS)):
        check(job.name, "; ".join(problems))
    drivers, some = make_drivers(scratch), [job for job in jobs.JOBS if job.arena or job.name == "fib"]
    for job, problem in zip(some, pool.map(lambda job: by_hand_on_host(job, drivers, scratch), some)):
        check(f"{job.name} by hand", problem)
    if ptxas:
        for job, problem in zip(jobs.JOBS, pool.map(lambda job: assemble(job, ptxas, scratch), jobs.JOBS)):
            check(f"{job.name}.ptx", problem)
    else:
        skipped += 1
        print("skipped: no ptxas for the suite's PTX")
    check_runner(scratch)
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)
