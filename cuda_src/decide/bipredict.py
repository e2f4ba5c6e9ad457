"""Choices of B macroblocks in one or both lists on the GPU: launches bipredict.cu."""

from ...cpu_simd.bundles import Candidates, DecisionSettings, LumaReferences, Searches
from ...cpu_simd.decisions.decide import B_REFINED
from ..runtime.array import DeviceArray, Stream

WARPS = 4


def bipredict(
    source: DeviceArray,  # Sample[H, W]
    references: LumaReferences,
    searches: Searches,
    qp: DeviceArray,  # uint8[n_mb]
    settings: DecisionSettings,
    row0: int,
    row1: int,
    candidates: Candidates,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.decide.bipredict.bipredict."""
    height, width = source.shape
    mb_width, mb_height = width // 16, height // 16
    arguments = [source, references.luma, references.slots, references.bi_weights, references.pad, references.n_ref]
    arguments += [references.n_ref1, *searches, qp, int(settings.subme >= 3), int(settings.subme >= B_REFINED)]
    arguments += [settings.partition_mask, settings.max_mv_y, mb_width, mb_height, row0, *candidates]
    grid = (-(-mb_width // WARPS), row1 - row0)
    source.device.launch("decide/bipredict", "bipredict", grid, (32 * WARPS,), arguments, stream)
