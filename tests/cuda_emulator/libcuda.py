"""The emulated GPUs as a library of the name libcuda.so.1, for the real package cuda-bindings, in a process of its own:

    python libcuda.py FILE DEVICE           # a small encode through the package

`python` needs h264lite and cuda-bindings. Functions that are not in SIGNATURES are missing, as in an old driver.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# (kinds of results, kinds of arguments): I, L numbers of 32, 64 bits
SIGNATURES = {
    "cuInit": ("", "I"), "cuDeviceGetCount": ("I", ""), "cuDeviceGet": ("I", "I"), "cuDeviceGetAttribute": ("I", "II"),
    "cuDeviceTotalMem": ("L", "I"), "cuDevicePrimaryCtxRetain": ("L", "I"), "cuDevicePrimaryCtxRelease": ("", "I"),
    "cuCtxPushCurrent": ("", "L"), "cuCtxPopCurrent": ("L", ""), "cuStreamCreate": ("L", "I"), "cuStreamDestroy": ("", "L"),
    "cuStreamCreateWithPriority": ("L", "II"), "cuCtxGetStreamPriorityRange": ("II", ""), "cuStreamSynchronize": ("", "L"),
    "cuMemAlloc": ("L", "L"), "cuMemFree": ("", "L"), "cuMemGetInfo": ("LL", ""), "cuMemHostAlloc": ("L", "LI"),
    "cuMemFreeHost": ("", "L"),
}  # fmt: skip
C = {"I": ctypes.c_int, "L": ctypes.c_uint64}
SOURCE = """
#include <string.h>
static void *(*lookup)(const char *);
void emulate(void *(*function)(const char *)) { lookup = function; }
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, void *status) {
  return (*function = strcmp(name, "cuGetProcAddress") ? lookup(name) : cuGetProcAddress_v2) ? 0 : 500;
}
int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, 0);
}
"""


def c_function(api: Any, name: str) -> Any:
    """A function of the emulated cuda.bindings.driver with the driver's own arguments."""
    outs, kinds = SIGNATURES[name]

    def call(*arguments: int) -> int:
        code, *values = getattr(api, name)(*arguments[len(outs) :])
        for address, kind, value in zip(arguments, outs, values):
            C[kind].from_address(address).value = value
        return int(code)

    return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * len(outs), *[C[kind] for kind in kinds])(call)


def emulate(api: Any) -> list[Any]:
    """Make `api` this process's libcuda.so.1. Returns what must live as long."""
    name_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    text_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))
    texts: list[bytes] = []

    def name_of(where: int, size: int, gpu: int) -> int:
        ctypes.memmove(where, api.cuDeviceGetName(size, gpu)[1], size)
        return 0

    def text_of(code: int, where: Any) -> int:
        texts.append(api.cuGetErrorString(code)[1])
        where[0] = texts[-1]
        return 0

    functions = {name: c_function(api, name) for name in SIGNATURES}
    functions |= {"cuDeviceGetName": name_type(name_of), "cuGetErrorString": text_type(text_of)}

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)
    def lookup(name: bytes) -> int | None:
        function = functions.get(name.decode())
        return None if function is None else ctypes.cast(function, ctypes.c_void_p).value

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cuda.c").write_text(SOURCE)
        command = ["g++", "-x", "c", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "cuda.c", "-o", "libcuda.so.1"]
        subprocess.run(command, cwd=folder, check=True)
        library = ctypes.CDLL(str(Path(folder) / "libcuda.so.1"), ctypes.RTLD_GLOBAL)
    library.emulate(lookup)
    return [functions, lookup, library]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import h264lite
    import numpy as np
    from h264lite.cuda_src.runtime import driver
    from h264lite.cuda_src.runtime.bindings import Bindings

    from cuda_emulator.bindings import EmulatedBindings, ThroughBindings  # type: ignore[import-not-found]
    from cuda_emulator.driver import EmulatedDriver  # type: ignore[import-not-found]

    os.environ[driver.VARIABLE] = driver.BINDINGS
    emulated = EmulatedDriver()
    kept = emulate(EmulatedBindings(emulated))
    real = driver.load_driver()
    assert isinstance(real, Bindings), real
    driver.use_driver(ThroughBindings(emulated, real._cuda))
    rng = np.random.default_rng(1)
    frames = [tuple(rng.integers(0, 256, size, np.uint8) for size in ((48, 64), (24, 32), (24, 32))) for _ in range(4)]
    Path(sys.argv[1]).write_bytes(h264lite.encode(frames, device=sys.argv[2]))
    print(f"{emulated.launches} launches, {len(emulated.allocations)} allocations left")
