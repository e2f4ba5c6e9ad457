"""A GPU's memory and streams, as whoever runs stages there has them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..cuda_src.runtime.device import Device, DeviceArray, GpuLost
from ..cuda_src.runtime.foreign import Foreign
from .stages import CUDA, MAIN, files


class GpuMemory:
    """Arrays on a GPU, and the streams of one user of it; several users of one GPU take turns (`order_after`)."""

    streams: dict[str, Any]
    tickets = False  # see Executor

    def __init__(self, gpu: Device) -> None:
        self.gpu = gpu
        self._foreign: Foreign | None = None
        self._constants: dict[tuple[str, tuple[int, ...], bytes], DeviceArray] = {}
        self._ends: dict[str, Any] = {}  # of the streams, when somebody else takes over
        with gpu:
            gpu.load(files(CUDA))

    def zeros(self, shape: Sequence[int], dtype: Any) -> DeviceArray:
        """See Executor."""
        with self.gpu:
            return self.gpu.zeros(shape, dtype)

    def host_zeros(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """See Executor: page-locked."""
        with self.gpu:
            return self.gpu.pinned(shape, dtype)

    def constant(self, values: np.ndarray) -> DeviceArray:
        """See Executor: uploaded once for its contents."""
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._constants:
            with self.gpu:
                self._constants[key] = self.gpu.upload(values)
                self.gpu.synchronize()
        return self._constants[key]

    def interior(self, plane: DeviceArray, border: int) -> DeviceArray:
        """See Executor: the launcher finds the border by itself."""
        return plane

    def fill(self, array: DeviceArray, value: int) -> None:
        """See Executor. Elements are bytes, or all of their bytes alike."""
        array.fill(value & 255, self.streams[MAIN])

    def across(self, array: np.ndarray) -> DeviceArray:
        """An array from `host_zeros` as kernels reach it: page-locked memory has the same address on both sides."""
        return DeviceArray(self.gpu, array.ctypes.data, array.shape, array.dtype, array)

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """The device that a pointer belongs to (None: to none), and the one of this GPU."""
        with self.gpu:
            return self.others().ordinal_of(pointer), self.gpu.ordinal

    def load_from_gpu(self, pointers: Mapping[str, int]) -> dict[str, DeviceArray]:
        """Samples of somebody else on this GPU, as a stage that converts them takes them."""
        return {name: DeviceArray(self.gpu, pointer, (1,), np.uint8) for name, pointer in pointers.items()}

    def others(self) -> Foreign:
        """Other libraries' streams and pointers."""
        if self._foreign is None:
            self._foreign = Foreign(self.gpu)
        return self._foreign

    def order_after(self, other: "GpuMemory") -> None:
        """All that is given to these streams from now on comes after all that `other` has given to its own."""
        gpu = self.gpu
        with gpu:
            for name, stream in other.streams.items():
                if name not in other._ends:
                    other._ends[name] = gpu.event()
                gpu.record(other._ends[name], stream)
            for stream in self.streams.values():
                for end in other._ends.values():
                    gpu.wait(stream, end)

    def finish(self) -> None:
        """Wait until nothing is under way, and give the streams back while their context lives: PyCUDA frees nothing of a
        context that was let go of. Those of a lost GPU stay, since no call of the driver succeeds for it.
        """
        with suppress(GpuLost), self.gpu:
            for stream in self.streams.values():
                self.gpu.synchronize(stream)
            if self._foreign is not None:
                self._foreign.close()
            self.streams, self._foreign = {}, None
            self._ends.clear()

    def close(self, keep_host: bool = False) -> None:
        """`finish`, and give memory back; `keep_host`: but for `host_zeros`."""
        self.finish()
        self._constants.clear()
        self.gpu.close(keep_host)
