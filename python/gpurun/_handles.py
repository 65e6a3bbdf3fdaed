"""Devices and modules."""
import os
import threading
import weakref

from ._library import library, make, text


def version():
    """Of the library: "0.1.0"."""
    return text(library.version())


def devices():
    """The names of the devices that are here, each with what it is called."""
    handle = make(library.devices_list)
    try:
        return {text(library.devices_id(handle, i)): text(library.devices_name(handle, i))
                for i in range(library.devices_count(handle))}
    finally:
        library.devices_delete(handle)


class Device:
    """Where processes run: "cpu", "cuda", "cuda:1", or "auto": a GPU if there is one."""

    def __init__(self, name="auto"):
        self.handle = make(library.device_open, os.fsencode(name))
        weakref.finalize(self, library.device_delete, self.handle)

    @property
    def id(self):
        return text(library.device_id(self.handle))

    @property
    def name(self):
        return text(library.device_name(self.handle))

    def __repr__(self):
        return f"<gpurun.Device {self.id}: {self.name}>"


class Module:
    """A module from a path, or from bytes in the binary or the text format.

    allow_precompiled lets the machine code of a .gpu file run, which can do whatever this program can;
    else the module in it is run like any other.
    """

    def __init__(self, source, *, allow_precompiled=False):
        if isinstance(source, (bytes, bytearray, memoryview)):
            source = bytes(source)
            self.handle = make(library.module_load, source, len(source), None)
        else:
            self.handle = make(library.module_load_file, os.fsencode(source))
        weakref.finalize(self, library.module_delete, self.handle)
        if allow_precompiled:
            library.module_allow_precompiled(self.handle)


_opened = {}
_opening = threading.Lock()


def open_device(device):
    """A Device as it is; a name is opened once."""
    if isinstance(device, Device):
        return device
    with _opening:
        if device not in _opened:
            _opened[device] = Device(device)
        return _opened[device]


def open_module(module):
    return module if isinstance(module, Module) else Module(module)
