"""Pointers and streams of other libraries."""

import ctypes

from .array import Stream
from .device import Device

_ORDINAL, _MEMORY_TYPE, _DEVICE_MEMORY = 9, 2, 2  # CUpointer_attribute, CUmemorytype
_INVALID_VALUE = 1  # CUresult: the driver does not know the address


class Foreign:
    """Orders own streams after and before foreign streams. The context must be current."""

    def __init__(self, gpu: Device) -> None:
        self.gpu, self._event = gpu, gpu.event(wakes_host=False)

    def ordinal_of(self, pointer: int) -> int | None:
        """Ordinal of the device that owns the memory of a pointer; None: no device."""
        memory_type, ordinal = ctypes.c_uint(), ctypes.c_int()
        for value, attribute in ((memory_type, _MEMORY_TYPE), (ordinal, _ORDINAL)):
            self.gpu.check()
            code = self.gpu.calls.pointer_attribute(pointer, attribute, value)
            if code == _INVALID_VALUE:
                return None
            if code:
                raise self.gpu.failed("cuPointerGetAttribute", f"error {code}")
        return ordinal.value if memory_type.value == _DEVICE_MEMORY else None

    def after(self, stream: Stream, other: int) -> None:
        """Order later work of `stream` after the work issued to the foreign stream `other`."""
        self.gpu.order(other, self._event, stream.handle)

    def before(self, stream: Stream, other: int) -> None:
        """Order later work of the foreign stream `other` after the work issued to `stream`."""
        self.gpu.order(stream.handle, self._event, other)
