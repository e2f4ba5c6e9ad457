"""The state of one frame, the reference frames and the workspace of the loop, as arrays of the table in scheduler/arrays.py.

Every array is indexed by macroblock (raster address) or by sample, so that kernels on any device use the same layout.
"""

import math
import mmap
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.layout import HEADER_BITS, N_LEVEL_BLOCKS
from ...process import cached_property
from ...standard.sample_format import Sample
from ..arrays import (
    ALL_REFS,
    ARRAYS,
    BIPREDICTION,
    GPU_RESULT,
    KEPT,
    LEVELS,
    POOLS,
    RESULT,
    SEARCH,
    SECOND_LIST,
    SOURCES,
    TICKETS,
    VIEWS,
    WORKSPACE,
    Size,
    of_roles,
    pool_shape,
)
from ..bundles import A
from ..frame_spec import FrameSpec, SliceHeaders
from ..threads.copiers import Copiers, Target
from .device_frame import DeviceFrame
from .host_rgb import RgbFrame

Zeros = Callable[[tuple[int, ...], DTypeLike], A]
Run = Callable[[Sequence[Callable[[], None]]], None]  # runs functions concurrently
HELPERS = 3  # threads that help to copy a frame to its upload buffer: one copies 5 to 7 GB/s
LEAST_SHARED_BYTES = 1 << 20  # bytes of a frame: smaller ones are copied by the caller alone
LAZY = 1 << 16  # bytes of an array for which a mapping of its own is worth its call
_ALIGNED = 256  # bytes: alignment of GPU memory


class FrameArrays(Generic[A]):
    """The arrays of a frame in the memory of a device, reused for later frames.

    The results of the loop, except the levels, share one block of memory, so that one copy downloads them from a GPU.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> A:
            """A result, by its name in scheduler/arrays.py."""

    def __init__(self, mb_width: int, mb_height: int, zeros: Zeros[A], has_b_frames: bool = False) -> None:
        """zeros(shape, dtype) allocates an array."""
        size = Size(mb_width, mb_height, has_b_frames=has_b_frames)
        self.planes: tuple[A, ...] = tuple(_allocate(name, size, zeros) for name in SOURCES)
        self.results: dict[str, A] = {}
        names = of_roles(RESULT, SECOND_LIST, GPU_RESULT)
        layout = [(name, ARRAYS[name].shape(size), np.dtype(ARRAYS[name].dtype)) for name in names]
        sizes = [_aligned(math.prod(shape) * dtype.itemsize) for _, shape, dtype in layout]
        self.block: A = zeros((sum(sizes),), np.uint8)
        at = 0
        for (name, shape, dtype), room in zip(layout, sizes):
            used = math.prod(shape) * dtype.itemsize
            self.results[name] = self.block[at : at + used].view(dtype).reshape(*shape)
            at += room
        self.results |= {name: _allocate(name, size, zeros) for name in of_roles(LEVELS)}
        vars(self).update(self.results)

    @cached_property
    def arrays(self) -> dict[str, A]:
        """The arrays by the names that the stage table uses."""
        return self.results | dict(zip(SOURCES, self.planes))


AnyFrame = FrameArrays[Any]  # in the memory of any device


class Frame(FrameArrays[np.ndarray]):
    """A frame in the pipeline, with its arrays on the host, reused for later frames."""

    spec: FrameSpec  # set when the frame enters the loop
    headers: SliceHeaders
    sei: bytes = b""  # the RBSP with the times of the frame, or empty

    def __init__(
        self, mb_width: int, mb_height: int, zeros: Zeros[np.ndarray] = np.zeros, has_b_frames: bool = False
    ) -> None:
        super().__init__(mb_width, mb_height, zeros, has_b_frames)
        size = Size(mb_width, mb_height)
        self.decoded: tuple[np.ndarray, np.ndarray] | None = None  # luma, chroma as References, if downloaded
        self.keep_reconstruction = True  # whether `decoded` of this frame is downloaded
        self.levels_packed = False  # the loop ran on GPUs: `levels` were downloaded packed (cuda_src/residual/compact.py)
        self.slice_data: np.ndarray = _allocate("slice_data", size, np.zeros)  # pages exist once written
        self.frame_params = np.zeros(HEADER_BITS + mb_height, np.int32)
        self.write_slices: Callable[[], None] = nothing  # the entropy stage, if the loop leaves it to a task
        self.unit_sizes: list[int] = []  # bytes of the NAL unit of each slice, once written
        self.has_sized_slices = False  # see sized_slices.py
        self.mb_ends: np.ndarray | None = None
        self.index = 0  # number of frames that entered before it
        self.ring_slot = 0  # index in the ring of frames
        self.stage_seconds: dict[str, float] = {}
        self.is_padded = True  # `planes` are the source; of a HostFrame after `padding` alone

    def load(self, y: np.ndarray, u: np.ndarray, v: np.ndarray, copiers: Copiers | None = None) -> None:
        """Copy in a frame of display size; repeat its last column and row up to the coded size."""
        for plane, samples in zip(self.planes, (y, u, v)):
            _copy_padded(plane, samples)

    def load_rgb(self, source: RgbFrame, run: Run | None = None, threads: int = 1) -> bool:
        """As `load`, converted to BT.709; whether samples are far outside of their range. run, threads: see RgbFrame."""
        outside = source.convert(self.planes, run, threads)
        for plane, (height, width) in zip(self.planes, source.display):
            _pad(plane, height, width)
        return outside

    def display_planes(self, display: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
        """Y, Cb, Cr of the loaded source in display size; display: (height, width) of the planes."""
        return tuple(plane[:height, :width] for plane, (height, width) in zip(self.planes, display))

    def wide_planes(self) -> tuple[np.ndarray, ...]:
        """The source planes in coded width, with or without the rows that repeat the last one; contiguous."""
        return self.planes

    def write_params(self, list_numbers: bytes) -> None:
        """Write `frame_params`: what differs between frames of the same GPU recording. list_numbers: see params.py."""
        spec, bits = self.spec, () if self.has_sized_slices else self.headers.bits
        layout = _layout_of_params(len(list_numbers), len(bits))
        layout.pack_into(self.frame_params.data, 0, spec.qp, spec.cabac_init_idc, list_numbers, *bits)

    def complete(self) -> None:
        """Block until the source is copied in."""

    @property
    def refused(self) -> bool:
        """See HostFrame: sources on the host are refused before they enter."""
        return False

    def release_source(self) -> None:
        """The frame is finished: the caller's object is no longer needed."""

    def unpack_levels(self) -> None:
        """Unpack downloaded levels; nothing to do here."""

    def samples(self) -> tuple[np.ndarray, ...]:
        """The source planes in coded size; I_PCM takes its samples from them."""
        return self.planes

    def padding(self) -> list[Callable[[], None]]:
        """See HostFrame: nothing is left to do."""
        return []


class SourceBuffer:
    """Memory of a source of display size, and of the numbers that go with it, which one copy uploads; see HostFrame."""

    def __init__(self, mb_height: int, display: Sequence[tuple[int, int]], zeros: Zeros[np.ndarray]) -> None:
        self.upload = zeros(upload_shape(mb_height, display), np.uint8)
        self.source, self.numbers = split_upload(self.upload, display)
        self.frame_params, _ = split_numbers(self.numbers, mb_height)
        self.memory = self.numbers.data
        self.planes = split_planes(self.source, display)
        self.target = Target(self.planes)
        self.number = -1  # of the frame in it, as its owner counts


class HostFrame(Frame):
    """The host arrays of a frame whose loop runs on a GPU: uploaded source and downloaded results.

    upload          uint8[n]: source, frame_params and the QPs of macroblocks, which one copy uploads
    input_planes    y, u, v of display size, views of source: uint8[m]
    slice_data, level_blocks    arrays of the table; level_blocks is empty unless by_rows
    outside         int32[1], 1 if samples of a source on the GPU are far outside of the range of values
    upload_fence    int64[1], READY when the source is complete: an upload can wait for it
                    (scheduler/threads/copy_kernels.py); or None
    """

    def __init__(
        self, mb_width: int, mb_height: int, zeros: Zeros[np.ndarray], display: Sequence[tuple[int, int]],
        by_rows: bool = False, with_levels: bool = False, has_b_frames: bool = False,
    ) -> None:  # fmt: skip
        """by_rows: any rows of any array may be copied to or from a GPU; else planes stay on the host, and levels unless
        with_levels.
        """
        self._size, self.with_levels = (mb_width, mb_height), with_levels
        shapes = (1, 3) if with_levels else (1,)  # numbers of dimensions of the arrays that are downloaded
        super().__init__(
            mb_width,
            mb_height,
            lambda shape, dtype: (zeros if by_rows or len(shape) in shapes else lazy_zeros)(shape, dtype),
            has_b_frames,
        )
        size = Size(mb_width, mb_height)
        self.slice_data = _allocate("slice_data", size, zeros)
        self.level_blocks = _allocate("level_blocks", size if by_rows else Size(0, 0), zeros if by_rows else np.zeros)
        self._dirty_blocks = np.zeros(size.n_mb, np.uint32)  # bit mask of the blocks of `levels` that may be non-zero
        self._take(SourceBuffer(mb_height, display, zeros))
        self.is_padded = False
        self.device_source: DeviceFrame | None = None  # the source, if it is on the GPU
        self.outside = zeros((1,), np.int32)
        self.upload_fence: np.ndarray | None = None
        self._copying: Copiers | None = None  # the threads that copy the source, until `complete`

    def load(self, y: np.ndarray, u: np.ndarray, v: np.ndarray, copiers: Copiers | None = None) -> None:
        """Copy a frame of display size to its upload buffer; `copiers`: threads that copy parts of a large frame.

        With an upload fence the copy runs in threads and ends with `complete`: the planes must not change until then.
        """
        self.loaded()
        if copiers is None or self.source.size < LEAST_SHARED_BYTES:
            for target, plane in zip(self.input_planes, (y, u, v)):
                np.copyto(target, plane)
        elif self.upload_fence is None or not copiers.helps:
            copiers.copy(self.buffer.target, (y, u, v))
        else:
            self._copying = copiers
            copiers.begin(self.buffer.target, (y, u, v), self.upload_fence)

    def exchange(self, buffer: "SourceBuffer") -> "SourceBuffer":
        """Take a loaded buffer, without a copy, for the frame's own, which is returned; `loaded` follows."""
        before = self.buffer
        self._take(buffer)
        return before

    def _take(self, buffer: "SourceBuffer") -> None:
        self.buffer = buffer
        self.upload, self.source, self.frame_params = buffer.upload, buffer.source, buffer.frame_params
        self.input_planes = buffer.planes

    def load_rgb(self, source: RgbFrame, run: Run | None = None, threads: int = 1) -> bool:
        """See Frame: into the upload buffer."""
        self.loaded()
        return source.convert(self.input_planes, run, threads)

    def write_params(self, list_numbers: bytes) -> None:
        """See Frame; QPs of macroblocks too, as load_i420 reads them: all numbers of the buffer in one step."""
        spec, bits, buffer = self.spec, () if self.has_sized_slices else self.headers.bits, self.buffer
        qp, mb_qp = spec.qp, spec.mb_qp
        layout = _layout_of_numbers(len(list_numbers), len(bits), buffer.frame_params.nbytes, len(mb_qp))
        layout.pack_into(buffer.memory, 0, qp, spec.cabac_init_idc, list_numbers, *bits, -1 if mb_qp else qp, mb_qp)

    def loaded(self) -> None:
        """The source is in the upload buffer."""
        self.complete()
        self.is_padded = False
        self.device_source = None

    def display_planes(self, display: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...]:
        """See Frame."""
        return self.input_planes

    def wide_planes(self) -> tuple[np.ndarray, ...]:
        """See Frame: the upload buffer, if nothing is repeated at the right."""
        if self.is_padded or self.input_planes[0].shape[1] % 16:
            return self.samples()
        self.complete()
        return self.input_planes

    @property
    def pending_fence(self) -> np.ndarray | None:
        """The fence that the upload has to wait for; None if the source is complete."""
        return self.upload_fence if self._copying is not None else None

    def host_buffers(self) -> list[np.ndarray]:
        """The buffers that the GPU reads and writes, always in the same order."""
        optional = [self.upload_fence, *(self.decoded or ())]
        levels = [self.levels] if self.with_levels else []
        given = [array for array in optional if array is not None]
        return [self.upload, self.block, self.slice_data, *levels, *given]

    def complete(self) -> None:
        """See Frame. The arguments of `load` may change afterwards."""
        if self._copying is not None:
            assert self.upload_fence is not None
            self._copying.end(self.upload_fence)
            self._copying = None

    def load_from_gpu(self, source: DeviceFrame) -> None:
        """The source is on the GPU; with by_rows its planes are downloaded with the results (I_PCM needs the samples)."""
        self.complete()
        self.device_source = source
        self.is_padded = True
        self.outside[0] = 0

    def release_source(self) -> None:
        """See Frame; `device_source` still says that the source is not on the host."""
        if self.device_source is not None and self.device_source.frame is not None:
            self.device_source = replace(self.device_source, frame=None)

    @property
    def refused(self) -> bool:
        """Whether the source was on the GPU, and samples of it are far outside of the range that they must have."""
        source = self.device_source
        if source is None or not source.checked:
            return False
        return bool((self.outside if source.buffered is None else source.buffered.outside)[0])

    def samples(self) -> tuple[np.ndarray, ...]:
        """See Frame; padded at the first call."""
        for part in self.padding():
            part()
        self.is_padded = True
        return self.planes

    def padding(self) -> list[Callable[[], None]]:
        """What is left to do before `planes` are the source and `is_padded` is set, in parts that may run concurrently."""
        self.complete()
        if self.is_padded:
            return []
        half = self.input_planes[0].shape[0] // 2
        (luma, display), *chroma = zip(self.planes, self.input_planes)
        pairs = [(luma[:half], display[:half]), (luma[half:], display[half:]), *chroma]
        return [partial(_copy_padded, *pair) for pair in pairs]

    def mark_levels_dirty(self, row0: int = 0, row1: int | None = None) -> None:
        """`levels` of macroblock rows [row0, row1) are written in full: mark all their blocks as possibly non-zero, so that
        the next unpack clears them."""
        width, height = self._size
        self._dirty_blocks[width * row0 : width * (height if row1 is None else row1)] = (1 << N_LEVEL_BLOCKS) - 1

    def unpack_levels(self) -> None:
        """Unpack the downloaded blocks into `levels`, if they were packed."""
        if not self.levels_packed:
            return
        from ...cpu_simd.residual.expand import expand  # for device hybrid only

        mb_width, mb_height = self._size
        expand(self.level_index, self.level_blocks, mb_width, 0, mb_height, self._dirty_blocks, self.levels)


def nothing() -> None:
    """What is left to do where all is done: of the entropy stage, of a copy."""


def _copy_padded(plane: np.ndarray, samples: np.ndarray) -> None:
    """Copy a plane of display size, or the last rows of it; repeat its last column and row."""
    if plane.shape == samples.shape:
        np.copyto(plane, samples)
    else:
        height, width = samples.shape
        plane[:height, :width] = samples
        _pad(plane, height, width)


def _pad(plane: np.ndarray, height: int, width: int) -> None:
    """Repeat the last column and row up to the coded size; height, width: of the display area of the plane."""
    if width < plane.shape[1]:
        plane[:height, width:] = plane[:height, width - 1 : width]
    if height < plane.shape[0]:
        plane[height:] = plane[height - 1]


def lazy_zeros(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """As np.zeros, for arrays that most frames never use: their pages exist once written.

    np.zeros may take memory that was freed before, and clears it.
    """
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LAZY or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype).reshape(shape)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def upload_shape(mb_height: int, display: Sequence[tuple[int, int]]) -> tuple[int]:
    """Shape of an upload buffer, uint8; display: (height, width) of the planes.

    The samples come first, at the start of a page, where files are read faster (benchmarks/results).
    """
    sizes = sum(height * width for height, width in display), _params_size(mb_height), 4 + mb_height * -(-display[0][1] // 16)
    return (sum(map(_aligned, sizes)),)


def split_upload(upload: A, display: Sequence[tuple[int, int]]) -> tuple[A, A]:
    """Views of an upload buffer: the samples of the source and the numbers, uint8[n]."""
    samples = sum(height * width for height, width in display)
    return upload[:samples], upload[_aligned(samples) :]


def split_numbers(numbers: A, mb_height: int) -> tuple[A, A]:
    """Views of them: frame_params int32[>= HEADER_BITS + mb_height]; load_qp, the QP of all macroblocks, int32, or -1 before
    uint8[n_mb], that of each.
    """
    behind, int32 = _aligned(_params_size(mb_height)), np.dtype(np.int32)
    return numbers[:behind].view(int32), numbers[behind:].view(int32)


@lru_cache
def _layout_of_params(size: int, slices: int) -> struct.Struct:
    """frame_params with a list_numbers of `size` bytes."""
    return struct.Struct(f"2i{size}s{slices}i")


@lru_cache
def _layout_of_numbers(size: int, slices: int, params: int, n_mb: int) -> struct.Struct:
    """frame_params, of `params` bytes with a list_numbers of `size` bytes, then load_qp; n_mb: 0 for one QP of all."""
    return struct.Struct(f"2i{size}s{slices}i{params - 8 - size - 4 * slices}xi{n_mb}s")


def _params_size(mb_height: int) -> int:
    return 4 * (HEADER_BITS + mb_height)


def split_planes(source: A, display: Sequence[tuple[int, int]]) -> tuple[A, ...]:
    """Views of the consecutive planes in `source`, uint8[n]; display: (height, width) of each."""
    cuts = [0, *accumulate(height * width for height, width in display)]
    return tuple([source[a:b].reshape(*shape) for a, b, shape in zip(cuts, cuts[1:], display)])


def _allocate(name: str, size: Size, zeros: Zeros[A], more: tuple[int, ...] = ()) -> A:
    """An array of the table; more: sizes of axes before its own."""
    return zeros(more + ARRAYS[name].shape(size), ARRAYS[name].dtype)


@dataclass(eq=False)
class References(Generic[A]):
    """The decoded picture buffer: deblocked frames with borders, and their motion for B frames, by slot.

    luma    Sample[n_slots, 4, H + 2 pad, W + 2 pad]  integer samples G and half samples b, h, j (Figure 8-4)
    chroma  Sample[n_slots, 2, H/2 + pad, W/2 + pad]  Cb, Cr; both by POOLS of scheduler/arrays.py
    """

    luma: A
    chroma: A
    kept: list[dict[str, A]]  # arrays of role KEPT, by slot and name

    @classmethod
    def allocate(cls, n_slots: int, size: Size, zeros: Zeros[A]) -> "References[A]":
        """`n_slots` frames."""
        kept = [{name: _allocate(name, size, zeros) for name in of_roles(KEPT)} for _ in range(n_slots)]
        return cls(kept=kept, **{pool: zeros(pool_shape(pool, n_slots, size), Sample) for pool in POOLS})

    def planes(self, slot: int) -> tuple[A, A]:
        """Luma and chroma of a slot."""
        return self.luma[slot], self.chroma[slot]

    def motion(self, slot: int) -> dict[str, A]:
        """Motion of the frame in a slot, by name."""
        return self.kept[slot]


class Workspace(Generic[A]):
    """Intermediate arrays between the stages of a frame; one set, since one frame at a time is in the loop."""

    def __init__(self, size: Size, n_ref: int, zeros: Zeros[A]) -> None:
        names = of_roles(WORKSPACE, TICKETS, BIPREDICTION)
        self._arrays: dict[str, A] = {name: _allocate(name, size, zeros) for name in names}
        self._searches: dict[str, A] = {name: _allocate(name, size, zeros, (n_ref,)) for name in of_roles(SEARCH)}
        for view in VIEWS.values():
            (name, number), *_ = view.of
            if number == ALL_REFS and name in self._searches:
                self._arrays[view.name] = self._searches[name]

    def arrays(self) -> dict[str, A]:
        """The arrays by the names that the stage table uses; those of one reference are in `of_reference`."""
        return self._arrays

    def of_reference(self, ref: int) -> dict[str, A]:
        """The arrays of the search in RefPicList0[ref]."""
        return {name: array[ref] for name, array in self._searches.items()}
