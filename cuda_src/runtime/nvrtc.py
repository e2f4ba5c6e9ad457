"""NVRTC, NVIDIA's compiler as a library: from kernel files to code for a GPU where no CUDA toolkit is installed.

It comes with a wheel (`pip install nvidia-cuda-nvrtc-cu12`), with PyTorch, which installs that wheel, and with the runtime
part of a CUDA toolkit.
"""

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

# as nvcc's: unmarked constexpr functions may be called on the GPU
OPTIONS = ("--std=c++17", "--device-as-default-execution-space")
# the only system header of the kernels, which NVRTC has not
HEADERS = {"cstdint": "\n".join(f"using {name}_t = {c_type};" for name, c_type in (
    ("int8", "signed char"), ("int16", "short"), ("int32", "int"), ("int64", "long long"), ("uint8", "unsigned char"),
    ("uint16", "unsigned short"), ("uint32", "unsigned"), ("uint64", "unsigned long long"), ("intptr", "decltype(sizeof 0)"),
    ("uintptr", "decltype(sizeof 0)")))}  # fmt: skip
_FILE = re.compile(r"(?:libnvrtc\.so\.|nvrtc64_)(\d\d)")  # its first number is the CUDA version
_FOLDERS = ("nvidia/*/lib", "nvidia/*/bin", "nvidia/*/bin/x86_64", "torch/lib")  # in a folder of packages
# (CUDA version, name by which the loader may find it)
_SYSTEM = ((13, "libnvrtc.so.13"), (12, "libnvrtc.so.12"), (13, "nvrtc64_130_0.dll"), (12, "nvrtc64_120_0.dll"))


class NvrtcError(Exception):
    """NVRTC refused a kernel file, or knows no architecture for the GPU."""


class Nvrtc:
    """The library in a file."""

    def __init__(self, path: str) -> None:
        """OSError, AttributeError: it cannot be loaded, or is older than CUDA 11.2."""
        for builtins in Path(path).parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))  # which the libraries of some wheels do not find
        self.path, self._library = path, ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        numbers = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", *map(ctypes.byref, numbers))
        self.version = f"{numbers[0].value}.{numbers[1].value}"
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        architectures = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", architectures)
        self.architectures = sorted(architectures)

    def _call(self, name: str, *arguments: object) -> None:
        if code := getattr(self._library, name)(*arguments):
            raise NvrtcError(f"{name}: {self._library.nvrtcGetErrorString(code).decode()}")

    def _read(self, what: str, program: ctypes.c_void_p) -> bytes:
        """The `what` of a program: Log, CUBIN, PTX."""
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size" if what != "Log" else "nvrtcGetProgramLogSize", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}" if what != "Log" else "nvrtcGetProgramLog", program, buffer)
        return buffer.raw

    def target(self, capability: tuple[int, int]) -> str:
        """The architecture to compile for: the GPU's own, or (PTX for the driver) the latest before it that is known."""
        wanted = 10 * capability[0] + capability[1]
        older = [architecture for architecture in self.architectures if architecture <= wanted]
        if not older:
            raise NvrtcError(f"NVRTC {self.version} does not know compute capability {capability[0]}.{capability[1]}")
        return f"sm_{wanted}" if older[-1] == wanted else f"compute_{older[-1]}"

    def compile(self, sources: Mapping[str, str], target: str, extra: tuple[str, ...] = ()) -> tuple[bytes, str]:
        """(code, messages) of the first of `sources`, which are texts by the names under which they include each other."""
        (name, text), *others = sources.items()
        headers = [*HEADERS.items(), *others]
        names, texts = ((ctypes.c_char_p * len(headers))(*[header[k].encode() for header in headers]) for k in (0, 1))
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), name.encode(), len(headers), texts, names)
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={target}", *extra)]
        try:
            refused = self._library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
            messages = self._read("Log", program).rstrip(b"\0").decode(errors="replace")
            if refused:
                raise NvrtcError(f"NVRTC {self.version} refused {name}:\n{messages.strip()[-4000:]}")
            return self._read("CUBIN" if target.startswith("sm_") else "PTX", program), messages
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))


def _candidates() -> Iterator[tuple[int, str]]:
    """(CUDA version, file or name for the loader) of all that are installed, of one version in order of preference."""
    packages = (Path(folder).glob(pattern) for folder in sys.path if folder for pattern in _FOLDERS)
    toolkits = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", sys.prefix)
    folders = (Path(toolkit) / folder for toolkit in toolkits if toolkit for folder in ("lib64", "lib", "bin", "Library/bin"))
    for folder in (*(folder for matching in packages for folder in sorted(matching)), *folders):
        for path in sorted(folder.glob("*nvrtc*")):
            if (match := _FILE.match(path.name)) and ".alt." not in path.name and path.suffix != ".lib":
                yield int(match[1]), str(path)
    yield from _SYSTEM


@cache
def find(latest: int | None) -> Nvrtc | None:
    """The NVRTC of the latest CUDA version up to `latest`, that of the driver (None: any); None if there is none."""
    usable = [(cuda, path) for cuda, path in _candidates() if latest is None or cuda <= latest]
    for _, path in sorted(usable, key=lambda candidate: -candidate[0]):
        try:
            return Nvrtc(path)
        except (OSError, AttributeError, NvrtcError):
            continue
    return None
