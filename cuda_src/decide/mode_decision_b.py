"""Mode decision of B frames on the GPU: launches mode_decision_b.cu."""

import numpy as np

from ...cpu_simd.bundles import DecisionSettingsB, Motion, MovedCandidates, OtherCosts, Planes, References
from ...cpu_simd.decisions.common import BY_COST
from ...cpu_simd.decisions.decide import RD_B_DIVISIONS
from ..runtime.array import DeviceArray, Stream

COUNTERS, THREADS = 2, 128  # words of `progress`; threads of a row
HANDED = 4  # words of a macroblock for the row below: its lower quadrants in list 0, in list 1


def mode_decision_b(
    source: Planes,
    references: References,
    candidates: MovedCandidates,
    colocated_still: DeviceArray,  # uint8[n_mb]
    other_costs: OtherCosts,
    slice_first_mb: DeviceArray,  # int32[n_mb]
    settings: DecisionSettingsB,
    progress: object,  # for the CPU; not used here
    row0: int,
    row1: int,
    motion: Motion,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.decide.mode_decision_b.mode_decision_b."""
    height, width = source.y.shape
    device, rows = source.y.device, row1 - row0
    counters = device.scratch("progress of mode decision of B frames", (COUNTERS,), np.int32, stream, zeros=True)
    size = (rows * (width // 16) * HANDED,)
    handed = device.scratch("motion for the row below in mode decision of B frames", size, np.uint64, stream, zeros=True)
    by_cost = int(settings.subme >= BY_COST and settings.cabac != 0)
    arguments = [source.y, references.luma, references.slots, references.bi_weights, references.pad, references.n_ref]
    has_moved = int(by_cost and settings.subme >= RD_B_DIVISIONS)
    arguments += [references.n_ref1, *candidates, has_moved, colocated_still]
    arguments += [*other_costs, slice_first_mb, settings.qp, int(settings.subme >= 3), by_cost, settings.psy_rd]
    arguments += [settings.partition_mask, width // 16, height // 16, row0, counters, handed, *motion]
    device.launch("decide/mode_decision_b", "mode_decision_b", (rows,), (THREADS,), arguments, stream)
