"""Statistics of an encode: per frame, and a summary in x264's wording."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby, repeat
from math import inf, log10, prod
from typing import Any, NamedTuple

import numpy as np

from ..standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    I_PCM,
    MB_TYPE_NAMES,
    P_SKIP,
    B_8x8,
    B_8x16,
    B_16x8,
    B_16x16,
    I_4x4,
    I_8x8,
    I_16x16,
    P_8x8,
    P_8x16,
    P_16x8,
    P_16x16,
)
from ..standard.sample_format import SAMPLE_MAX, chroma_shape
from .encoded_frame import EncodedFrame, InBuffer

# Macroblock types with a count of their own, in the order of the columns
COUNTED_TYPES = (
    I_4x4, I_8x8, I_16x16, I_PCM, P_SKIP, P_16x16, P_16x8, P_8x16, P_8x8,
    B_SKIP, B_DIRECT, B_16x16, B_16x8, B_8x16, B_8x8,
)  # fmt: skip
_INTER = [mb_type for mb_type in COUNTED_TYPES if mb_type > I_PCM and mb_type not in (P_SKIP, B_SKIP)]
# Results of a frame (scheduler/arrays.py) whose sums over the frame are columns of the CSV file, in their order
SUMMED: tuple[str, ...] = ()
KINDS = ("headers", "vectors", "luma", "chroma")  # of bits
_TOGETHER = 64  # frames of a type whose numbers are summed at once
_NO_RANGE = 51, 0  # of QPs, with that of any frame it is that of the frame
# Columns of InBuffer: bits in the buffer at the removal of the frame, left then, its size; bytes of filler data; encodes
IN_BUFFER = ("buffer_bits", "buffer_left", "buffer_size", "filler", "tries")
_LARGEST_PSNR = 100.0  # x264's value for identical planes
SSIM_DEFINITION = "luma, 8x8 windows, 4 apart"


class FrameRow(NamedTuple):
    """One frame, a row of the CSV file."""

    frame: int  # in display order
    coded: int  # in coding order, that of the rows
    type: str
    idr: int
    qp: float
    qp_range: tuple[int, int]
    qp_by: str  # what the QP follows from: type, complexity, tree, zone, request, bitrate, buffer
    bytes: int
    psnr_y: float
    psnr_u: float
    psnr_v: float
    psnr: float  # over all samples of the frame
    ssim: float | None
    mb_counts: tuple[int, ...]  # by mb_type
    transform_8x8: int  # macroblocks with transform_size_8x8_flag
    bits_by_kind: tuple[int, ...] | None  # as KINDS
    in_buffer: InBuffer | None
    predicted: int  # bits; 0: nothing predicts them
    sums: list[int]  # of the arrays SUMMED

    @staticmethod
    def header() -> list[str]:
        """Column names of `cells`."""
        return [
            "frame",
            "coded",
            "type",
            "idr",
            "qp",
            "qp_least",
            "qp_most",
            "qp_by",
            "bytes",
            "psnr_y",
            "psnr_u",
            "psnr_v",
            "psnr",
            "ssim",
            *(MB_TYPE_NAMES[mb_type] for mb_type in COUNTED_TYPES),
            "transform_8x8",
            *(f"bits_{kind}" for kind in KINDS),
            *IN_BUFFER,
            "bits_predicted",
            *SUMMED,
        ]

    def cells(self) -> list[str]:
        """The row as text."""
        values = [f"{value:.4f}" for value in (self.psnr_y, self.psnr_u, self.psnr_v, self.psnr)]
        ssim = "" if self.ssim is None else f"{self.ssim:.7f}"
        qp = f"{self.qp:.2f}", *map(str, self.qp_range), self.qp_by
        return [
            str(self.frame),
            str(self.coded),
            self.type,
            str(self.idr),
            *qp,
            str(self.bytes),
            *values,
            ssim,
            *(str(self.mb_counts[mb_type]) for mb_type in COUNTED_TYPES),
            str(self.transform_8x8),
            *map(str, self.bits_by_kind or ("",) * len(KINDS)),
            *map(str, self.in_buffer or ("",) * len(IN_BUFFER)),
            str(self.predicted or ""),
            *map(str, self.sums),
        ]


def psnr(ssd: float, samples: int) -> float:
    """Peak signal-to-noise ratio in dB of a sum of squared differences over samples; at most 100."""
    return _LARGEST_PSNR if ssd <= 0 else min(_LARGEST_PSNR, 10 * log10(SAMPLE_MAX**2 * samples / ssd))


def ssim(first: np.ndarray, second: np.ndarray) -> float:
    """Structural similarity of two planes: mean over 8x8 windows 4 samples apart, from integer sums.

    A plane smaller than a window is padded with its edge samples; samples beyond the last whole window do not count.
    """

    def sums(values: np.ndarray) -> np.ndarray:
        """Sums over 4x4 blocks, then over 2x2 of those blocks."""
        height, width = values.shape[0] // 4 * 4, values.shape[1] // 4 * 4
        rows = values[0:height:4] + values[1:height:4] + values[2:height:4] + values[3:height:4]
        blocks = (rows[:, 0:width:4] + rows[:, 1:width:4] + rows[:, 2:width:4] + rows[:, 3:width:4]).astype(np.int64)
        return blocks[:-1, :-1] + blocks[1:, :-1] + blocks[:-1, 1:] + blocks[1:, 1:]

    short = [(0, max(0, 8 - length)) for length in first.shape]
    # 32 bits hold the sum of 16 squares of both, and adding rows and columns takes a third of the time of sums over axes
    a, b = (np.pad(plane, short, mode="edge").astype(np.uint32) for plane in (first, second))
    n = 64
    c1, c2 = (0.01 * SAMPLE_MAX) ** 2 * n * n, (0.03 * SAMPLE_MAX) ** 2 * n * (n - 1)
    sum_a, sum_b = sums(a), sums(b)
    variances = n * sums(a * a + b * b) - sum_a**2 - sum_b**2
    covariance = n * sums(a * b) - sum_a * sum_b
    luminance = (2 * sum_a * sum_b + c1) / (sum_a**2 + sum_b**2 + c1)
    return float((luminance * (2 * covariance + c2) / (variances + c2)).mean())


def _both(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return min(first[0], second[0]), max(first[1], second[1])


@dataclass(eq=False, repr=False)
class _Sums:
    """Sums over the frames of one type, or all."""

    frames: int = 0
    bytes: int = 0
    qp: float = 0.0
    qp_range: tuple[int, int] = _NO_RANGE
    spread: int = 0  # largest QP minus the least of each frame
    qp_by: Counter[str] = field(default_factory=Counter)  # frames by what their QPs follow from
    ssd: list[int] = field(default_factory=lambda: [0, 0, 0, 0])  # Y, U, V, all
    psnr: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])  # as ssd
    ssim: float = 0.0
    mbs: np.ndarray = field(default_factory=lambda: np.zeros(len(MB_TYPE_NAMES), np.int64))
    transform_8x8: int = 0
    predicted: int = 0  # bits
    bits_by_kind: np.ndarray = field(default_factory=lambda: np.zeros(len(KINDS), np.int64))

    def add(self, frames: Sequence[tuple[Any, ...]], samples: Sequence[int]) -> None:
        """Add frames, see Statistics.add; samples: of the planes, and of all."""
        sizes, qps, ranges, reasons, errors, ratios, counts, transforms, predicted, shares = zip(*frames)
        least, most = zip(*ranges)
        self.frames += len(frames)
        self.bytes = sum(sizes, self.bytes)
        self.qp = sum(qps, self.qp)
        self.qp_range = _both((min(least), max(most)), self.qp_range)
        self.spread = sum(most, self.spread) - sum(least)
        self.qp_by.update(reasons)
        planes = *zip(*errors), [sum(of_planes) for of_planes in errors]
        self.ssd = [sum(ssds, before) for ssds, before in zip(planes, self.ssd)]
        self.psnr = [sum(map(psnr, ssds, repeat(n)), before) for ssds, n, before in zip(planes, samples, self.psnr)]
        self.ssim = sum(ratios, self.ssim)
        self.mbs += np.concatenate(counts).reshape(len(frames), -1).sum(0)
        self.transform_8x8 = sum(transforms, self.transform_8x8)
        self.predicted = sum(predicted, self.predicted)
        if known := [bits for bits in shares if bits is not None]:
            self.bits_by_kind += np.sum(known, 0)

    def __add__(self, other: "_Sums") -> "_Sums":
        return _Sums(
            self.frames + other.frames,
            self.bytes + other.bytes,
            self.qp + other.qp,
            _both(self.qp_range, other.qp_range),
            self.spread + other.spread,
            self.qp_by + other.qp_by,
            [a + b for a, b in zip(self.ssd, other.ssd)],
            [a + b for a, b in zip(self.psnr, other.psnr)],
            self.ssim + other.ssim,
            self.mbs + other.mbs,
            self.transform_8x8 + other.transform_8x8,
            self.predicted + other.predicted,
            self.bits_by_kind + other.bits_by_kind,
        )


@dataclass(eq=False, repr=False)
class BufferTotals:
    """Sums of InBuffer over the frames; fullness in bits, after the removal of a frame."""

    frames: int = 0
    size: int = 0
    least: int = 0
    sum: int = 0
    coded_again: int = 0  # frames that did not fit at first
    tries: int = 0  # encodes of frames, all together
    underflows: int = 0  # frames that came too late
    first_underflow: int | None = None
    filler: int = 0  # bytes

    def add(self, frame: int, in_buffer: InBuffer) -> None:
        """Add a frame, by its display index."""
        self.least = in_buffer.left if not self.frames else min(self.least, in_buffer.left)
        self.frames += 1
        self.size = in_buffer.size
        self.sum += in_buffer.left
        self.coded_again += in_buffer.tries > 1
        self.tries += in_buffer.tries
        self.filler += in_buffer.filler
        if in_buffer.left < 0:
            self.first_underflow = frame if self.first_underflow is None else self.first_underflow
            self.underflows += 1

    def lines(self) -> list[str]:
        """The buffer in words; nothing without one."""
        if not self.frames:
            return []
        text = f"buffer  least:{100 * self.least / self.size:5.1f}%  mean:{100 * self.sum / self.frames / self.size:5.1f}%"
        text += f"  coded again:{self.coded_again} frames, {self.tries - self.frames} times"
        text += f"  filler:{self.filler} bytes" if self.filler else ""
        text += f"  underflows:{self.underflows}, the first at frame {self.first_underflow}" if self.underflows else ""
        return [text]


class Statistics:
    """Sums finished frames, given in coding order; memory does not grow with their number."""

    def __init__(self, width: int, height: int, fps: Fraction, with_psnr: bool = True, with_ssim: bool = False):
        self.fps, self.with_psnr, self.with_ssim = fps, with_psnr, with_ssim
        y, chroma = width * height, prod(chroma_shape(height, width))
        self._samples = y, chroma, chroma, y + 2 * chroma  # of the planes, and of all
        self._size = (height, width)
        self.frames = self.bytes = 0  # finished frames, and the bytes of their access units
        self._by_type = {"I": _Sums(), "P": _Sums(), "B": _Sums()}
        self._waiting: dict[str, list[tuple[Any, ...]]] = {frame_type: [] for frame_type in self._by_type}
        self._sources: dict[int, np.ndarray] = {}  # luma of frames that are not finished, by display index
        self._expected = 0  # frames given to `expect`
        self._stage_seconds: dict[str, float] = {}
        self._waiting_seconds: list[dict[str, float]] = []  # those of frames whose numbers wait
        self.buffer = BufferTotals()

    def expect(self, luma: np.ndarray) -> None:
        """Keep the luma of a frame that enters the pipeline, in display order, if SSIM needs it."""
        if self.with_ssim:
            self._sources[self._expected] = luma.copy()
            self._expected += 1

    def add(self, frame: EncodedFrame) -> None:
        """Add a finished frame. Its numbers wait for those of others: sums of many take a third of the time."""
        if self.with_ssim:
            assert frame.reconstruction is not None
            height, width = self._size
            frame.ssim = ssim(self._sources.pop(frame.index), frame.reconstruction[0][:height, :width])
        if frame.in_buffer is not None:
            self.buffer.add(frame.index, frame.in_buffer)
        self._waiting_seconds.append(frame.stage_seconds)
        size, waiting = len(frame.data), self._waiting[frame.frame_type]
        waiting.append((
            size, frame.avg_qp, frame.qp_range, frame.qp_by, frame.ssd, frame.ssim or 0.0, frame.mb_counts,
            frame.transform_8x8, frame.predicted, frame.bits_by_kind,
        ))  # fmt: skip
        self.frames += 1
        self.bytes += size
        if len(waiting) == _TOGETHER:
            self._sums()

    @property
    def stage_seconds(self) -> dict[str, float]:
        """Of all frames, by stage."""
        self._sums()
        return self._stage_seconds

    def _sums(self) -> dict[str, _Sums]:
        """Those of each type."""
        waiting_seconds, self._waiting_seconds = self._waiting_seconds, []
        for stages, of_frames in groupby(waiting_seconds, tuple):
            for stage, seconds in zip(stages, zip(*(of_frame.values() for of_frame in of_frames))):
                self._stage_seconds[stage] = sum(seconds, self._stage_seconds.get(stage, 0.0))
        for frame_type, waiting in self._waiting.items():
            if waiting:
                self._waiting[frame_type] = []
                self._by_type[frame_type].add(waiting, self._samples)
        return self._by_type

    def row(self, frame: EncodedFrame) -> FrameRow:
        """The row of a frame that was added."""
        y, u, v, all_planes = map(psnr, (*frame.ssd, sum(frame.ssd)), self._samples)
        return FrameRow(
            frame.index,
            frame.coding_index,
            frame.frame_type,
            int(frame.is_idr),
            float(frame.avg_qp),
            frame.qp_range,
            frame.qp_by,
            len(frame.data),
            y,
            u,
            v,
            all_planes,
            frame.ssim,
            tuple(frame.mb_counts.tolist()),
            frame.transform_8x8,
            frame.bits_by_kind,
            frame.in_buffer,
            frame.predicted,
            frame.sums,
        )

    @property
    def _all(self) -> _Sums:
        return sum(self._sums().values(), _Sums())

    @property
    def kbps(self) -> float:
        """Kilobits (1000) a second of video."""
        return self.bytes * 8 * float(self.fps) / max(1, self.frames) / 1000

    def lines(self) -> list[str]:
        """The summary in x264's wording."""
        out = []
        by_type, total = self._sums().items(), self._all
        for frame_type, sums in by_type:
            if sums.frames:
                quality = f"  PSNR Mean {self._psnr_mean(sums)} Global:{self._global(sums):.2f}"
                quality = quality if self.with_psnr else ""
                out.append(
                    f"frame {frame_type}:{sums.frames:<5d} Avg QP:{sums.qp / sums.frames:5.2f}  "
                    f"size:{sums.bytes / sums.frames:6.0f}{quality}"
                )
        out += [f"mb {frame_type}  {_mb_percent(frame_type, sums.mbs)}" for frame_type, sums in by_type if sums.frames]
        if total.transform_8x8:
            out.append(_transform_percent(total))
        out += [_qps(frame_type, sums) for frame_type, sums in by_type if sums.qp_range[0] < sums.qp_range[1]]
        out += [_bits_percent(frame_type, sums.bits_by_kind) for frame_type, sums in by_type if sums.bits_by_kind.any()]
        if not self.frames:
            return out
        out += self.buffer.lines()
        if self.with_ssim:
            mean = total.ssim / self.frames
            out.append(f"SSIM Mean Y:{mean:.7f} ({_ssim_db(mean):.3f}db) [{SSIM_DEFINITION}]")
        if self.with_psnr:
            planes = [psnr(ssd, samples * self.frames) for ssd, samples in zip(total.ssd, self._samples)]
            out.append(f"PSNR Global Y:{planes[0]:.3f} U:{planes[1]:.3f} V:{planes[2]:.3f}")
            out.append(f"PSNR Mean {self._psnr_mean(total, 3)} Global:{self._global(total):.3f} kb/s:{self.kbps:.2f}")
        else:
            out.append(f"kb/s:{self.kbps:.2f}")
        return out

    def why(self) -> list[str]:
        """What the QPs of each type follow from, with the number of frames."""
        return [f"QP {frame_type}  by " + ", ".join(f"{name}: {count}" for name, count in sums.qp_by.most_common())
                for frame_type, sums in self._sums().items() if sums.frames]  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """The summary for programs."""
        result: dict[str, Any] = {"frames": self.frames, "bytes": self.bytes, "kbps": self.kbps, "fps": str(self.fps)}
        for frame_type, sums in (*self._sums().items(), ("all", self._all)):
            if not sums.frames:
                continue
            entry: dict[str, Any] = {"frames": sums.frames, "bytes": sums.bytes, "avg_qp": sums.qp / sums.frames,
                                     "qp_least": sums.qp_range[0], "qp_most": sums.qp_range[1],
                                     "qp_spread": sums.spread / sums.frames, "qp_by": dict(sums.qp_by)}  # fmt: skip
            if self.with_psnr:
                entry["psnr_mean"] = dict(zip("yuv", (p / sums.frames for p in sums.psnr[:3])))
                entry["psnr_mean"]["avg"] = sums.psnr[3] / sums.frames
                entry["psnr_global"] = {
                    **{name: psnr(s, n * sums.frames) for name, s, n in zip("yuv", sums.ssd, self._samples)},
                    "avg": self._global(sums),
                }
            if self.with_ssim:
                entry["ssim_mean_y"] = sums.ssim / sums.frames
            entry["macroblocks"] = {MB_TYPE_NAMES[mb_type]: int(sums.mbs[mb_type]) for mb_type in COUNTED_TYPES}
            entry["transform_8x8"] = sums.transform_8x8
            if sums.predicted:
                entry["bits_predicted"] = sums.predicted
            if sums.bits_by_kind.any():
                entry["bits_by_kind"] = dict(zip(KINDS, sums.bits_by_kind.tolist()))
            result[frame_type] = entry
        if self.with_ssim:
            result["ssim_definition"] = SSIM_DEFINITION
        if self.buffer.frames:
            result["buffer"] = vars(self.buffer)
        result["stage_seconds"] = dict(self.stage_seconds)
        return result

    def _psnr_mean(self, sums: _Sums, digits: int = 2) -> str:
        y, u, v, both = (total / sums.frames for total in sums.psnr)
        return f"Y:{y:.{digits}f} U:{u:.{digits}f} V:{v:.{digits}f} Avg:{both:.{digits}f}"

    def _global(self, sums: _Sums) -> float:
        return psnr(sums.ssd[3], self._samples[3] * sums.frames)


def _ssim_db(value: float) -> float:
    return inf if value >= 1 else -10 * log10(1 - value)


def _mb_percent(frame_type: str, mbs: np.ndarray) -> str:
    """Shares of the macroblock types: intra 16x16, 8x8 if any, 4x4, PCM if any; inter by size; skipped."""
    share = 100 * mbs / max(1, int(mbs.sum()))
    pcm = share[I_PCM] > 0
    text = f"I16..4{'..PCM' if pcm else ''}: {share[I_16x16]:4.1f}%"
    text += f" {share[I_8x8]:4.1f}%" if share[I_8x8] > 0 else ""
    text += f" {share[I_4x4]:4.1f}%"
    text += f" {share[I_PCM]:4.1f}%" if pcm else ""
    if frame_type == "P":
        text += f"  P16..8: {share[P_16x16]:4.1f}% {share[P_16x8] + share[P_8x16]:4.1f}% {share[P_8x8]:4.1f}%"
        text += f"  skip:{share[P_SKIP]:4.1f}%"
    if frame_type == "B":
        text += f"  B16..8: {share[B_16x16]:4.1f}% {share[B_16x8] + share[B_8x16]:4.1f}% {share[B_8x8]:4.1f}%"
        text += f"  direct:{share[B_DIRECT]:4.1f}%  skip:{share[B_SKIP]:4.1f}%"
    return text


def _qps(frame_type: str, sums: _Sums) -> str:
    """QPs of the macroblocks, and the mean of the largest minus the least of each frame."""
    return f"QP {frame_type}  {sums.qp_range[0]}..{sums.qp_range[1]}  within a frame:{sums.spread / sums.frames:5.1f}"


def _bits_percent(frame_type: str, bits: np.ndarray) -> str:
    shares = 100 * bits / bits.sum()
    return f"bits {frame_type}  " + "  ".join(f"{kind}:{share:5.1f}%" for kind, share in zip(KINDS, shares))


def _transform_percent(sums: _Sums) -> str:
    """Shares of the 8x8 transform: of the intra macroblocks without PCM, of the inter macroblocks without skipped ones."""
    mbs = sums.mbs
    intra, inter = mbs[[I_4x4, I_8x8, I_16x16]].sum(), mbs[_INTER].sum()
    shares = 100 * mbs[I_8x8] / max(1, intra), 100 * (sums.transform_8x8 - mbs[I_8x8]) / max(1, inter)
    return f"8x8 transform  intra:{shares[0]:5.1f}%  inter:{shares[1]:5.1f}%"
