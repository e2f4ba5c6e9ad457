"""Adaptive quantisation: a QP for each macroblock by the AC energy of its source. Integers alone: the same on every machine.

Flat macroblocks, where errors are seen most, get a lower QP than busy ones. The formulas are x264's, in fixed point.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...cpu_simd.bundles import Planes
from ...cpu_simd.decisions.adaptation import OFF
from ...cpu_simd.quantiser import aq_offsets as kernels
from ...cpu_simd.quantiser.decoded_qp import smoothed_qps
from ...cpu_simd.source.ac_energy import ac_energies
from ...jit.kernel import OneVersion
from ...scheduler.frame_spec import FrameSpec
from ...standard.sample_format import SUB_WIDTH_C
from ..settings.config import Config
from .fixed_point import QP_SHIFT

QP_ONE = 1 << QP_SHIFT  # units of QPs and offsets a QP
_smoothed_qps, _aq_offsets, _error_weights = map(OneVersion, (smoothed_qps, kernels.aq_offsets, kernels.error_weights))
REACH = 192  # saves 0.3 % of the bits at equal SSIM (benchmarks/results)


class AqSettings(NamedTuple):
    """mode: --aq-mode; strength: --aq-strength in 1 / 256."""

    mode: int
    strength: int

    @classmethod
    def of(cls, config: Config) -> "AqSettings":
        """Those of an encode."""
        return cls(config.coding.aq_mode, round(256 * config.coding.aq_strength))


def with_mb_qp(spec: FrameSpec, energy: np.ndarray, settings: AqSettings, low: int = 0, high: int = 51) -> FrameSpec:
    """The spec of a frame with a QP for each macroblock. energy: int32[n_mb], see `energies`; low, high: see `mb_qps`."""
    return spec._replace(mb_qp=mb_qps(QP_ONE * spec.qp, aq_offsets(energy, settings), low, high)[0].tobytes())


def energies(planes: Sequence[np.ndarray]) -> np.ndarray:
    """int32[n_mb]: AC energy of each macroblock. planes: Y, Cb, Cr, contiguous, in coded width; of coded
    height, or of display height: the last row goes on below.
    """
    height, width = planes[0].shape
    rows = -(-height // 16)
    energy = np.empty(rows * width // 16, np.int32)
    ac_energies(Planes(*planes), 0, rows, energy)
    return energy


def in_coded_width(planes: Sequence[np.ndarray], width: int) -> list[np.ndarray]:
    """The planes Y, Cb, Cr of a frame of display size, continued to a coded width by their last samples."""
    missing = [length - plane.shape[1] for plane, length in zip(planes, (width, *2 * (width // SUB_WIDTH_C,)))]
    return [
        np.pad(plane, ((0, 0), (0, more)), mode="edge") if more else np.ascontiguousarray(plane)
        for plane, more in zip(planes, missing)
    ]


def aq_offsets(energy: np.ndarray, settings: AqSettings) -> np.ndarray:
    """int32[n_mb]: offsets of QP_Y in 1 / QP_ONE, by the energies of all macroblocks of a frame (`energies`)."""
    offsets = np.zeros(energy.shape, np.int32)
    if settings.mode != OFF:
        _aq_offsets.call(energy, settings.mode, settings.strength, offsets)
    return offsets


def error_weights(offsets: np.ndarray) -> np.ndarray:
    """int32[n_mb]: what a cost is worth under these offsets, at finer steps more, in 1 / 65536."""
    weights = np.empty(offsets.shape, np.int32)
    _error_weights.call(offsets, weights)
    return weights


def mb_qps(
    qp: int, offsets: np.ndarray, low: int = 0, high: int = 51, more: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """uint8[n_mb]: QP_Y of each macroblock, from the frame's QP and offsets int32[n_mb], both in 1 / QP_ONE; and their sum.

    low, high: the limits of QP_Y; more: added to the offsets. A macroblock keeps the QP of the one before it where that is at
    most REACH off.
    """
    qps = np.empty(offsets.size, np.uint8)
    return qps, _smoothed_qps.call(qp, offsets, _no_offsets(offsets.size) if more is None else more, (low, high), REACH, qps)


@lru_cache(4)
def _no_offsets(n_mb: int) -> np.ndarray:
    """int32[n_mb]: zeros, which no caller changes."""
    return np.zeros(n_mb, np.int32)


def mean_qp(spec: FrameSpec) -> int:
    """Of the macroblocks of a frame, in 1 / QP_ONE."""
    qps = np.frombuffer(spec.mb_qp, np.uint8)
    return QP_ONE * int(qps.sum(dtype=np.int64)) // qps.size if qps.size else QP_ONE * spec.qp


def with_offsets(spec: FrameSpec, low: int, high: int) -> FrameSpec:
    """The spec with its qp_offsets added to the QPs of macroblocks, within low and high."""
    offsets = np.frombuffer(spec.qp_offsets, np.int8).astype(np.int32)
    before: np.ndarray | int = np.frombuffer(spec.mb_qp, np.uint8) if spec.mb_qp else spec.qp
    qps = np.clip(before + offsets, low, high).astype(np.uint8)
    return spec._replace(qp=(2 * int(qps.sum(dtype=np.int64)) + qps.size) // (2 * qps.size), mb_qp=qps.tobytes())


def shifted(spec: FrameSpec, by: int, low: int, high: int, qp_by: str) -> FrameSpec:
    """The spec with the QPs of all macroblocks higher by `by`, within low and high. qp_by: see FrameSpec."""
    if not by:
        return spec
    if not spec.mb_qp:
        return spec._replace(qp=min(high, max(low, spec.qp + by)), qp_by=qp_by)
    mb_qp = spec.mb_qp.translate(_translation(by, low, high))
    total, count = int(np.frombuffer(mb_qp, np.uint8).sum(dtype=np.uint32)), len(mb_qp)
    return spec._replace(qp=(2 * total + count) // (2 * count), mb_qp=mb_qp, qp_by=qp_by)


def _translation(by: int, low: int, high: int) -> bytes:
    """For bytes.translate: QPs higher by `by`."""
    by = min(256, max(-256, by))
    within = bytes([low]) * (256 + low) + bytes(range(low, high)) + bytes([high]) * (512 - high)  # of -256 .. 511
    return within[256 + by : 512 + by]
