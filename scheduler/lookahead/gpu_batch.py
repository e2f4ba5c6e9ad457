"""What a batch of the lookahead on a GPU works on: new frames, a table of jobs, and the numbers that its recording gets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from struct import Struct

import numpy as np

from ...cpu_simd.bundles import HalfSize
from ...cuda_src.lookahead.lookahead import WORDS
from ...cuda_src.runtime.array import Event, address_of
from ...cuda_src.runtime.device import Device, DeviceArray
from ...standard.sample_format import SAMPLE_MAX
from ..frames.device_frame import Buffer
from .costs import CostQuery

COUNTS = (SAMPLE_MAX + 1) // (2 * WORDS)  # rows of the table that the counts of a frame's samples take, int32 each
MOST_NEW, MOST_PAIRS, MOST_TRIPLES = 4, 31, 64  # of a batch
TABLE = max(2 * COUNTS, MOST_NEW + MOST_PAIRS + MOST_TRIPLES), WORDS  # shape
OF_BATCH, OF_FRAME = 3, 10  # numbers that recordings are bound to, of a batch, and of each new frame at most


@dataclass(eq=False)
class GpuFrame:
    """A frame that is kept, or the memory for one."""

    # uint8, those that are uploaded: luma, which is kept for the host if the GPU is lost; none: it came on the GPU
    planes: Sequence[np.ndarray]
    half: HalfSize
    intra: DeviceArray  # uint16[n_mb]
    copied: bool  # `planes` are memory of its own
    # with adaptive quantisation: int32[n_mb] page-locked, in 1 / 256; int32[n_mb], of costs for the tree, in 1 / 65536
    aq_offsets: np.ndarray | None = None
    error_weights: DeviceArray | None = None
    source: Buffer | None = None  # of a frame that came on the GPU, until its work starts
    queries: list[CostQuery] = field(default_factory=list)  # that have been asked, of which it is the first frame

    def __post_init__(self) -> None:
        weights = () if self.error_weights is None else (self.error_weights,)
        self.arrays = *self.half, self.intra, *weights  # on the GPU, all that differ between frames from the host
        self._addresses = [array.ptr for array in self.arrays]
        self._results = () if self.aq_offsets is None else (self.aq_offsets,)
        self._result_addresses = [address_of(array) for array in self._results]

    def host_buffers(self) -> list[np.ndarray | Event]:
        """What a recording of its work is bound to beside the buffers of its batch."""
        read = self.planes if self.source is None else (self.source.measured, self.source.seen)
        return [*read, *self._results]

    def host_numbers(self) -> list[int]:
        """Of the same."""
        source = self.source
        read = map(address_of, self.planes) if source is None else (source.measured.handle, source.seen.handle)
        return [*read, *self._result_addresses]

    def addresses(self) -> list[int]:
        """Of `arrays`, and of those of a source on the GPU: its luma and the energies of its macroblocks."""
        source, addresses = self.source, self._addresses
        return addresses if source is None else [*addresses, source.planes[0].ptr, source.energy.ptr]


class Batch:
    """Work that has one upload and one download."""

    def __init__(self, gpu: Device) -> None:
        self.jobs, self.results = (gpu.pinned(TABLE, np.int64) for _ in range(2))
        self.event = gpu.event()
        self.n_rows = 0
        self.queries: Sequence[CostQuery] = ()
        self.first = 0  # the row of the first query; one follows another
        self.new: Sequence[int] = ()  # frames whose luma it reads
        self.counted: list[tuple[int, np.ndarray]] = []  # frames whose samples are counted, from row 0 on, and their `coarse`
        self.numbers = np.zeros(OF_BATCH + MOST_NEW * OF_FRAME, np.int64)  # see Recording.bind
        self.numbers[:OF_BATCH] = address_of(self.jobs), address_of(self.results), self.event.handle

    def set_numbers(self, new: Sequence[GpuFrame]) -> None:
        """Those of new frames: of host buffers behind those of the batch, and addresses, the last one first, at the end."""
        if new:
            host = [number for frame in new for number in frame.host_numbers()]
            self.numbers[OF_BATCH : OF_BATCH + len(host)] = host
            addresses = [address for frame in new for address in frame.addresses()]
            self.numbers[-len(addresses) :] = addresses[::-1]

    def fill(self, rows: Sequence[int], queries: Sequence[CostQuery], first: int = 0, new: Sequence[int] = ()) -> None:
        """The work: rows of the table, one behind another, the last of which, from `first` on, are those of the queries."""
        self.n_rows, self.queries, self.first, self.new, self.counted = len(rows) // WORDS, queries, first, new, []
        _packer(len(rows))(self.jobs, 0, *rows)


@cache
def _packer(count: int) -> Callable[..., None]:
    """What writes so many int64."""
    return Struct(f"{count}q").pack_into
