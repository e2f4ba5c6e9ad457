"""Source frames of a GPU in buffers there: converted as soon as they come, measured, and read when their turn comes."""

from collections import deque
from dataclasses import replace

import numpy as np

from ...cpu_simd.bundles import Planes
from ...cuda_src.runtime.array import Event
from ...cuda_src.runtime.device import GpuLost
from ...cuda_src.source.ac_energy import ac_energies
from ...standard.sample_format import Sample
from ..arrays import ARRAYS, SOURCES
from ..bundles import State
from ..coding_settings import CodingSettings
from ..gpu_memory import GpuMemory
from ..stages import STAGES
from .device_frame import Buffer, DeviceFrame, GpuSource

_STREAM = "held"
_FLAGS = 4096  # more than the frames that are between their arrival and their end
_WHAT = "frames that wait for later ones"


class GpuSourcePool:
    """The buffers of an encode, at most as many as frames wait at the same time, on a stream of their own."""

    def __init__(self, memory: GpuMemory, settings: CodingSettings) -> None:
        self._memory, self._size = memory, settings.size
        self._with_sums, self._with_energies = settings.weighted_copies > 0, settings.aq_mode > 0
        self._free: list[Buffer] = []
        self._buffers: list[Buffer] = []  # all
        self._owners: deque[tuple[Event, object]] = deque()  # (event, the user's object) of frames that may still be read
        self._count = 0
        self._flags = memory.host_zeros((_FLAGS,), np.int32)
        dtypes = {"frame_params": np.int32, "qp": np.uint8}
        self._state: State = {name: memory.zeros((self._size.n_mb,), dtype) for name, dtype in dtypes.items()}
        self._state |= {"width": settings.width, "height": settings.height}
        with memory.gpu:
            self._stream = memory.streams.setdefault(_STREAM, memory.gpu.urgent_stream())

    def hold(self, source: DeviceFrame) -> DeviceFrame:
        """Copy a frame to a buffer, which becomes the source; GpuLost, DeviceMemoryError.

        Later work of the producer is ordered behind that copy.
        """
        memory, gpu, stream = self._memory, self._memory.gpu, self._stream
        k = self._count % _FLAGS
        outside = self._flags[k : k + 1]
        outside[0] = 0
        try:
            with gpu:
                buffer = self._free.pop() if self._free else self._make()
                while self._owners and gpu.done(self._owners[0][0]):
                    self._owners.popleft()
                for event in (buffer.seen, buffer.read):
                    gpu.wait(stream, event)
                memory.begin_read(stream, source)
                state = {**self._state, **dict(zip(SOURCES, buffer.planes)), **source.numbers}
                state["outside"] = memory.mapped(outside)
                STAGES[source.stage].launch({**state, **memory.load_from_gpu(source.pointers)}, (), stream)
                self._measure(buffer, state)
                memory.end_read(stream, source, gpu.record(buffer.made, stream))
        except GpuLost as lost:
            raise GpuLost(f"{lost}; source frames on it are lost too") from None
        self._count += 1
        self._owners.append((buffer.made, source.frame))
        y, u, v = buffer.planes
        return replace(
            source,
            stage="load_i420",
            pointers={"input_y": y.ptr, "input_u": u.ptr, "input_v": v.ptr},
            numbers={"pitch": y.shape[1], "chroma_pitch": u.shape[1], "chroma_step": 1},
            frame=None,
            first=False,
            buffered=GpuSource(gpu, buffer, outside),
        )

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
        events = [gpu.record(gpu.event(), self._stream) for _ in range(3)]
        energies = gpu.array((n_energies,), np.int32, _WHAT), sums, gpu.pinned((n_energies,), np.int32)
        self._buffers.append(Buffer(planes, *energies, *events))
        return self._buffers[-1]
