"""True costs of divisions on the GPU: launches rd_candidates.cu, or rd_candidates_vectors.cu."""

from ...cpu_simd.bundles import CodingTools, DecisionSettings, OtherCosts, Planes, Quantiser, References, Searches
from ...cpu_simd.decisions.decide import RD_DIVISIONS
from ..runtime.array import Stream

WARPS = 4


def rd_candidates(
    source: Planes,
    references: References,
    quantiser: Quantiser,
    settings: DecisionSettings,
    tools: CodingTools,
    row0: int,
    row1: int,
    searches: Searches,
    other_costs: OtherCosts,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.decide.rd_candidates.rd_candidates."""
    height, width = source.y.shape
    mb_width, mb_height = width // 16, height // 16
    arguments = [*source, references.luma, references.chroma, references.slots, references.weights, references.pad]
    arguments += [references.n_ref, quantiser.qp, quantiser.chroma_offset, settings.partition_mask, settings.subme]
    arguments += [settings.max_mv_y, settings.psy_rd, tools.transform_8x8_mode]
    arguments += [mb_width, mb_height, row0, *searches[:2], searches.predictor, *other_costs]
    grid = (-(-mb_width // WARPS), row1 - row0)
    kernel, module = "rd_candidates_psy" if settings.psy_rd else "rd_candidates", "decide/rd_candidates"
    if settings.subme >= RD_DIVISIONS:
        kernel, module = kernel + "_vectors", module + "_vectors"
    if quantiser.has_scaling_lists:
        kernel, arguments = kernel + "_lists", [*arguments, quantiser.scaling]
    source.y.device.launch(module, kernel, grid, (32 * WARPS,), arguments, stream)
