"""A source frame on a GPU, as the arguments of the stage that reads it, and the encoder's buffer that it may lie in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...cuda_src.runtime.array import Event
from ...cuda_src.runtime.library import GpuLost

if TYPE_CHECKING:  # a CPU imports this file too, and needs nothing of the driver
    from ...cuda_src.runtime.device import Device, DeviceArray
    from ...cuda_src.runtime.recording import HostBuffers


class Order(NamedTuple):
    """How a frame is read. after: the stream to be ordered after, before: the stream that waits until the frame is read, each
    None for none; host_waits: the host waits until then.
    """

    after: int | None
    before: int | None
    host_waits: bool


class SourceHandles(NamedTuple):
    """What the loop knows of a frame in a buffer, or placeholders for it: addresses of planes, handles of events."""

    y: int
    u: int
    v: int
    measured: int
    read: int

    @property
    def pointers(self) -> dict[str, int]:
        """The planes as arguments of load_i420."""
        return {"input_y": self.y, "input_u": self.u, "input_v": self.v}


class Buffer(NamedTuple):
    """Memory for a frame, used again once it is read; sums, energies: page-locked, of what is measured.

    Events: measured, behind the measurements; seen, behind the lookahead's read; read, behind the copy to the loop's arrays.
    """

    planes: "tuple[DeviceArray, ...]"  # Y, Cb, Cr, uint8 of coded size
    energy: "DeviceArray"  # int32[n_mb]
    sums: np.ndarray  # int32[2, n], block_sums in scheduler/arrays.py
    energies: np.ndarray  # int32[n_mb]
    measured: Event
    seen: Event
    read: Event
    handles: SourceHandles
    on_host: "HostBuffers"  # for recordings


class GpuSource:
    """A frame in a buffer. outside: int32[1], page-locked, as HostFrame.outside; valid when the frame is coded."""

    def __init__(self, gpu: "Device", buffer: Buffer, outside: np.ndarray) -> None:
        self._gpu, self.buffer, self.outside = gpu, buffer, outside
        self._is_measured = False  # seen to be: the driver need not be asked again

    def is_measured(self) -> bool:
        """Whether the copy and the measurements are over; does not wait. The context must be current. GpuLost."""
        self._is_measured = self._is_measured or self._gpu.done(self.buffer.measured)
        return self._is_measured

    def sums(self) -> np.ndarray:
        """int32[2, n]: sums of blocks, and of squares, as long as the frame waits; GpuLost."""
        self._wait()
        return self.buffer.sums

    def energies(self) -> np.ndarray:
        """int32[n_mb], as cpu_simd.source.ac_energy, as long as the frame waits; GpuLost."""
        self._wait()
        return self.buffer.energies

    def host_luma(self) -> np.ndarray:
        """uint8[H, W] of coded size, downloaded; GpuLost."""
        self._wait()
        with self._gpu:
            return self.buffer.planes[0].get()

    def _wait(self) -> None:
        if self._is_measured:
            return
        try:
            with self._gpu:
                self._gpu.synchronize(self.buffer.measured)
            self._is_measured = True
        except GpuLost as lost:
            raise GpuLost(f"{lost}; source frames on it are lost too") from None


@dataclass(eq=False, repr=False, slots=True)
class DeviceFrame:
    """A frame on the GPU, as the arguments of the stage that reads it.

    stage: load_i420 or load_rgb; pointers: input_y and so on; numbers: distances in bytes and the like. frame: the user's
    object, kept so that its library does not reuse the memory. first: of its array, so that its place is checked. checked:
    the samples must be of the range of values. buffered: the encoder's buffer that it lies in. ordinal: of its GPU, if its
    library is believed.
    """

    stage: str
    pointers: dict[str, int]
    numbers: dict[str, int | str]
    order: Order
    frame: object
    first: bool = True
    checked: bool = False
    buffered: GpuSource | None = None
    ordinal: int | None = None

    @property
    def is_rgb(self) -> bool:
        """Whether it is converted to BT.709."""
        return self.stage == "load_rgb"
