"""Arrays on a GPU and the streams of one user: the base of `CudaExecutor` and `GpuWorker`."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import DTypeLike

from ..cuda_src.runtime.array import Event, Stream
from ..cuda_src.runtime.device import Device, DeviceArray, GpuLost
from ..cuda_src.runtime.foreign import Foreign
from ..cuda_src.runtime.idle import take
from .frames.device_frame import DeviceFrame
from .stages import CUDA, MAIN, files


class GpuMemory:
    """Arrays on a GPU, and the streams of one user of it; several users of one GPU take turns (`order_after`)."""

    streams: dict[str, Stream]
    tickets, parallel_b_frames, run_ahead = False, 0, 0  # see Executor

    def __init__(self, gpu: Device, has_b_frames: bool = False) -> None:
        """has_b_frames: of the stream."""
        self.gpu, self.has_b_frames = gpu, has_b_frames
        self._foreign: Foreign | None = None
        self._constants: dict[tuple[str, tuple[int, ...], bytes], DeviceArray] = {}
        self._ends: dict[str, Event] = {}  # events at the ends of the streams, for the next user of the GPU
        with gpu:
            gpu.load(files(CUDA, has_b_frames))

    def zeros(self, shape: Sequence[int], dtype: DTypeLike) -> DeviceArray:
        """See Executor."""
        with self.gpu:
            return self.gpu.zeros(shape, dtype)

    def host_zeros(self, shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
        """See Executor: page-locked."""
        with self.gpu:
            return self.gpu.pinned(shape, dtype)

    def expect_host(self, nbytes: int) -> None:
        """`host_zeros` will be asked for so many bytes soon."""
        with self.gpu:
            self.gpu.expect_pinned(nbytes)

    def constant(self, values: np.ndarray) -> DeviceArray:
        """See Executor: equal contents are uploaded once."""
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._constants:
            with self.gpu:
                self._constants[key] = self.gpu.upload(values)
        return self._constants[key]

    def put_constant(self, constant: DeviceArray, values: np.ndarray) -> None:
        """See Executor."""
        with self.gpu:
            constant.put(values, self.streams[MAIN])
            self.gpu.synchronize()

    def interior(self, plane: DeviceArray, border: int) -> DeviceArray:
        """See Executor: the plane itself, because the launcher computes the border."""
        return plane

    def fill(self, array: DeviceArray, value: int) -> None:
        """See Executor. Elements are bytes, or have equal bytes."""
        array.fill(value & 255, self.streams[MAIN])

    def mapped(self, array: np.ndarray) -> DeviceArray:
        """An array from `host_zeros` for kernels: page-locked memory has the same address on host and GPU."""
        return DeviceArray(self.gpu, array.ctypes.data, array.shape, array.dtype, array)

    def ordinal_of(self, pointer: int) -> tuple[int | None, int]:
        """(ordinal of the device that owns a pointer or None, ordinal of this GPU)."""
        with self.gpu:
            return self.foreign().ordinal_of(pointer), self.gpu.ordinal

    def load_from_gpu(self, pointers: Mapping[str, int]) -> dict[str, DeviceArray]:
        """Samples of other libraries on this GPU as arguments of a stage that converts them."""
        return {name: DeviceArray(self.gpu, pointer, (1,), np.uint8) for name, pointer in pointers.items()}

    def begin_read(self, stream: Stream, source: DeviceFrame) -> None:
        """Order later work of a stream after that which writes a frame on this GPU. The context must be current."""
        if source.buffered is not None:
            self.gpu.wait(stream, source.buffered.buffer.measured)
        elif source.order.after is not None:
            self.foreign().after(stream, source.order.after)

    def end_read(self, stream: Stream, source: DeviceFrame, read: Event) -> None:
        """The frame may be overwritten once the work issued to the stream has ended; read: an event behind that work."""
        if source.buffered is not None:
            self.gpu.record(source.buffered.buffer.read, stream)
            return
        if source.order.host_waits:
            self.gpu.synchronize(read)
        if source.order.before is not None:
            self.foreign().before(stream, source.order.before)

    def foreign(self) -> Foreign:
        """Access to streams and pointers of other libraries."""
        if self._foreign is None:
            self._foreign = Foreign(self.gpu)
        return self._foreign

    def order_after(self, other: "GpuMemory") -> None:
        """Order all later work of these streams after all work that `other` has issued to its streams."""
        gpu = self.gpu
        with gpu:
            for name, stream in other.streams.items():
                if name not in other._ends:
                    other._ends[name] = gpu.event(wakes_host=False)
                gpu.record(other._ends[name], stream)
            for stream in self.streams.values():
                for end in other._ends.values():
                    gpu.wait(stream, end)

    def finish(self) -> None:
        """Wait for all work, and free the streams while their context exists: PyCUDA frees nothing of a released context.

        Streams of a lost GPU are not freed, because no driver call succeeds for it.
        """
        with suppress(GpuLost), self.gpu:
            for stream in self.streams.values():
                self.gpu.synchronize(stream)
            self.streams, self._foreign = {}, None
            self._ends.clear()

    def close(self, keep_host: bool = False) -> None:
        """`finish`, and free memory; keep_host: except arrays of `host_zeros`."""
        self.finish()
        self._constants.clear()
        self.gpu.close(keep_host)


def make_gpu(ordinal: int, choices: Mapping[str, int]) -> Device:
    """GPU `ordinal`, with the tile rows of `choices`."""
    gpu = take(ordinal)
    gpu.tile_rows = choices.get("tile_rows", Device.tile_rows)
    return gpu


def serial(choices: Mapping[str, int]) -> bool:
    """Whether a GPU that works alone has one stream."""
    return choices.get("streams") == 1
