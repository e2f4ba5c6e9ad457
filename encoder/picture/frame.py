"""The arrays of one frame, the reference frames and the workspace of the loop.

Every array is indexed by macroblock (raster address) or by sample, so that kernels on any device use the same layout:

    planes          y uint8[H, W], u and v uint8[H/2, W/2]; H, W the coded size, multiples of 16
    mb_type         uint8[n_mb]            names in standard/macroblock.py
    sub_mb_type     uint8[n_mb, 4]         by 8x8 quadrant
    ref_idx         int8[n_mb, 4]          by 8x8 quadrant; -1: intra
    mv              int16[n_mb, 16, 2]     quarter samples (x, y), by 4x4 block in raster order
    intra4x4_mode   int8[n_mb, 16]         raster order; 2 (DC) where the macroblock is not I_4x4
    intra16x16_mode, intra_chroma_mode     uint8[n_mb]
    cbp, qp         uint8[n_mb]            coded_block_pattern; QP_Y
    levels          int16[n_mb, 27, 16]    transform coefficient levels in scan order, blocks as in standard/macroblock.py
    total_coeff     uint8[n_mb, 24]        non-zero levels a block: 16 luma in raster order, 4 Cb, 4 Cr
    level_index     uint32[mb_height+1+n_mb]  which blocks have levels, for the download from a GPU (cuda_src/compact.py)
    slice_data      uint8[mb_height (mb_width + 1) ENTRY_BYTES]  the slices as the stage write_slices wrote them, on the host
    slice_sizes     int32[mb_height]       bits of each slice with its header; -1: too long
    frame_params    int32[>= 1 + mb_height]  QP of the frame's slices, bits of the header of each slice; on the host
    ssd_y/u/v       int64[mb_height]       squared error of the decoded frame
    rec_y/u/v       as the planes: the reconstruction before deblocking, in the workspace
    intra_modes     uint8[n_mb, 16]        how an intra macroblock of a P frame is coded, in the workspace
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...cpu_simd.expand import expand
from ...cpu_simd.search_centre import coarse_shape
from ...scheduler.threads.copiers import Copiers, Target
from ...standard.macroblock import ENTRY_BYTES, N_LEVEL_BLOCKS, N_PARTITIONS
from .device_frame import DevicePicture

Array = Any  # np.ndarray, or a GPU array
Zeros = Callable[[tuple[int, ...], Any], Array]
HELPERS = 3  # threads that help to copy a frame to its upload buffer: one copies 5 to 7 GB/s
WORTH_SHARING = 1 << 20  # bytes of a frame: smaller ones are copied by the caller alone
_ALIGNED = 256  # bytes: alignment of GPU memory


class Frame:
    """A frame in the pipeline, reused for later frames.

    zeros(shape, dtype) allocates its arrays. The results of the loop, except the levels, share one block of memory, so that
    one copy downloads them from a GPU.
    """

    mb_type: Array
    sub_mb_type: Array
    ref_idx: Array
    mv: Array
    intra4x4_mode: Array
    intra16x16_mode: Array
    intra_chroma_mode: Array
    cbp: Array
    qp: Array
    total_coeff: Array
    level_index: Array
    slice_sizes: Array
    ssd_y: Array
    ssd_u: Array
    ssd_v: Array

    def __init__(self, mb_width: int, mb_height: int, zeros: Zeros = np.zeros) -> None:
        n_mb = mb_width * mb_height
        self.planes: tuple[Array, ...] = _planes(mb_width, mb_height, zeros)
        self.results: dict[str, Array] = {}
        layout = _results(n_mb, mb_height)
        sizes = [-(-math.prod(shape) * np.dtype(kind).itemsize // _ALIGNED) * _ALIGNED for _, shape, kind in layout]
        self.block = zeros((sum(sizes),), np.uint8)
        at = 0
        for (name, shape, kind), size in zip(layout, sizes):
            used = math.prod(shape) * np.dtype(kind).itemsize
            self.results[name] = self.block[at : at + used].view(np.dtype(kind)).reshape(*shape)
            at += size
        self.results["levels"] = zeros((n_mb, N_LEVEL_BLOCKS, 16), np.int16)
        vars(self).update(self.results)
        self.levels = self.results["levels"]
        self.decoded: tuple[np.ndarray, np.ndarray] | None = None  # luma, chroma as References, if downloaded
        self.kept = True  # whether this frame's are
        self.levels_packed = False  # the loop ran on GPUs: `levels` were downloaded packed (cuda_src/compact.py)
        self.slice_data: Array = np.zeros(mb_height * (mb_width + 1) * ENTRY_BYTES, np.uint8)  # pages exist once written
        self.frame_params = np.zeros(_params_bytes(mb_height) // 4, np.int32)
        self.write_slices: Callable[[], None] = nothing  # the entropy stage, if the loop leaves it to a task
        self.header_bits: tuple[int, ...] = ()  # of each slice
        self.index = 0  # in its pipeline
        self.number = 0  # in the stream
        self.is_idr = False
        self.slice_qp = 0
        self.frame_num = 0
        self.idr_pic_id = 0
        self.n_ref = 0
        self.stage_seconds: dict[str, float] = {}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The arrays by the names that the stage table uses."""
        return self.results | {f"source_{plane}": samples for plane, samples in zip("yuv", self.planes)}

    def load(self, y: np.ndarray, u: np.ndarray, v: np.ndarray, beside: Copiers | None = None) -> None:
        """Copy in a frame of display size; repeat its last column and row up to the coded size."""
        for plane, samples in zip(self.planes, (y, u, v)):
            height, width = samples.shape
            plane[:height, :width] = samples
            plane[:height, width:] = plane[:height, width - 1 : width]
            plane[height:] = plane[height - 1]

    def write_params(self) -> None:
        """Write `frame_params`: what differs between frames of the same GPU recording."""
        self.frame_params[: 1 + len(self.header_bits)] = (self.slice_qp, *self.header_bits)

    def complete(self) -> None:
        """Block until the source is copied in."""

    def unpack_levels(self) -> None:
        """Unpack downloaded levels; nothing to do here."""

    def samples(self) -> tuple[Array, ...]:
        """The source planes in coded size; I_PCM takes its samples from them."""
        return self.planes


class HostFrame(Frame):
    """The host arrays of a frame whose loop runs on a GPU: uploaded source and downloaded results.

    upload          uint8[n]: frame_params and source, which one copy uploads
    given           y, u, v of display size, views of source: uint8[m]
    upload_fence    int64[1], READY when the source is complete: an upload can wait for it
                    (scheduler/threads/copy_kernels.py); or None
    level_blocks    int16[27 n_mb, 16]: the blocks that have levels, contiguous; empty unless by_rows
    """

    def __init__(
        self, mb_width: int, mb_height: int, zeros: Zeros, display: Sequence[tuple[int, int]], by_rows: bool = False
    ) -> None:
        """by_rows: any rows of any array may be copied to or from a GPU; else planes and levels stay on the host."""
        self._size = mb_width, mb_height
        n_mb = mb_width * mb_height
        super().__init__(
            mb_width, mb_height, lambda shape, kind: (zeros if by_rows or len(shape) == 1 else np.zeros)(shape, kind)
        )
        self.slice_data = zeros((mb_height * (mb_width + 1) * ENTRY_BYTES,), np.uint8)
        self.level_blocks = (zeros if by_rows else np.zeros)((n_mb * N_LEVEL_BLOCKS if by_rows else 0, 16), np.int16)
        self._held = np.zeros(n_mb, np.uint32)  # bit mask of the blocks of `levels` that may be non-zero
        self.upload = zeros(upload_shape(mb_height, display), np.uint8)
        self.frame_params, self.source = split_upload(self.upload, mb_height)
        self.given = split_planes(self.source, display)
        self._target = Target(self.given)
        self._padded = False
        self.picture: DevicePicture | None = None  # the source, if it is on the GPU
        self.upload_fence: np.ndarray | None = None
        self._coming: Copiers | None = None  # the threads that copy the source, until `complete`

    def load(self, y: np.ndarray, u: np.ndarray, v: np.ndarray, beside: Copiers | None = None) -> None:
        """Copy a frame of display size to its upload buffer; `beside`: threads that copy parts of a large frame.

        With an upload fence the copy runs in threads and ends with `complete`: the planes must not change until then.
        """
        self.loaded()
        if np.may_share_memory(self.source, y):  # it was read into the upload buffer
            return
        if beside is None or self.source.size < WORTH_SHARING:
            for target, plane in zip(self.given, (y, u, v)):
                np.copyto(target, plane)
        elif self.upload_fence is None or not beside.helps:
            beside.copy(self._target, (y, u, v))
        else:
            self._coming = beside
            beside.begin(self._target, (y, u, v), self.upload_fence)

    def loaded(self) -> None:
        """The source is in the upload buffer."""
        self.complete()
        self._padded = False
        self.picture = None

    @property
    def pending_fence(self) -> np.ndarray | None:
        """The fence that the upload has to wait for; None if the source is complete."""
        return self.upload_fence if self._coming is not None else None

    def complete(self) -> None:
        """See Frame. The planes given to `load` may change afterwards."""
        if self._coming is not None:
            assert self.upload_fence is not None
            self._coming.end(self.upload_fence)
            self._coming = None

    def load_from_gpu(self, picture: DevicePicture) -> None:
        """The source is on the GPU; with by_rows its planes are downloaded with the results (I_PCM needs the samples)."""
        self.complete()
        self.picture = picture
        self._padded = True

    def samples(self) -> tuple[Array, ...]:
        """See Frame; padded at the first call."""
        self.complete()
        if not self._padded:
            super().load(*self.given)
            self._padded = True
        return self.planes

    def mark_levels_dirty(self, row0: int = 0, row1: int | None = None) -> None:
        """`levels` of macroblock rows [row0, row1) are written in full: mark all their blocks as possibly non-zero, so that
        the next unpack clears them."""
        width, height = self._size
        self._held[width * row0 : width * (height if row1 is None else row1)] = (1 << N_LEVEL_BLOCKS) - 1

    def unpack_levels(self) -> None:
        """Unpack the downloaded blocks into `levels`, if they were packed."""
        if not self.levels_packed:
            return
        mb_width, mb_height = self._size
        expand(self.level_index, self.level_blocks, mb_width, 0, mb_height, self._held, self.levels)


def nothing() -> None:
    """What is left of the entropy stage if the loop has run it."""


def _params_bytes(mb_height: int) -> int:
    return -(-4 * (1 + mb_height) // _ALIGNED) * _ALIGNED


def upload_shape(mb_height: int, display: Sequence[tuple[int, int]]) -> tuple[int]:
    """Shape of an upload buffer, uint8; display: (height, width) of the planes."""
    return (_params_bytes(mb_height) + sum(height * width for height, width in display),)


def split_upload(upload: Array, mb_height: int) -> tuple[Array, Array]:
    """Views of an upload buffer: frame_params int32[>= 1 + mb_height], and the samples of the source, uint8[n]."""
    size = _params_bytes(mb_height)
    return upload[:size].view(np.dtype(np.int32)), upload[size:]


def split_planes(source: Array, display: Sequence[tuple[int, int]]) -> tuple[Array, ...]:
    """Views of the consecutive planes in `source`, uint8[n]; display: (height, width) of each."""
    cuts = np.cumsum([0, *(height * width for height, width in display)]).tolist()
    return tuple(source[a:b].reshape(*shape) for a, b, shape in zip(cuts, cuts[1:], display))


def _results(n_mb: int, mb_height: int) -> tuple[tuple[str, tuple[int, ...], Any], ...]:
    """(name, shape, dtype) of the results of the loop."""
    return (
        ("mb_type", (n_mb,), np.uint8),
        ("sub_mb_type", (n_mb, 4), np.uint8),
        ("ref_idx", (n_mb, 4), np.int8),
        ("mv", (n_mb, 16, 2), np.int16),
        ("intra4x4_mode", (n_mb, 16), np.int8),
        ("intra16x16_mode", (n_mb,), np.uint8),
        ("intra_chroma_mode", (n_mb,), np.uint8),
        ("cbp", (n_mb,), np.uint8),
        ("qp", (n_mb,), np.uint8),
        ("total_coeff", (n_mb, 24), np.uint8),
        ("ssd_y", (mb_height,), np.int64),
        ("ssd_u", (mb_height,), np.int64),
        ("ssd_v", (mb_height,), np.int64),
        ("level_index", (mb_height + 1 + n_mb,), np.uint32),
        ("slice_sizes", (mb_height,), np.int32),
    )


def _planes(mb_width: int, mb_height: int, zeros: Zeros) -> tuple[Array, Array, Array]:
    luma, chroma = (16 * mb_height, 16 * mb_width), (8 * mb_height, 8 * mb_width)
    return zeros(luma, np.uint8), zeros(chroma, np.uint8), zeros(chroma, np.uint8)


@dataclass
class References:
    """The decoded picture buffer: deblocked frames with borders, and the sliding window over their slots.

    luma    uint8[n_slots, 4, H + 2 pad, W + 2 pad]   integer samples G and half samples b, h, j (Figure 8-4)
    chroma  uint8[n_slots, 2, H/2 + pad, W/2 + pad]   Cb, Cr
    """

    luma: Array
    chroma: Array
    held: list[int] = field(default_factory=list)  # slots of the short-term references, latest first: RefPicList0
    last: int = -1  # slot of the previous frame

    @classmethod
    def allocate(cls, n_slots: int, height: int, width: int, pad: int, zeros: Zeros = np.zeros) -> "References":
        """`n_slots` frames of height x width samples."""
        return cls(
            zeros((n_slots, 4, height + 2 * pad, width + 2 * pad), np.uint8),
            zeros((n_slots, 2, height // 2 + pad, width // 2 + pad), np.uint8),
        )

    def free_slot(self) -> int:
        """A slot for the current frame, used neither by a reference nor by the previous frame."""
        n_slots = self.luma.shape[0]
        return next(slot for k in range(1, n_slots + 1) if (slot := (self.last + k) % n_slots) not in self.held)

    def clear(self) -> None:
        """8.2.5.1: an IDR picture marks all references unused."""
        self.held.clear()

    def push(self, slot: int, limit: int) -> None:
        """8.2.5.3: sliding window of `limit` frames."""
        self.last = slot
        self.held.insert(0, slot)
        del self.held[limit:]


class Workspace:
    """Intermediate arrays between the stages of a frame; one set, since one frame at a time is in the loop."""

    def __init__(self, mb_width: int, mb_height: int, n_ref: int, zeros: Zeros = np.zeros) -> None:
        n_mb = mb_width * mb_height
        self.rec_y, self.rec_u, self.rec_v = _planes(mb_width, mb_height, zeros)  # before deblocking
        self.all_centre = zeros((n_ref, n_mb, 2), np.int16)  # integer samples
        self.all_predictor = zeros((n_ref, n_mb, 2), np.int16)  # quarter samples
        self.all_cost = zeros((n_ref, n_mb, N_PARTITIONS), np.int32)
        self.all_mv = zeros((n_ref, n_mb, N_PARTITIONS, 2), np.int16)  # quarter samples
        self.progress = zeros((1 + mb_height,), np.int64)  # of the rows in mode_decision
        self.intra_cost = zeros((n_mb,), np.int32)
        self.intra_modes = zeros((n_mb, 16), np.uint8)  # see cpu_simd/intra_estimate.py
        coarse = coarse_shape(16 * mb_height, 16 * mb_width)
        self.coarse_source = zeros(coarse, np.uint8)
        self.coarse_reference = zeros(coarse, np.uint8)

    def arrays(self) -> dict[str, Array]:
        """The arrays by the names that the stage table uses."""
        return vars(self)
