"""Pointers and streams of other libraries, by the driver's own functions: PyCUDA does not wrap them."""

import ctypes
from typing import Any

from .device import Device

_ORDINAL, _MEMORY_TYPE, _DEVICE_MEMORY = 9, 2, 2  # CUpointer_attribute, CUmemorytype
_NO_TIMING = 2
_INVALID_VALUE = 1  # CUresult: the driver does not know the address


class Foreign:
    """Orders a stream of ours after and before one of somebody else's; entered context."""

    def __init__(self, gpu: Device) -> None:
        self.gpu = gpu
        self.cuda: Any = getattr(gpu.driver, "libcuda", None) or ctypes.CDLL("libcuda.so.1")
        self._event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(self._event), ctypes.c_uint(_NO_TIMING))

    def ordinal_of(self, pointer: int) -> int | None:
        """The device whose memory it points to; None: no device's."""
        kind, ordinal = ctypes.c_uint(), ctypes.c_int()
        for value, attribute in ((kind, _MEMORY_TYPE), (ordinal, _ORDINAL)):
            where = ctypes.c_void_p(pointer)
            code = self.cuda.cuPointerGetAttribute(ctypes.byref(value), ctypes.c_int(attribute), where)
            if code == _INVALID_VALUE:
                return None
            if code:
                raise self.gpu.failed("cuPointerGetAttribute", f"error {code}")
        return ordinal.value if kind.value == _DEVICE_MEMORY else None

    def after(self, stream: Any, other: int) -> None:
        """What `stream` gets from now on starts after what the foreign stream has got."""
        self._order(other, int(stream.handle))

    def before(self, stream: Any, other: int) -> None:
        """What the foreign stream gets from now on starts after what `stream` has got."""
        self._order(int(stream.handle), other)

    def close(self) -> None:
        """Nothing is ordered any more."""
        self._call("cuEventDestroy_v2", self._event)

    def _order(self, first: int, then: int) -> None:
        self._call("cuEventRecord", self._event, ctypes.c_void_p(first))
        self._call("cuStreamWaitEvent", ctypes.c_void_p(then), self._event, ctypes.c_uint(0))

    def _call(self, name: str, *arguments: Any) -> None:
        self.gpu.check()
        code = getattr(self.cuda, name)(*arguments)
        if code:
            raise self.gpu.failed(name, f"error {code}")
