"""The jobs of the suite: what each is called in tables, and what the hand compile has to be told of it."""
import collections
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent

# `arena`: bytes of heap that a thread of the hand compile needs, where nothing is given back before the instance ends.
# `stack`: bytes of stack, of jobs that recurse, which the driver cannot compute.
Job = collections.namedtuple("Job", "name title arena stack")

JOBS = [Job(*row) for row in (
    ("mandelbrot", "mandelbrot f64", 0, 0),
    ("sha256", "sha256 of 16 KiB", 16416, 0),
    ("quicksort", "quicksort 4096", 0, 20480),
    ("hashmap", "hash map", 66560, 0),
    ("matmul", "f32 matrices 64³", 49184, 0),
    ("queens", "n queens", 0, 4096),
    ("json", "JSON parsing", 16384, 8192),
    ("base64", "base64", 0, 0),
    ("lz", "LZ compress + expand", 12416, 0),
    ("format", "number formatting", 0, 0),
    ("regex", "backtracking regex", 0, 8192),
    ("vm", "bytecode VM", 0, 0),
    ("pbkdf2", "PBKDF2", 0, 0),
    ("blur", "image blur", 0, 0),
    ("fib", "recursive fib", 0, 4096),
    ("nbody", "n-body f64", 0, 0),
    ("fft", "FFT of 256, f64", 0, 0),
    ("lu", "LU of 24 x 24, f64", 0, 0),
    ("levenshtein", "edit distance", 0, 0),
    ("avl", "balanced tree", 19456, 4096),
    ("life", "game of life", 0, 0),
    ("crc", "CRC-32 and Adler-32", 8224, 0),
    ("montecarlo", "Monte Carlo, PCG", 0, 0),
    ("dijkstra", "shortest ways", 12352, 0),
    ("words", "sorting words", 10240, 16384),
    ("bigint", "powers modulo 512 bits", 0, 0),
)]


def source(name):
    return FOLDER / f"{name}.c"
