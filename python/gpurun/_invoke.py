"""Calls of exported functions."""
from ._run import Run


def _argument(value):
    """A number as the text format has it, with all of its bits."""
    if isinstance(value, (bytes, bytearray)) and len(value) == 16:
        return "0x" + bytes(reversed(value)).hex()
    if isinstance(value, bool) or value is None:
        return {True: "1", False: "0", None: "null"}[value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float):
        raise TypeError(f"an argument must be a number or 16 bytes, not {type(value).__name__}")
    return repr(value)


def _is_many(value):
    """A list or an array, whose elements are for a process each."""
    return isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0) == 1


def _one(values):
    """What a function returned: nothing, a value, or a tuple of them."""
    return values if len(values) > 1 else (values[0] if values else None)


def invoke(module, function, *arguments, device="auto", **options):
    """Calls an exported function with numbers, and returns its result; a tuple if it has several.

    Where an argument is a list or an array of one dimension, there is a process for each element,
    and the result is a list, or an array if one of the arguments was: invoke("fac.wat", "fac",
    range(20)). Single numbers are then for all processes. Options are those of run().
    """
    many = [value for value in arguments if _is_many(value)]
    with Run(function=function, **options) as configured:
        if not many:
            for value in arguments:
                configured.add_argument(_argument(value))
            with configured.start(module, device) as ending:
                return _result(ending, 0)
        lengths = {len(value) for value in many}
        if len(lengths) > 1:
            raise ValueError(f"arguments have different lengths: {sorted(lengths)}")
        count = lengths.pop()
        if count == 0:
            return []
        for i in range(count):
            configured.add_process([_argument(value[i] if _is_many(value) else value)
                                    for value in arguments])
        with configured.start(module, device) as ending:
            results = [_result(ending, i) for i in range(count)]
    if any(hasattr(value, "ndim") for value in many):
        import numpy
        return numpy.array(results)
    return results


def _result(ending, process):
    problem = ending.problem(process)
    if problem:
        raise problem
    return _one(ending.values(process))
