#!/usr/bin/env python3
"""Runs a module with threads in wasmtime, to see what another engine makes of it.

    wasmtime_threads.py [--dir HOST::GUEST] [--env K=V] [--argv0 NAME] [--resident] FILE [ARG...]

takes the options that programs_test.py gives to gpu-run, so that it can stand in for it:

    programs_test.py --gpu-run "build/venv/bin/python tests/programs/wasmtime_threads.py" sieve c_threads

Each thread is one of Python's with a store of its own. They share the memory but no descriptors,
so c_threads/files fails here. `scripts/find-wasmtime` puts wasmtime into build/venv.
"""
import argparse
import itertools
import os
import sys
import threading

import wasmtime

TRAP = 134


class SharedMemory(wasmtime.SharedMemory):
    """wasmtime 50 hands the address of its own pointer to C, which wants the pointer."""

    def _as_extern(self):
        union = wasmtime._ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return wasmtime._ffi.wasmtime_extern_t(wasmtime._ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


class Process:
    def __init__(self, options):
        self.options = options
        config = wasmtime.Config()
        config.wasm_threads = True
        config.shared_memory = True
        self.engine = wasmtime.Engine(config)
        self.module = wasmtime.Module.from_file(self.engine, options.file)
        self.memories = {(found.module, found.name): SharedMemory(self.engine, found.type)
                         for found in self.module.imports if isinstance(found.type, wasmtime.MemoryType)}
        self.numbers = itertools.count(1)

    def wasi(self):
        config = wasmtime.WasiConfig()
        config.argv = [self.options.argv0 or os.path.basename(self.options.file), *self.options.args]
        config.env = [tuple(item.split("=", 1)) for item in self.options.env]
        config.inherit_stdin()
        config.inherit_stdout()
        config.inherit_stderr()
        for item in self.options.dir:
            config.preopen_dir(*item.split("::", 1))
        return config

    def spawn(self, argument):
        number = next(self.numbers)
        threading.Thread(target=self.run, args=("wasi_thread_start", number, argument), daemon=True).start()
        return number

    def run(self, name, *arguments):
        """Ends the whole process unless the function of a thread returns."""
        try:
            store = wasmtime.Store(self.engine)
            store.set_wasi(self.wasi())
            linker = wasmtime.Linker(self.engine)
            linker.define_wasi()
            linker.define_func("wasi", "thread-spawn",
                               wasmtime.FuncType([wasmtime.ValType.i32()], [wasmtime.ValType.i32()]), self.spawn)
            for (module, field), memory in self.memories.items():
                linker.define(store, module, field, memory)
            linker.instantiate(store, self.module).exports(store)[name](store, *arguments)
        except wasmtime.ExitTrap as end:
            os._exit(end.code)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as why:
            print(why, file=sys.stderr, flush=True)
            os._exit(TRAP)
        if name == "_start":
            os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--argv0", default="")
    parser.add_argument("--resident", action="store_true", help="nothing: it is what gpu-run wants of such modules")
    parser.add_argument("file")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    Process(parser.parse_args()).run("_start")


if __name__ == "__main__":
    main()
