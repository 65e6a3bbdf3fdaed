#!/usr/bin/env python3
"""Reports (--report) against docs/report.schema.json, and what they say of known runs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["GPURUN_SOURCE"])
SCHEMA = json.loads((SOURCE / "docs/report.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
         "null": type(None)}

MODULE = """(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start"))
  (func (export "exit") (param i32) (call $exit (local.get 0)))
  (func (export "mixed") (param i32)
    (if (i32.eq (local.get 0) (i32.const 1)) (then unreachable))
    (if (i32.eq (local.get 0) (i32.const 2)) (then (call $exit (i32.const 7)))))
  (func (export "loop") (loop (br 0)))
  (func (export "_initialize")))
"""


YES = """(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\02\\00\\00\\00")
  (data (i32.const 16) "y\\n")
  (func (export "_start")
    (loop (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))) (br 0))))
"""


def problems(value, schema, place="report"):
    """What of a JSON schema the report's own schema uses."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {value!r}, expected {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[kind]) for kind in kinds):
        yield f"{place}: {value!r} is no {' or '.join(kinds)}"
        return
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{place}: {value} is less than {schema['minimum']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place}: no {name}"
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is not None:
                yield from problems(member, inner, f"{place}.{name}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), f"{place}[{i}]")


def run(folder, *words, code=0):
    """The report of a run that must end with `code`."""
    path = folder / "report.json"
    path.unlink(missing_ok=True)
    done = subprocess.run([os.environ["GPURUN"], *words], cwd=folder, capture_output=True, text=True,
                          timeout=30, check=False)
    assert done.returncode == code, (words, done)
    report = json.loads(path.read_text())
    found = list(problems(report, SCHEMA))
    assert not found, "\n".join(found)
    assert set(report) == set(SCHEMA["properties"]), "a member is not in the schema"
    assert report["exit_code"] == code
    assert report["instances"] == sum(job["instances"] for job in report["jobs"])
    assert report["memory"]["host_peak_bytes"] > 1 << 20
    return report


def one_process(folder):
    report = run(folder, "--report", "report.json", "--device", "cpu", "m.wat")
    assert report["command"] == "run" and report["instances"] == 1
    assert report["device"]["id"] == "cpu" and report["launches"] == 0
    assert report["endings"] == {"exits": {"0": 1}, "traps": {}, "others": {}}
    assert 0 < report["seconds"]["run"] <= report["seconds"]["total"]
    report = run(folder, "--report", "report.json", "--invoke", "exit", "m.wat", "300", code=44)
    assert report["endings"]["exits"] == {"300": 1}


def bad_endings(folder):
    report = run(folder, "--report", "report.json", "--invoke", "mixed", "m.wat", "1", code=134)
    assert report["endings"]["traps"] == {"unreachable": 1}
    report = run(folder, "--report", "report.json", "--timeout", "100ms", "--invoke", "loop", "m.wat",
                 code=124)
    assert report["endings"]["others"] == {"timeout": 1}
    report = run(folder, "--report", "report.json", "--fuel", "9", "--invoke", "loop", "m.wat", code=134)
    assert report["endings"]["others"] == {"out of fuel": 1}


def closed_output(folder):
    path = folder / "report.json"
    subprocess.run(["bash", "-c", f"{os.environ['GPURUN']} --report report.json yes.wat | head -1 > out"],
                   cwd=folder, timeout=30, check=True)
    report = json.loads(path.read_text())
    assert report["endings"]["others"] == {"output closed": 1} and report["exit_code"] == 141, report


def many(folder):
    report = run(folder, "--report", "report.json", "--instances", "100", "--invoke", "mixed", "m.wat",
                 "{}", code=134)
    assert report["endings"] == {"exits": {"0": 98, "7": 1}, "traps": {"unreachable": 1}, "others": {}}
    assert report["instances_per_second"] > 0


def batch(folder):
    (folder / "jobs").write_text("--instances 10 m.wat\n--invoke exit m.wat 3\n")
    report = run(folder, "batch", "--report", "report.json", "jobs", code=3)
    assert report["command"] == "batch" and report["instances"] == 11
    assert [job["instances"] for job in report["jobs"]] == [10, 1]
    assert report["jobs"][1]["endings"]["exits"] == {"3": 1}


def tiers(folder):
    os.environ["GPURUN_CACHE"] = str(folder / "kept")
    native = ["--report", "report.json", "--device", "cpu", "--tier", "native", "m.wat"]
    for source in ("compiled", "cache"):
        report = run(folder, *native)
        job = report["jobs"][0]
        assert report["tier"] == job["tier"] == "native" and job["native"]["source"] == source, report
        assert job["native"]["functions"] == 5 and job["native"]["interpreted"] == 0
        spent = job["native"]["compile_seconds"]
        assert all((seconds > 0) == (source == "compiled") for seconds in spent.values()), report
        assert (report["seconds"]["link"] > 0) and report["seconds"]["compile"] > 0
    report = run(folder, *native[:-2], "interp", "m.wat")
    assert report["tier"] == "interp" and report["jobs"][0]["native"] is None
    # What is there already is not linked for so little.
    report = run(folder, *native[:-2], "auto", "--instances", "3", "m.wat")
    assert report["tier"] == "interp" and report["jobs"][0]["native"] is None, report
    (folder / "jobs").write_text("--tier native m.wat\n--tier interp m.wat\n")
    report = run(folder, "batch", "--device", "cpu", "--report", "report.json", "jobs")
    assert report["tier"] == "several" and report["jobs"][0]["tier"] == "native", report
    (folder / "lines").write_text("1\n2\n")
    report = run(folder, "map", "--lines", "lines", *native)
    assert report["jobs"][0]["native"]["source"] == "cache", report
    subprocess.run([os.environ["GPURUN"], "--quiet", "compile", "-o", "m.gpu", "--target", "cpu", "m.wat"],
                   cwd=folder, check=True)
    report = run(folder, "--report", "report.json", "--device", "cpu", "--tier", "native",
                 "--allow-precompiled", "m.gpu")
    assert report["tier"] == "native" and report["jobs"][0]["native"]["source"] == "file", report
    del os.environ["GPURUN_CACHE"]


def odd_names(folder):
    name = os.fsdecode(b'a"\\\n\xff.wat')
    (folder / name).write_text(MODULE)
    report = run(folder, "--report", "report.json", name)
    assert report["jobs"][0]["file"] == 'a"\\\n\ufffd.wat'


def main():
    passed = failed = 0
    for test in (one_process, bad_endings, closed_output, many, batch, tiers, odd_names):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "m.wat").write_text(MODULE)
            (folder / "yes.wat").write_text(YES)
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
