"""Pointers and streams of other libraries, by driver functions that PyCUDA does not wrap."""

import ctypes
from typing import Any

from .array import Stream
from .device import Device

_ORDINAL, _MEMORY_TYPE, _DEVICE_MEMORY = 9, 2, 2  # CUpointer_attribute, CUmemorytype
_NO_TIMING = 2
_INVALID_VALUE = 1  # CUresult: the driver does not know the address


class Foreign:
    """Orders own streams after and before foreign streams. The context must be current."""

    def __init__(self, gpu: Device) -> None:
        self.gpu = gpu
        self.cuda: Any = getattr(gpu.driver, "libcuda", None) or ctypes.CDLL("libcuda.so.1")
        self._event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(self._event), ctypes.c_uint(_NO_TIMING))

    def ordinal_of(self, pointer: int) -> int | None:
        """Ordinal of the device that owns the memory of a pointer; None: no device."""
        kind, ordinal = ctypes.c_uint(), ctypes.c_int()
        for value, attribute in ((kind, _MEMORY_TYPE), (ordinal, _ORDINAL)):
            where = ctypes.c_void_p(pointer)
            code = self.cuda.cuPointerGetAttribute(ctypes.byref(value), ctypes.c_int(attribute), where)
            if code == _INVALID_VALUE:
                return None
            if code:
                raise self.gpu.failed("cuPointerGetAttribute", f"error {code}")
        return ordinal.value if kind.value == _DEVICE_MEMORY else None

    def after(self, stream: Stream, other: int) -> None:
        """Order later work of `stream` after the work issued to the foreign stream `other`."""
        self._order(other, int(stream.handle))

    def before(self, stream: Stream, other: int) -> None:
        """Order later work of the foreign stream `other` after the work issued to `stream`."""
        self._order(int(stream.handle), other)

    def close(self) -> None:
        """Free the event."""
        self._call("cuEventDestroy_v2", self._event)

    def _order(self, first: int, then: int) -> None:
        self._call("cuEventRecord", self._event, ctypes.c_void_p(first))
        self._call("cuStreamWaitEvent", ctypes.c_void_p(then), self._event, ctypes.c_uint(0))

    def _call(self, name: str, *arguments: object) -> None:
        self.gpu.check()
        code = getattr(self.cuda, name)(*arguments)
        if code:
            raise self.gpu.failed(name, f"error {code}")
