"""Source frames of a GPU in buffers there: converted as soon as they come, measured, and read when their turn comes."""

from collections import deque
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from ...cpu_simd.bundles import Planes
from ...cuda_src.runtime.array import address_of
from ...cuda_src.runtime.device import DeviceArray, GpuLost
from ...cuda_src.runtime.recording import HostBuffers, Recording, placeholder_address
from ...cuda_src.source.ac_energy import ac_energies
from ...standard.sample_format import Sample
from ..arrays import ARRAYS, SOURCES
from ..bundles import State
from ..coding_settings import CodingSettings
from ..gpu_memory import GpuMemory
from ..stages import STAGES
from .device_frame import Buffer, DeviceFrame, GpuSource, Order, SourceHandles

_STREAM = "sources"
_FLAGS = 4096  # more than the frames that are between their arrival and their end
_WHAT = "frames that wait for later ones"


class GpuSourcePool:
    """The buffers of an encode, at most as many as frames wait at the same time, on a stream of their own."""

    def __init__(self, memory: GpuMemory, settings: CodingSettings, records: bool = False) -> None:
        """records: the driver calls of a frame are recorded, and replayed for frames of the same key."""
        self._memory, self._size, self._records = memory, settings.size, records
        self._recordings: dict[Hashable, Recording] = {}  # by key
        self._with_sums, self._with_energies = settings.weighted_copies > 0, settings.aq_mode > 0
        self._free: list[Buffer] = []
        self._buffers: list[Buffer] = []  # all
        self._owners: deque[tuple[GpuSource, object]] = deque()  # with the user's objects, of frames that may still be read
        self._count = 0
        self._flags = memory.host_zeros((_FLAGS,), np.int32)
        dtypes = {"load_qp": np.int32, "qp": np.uint8}
        self._state: State = {name: memory.zeros((self._size.n_mb,), dtype) for name, dtype in dtypes.items()}
        self._state |= {"width": settings.width, "height": settings.height}
        (_, width), (_, chroma_width) = (ARRAYS[name].shape(self._size) for name in SOURCES[:2])
        self._numbers: dict[str, int | str] = {"pitch": width, "chroma_pitch": chroma_width, "chroma_step": 1}  # of buffers
        with memory.gpu:
            self._stream = memory.streams.setdefault(_STREAM, memory.gpu.urgent_stream())

    def hold(self, source: DeviceFrame) -> DeviceFrame:
        """Copy a frame to a buffer, which becomes the source; GpuLost, DeviceMemoryError.

        Later work of the producer is ordered behind that copy.
        """
        gpu, k = self._memory.gpu, self._count % _FLAGS
        outside = self._flags[k : k + 1]
        outside[0] = 0
        try:
            with gpu:
                buffer = self._free.pop() if self._free else self._make()
                while self._owners and self._owners[0][0].is_measured():
                    self._owners.popleft()
                if self._records:
                    self._replay(source, buffer, outside)
                else:
                    self._issue(source, buffer, self._memory.mapped(outside))
        except GpuLost as lost:
            raise GpuLost(f"{lost}; source frames on it are lost too") from None
        self._count += 1
        buffered = GpuSource(gpu, buffer, outside)
        self._owners.append((buffered, source.frame))
        pointers, order, checked = buffer.handles.pointers, source.order, source.checked
        return DeviceFrame("load_i420", pointers, self._numbers, order, None, False, checked, buffered)

    def _issue(self, source: DeviceFrame, buffer: Buffer, outside: DeviceArray) -> None:
        """Start the copy and the measurements."""
        memory, gpu, stream = self._memory, self._memory.gpu, self._stream
        for event in (buffer.seen, buffer.read):
            gpu.wait(stream, event)
        memory.begin_read(stream, source)
        state = {**self._state, **dict(zip(SOURCES, buffer.planes)), **source.numbers, "outside": outside}
        STAGES[source.stage].launch({**state, **memory.load_from_gpu(source.pointers)}, (), stream)
        self._measure(buffer, state)
        memory.end_read(stream, source, gpu.record(buffer.measured, stream))

    def _replay(self, source: DeviceFrame, buffer: Buffer, outside: np.ndarray) -> None:
        """The same by a recording. What differs between frames of a key: addresses, distances, streams."""
        gpu, order = self._memory.gpu, source.order
        numbers = [number for number in source.numbers.values() if type(number) is int]
        on_gpu = *buffer.handles[: len(SOURCES)], buffer.energy.ptr, address_of(outside)
        table = (*source.pointers.values(), *numbers, *on_gpu, order.after or 0, order.before or 0)
        key = source.stage, source.numbers.get("rgb_dtype"), order.after is None, order.before is None
        recording = self._recordings.get(key)
        if recording is None:
            with gpu.record_calls(buffer.on_host, table) as recording:
                self._issue(*self._placeholders(source, buffer))
            self._recordings[key] = recording
        else:
            recording.rebind(buffer.on_host, table)
            gpu.replay(recording)
        if order.host_waits:
            gpu.synchronize(buffer.measured)

    def _placeholders(self, source: DeviceFrame, buffer: Buffer) -> tuple[DeviceFrame, Buffer, DeviceArray]:
        """The arguments of `_issue` with placeholders, in the order of the table of `_replay`."""
        numbers = iter(map(placeholder_address, range(64)))
        pointers = {name: next(numbers) for name in source.pointers}
        distances = {name: next(numbers) if type(n) is int else n for name, n in source.numbers.items()}
        arrays = *buffer.planes, buffer.energy, self._memory.mapped(self._flags[:1])
        *planes, energy, outside = (DeviceArray(a.device, next(numbers), a.shape, a.dtype) for a in arrays)
        after, before = next(numbers), next(numbers)
        order = Order(None if source.order.after is None else after, None if source.order.before is None else before, False)
        source = replace(source, pointers=pointers, numbers=distances, order=order)
        return source, buffer._replace(planes=tuple(planes), energy=energy), outside

    def renew(self) -> None:
        """Be as new for a later encoder: all buffers are free. The work of the encoder before has ended."""
        self._owners.clear()
        self._free = self._buffers.copy()

    def release(self, source: GpuSource) -> None:
        """The frame's copy to the loop's arrays is issued, and its numbers are read."""
        self._free.append(source.buffer)

    def _measure(self, buffer: Buffer, state: State) -> None:
        if self._with_sums:
            STAGES["source_sums"].launch({**state, "block_sums": self._memory.mapped(buffer.sums)}, (), self._stream)
        if self._with_energies:
            ac_energies(Planes(*buffer.planes), buffer.energy, self._stream)
            buffer.energy.get(buffer.energies, self._stream)

    def _make(self) -> Buffer:
        gpu, n_mb = self._memory.gpu, self._size.n_mb
        planes = tuple(gpu.array(ARRAYS[name].shape(self._size), Sample, _WHAT) for name in SOURCES)
        n_energies = n_mb if self._with_energies else 1
        sums = gpu.pinned(ARRAYS["block_sums"].shape(self._size), np.int32)
        measured, seen, read = (gpu.record(gpu.event(wakes_host=k == 0), self._stream) for k in range(3))
        energy, energies = gpu.array((n_energies,), np.int32, _WHAT), gpu.pinned((n_energies,), np.int32)
        y, u, v = planes
        handles = SourceHandles(y.ptr, u.ptr, v.ptr, measured.handle, read.handle)
        on_host = HostBuffers(sums, energies, measured, seen, read)
        self._buffers.append(Buffer(planes, energy, sums, energies, measured, seen, read, handles, on_host))
        return self._buffers[-1]
