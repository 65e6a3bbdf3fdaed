"""WebAssembly programs and functions on a GPU or the CPU, one process or many thousands.

    import gpurun

    gpurun.run("hello.wasm", ["world"]).output            # b"Hello, world!\\n"
    gpurun.invoke("fac.wat", "fac", 20)                   # 2432902008176640000
    gpurun.map("wc.wasm", [b"one two", b"three"])         # a process for each input

A module is a path, bytes (binary or text format), or a Module, which is worth keeping where it is
used more than once.
"""
from ._errors import Error, ExitError, Frame, Stopped, Timeout, Trap
from ._handles import Device, Module, devices, version
from ._invoke import invoke
from ._map import map
from ._run import HostFunction, Result, run

__version__ = version()
__all__ = ["Device", "Error", "ExitError", "Frame", "HostFunction", "Module", "Result", "Stopped",
           "Timeout", "Trap", "devices", "invoke", "map", "run", "version"]
