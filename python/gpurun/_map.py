"""A process for each input."""
import itertools
import time

from ._handles import open_device, open_module
from ._progress import Progress
from ._run import Run

_FIRST_CHUNK, _LAST_CHUNK = 256, 1 << 18  # processes at once
_CHUNK_BYTES = 256 << 20
_CHUNK_SECONDS = 0.5  # chunks grow until they take that long: progress shows, and it costs little


def _chunk(inputs, count):
    """The next inputs, as many as are wanted or as fill memory enough."""
    taken, size = [], 0
    for given in itertools.islice(inputs, count):
        taken.append(given)
        size += getattr(given, "nbytes", None) or len(given)
        if size >= _CHUNK_BYTES:
            break
    return taken


def _as_arrays(outputs, dtype):
    """A row an output; a list of arrays where their lengths differ."""
    import numpy
    if any(not isinstance(output, bytes) for output in outputs):
        return [numpy.frombuffer(output, dtype) if isinstance(output, bytes) else output
                for output in outputs]
    if len({len(output) for output in outputs}) == 1:
        return numpy.frombuffer(b"".join(outputs), dtype).reshape(len(outputs), -1)
    return [numpy.frombuffer(output, dtype) for output in outputs]


def map(module, inputs, args=(), *, device="auto", progress=None, errors="raise", dtype=None,
        **options):
    """Runs a program once for each input, which is its standard input, and returns what each wrote
    to standard output, in the order of the inputs.

    An input is bytes, text, or anything with bytes in it; of a NumPy array it is a row: array[i],
    its elements' bytes one after another as they lie in memory. Inputs may come from a generator.
    Outputs are bytes; text if the inputs are text; with dtype=, an array with a row for each
    (or a list of arrays, where lengths differ).

    `args` are the arguments of every process; {} in them is its number. With errors="raise" the
    first process that fails is an exception, which has its number as `process`; with
    errors="return" the exception takes the place of the output. progress=True or False instead of
    a bar on terminals alone. The rest of the options is that of run(); a timeout is for as many
    processes as run at once.
    """
    if errors not in ("raise", "return"):
        raise ValueError('errors must be "raise" or "return"')
    device, module = open_device(device), open_module(module)
    bar = Progress(len(inputs) if hasattr(inputs, "__len__") else None, progress)
    left = iter(inputs)
    outputs = []
    count, is_text = _FIRST_CHUNK, False
    try:
        while chunk := _chunk(left, count):
            is_text = is_text or isinstance(chunk[0], str)
            begin = time.monotonic()
            first = len(outputs)
            with Run(args=args, first_number=first, **options) as configured:
                for given in chunk:
                    configured.add_process((), given)
                with configured.start(module, device) as ending:
                    for i in range(len(chunk)):
                        problem = ending.problem(i)
                        if problem:
                            problem.process = first + i
                            if errors == "raise":
                                raise problem
                        outputs.append(problem or ending.stream(i, 1))
            bar.show(len(outputs))
            if time.monotonic() - begin < _CHUNK_SECONDS:
                count = min(2 * count, _LAST_CHUNK)
    finally:
        bar.end()
    if dtype is not None:
        return _as_arrays(outputs, dtype)
    if is_text:
        return [output.decode() if isinstance(output, bytes) else output for output in outputs]
    return outputs
