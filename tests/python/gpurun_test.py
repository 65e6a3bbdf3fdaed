#!/usr/bin/env python3
"""The Python package, with the library of this build. Run by pytest, which is Debian's
python3-pytest; NumPy's tests want python3-numpy."""
import base64
import hashlib
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import zipfile

SOURCE = pathlib.Path(os.environ["GPURUN_SOURCE"])
BUILD = pathlib.Path(os.environ["GPURUN_BUILD"])
os.environ["GPURUN_LIBRARY"] = str(BUILD / "libgpurun.so.0")
sys.path.insert(0, str(SOURCE / "python"))

DEBIAN = "/usr/bin/python3"
if sys.executable != DEBIAN and os.path.exists(DEBIAN) and not all(
        importlib.util.find_spec(name) for name in ("pytest", "numpy")):
    os.execv(DEBIAN, [DEBIAN, *sys.argv])  # another Python came first on PATH
try:
    import pytest
except ImportError:
    print("skipped: no pytest; install python3-pytest")
    sys.exit(77)

import gpurun

DEVICE = os.environ.get("GPURUN_DEVICE", "cpu")
IMPORTS = b"""
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)"""
# Copies its input; an "!" at the beginning of it is a trap, a "?" exit code 3.
COPY = b"(module" + IMPORTS + b"""
    (func (export "_start")
      (i32.store (i32.const 0) (i32.const 1024))
      (loop $again
        (i32.store (i32.const 4) (i32.const 1000))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (if (i32.load (i32.const 8))
          (then
            (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 33)) (then unreachable))
            (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 63))
              (then (call $exit (i32.const 3))))
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
            (br $again))))))"""
# Writes its arguments, a NUL after each.
ECHO = b"(module" + IMPORTS + b"""
    (func (export "_start")
      (drop (call $sizes (i32.const 0) (i32.const 4)))
      (drop (call $args (i32.const 16) (i32.const 1024)))
      (i32.store (i32.const 0) (i32.const 1024))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""
FUNCTIONS = b"""(module
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "both") (param i64 f64) (result i64 f64) (local.get 0) (local.get 1))
    (func (export "single") (param f32) (result f32) (local.get 0))
    (func (export "vector") (param v128) (result v128) (local.get 0))
    (func (export "nothing"))
    (func $divide (export "divide") (param i32 i32) (result i32)
      (i32.div_s (local.get 0) (local.get 1)))
    (func (export "forever") (loop $l (br $l))))"""


def test_version_and_devices():
    assert gpurun.version() == gpurun.__version__
    assert "cpu" in gpurun.devices()
    assert gpurun.Device("cpu").id == "cpu"
    with pytest.raises(gpurun.Error, match="unknown device"):
        gpurun.Device("toaster")


def test_bad_modules():
    with pytest.raises(gpurun.Error, match="is empty"):
        gpurun.Module(b"")
    with pytest.raises(gpurun.Error, match="No such file"):
        gpurun.Module("/no/such.wasm")


def test_precompiled(tmp_path):
    (tmp_path / "m.wat").write_bytes(b'(module (func (export "f") (result i32) (i32.const 7)))')
    subprocess.run([BUILD / "gpu-run", "--quiet", "compile", "--target", "cpu", "-o", "m.gpu", "m.wat"],
                   cwd=tmp_path, check=True)
    for allowed in (False, True):
        module = gpurun.Module(tmp_path / "m.gpu", allow_precompiled=allowed)
        assert gpurun.invoke(module, "f", device=DEVICE) == 7
    with pytest.raises(TypeError):
        gpurun.Module(tmp_path / "m.gpu", True)


def test_run():
    assert gpurun.run(COPY, input=b"a\0b", device=DEVICE).output == b"a\0b"
    result = gpurun.run(ECHO, ["one", "two"], argv0="echo", device=DEVICE)
    assert result.output == b"echo\0one\0two\0"
    assert (result.exit_code, result.error, result.debug) == (0, b"", [])
    with pytest.raises(gpurun.ExitError) as caught:
        gpurun.run(COPY, input="?", device=DEVICE)
    assert caught.value.exit_code == 3
    assert gpurun.run(COPY, input="?", device=DEVICE, check=False).exit_code == 3
    with pytest.raises(gpurun.Trap, match="unreachable in _start at 0x") as caught:
        gpurun.run(COPY, input="!", device=DEVICE)
    assert caught.value.frames[0].function == "_start"
    with pytest.raises(TypeError):
        gpurun.run(COPY, colour="red")


def test_directories(tmp_path):
    with pytest.raises(gpurun.Error, match="/no/such"):
        gpurun.run(COPY, dirs={"/": "/no/such"}, device=DEVICE)
    gpurun.run(COPY, read_only_dirs={"/": tmp_path}, device=DEVICE)


def test_invoke():
    def call(name, *arguments, **options):
        return gpurun.invoke(module, name, *arguments, device=DEVICE, **options)

    module = gpurun.Module(FUNCTIONS)
    assert call("add", 2, -5) == -3
    assert call("both", 1 << 40, 0.1) == (1 << 40, 0.1)
    assert call("both", -1, float("inf")) == (-1, float("inf"))
    assert call("single", 1e-30) == pytest.approx(1e-30)
    assert call("vector", bytes(range(16))) == bytes(range(16))
    assert call("nothing") is None
    assert call("add", range(5), 10) == [10, 11, 12, 13, 14]
    assert call("add", [], 1) == []
    with pytest.raises(gpurun.Trap, match="integer divide by zero") as caught:
        call("divide", 6, [3, 2, 0, 1])
    assert caught.value.process == 2
    with pytest.raises(gpurun.Error, match='did you mean "add"'):
        call("ad")
    with pytest.raises(gpurun.Error, match="takes 2 arguments, got 1"):
        call("add", 1)
    with pytest.raises(TypeError):
        call("add", 1, "2")
    with pytest.raises(ValueError, match="different lengths"):
        call("add", [1, 2], [1])
    with pytest.raises(gpurun.Timeout):
        call("forever", timeout=0.05)
    with pytest.raises(gpurun.Trap, match="out of fuel"):
        call("forever", fuel=1000)


def test_host_functions():
    module = gpurun.Module(b"""(module
        (import "env" "turn" (func $turn (param i32 i32) (result i64)))
        (memory (export "memory") 1)
        (data (i32.const 8) "drawer")
        (func (export "go") (param i32) (result i64 i32)
          (call $turn (i32.const 8) (local.get 0))
          (i32.load8_u (i32.const 8))))""")

    def turn(call, address, size):
        call.write(address, call.read(address, size)[::-1])
        return call.process - 1

    functions = [gpurun.HostFunction("env", "turn", ["i32", "i32"], ["i64"], turn)]
    assert gpurun.invoke(module, "go", 6, functions=functions, device=DEVICE) == (-1, ord("r"))
    assert gpurun.invoke(module, "go", [6, 1, 6], functions=functions, device=DEVICE) == [
        (-1, ord("r")), (0, ord("d")), (1, ord("r"))]
    with pytest.raises(gpurun.Trap, match="a host function failed") as caught:
        gpurun.invoke(module, "go", 1 << 30, functions=functions, device=DEVICE)
    assert isinstance(caught.value.__cause__, IndexError)


CALLS = b"""(module
    (import "env" "call" (func $call (result i32)))
    (memory (export "memory") 1)
    (func (export "go") (result i32) (call $call))
    (func (export "answer") (result i32) (i32.const 42)))"""


def test_a_call_that_has_ended():
    kept = []
    functions = [gpurun.HostFunction("env", "call", [], ["i32"],
                                     lambda call: kept.append(call) or 1)]
    assert gpurun.invoke(CALLS, "go", functions=functions, device=DEVICE) == 1
    for use in (lambda: kept[0].read(0, 4), lambda: kept[0].write(0, b"four")):
        with pytest.raises(gpurun.Error, match="the call has ended"):
            use()
    assert kept[0].process == 0 and kept[0].memory_size == 65536


def test_host_functions_that_run_something():
    module = gpurun.Module(CALLS)
    here, other = gpurun.Device(DEVICE), gpurun.Device("cpu")
    unused = [gpurun.HostFunction("env", "call", [], ["i32"], lambda call: 0)]

    def nested(device):
        return [gpurun.HostFunction("env", "call", [], ["i32"], lambda call: gpurun.invoke(
            module, "answer", functions=unused, device=device))]

    with pytest.raises(gpurun.Trap) as caught:
        gpurun.invoke(module, "go", functions=nested(here), device=here)
    assert "cannot run something on it" in str(caught.value.__cause__)
    assert gpurun.invoke(module, "go", functions=nested(other), device=here) == 42


def test_map():
    inputs = [b"x" * (i % 70) + b"%d" % i for i in range(1000)]
    assert gpurun.map(COPY, inputs, device=DEVICE) == inputs
    assert gpurun.map(COPY, iter(inputs), device=DEVICE) == inputs
    assert gpurun.map(COPY, [], device=DEVICE) == []
    assert gpurun.map(COPY, ["ä", "ö"], device=DEVICE) == ["ä", "ö"]
    # Numbers go on from chunk to chunk.
    outputs = gpurun.map(ECHO, [b""] * 600, ["{}"], argv0="e", device=DEVICE)
    assert outputs == [b"e\0%d\0" % i for i in range(600)]


def test_map_errors():
    inputs = [b"fine"] * 300 + [b"!"] + [b"?"]
    with pytest.raises(gpurun.Trap) as caught:
        gpurun.map(COPY, inputs, device=DEVICE)
    assert caught.value.process == 300
    outputs = gpurun.map(COPY, inputs, device=DEVICE, errors="return")
    assert outputs[:300] == [b"fine"] * 300
    assert isinstance(outputs[300], gpurun.Trap) and isinstance(outputs[301], gpurun.ExitError)
    with pytest.raises(ValueError):
        gpurun.map(COPY, inputs, errors="ignore")


def test_map_progress(capsys):
    gpurun.map(COPY, [b"x"] * 3, device=DEVICE, progress=True)
    shown = capsys.readouterr()
    assert "3/3" in shown.err and shown.out == ""
    gpurun.map(COPY, [b"x"] * 3, device=DEVICE)
    assert capsys.readouterr().err == ""


def test_arrays():
    numpy = pytest.importorskip("numpy")
    rows = numpy.arange(12, dtype=numpy.float32).reshape(4, 3)
    outputs = gpurun.map(COPY, rows, device=DEVICE, dtype=numpy.float32)
    assert outputs.dtype == numpy.float32 and (outputs == rows).all()
    assert (gpurun.map(COPY, rows.T, device=DEVICE, dtype=numpy.float32) == rows.T).all()
    assert gpurun.map(COPY, rows, device=DEVICE)[1] == rows[1].tobytes()
    uneven = gpurun.map(COPY, [b"a", b"bc"], device=DEVICE, dtype=numpy.uint8)
    assert [list(row) for row in uneven] == [[97], [98, 99]]
    numbers = gpurun.invoke(FUNCTIONS, "add", numpy.arange(1000), 1, device=DEVICE)
    assert isinstance(numbers, numpy.ndarray) and (numbers == numpy.arange(1000) + 1).all()


def test_threads():
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(
        gpurun.invoke(FUNCTIONS, "add", i, i, device=DEVICE))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [2 * i for i in range(8)]


def test_interrupt():
    """Ctrl-C ends a run that would never end."""
    program = ("import gpurun; print('ready', flush=True); "
               f"gpurun.invoke({FUNCTIONS!r}, 'forever', device={DEVICE!r})")
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True,
                             env=dict(os.environ, PYTHONPATH=str(SOURCE / "python")))
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in error


def test_wheel(tmp_path):
    """It holds all that is needed, and says so as pip wants it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    made = subprocess.run([sys.executable, SOURCE / "python/build_backend.py", tmp_path],
                          stdout=subprocess.PIPE, check=True, text=True, env=environment)
    with zipfile.ZipFile(made.stdout.strip()) as wheel:
        wheel.extractall(tmp_path / "installed")
        names = set(wheel.namelist())
        info = next(name for name in names if name.endswith("/RECORD"))
        for line in wheel.read(info).decode().splitlines():
            name, digest, size = line.split(",")
            names.remove(name)
            if name != info:
                content = wheel.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
                assert (digest, int(size)) == ("sha256=" + found.rstrip("="), len(content))
    assert not names
    del environment["GPURUN_LIBRARY"]
    code = (f"import gpurun; print(gpurun.invoke({FUNCTIONS!r}, 'add', 40, 2, device='cpu'), "
            "gpurun.__file__)")
    output = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True,
                            text=True, env=dict(environment, PYTHONPATH=tmp_path / "installed"),
                            cwd=tmp_path).stdout
    assert output == f"42 {tmp_path}/installed/gpurun/__init__.py\n"


class Counter:
    """What scripts/test reads."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def pytest_runtest_logreport(self, report):
        if report.skipped:
            self.skipped += 1
            print(f"\nskipped: {report.nodeid.split('::')[-1]}: {report.longrepr[2]}")
        elif report.failed:
            self.failed += 1
        elif report.when == "call":
            self.passed += 1


if __name__ == "__main__":
    counter = Counter()
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *sys.argv[1:], __file__],
                plugins=[counter])
    print(f"{counter.passed} passed, {counter.failed} failed, {counter.skipped} skipped")
    sys.exit(counter.failed != 0)
