"""Makes the wheel: the package and the library, libgpurun.so, in a zip with metadata. This is all
that pip asks of a build (PEP 517); `make wheel` calls it without pip.

The library is $GPURUN_LIBRARY, or that of the release build.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
GLIBC = "2_36"  # what the library is built on, and so the least it needs


def _version():
    header = (HERE.parent / "include/gpurun/gpurun.h").read_text()
    return ".".join(re.findall(r"#define GPURUN_VERSION_\w+ (\d+)", header))


def _library():
    given = os.environ.get("GPURUN_LIBRARY")
    path = pathlib.Path(given) if given else HERE.parent / "build/release/libgpurun.so"
    if not path.is_file():
        sys.exit(f"{path} is not there; `make wheel` builds it, or set GPURUN_LIBRARY")
    return path.read_bytes()


def _project(key):
    """A text of pyproject.toml; Python 3.9 has no reader for it."""
    text = (HERE / "pyproject.toml").read_text()
    return re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE)[1]


def _metadata(version):
    return (f"Metadata-Version: 2.1\nName: gpurun\nVersion: {version}\n"
            f"Summary: {_project('description')}\nLicense: Apache-2.0\n"
            f"Requires-Python: {_project('requires-python')}\n"
            "Description-Content-Type: text/markdown\n\n" + (HERE / "README.md").read_text())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    tag = f"py3-none-manylinux_{GLIBC}_{platform.machine()}"
    info = f"gpurun-{version}.dist-info"
    files = {f"gpurun/{path.name}": path.read_bytes() for path in sorted(HERE.glob("gpurun/*.py"))}
    files["gpurun/libgpurun.so.0"] = _library()
    files[f"{info}/METADATA"] = _metadata(version).encode()
    files[f"{info}/LICENSE"] = (HERE.parent / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: gpurun\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    wheel = f"gpurun-{version}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes every time
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            out.writestr(entry, content)
    return wheel


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(folder / build_wheel(folder))
