"""One run: a configuration, the call, and what came of it."""
import ctypes
import dataclasses
import os
import threading

from . import _library
from ._errors import Error, ExitError, Frame, Stopped, Timeout, Trap
from ._handles import open_device, open_module
from ._library import Value, library, text


@dataclasses.dataclass(frozen=True)
class HostFunction:
    """A function of Python that the guest imports: HostFunction("env", "twice", ["i32"], ["i32"],
    lambda call, x: 2 * x). `call` has `process`, `memory_size`, read(address, size) and
    write(address, bytes). An exception ends the process with a Trap, whose cause it is."""
    module: str
    name: str
    parameters: list
    results: list
    function: object


class Call:
    """A guest's call of a host function, while it lasts: then its memory can be used."""

    def __init__(self, handle):
        self._handle = handle
        self._lock = threading.Lock()  # another thread may use the call when it ends
        self.process = library.call_process(handle)
        self.memory_size = library.call_memory_size(handle)

    def read(self, address, size):
        if size > self.memory_size:
            raise IndexError("the range is not in the guest's memory")
        buffer = ctypes.create_string_buffer(size)
        self._use(library.call_read, address, buffer, size)
        return buffer.raw

    def write(self, address, content):
        content = bytes(content)
        self._use(library.call_write, address, content, len(content))

    def _use(self, function, address, content, size):
        with self._lock:
            if self._handle is None:
                raise Error("the call has ended: the guest's memory is there while it lasts")
            if not function(self._handle, address, content, size):
                raise IndexError("the range is not in the guest's memory")

    def _end(self):
        with self._lock:
            self._handle = None


@dataclasses.dataclass(frozen=True)
class Result:
    """How a process ended that neither trapped nor was stopped."""
    output: bytes
    error: bytes
    exit_code: int
    debug: list = dataclasses.field(default_factory=list)


def to_bytes(given):
    """Of standard input: bytes, text, or the bytes of an array."""
    if isinstance(given, str):
        return given.encode()
    if hasattr(given, "tobytes"):
        return given.tobytes()
    return bytes(given)


class Run:
    """A configuration, which can be run any number of times. Limits have the names of the
    command's options."""

    def __init__(self, *, args=(), env=None, dirs=None, read_only_dirs=None, argv0=None,
                 function=None, functions=(), stack=None, heap=None, memory=None, fuel=None,
                 timeout=None, seed=None, first_number=None):
        self.config = library.config_new()
        self.stop = library.stop_new()
        self.causes = {}      # process -> the exception of its host function
        self._callbacks = []  # ctypes wants them kept
        library.config_set_stop(self.config, self.stop)
        if function is not None:
            library.config_set_function(self.config, function.encode())
        for argument in args:
            self.add_argument(argument)
        if argv0 is not None:
            library.config_set_program_name(self.config, os.fsencode(argv0))
        for name, value in (env or {}).items():
            library.config_add_environment(self.config, os.fsencode(f"{name}={value}"))
        for given, is_writable in ((dirs, True), (read_only_dirs, False)):
            for guest, host in (given or {}).items():
                library.config_add_directory(self.config, os.fsencode(host), os.fsencode(guest),
                                             is_writable)
        for made in functions:
            self._add_function(made)
        for value, setter in ((stack, library.config_set_stack), (heap, library.config_set_heap),
                              (memory, library.config_set_memory),
                              (fuel, library.config_set_fuel),
                              (timeout, library.config_set_timeout),
                              (seed, library.config_set_seed),
                              (first_number, library.config_set_first_number)):
            if value is not None:
                setter(self.config, value)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        library.config_delete(self.config)
        library.stop_delete(self.stop)

    def _add_function(self, made):
        count = len(made.results)

        def call(_, handle, arguments, results):
            given = [arguments[i].python() for i in range(len(made.parameters))]
            made_call = Call(handle)
            try:
                answer = made.function(made_call, *given)
                for i, value in enumerate([answer] if count == 1 else answer or ()):
                    results[i].assign(value)
                return True
            except Exception as problem:  # whatever it is, it must not pass through C
                self.causes[made_call.process] = problem
                return False
            finally:
                made_call._end()

        def types(names):
            return (ctypes.c_int * len(names))(*(_library.TYPES[name] for name in names))

        self._callbacks.append(_library.HostFunction(call))
        library.config_add_function(self.config, made.module.encode(), made.name.encode(),
                                    types(made.parameters), len(made.parameters),
                                    types(made.results), count, self._callbacks[-1], None, None)

    def add_argument(self, argument):
        library.config_add_argument(self.config, os.fsencode(argument))

    def set_input(self, given):
        given = to_bytes(given)
        library.config_set_input(self.config, given, len(given))

    def add_process(self, arguments=(), given=None):
        """One process of many; `given` is its standard input."""
        texts = [os.fsencode(argument) for argument in arguments]
        content = None if given is None else to_bytes(given)
        library.config_add_process(self.config, (ctypes.c_char_p * len(texts))(*texts), len(texts),
                                   content, 0 if content is None else len(content))

    def start(self, module, device):
        """Runs all processes to their end. Ctrl-C stops them."""
        device, module = open_device(device), open_module(module)
        made, failures = [], []

        def work():
            try:
                made.append(_library.make(library.run, device.handle, module.handle, self.config))
            except Error as problem:
                failures.append(problem)

        # Python sees a signal only between two instructions of its main thread, so that must not
        # wait inside the library. Others do: the library knows a host function by its thread.
        if threading.current_thread() is not threading.main_thread():
            work()
        else:
            worker = threading.Thread(target=work)
            worker.start()
            try:
                while worker.is_alive():
                    worker.join(0.1)
            except BaseException:
                library.stop_request(self.stop)
                worker.join()
                if made:
                    library.result_delete(made[0])
                raise
        if failures:
            raise failures[0]
        return Ending(made[0], self.causes)


class Ending:
    """How the processes of a run ended."""

    def __init__(self, handle, causes):
        self.handle = handle
        self.causes = causes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        library.result_delete(self.handle)

    def stream(self, process, number):
        size = ctypes.c_size_t()
        at = library.result_output(self.handle, process, number, ctypes.byref(size))
        return ctypes.string_at(at, size.value)

    def frames(self, process):
        return [Frame(text(library.result_frame_function(self.handle, process, i)),
                      library.result_frame_offset(self.handle, process, i),
                      text(library.result_frame_source(self.handle, process, i)))
                for i in range(library.result_frame_count(self.handle, process))]

    def values(self, process):
        return tuple(library.result_value(self.handle, process, i).python()
                     for i in range(library.result_value_count(self.handle, process)))

    def problem(self, process, must_exit_with_0=True):
        """The exception for a process that did not end well, or None."""
        ending = library.result_ending(self.handle, process)
        code = library.result_exit_code(self.handle, process)
        if ending == _library.RETURNED or (
                ending == _library.EXITED and (code == 0 or not must_exit_with_0)):
            return None
        message = text(library.result_message(self.handle, process))
        rest = {"process": process, "output": self.stream(process, 1),
                "error": self.stream(process, 2)}
        if ending == _library.EXITED:
            return ExitError(message, code, **rest)
        if ending == _library.TIMED_OUT:
            return Timeout(message, **rest)
        if ending == _library.STOPPED:
            return Stopped(message, **rest)
        trap = Trap(message, self.frames(process), **rest)
        trap.__cause__ = self.causes.get(process)
        return trap

    def check_files(self):
        problem = library.result_file_problem(self.handle)
        if problem:
            raise Error(text(problem))

    def debug(self):
        return [text(library.result_debug(self.handle, i))
                for i in range(library.result_debug_count(self.handle))]


def run(module, args=(), *, input=b"", device="auto", check=True, **options):
    """Runs a program in one process, and returns what it wrote and its exit code.

    `args` are its arguments, `input` its standard input. `dirs` and `read_only_dirs` map names for
    the guest to directories: {"/": "data"}; changes in `dirs` are written back. Other options:
    env={}, argv0, functions=[HostFunction(...)], and limits: stack (slots of 4 bytes), heap
    (words), memory (bytes), fuel (instructions), timeout (seconds), seed.

    A trap is a Trap, time that is up a Timeout, and an exit code other than 0 an ExitError unless
    check=False.
    """
    with Run(args=args, **options) as configured:
        configured.set_input(input)
        with configured.start(module, device) as ending:
            problem = ending.problem(0, check)
            if problem:
                raise problem
            ending.check_files()
            return Result(ending.stream(0, 1), ending.stream(0, 2),
                          library.result_exit_code(ending.handle, 0), ending.debug())
