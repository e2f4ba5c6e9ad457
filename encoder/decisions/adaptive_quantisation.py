"""Adaptive quantisation: a QP for each macroblock by the AC energy of its source. Integers alone: the same on every machine.

Flat macroblocks, where errors are seen most, get a lower QP than busy ones. The formulas are x264's, in fixed point.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...cpu_simd.ac_energy import ac_energies
from ...cpu_simd.bundles import Planes
from ...cpu_simd.steady_qp import steady_qps
from ...scheduler.frame_spec import FrameSpec
from ..settings.config import Config
from .fixed_point import LOG2_SHIFT, QP_SHIFT, exp2_array, log2_array

OFF, BY_VARIANCE, BY_FRAME, DARK_FINER = range(4)  # --aq-mode
QP_ONE = 1 << QP_SHIFT  # units of QPs and offsets a QP
REACH = 192  # saves 0.3 % of the bits at equal SSIM (docs/compression.md)
_ONE = 1 << LOG2_SHIFT
# of the formulas: QPs a bit of energy, and the log2 of the energy whose QP stays; mean squared eighth root that stays
_SLOPE, _NEUTRAL = round(1.0397 * _ONE), round(14.427 * _ONE)
_NEUTRAL_SQUARE = 14


class AqSettings(NamedTuple):
    """mode: --aq-mode; strength: --aq-strength in 1 / 256."""

    mode: int
    strength: int

    @classmethod
    def of(cls, config: Config) -> "AqSettings":
        """Those of an encode."""
        return cls(config.aq_mode, round(256 * config.aq_strength))


def with_mb_qp(spec: FrameSpec, energy: np.ndarray, settings: AqSettings, low: int = 0, high: int = 51) -> FrameSpec:
    """The spec of a frame with a QP for each macroblock. energy: int32[n_mb], see `energies`; low, high: see `mb_qps`."""
    return spec._replace(mb_qp=mb_qps(QP_ONE * spec.qp, aq_offsets(energy, settings), low, high).tobytes())


def energies(planes: Sequence[np.ndarray]) -> np.ndarray:
    """int32[n_mb]: AC energy of each macroblock. planes: Y, Cb, Cr, uint8, contiguous, in coded width; of coded
    height, or of display height: the last row goes on below.
    """
    height, width = planes[0].shape
    rows = -(-height // 16)
    energy = np.empty(rows * width // 16, np.int32)
    ac_energies(Planes(*planes), 0, rows, energy)
    return energy


def in_coded_size(planes: Sequence[np.ndarray], size: tuple[int, int]) -> list[np.ndarray]:
    """The planes Y, Cb, Cr of a frame of display size, continued to coded size (height, width) by their last samples."""
    found = []
    for plane, scale in zip(planes, (1, 2, 2)):
        missing = [(0, length // scale - own) for length, own in zip(size, plane.shape)]
        found.append(np.pad(plane, missing, mode="edge") if missing != [(0, 0), (0, 0)] else np.ascontiguousarray(plane))
    return found


def aq_offsets(energy: np.ndarray, settings: AqSettings) -> np.ndarray:
    """int32[n_mb]: offsets of QP_Y in 1 / QP_ONE, by the energies of all macroblocks of a frame (`energies`)."""
    if settings.mode == OFF:
        return np.zeros(energy.shape, np.int32)
    if settings.mode == BY_VARIANCE:
        offsets = (log2_array(np.maximum(energy, 1)) - _NEUTRAL) * _SLOPE >> LOG2_SHIFT
        return _scaled(offsets, settings.strength)
    root = exp2_array(log2_array(energy.astype(np.int64) + 1) >> 3)  # below 2^3
    mean, squares = int(root.sum()) // root.size, int((root * root >> LOG2_SHIFT).sum()) // root.size
    offsets = (mean * (root - mean) >> LOG2_SHIFT) + (squares - _NEUTRAL_SQUARE * _ONE >> 1)
    if settings.mode == DARK_FINER:
        offsets = offsets + _ONE - (_NEUTRAL_SQUARE * _ONE << LOG2_SHIFT) // (root * root >> LOG2_SHIFT)
    return _scaled(offsets, settings.strength)


def mb_qps(qp: int, offsets: np.ndarray, low: int = 0, high: int = 51) -> np.ndarray:
    """uint8[n_mb]: QP_Y of each macroblock, from the frame's QP and offsets int32[n_mb], both in 1 / QP_ONE.

    low, high: the limits of QP_Y. A macroblock keeps the QP of the one before it where that is at most REACH off.
    """
    first, wanted = qp + QP_ONE // 2 >> 8, np.clip(qp + offsets, QP_ONE * low, QP_ONE * high).astype(np.int32)
    found = np.empty(wanted.size, np.uint8)
    steady_qps(wanted, max(low, min(high, first)), REACH, found)
    return found


def mean_qp(spec: FrameSpec) -> int:
    """Of the macroblocks of a frame, in 1 / QP_ONE."""
    qps = np.frombuffer(spec.mb_qp, np.uint8)
    return QP_ONE * int(qps.sum(dtype=np.int64)) // qps.size if qps.size else QP_ONE * spec.qp


def shifted(spec: FrameSpec, by: int, low: int, high: int, qp_by: str) -> FrameSpec:
    """The spec with the QPs of all macroblocks higher by `by`, within low and high. qp_by: see FrameSpec."""
    if not by:
        return spec
    if not spec.mb_qp:
        return spec._replace(qp=min(high, max(low, spec.qp + by)), qp_by=qp_by)
    qps = np.clip(np.frombuffer(spec.mb_qp, np.uint8).astype(np.int64) + by, low, high)
    mean = (2 * int(qps.sum()) + qps.size) // (2 * qps.size)
    return spec._replace(qp=mean, mb_qp=qps.astype(np.uint8).tobytes(), qp_by=qp_by)


def _scaled(offsets: np.ndarray, strength: int) -> np.ndarray:
    """int32: offsets in 1 / _ONE times the strength, in 1 / QP_ONE."""
    return (offsets * strength + (_ONE >> 1) >> LOG2_SHIFT).astype(np.int32)
