#!/usr/bin/env python3
"""Reads orders and scopes of shared accesses from PTX.

1. accessors.cpp has a function for each accessor of platform_nvptx.h: each has to be the instructions that EXPECTED
   says, and every instruction of the header with an order has to be among them. The explorer of tests/interleave has
   to take the accessors for the same.
2. With any order or scope of the header weakened, 1 has to fail.
3. In the kernels nothing with an order comes from elsewhere than the accessors, but what EXCEPTIONS lists.
4. What the mailbox warp and the host share are accesses of the system's scope.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

source = pathlib.Path(os.environ["GPURUN_SOURCE"])
build = pathlib.Path(os.environ["GPURUN_BUILD"])
here = source / "tests/ptx"
header = source / "src/runtime/platform/platform_nvptx.h"

# Of every function of accessors.cpp, in order. `N` stands for 32 and for 64.
SC = "fence.sc.gpu"
EXPECTED = {
    "load_relaxed_N": ["ld.relaxed.gpu.uN"],
    "load_stale_32": ["ld.relaxed.gpu.u32"],
    "load_shared_N": ["ld.acquire.gpu.uN"],
    "load_mapped_N": ["ld.acquire.sys.uN"],
    "store_relaxed_N": ["st.relaxed.gpu.uN"],
    "store_released_N": ["st.relaxed.gpu.uN"],  # behind release_fence or atomic_fence
    "store_shared_N": ["st.release.gpu.uN"],
    "store_mapped_N": ["st.release.sys.uN"],
    "compare_exchange_N": ["atom.acq_rel.gpu.cas.bN"],
    "compare_exchange_acquire_N": ["atom.acquire.gpu.cas.bN"],
    "compare_exchange_release_N": ["atom.release.gpu.cas.bN"],
    "compare_exchange_relaxed_N": ["atom.relaxed.gpu.cas.bN"],
    "exchange_32": ["atom.acq_rel.gpu.exch.b32"],
    "fetch_add_32": ["atom.relaxed.gpu.add.u32"],
    "fetch_add_64": ["atom.relaxed.gpu.global.add.u64"],
    "atom_add_32": ["atom.acq_rel.gpu.global.add.u32"],
    "atom_add_64": ["red.relaxed.gpu.global.add.u64"],
    "atom_max_64": ["red.relaxed.gpu.global.max.u64"],
    "atomic_fence": [SC],
    "release_fence": ["fence.acq_rel.gpu"],
    "acquire_fence": ["fence.acq_rel.gpu"],
    "ring_bell": ["ld.acquire.sys.u32", "st.release.sys.u32"],
    "atomic_load_8": [SC, "ld.volatile.b8", SC],
    "atomic_load_N": [SC, "ld.volatile.bN", SC],
    "atomic_store_N": [SC, "st.volatile.bN", SC],
    "atomic_rmw_N": [SC, "ld.volatile.bN", "atom.acq_rel.gpu.cas.bN", SC],
    "atomic_cmpxchg_32": [SC, "ld.volatile.b32", "atom.acq_rel.gpu.cas.b32", SC],
}
# A check that failed: the record is the host's memory, and the kernel ends behind it.
CHECK = ["atom.acq_rel.gpu.global.add.u32", "st.volatile", "fence.sc.sys", "st.volatile", "fence.sc.sys"]

# What is in kernels beside the accessors: a pattern, where, and why it may be.
EXCEPTIONS = [
    (r"(ld|st)\.volatile\.shared\.", r"solo", "one lane tells the others of its warp, who meet at bar.warp.sync"),
    (r"st\.volatile\.b(8|32)$|fence\.sc\.sys$", r"check_failed", "CHECK, above"),
]

OPCODE = re.compile(r"^\s*(?:@!?%p\d+\s+)?((?:fence|membar|atom|red)\.[\w.:]+|membar\b|"
                    r"(?:ld|st)\.(?:[\w:]+\.)*?(?:acquire|release|relaxed|volatile|mmio)[\w.:]*)")
failures = []


def fail(text):
    failures.append(text)
    print("failed:", text)


def functions(ptx):
    """Name and instructions with an order of each function, with whether they are in inline assembly."""
    name, found, is_inline = None, [], False
    for line in ptx.splitlines():
        if begin := re.search(r"-- Begin function (\S+)", line):
            name, found = begin[1], []
        elif "-- End function" in line:
            yield name, found
            name = None
        elif "begin inline asm" in line:
            is_inline = True
        elif "end inline asm" in line:
            is_inline = False
        elif name and not line.lstrip().startswith("//") and (opcode := OPCODE.match(line)):
            found.append((opcode[1], is_inline))


compiler = os.environ.get("GPURUN_CXX", "clang++-22")


def compile_accessors(first_folder=None):
    """As cmake/runtime_kernels.cmake compiles the resident kernel."""
    made = subprocess.run(
        [compiler, "--target=nvptx64-nvidia-cuda", "--cuda-feature=+ptx70", "-nogpulib", "-ffreestanding",
         "-fno-exceptions", "-fno-rtti", "-std=gnu++20", "-O3", "-march=sm_75", "-DGPURUN_LOCAL_STACK=1",
         "-DGPURUN_RESIDENT=1", *([f"-I{first_folder}"] if first_folder else []), f"-I{source / 'src'}", "-S",
         here / "accessors.cpp", "-o", "-"], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(made.stderr)
    return made.stdout


def expected():
    for name, opcodes in EXPECTED.items():
        for width in ["32", "64"] if "_N" in name else [""]:
            yield name.replace("_N", "_" + width), [re.sub(r"N$", width, o) for o in opcodes]


def wrong_accessors(ptx):
    made = {name: [opcode for opcode, _ in found] for name, found in functions(ptx)}
    for name, opcodes in expected():
        if made.get("test_" + name) != opcodes:
            yield f"{name} is {made.get('test_' + name)}, not {opcodes}"
    check = next((found for name, found in made.items() if "check_failed" in name and "test_" not in name), [])
    short = []
    for opcode in (re.sub(r"(volatile).*", r"\1", o) for o in check):
        if short[-1:] != [opcode]:
            short.append(opcode)
    if short != CHECK:
        yield f"check_failed is {short}, not {CHECK}"


# ---- 1

print("accessors")
for text in wrong_accessors(compile_accessors()):
    fail(text)
text_of_header = header.read_text()
named = set(re.findall(r'"((?:ld|st|atom|red|fence|membar)\.[\w.]+)', text_of_header))
orders = r"acquire|release|relaxed|acq_rel|sc"
known = {opcode for _, opcodes in expected() for opcode in opcodes} | set(CHECK)
for opcode in named:
    if re.search(rf"\.({orders})\.", opcode) and opcode not in known:
        fail(f"platform_nvptx.h has {opcode}, which no accessor here is expected to be")
for path in sorted((source / "src/runtime").rglob("*.*")):
    if path == header:
        continue
    for opcode in re.findall(r'asm[^;]*"((?:ld|st)\.(?:acquire|release|relaxed|volatile)|atom|red|fence|membar)\.',
                             path.read_text()):
        fail(f"{path.name} has {opcode} of its own: that is for platform_nvptx.h")

# The explorer of tests/interleave takes them for the same.
modelled = {}
text_of_model = (source / "tests/interleave/platform_interleave.h").read_text()
for name, order, scope in re.findall(r'\{"(\w+)"(?:,\s*Order::(\w+))?(?:,\s*Scope::(\w+))?', text_of_model) + [
        (name, order, "") for name, order in re.findall(r"^GPURUN_COMPARE_EXCHANGE\((\w+), Order::(\w+)\)",
                                                       text_of_model, re.M)]:
    modelled[name] = f".{order or 'relaxed'}.{'sys' if scope == 'system' else 'gpu'}"
for name, order in re.findall(r'test::fence\("(\w+)", Fence::(\w+)', text_of_model):
    modelled[name] = f".{'sc' if order == 'seq_cst' else order}.gpu"
for name, opcodes in expected():
    accessor = re.sub(r"_(32|64)$", "", name)
    if accessor.startswith("atom_") or (accessor.startswith("atomic_") and accessor != "atomic_fence"):
        continue  # not of the machine, or guests' own
    if accessor not in modelled or modelled[accessor] not in opcodes[-1]:
        fail(f"platform_interleave.h has {accessor} as {modelled.get(accessor)}, here it is {opcodes[-1]}")

# ---- 2

WEAKER = {".acquire.": ".relaxed.", ".release.": ".relaxed.", ".acq_rel.": ".relaxed.", ".sc.": ".acq_rel.",
          ".sys.": ".gpu.", ".gpu.": ".cta.", ".sys;": ".gpu;", ".gpu;": ".cta;"}


def weakened():
    """The header with one order or scope less, and what that is."""
    for place in re.finditer(r'"(atom\." order "[\w.]+|(?:ld|st|atom|red|fence)\.[\w.]+;?)', text_of_header):
        for stronger, weaker in WEAKER.items():
            if stronger not in place[1] or "fence.acq_rel" in place[1] and stronger == ".acq_rel.":
                continue
            changed = place[1].replace(stronger, weaker)
            yield f"{place[1]} as {changed}", text_of_header[:place.start(1)] + changed + text_of_header[place.end(1):]
    for place in re.finditer(r'^GPURUN_COMPARE_EXCHANGE\(\w+, "(acq_rel|acquire|release)"\)', text_of_header, re.M):
        yield f"{place[0]} relaxed", text_of_header[:place.start(1)] + "relaxed" + text_of_header[place.end(1):]
    for place in re.finditer(r'asm volatile\("fence\.[\w.]+;" ::: "memory"\);|\batomic_fence\(\);', text_of_header):
        yield f"no {place[0]}", text_of_header[:place.start()] + text_of_header[place.end():]


def is_seen(mutant):
    what, text = mutant
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "runtime/platform").mkdir(parents=True)
        (pathlib.Path(folder) / "runtime/platform/platform_nvptx.h").write_text(text)
        return what, any(wrong_accessors(compile_accessors(folder)))


mutants = list(weakened())
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for what, is_caught in pool.map(is_seen, mutants):
        if not is_caught:
            fail(f"nobody would see {what}")
print(f"{len(mutants)} orders and scopes weakened, each is seen" if not failures else "")

# ---- 3

allowed = {opcode for _, opcodes in expected() for opcode in opcodes}
kernels = sorted(build.glob("*.ptx"))
if not kernels:
    fail(f"there are no kernels in {build}")
system_scope = collections.Counter()
for kernel in kernels:
    count = collections.Counter()
    for name, found in functions(kernel.read_text()):
        before = None
        for opcode, is_inline in found:
            count[opcode] += 1
            excepted = any(re.search(pattern, opcode) and (re.search(where, name) or re.search(where, kernel.stem))
                           for pattern, where, _ in EXCEPTIONS)
            if opcode.endswith(("volatile.b8", "volatile.b16", "volatile.b32", "volatile.b64")) and not excepted:
                # A guest's atomic instruction, narrow ones included.
                if before != SC:
                    fail(f"{kernel.stem}: {name} has {opcode} without a fence before it")
            elif not excepted and not (is_inline and opcode in allowed):
                fail(f"{kernel.stem}: {name} has {opcode}{'' if is_inline else ', which is not an accessor'}")
            before = opcode
    for opcode, times in count.items():
        system_scope[kernel.stem] += times if ".sys." in opcode else 0
    print(f"{kernel.stem}: {sum(count.values())} instructions with an order, {len(count)} different ones")

# ---- 4

mailbox = "".join(re.sub(r"//.*", "", path.read_text()) for path in sorted((source / "src/runtime/mailbox").iterdir()))
shared = 0
for place in re.finditer(r"mailbox_\.(\w+)", mailbox):
    before = mailbox[:place.start()]
    if place[1] in ("in_ring", "out_ring"):
        continue  # bytes between the indices, which are published with them
    if re.search(r"(load_mapped|store_mapped|ring_bell)\(&$", before):
        shared += 1
    elif not re.search(r"u64\* to = &$", before):  # of which every word is stored by store_mapped
        fail(f"runtime/mailbox: mailbox_.{place[1]} is not accessed by load_mapped or store_mapped")
if not re.search(r"store_mapped\(to \+ i,", mailbox) or re.search(r"(?<!store_mapped\()\bto\[", mailbox):
    fail("runtime/mailbox: the statistics are not stored by store_mapped")
for kernel in kernels:
    if kernel.stem.startswith("resident") and system_scope[kernel.stem] < shared:
        fail(f"{kernel.stem}: {system_scope[kernel.stem]} accesses of the system's scope, but the source has {shared}")
print(f"{shared} accesses to what the host shares")
sys.exit(1 if failures else 0)
