"""LLVM's loader of machine code, in llvmlite's library, without the modules of llvmlite: their import takes 17 ms.

The functions are those that llvmlite.binding calls. Each caller holds the lock of direct.py.
"""

import ctypes
import os
from contextlib import suppress
from functools import cache
from importlib.util import find_spec

_POINTERS = (
    "GetGlobalContext", "ParseAssembly", "GetTargetFromTriple", "CreateTargetMachine", "CreateMCJITCompiler",
    "CreateObjectFile",
)  # fmt: skip
_ADDRESSES = "GetFunctionAddress", "GetGlobalValueAddress"


@cache
def _library() -> ctypes.CDLL:
    """The library; ImportError without llvmlite, OSError if it cannot be loaded."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise ImportError("no llvmlite")
    found = ctypes.CDLL(os.path.join(os.path.dirname(spec.origin), "binding", "libllvmlite.so"))
    for name in _POINTERS:
        getattr(found, f"LLVMPY_{name}").restype = ctypes.c_void_p
    for name in _ADDRESSES:
        getattr(found, f"LLVMPY_{name}").restype = ctypes.c_uint64
    return found


def _call(name: str, *arguments: object) -> int:
    """A call with the conversions of ctypes and whole pointers; RuntimeError if it returns no pointer."""
    result = getattr(_library(), f"LLVMPY_{name}")(*arguments)
    if name in _POINTERS and not result:
        raise RuntimeError(f"LLVM: {name} failed")
    return int(result or 0)


def _text(name: str) -> str:
    """A text about this processor."""
    out = ctypes.c_char_p()
    _call(name, ctypes.byref(out))
    text = (out.value or b"").decode()
    _call("DisposeString", out)
    return text


def prepare() -> None:
    """Load the library, in a thread: 5 ms without the interpreter's lock. Failures occur again and are told then."""
    with suppress(ImportError, OSError, AttributeError):
        _library()


@cache
def processor() -> tuple[str, str, str]:
    """(triple, name, features) of this processor, as llvmlite.binding has them, whose modules serve without the library."""
    try:
        features = sorted(filter(None, _text("GetHostCPUFeatures").split(",")), key=lambda feature: feature[1:])
        return _text("GetProcessTriple"), _text("GetHostCPUName"), ",".join(features)
    except (ImportError, OSError, AttributeError):
        from llvmlite import binding

        return binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


class Engine:
    """LLVM's MCJIT for this processor, which lives as long as the process."""

    def __init__(self, triple: str, symbols: dict[str, int]) -> None:
        """symbols: addresses of functions that code may call, beside those that the process exports."""
        for symbol, address in symbols.items():
            _call("AddSymbol", symbol.encode(), ctypes.c_void_p(address))
        _call("InitializeNativeTarget")
        _call("InitializeNativeAsmPrinter")
        name, error = triple.encode(), ctypes.c_char_p()
        to_error = ctypes.byref(error)
        module = ctypes.c_void_p(_call("ParseAssembly", ctypes.c_void_p(_call("GetGlobalContext")), b"", to_error))
        _call("SetTarget", module, name)
        target = ctypes.c_void_p(_call("GetTargetFromTriple", name, to_error))
        machine = _call("CreateTargetMachine", target, name, b"", b"", 2, b"default", b"jitdefault", 0, 1, b"")
        self._engine = ctypes.c_void_p(_call("CreateMCJITCompiler", module, ctypes.c_void_p(machine), False, to_error))

    def add(self, code: bytes) -> None:
        """Load machine code, and resolve what it refers to."""
        file = ctypes.c_void_p(_call("CreateObjectFile", code, ctypes.c_size_t(len(code))))
        _call("MCJITAddObjectFile", self._engine, file)
        _call("DisposeObjectFile", file)
        _call("FinalizeObject", self._engine)

    def function(self, name: str) -> int:
        """The address of a function."""
        return _call("GetFunctionAddress", self._engine, name.encode())

    def data(self, name: str) -> int:
        """The address of a variable."""
        return _call("GetGlobalValueAddress", self._engine, name.encode())
