"""A progress bar on standard error."""
import sys
import time


class Progress:
    """Shows how many are done, the rate, and the time left where the total is known. None: only on
    a terminal."""

    def __init__(self, total, is_shown=None):
        self._total = total
        self._is_shown = sys.stderr.isatty() if is_shown is None else is_shown
        self._begin = time.monotonic()

    def show(self, done):
        if not self._is_shown:
            return
        seconds = time.monotonic() - self._begin
        rate = done / seconds if seconds > 0 else 0
        line = f"{done} done, {rate:.0f}/s"
        if self._total:
            width = 30
            filled = width * done // self._total
            left = (self._total - done) / rate if rate else 0
            line = (f"[{'#' * filled}{'.' * (width - filled)}] {done}/{self._total}, "
                    f"{rate:.0f}/s, {left:.0f} s left")
        sys.stderr.write(f"\r{line}\x1b[K")
        sys.stderr.flush()

    def end(self):
        if self._is_shown:
            sys.stderr.write("\n")
            sys.stderr.flush()
