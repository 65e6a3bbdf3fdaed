"""What can go wrong, as exceptions."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Frame:
    """Where a process stood: a function, an offset in the module, and "main.c:12:5" or ""."""
    function: str
    offset: int
    source: str = ""


class Error(Exception):
    """It could not be run at all; and what all exceptions of this package are."""


class ProcessError(Error):
    """A process did not end well. Has its number, and what it wrote until then."""

    def __init__(self, message, process=0, output=b"", error=b""):
        super().__init__(message)
        self.process = process
        self.output = output
        self.error = error


class Trap(ProcessError):
    """A process was ended by a fault of its own; `frames` says where, the innermost first."""

    def __init__(self, message, frames=(), **rest):
        place = f" in {frames[0].function} at 0x{frames[0].offset:x}" if frames else ""
        super().__init__(message + place, **rest)
        self.frames = list(frames)


class ExitError(ProcessError):
    """A process exited with another code than 0."""

    def __init__(self, message, exit_code, **rest):
        super().__init__(message, **rest)
        self.exit_code = exit_code


class Timeout(ProcessError):
    """Time was up before the process ended."""


class Stopped(ProcessError):
    """The process was stopped before it ended."""
