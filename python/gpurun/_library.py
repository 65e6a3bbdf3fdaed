"""The C functions of gpurun.h, by ctypes. Nothing here interprets what they say."""
import ctypes
import os
import pathlib

from ._errors import Error

RETURNED, EXITED, TRAPPED, EXCEPTION, NO_FUEL, TIMED_OUT, STOPPED, BLOCKED, CLOSED = range(9)
I32, I64, F32, F64, V128, REFERENCE = range(1, 7)
TYPES = {"i32": I32, "i64": I64, "f32": F32, "f64": F64, "v128": V128}


class _Union(ctypes.Union):
    _fields_ = [("i32", ctypes.c_int32), ("i64", ctypes.c_int64), ("f32", ctypes.c_float),
                ("f64", ctypes.c_double), ("v128", ctypes.c_uint8 * 16)]


class Value(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("of", _Union)]

    def python(self):
        """An int, a float, 16 bytes; of a reference whether it is not null."""
        if self.type == REFERENCE:
            return self.of.i32 != 0
        if self.type == V128:
            return bytes(self.of.v128)
        return getattr(self.of, {I32: "i32", I64: "i64", F32: "f32", F64: "f64"}[self.type])

    def assign(self, value):
        """Keeps the type. Integers wrap as they do in wasm."""
        if self.type == V128:
            self.of.v128[:] = value
        elif self.type in (F32, F64):
            setattr(self.of, "f32" if self.type == F32 else "f64", float(value))
        else:
            setattr(self.of, "i32" if self.type == I32 else "i64", int(value))


HostFunction = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p,
                                ctypes.POINTER(Value), ctypes.POINTER(Value))

_handle, _text, _size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
_u32, _u64, _double, _bool, _int = (ctypes.c_uint32, ctypes.c_uint64, ctypes.c_double,
                                    ctypes.c_bool, ctypes.c_int)
_out = ctypes.POINTER(ctypes.c_void_p)
_out_size = ctypes.POINTER(ctypes.c_size_t)
_texts = ctypes.POINTER(ctypes.c_char_p)
_types = ctypes.POINTER(ctypes.c_int)
# What a function returns, then what it takes. Errors are handles.
_FUNCTIONS = {
    "version": (_text,),
    "error_message": (_text, _handle),
    "error_delete": (None, _handle),
    "device_open": (_handle, _text, _out),
    "device_delete": (None, _handle),
    "device_id": (_text, _handle),
    "device_name": (_text, _handle),
    "devices_list": (_handle, _out),
    "devices_delete": (None, _handle),
    "devices_count": (_size, _handle),
    "devices_id": (_text, _handle, _size),
    "devices_name": (_text, _handle, _size),
    "devices_memory": (_u64, _handle, _size),
    "module_load_file": (_handle, _text, _out),
    "module_allow_precompiled": (None, _handle),
    "module_load": (_handle, _text, _size, _text, _out),
    "module_delete": (None, _handle),
    "call_process": (_u32, _handle),
    "call_memory_size": (_u64, _handle),
    "call_read": (_bool, _handle, _u64, ctypes.c_void_p, _size),
    "call_write": (_bool, _handle, _u64, _text, _size),
    "stop_new": (_handle,),
    "stop_delete": (None, _handle),
    "stop_request": (None, _handle),
    "config_new": (_handle,),
    "config_delete": (None, _handle),
    "config_set_function": (None, _handle, _text),
    "config_add_argument": (None, _handle, _text),
    "config_set_program_name": (None, _handle, _text),
    "config_add_environment": (None, _handle, _text),
    "config_add_directory": (None, _handle, _text, _text, _bool),
    "config_add_function": (None, _handle, _text, _text, _types, _size, _types, _size,
                            HostFunction, ctypes.c_void_p, ctypes.c_void_p),
    "config_set_input": (None, _handle, _text, _size),
    "config_add_process": (None, _handle, _texts, _size, _text, _size),
    "config_set_first_number": (None, _handle, _u32),
    "config_set_stack": (None, _handle, _u32),
    "config_set_heap": (None, _handle, _u32),
    "config_set_memory": (None, _handle, _u64),
    "config_set_fuel": (None, _handle, _u64),
    "config_set_timeout": (None, _handle, _double),
    "config_set_seed": (None, _handle, _u64),
    "config_set_stop": (None, _handle, _handle),
    "run": (_handle, _handle, _handle, _handle, _out),
    "result_delete": (None, _handle),
    "result_processes": (_u32, _handle),
    "result_seconds": (_double, _handle),
    "result_ending": (_int, _handle, _u32),
    "result_exit_code": (_u32, _handle, _u32),
    "result_message": (_text, _handle, _u32),
    "result_frame_count": (_size, _handle, _u32),
    "result_frame_function": (_text, _handle, _u32, _size),
    "result_frame_offset": (_u64, _handle, _u32, _size),
    "result_frame_source": (_text, _handle, _u32, _size),
    "result_value_count": (_size, _handle, _u32),
    "result_value": (Value, _handle, _u32, _size),
    "result_output": (ctypes.c_void_p, _handle, _u32, _int, _out_size),
    "result_file_problem": (_text, _handle),
    "result_debug_count": (_size, _handle),
    "result_debug": (_text, _handle, _size),
}


def _open():
    """The library in the wheel; $GPURUN_LIBRARY; or one that is installed."""
    beside = pathlib.Path(__file__).with_name("libgpurun.so.0")
    name = os.environ.get("GPURUN_LIBRARY") or (str(beside) if beside.exists() else beside.name)
    try:
        return ctypes.CDLL(name)
    except OSError as problem:
        raise ImportError(f"libgpurun.so.0 cannot be loaded: {problem}; install the wheel, the "
                          "gpu-run package, or set GPURUN_LIBRARY to the file") from problem


class _Library:
    """library.run is gpurun_run."""

    def __init__(self):
        opened = _open()
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(opened, "gpurun_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)


library = _Library()


def check(error):
    """Raises what a function returned as an error."""
    if error:
        message = library.error_message(error).decode()
        library.error_delete(error)
        raise Error(message)


def make(function, *arguments):
    """The handle that a function writes to its last argument."""
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    return handle


def text(given):
    return (given or b"").decode(errors="replace")
