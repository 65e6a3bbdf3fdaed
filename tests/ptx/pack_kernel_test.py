#!/usr/bin/env python3
"""Packs a small kernel as a release does with those of the runtime: the file says what it was made from and for which
chip, comes out the same every time, and is made again only if the PTX changed."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

KERNEL = """.version 7.0
.target sm_75
.address_size 64
.visible .entry copy(.param .u64 to) {
    .reg .b64 %address;
    .reg .b32 %lane;
    ld.param.u64 %address, [to];
    mov.u32 %lane, %tid.x;
    st.global.u32 [%address], %lane;
    ret;
}
"""
CHIPS = [75, 80, 90, 100, 120]

source, build = pathlib.Path(os.environ["GPURUN_SOURCE"]), pathlib.Path(os.environ["GPURUN_BUILD"])
found = subprocess.run([source / "scripts/find-nvjitlink", source / "build/venv"], capture_output=True, text=True)
if found.returncode != 0:
    print("skipped: nvidia-nvjitlink-cu12 is not here and could not be installed")
    sys.exit(77)
library = found.stdout.strip()


def pack(*words):
    return subprocess.run([build / "pack_kernel", *map(str, words)], capture_output=True, text=True)


def header(path):
    """PackedHeader of src/device/cuda/runtime_kernels.h."""
    names = ("ptx_hash", "size", "chip", "registers", "toolkit", "padding")
    return dict(zip(names, struct.unpack_from("<QQIIII", path.read_bytes())))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ptx, text = folder / "copy.ptx", folder / "copy.packed"
    ptx.write_text(KERNEL)
    assert pack(ptx, text).returncode == 0
    assert header(text)["size"] == len(KERNEL) and header(text)["chip"] == 0
    for chip in CHIPS:
        files = [folder / f"{chip}-{number}.packed" for number in range(2)]
        for file in files:
            done = pack(ptx, file, library, chip, 64)
            assert done.returncode == 0, done.stderr
        there = header(files[0])
        assert there["ptx_hash"] == header(text)["ptx_hash"], there
        assert (there["chip"], there["registers"], there["toolkit"]) == (chip, 64, 12090), there
        assert files[0].read_bytes() == files[1].read_bytes(), f"{chip}: not the same bytes twice"

    # The same PTX again: the file is as new as it has to be, but nothing was written.
    file = folder / "90-0.packed"
    for _ in range(2):
        before = file.stat()
        os.utime(file, (0, 0))
        assert pack(ptx, file, library, 90, 64).returncode == 0
        assert file.stat().st_mtime > 0 and file.stat().st_ino == before.st_ino
    # Other registers, and another text.
    for registers, changed in ((32, KERNEL), (32, KERNEL.replace("%tid.x", "%tid.y"))):
        ptx.write_text(changed)
        before = file.read_bytes()
        assert pack(ptx, file, library, 90, registers).returncode == 0
        assert header(file)["registers"] == registers and file.read_bytes() != before

    # What cannot be assembled leaves nothing.
    ptx.write_text(KERNEL.replace("mov.u32", "moof.u32"))
    done = pack(ptx, folder / "wrong.packed", library, 90, 64)
    assert done.returncode == 1 and "moof" in done.stderr, done.stderr
    assert not (folder / "wrong.packed").exists()
    assert pack(ptx, folder / "wrong.packed", "/nowhere.so", 90, 64).returncode == 1
    assert pack(folder / "nowhere.ptx", folder / "wrong.packed").returncode == 1
print("a small kernel packed for", len(CHIPS), "chips")
