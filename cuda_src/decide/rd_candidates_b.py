"""True costs of the choices of B macroblocks on the GPU: launches rd_candidates_b.cu, or rd_candidates_b_vectors.cu."""

from ...cpu_simd.bundles import CodingTools, DecisionSettings, MovedCandidates, OtherCosts, Planes, Quantiser, References
from ...cpu_simd.decisions.decide import RD_B_DIVISIONS
from ..runtime.array import Stream

WARPS = 4


def rd_candidates_b(
    source: Planes,
    references: References,
    quantiser: Quantiser,
    settings: DecisionSettings,
    tools: CodingTools,
    row0: int,
    row1: int,
    candidates: MovedCandidates,
    other_costs: OtherCosts,
    stream: Stream | None = None,
) -> None:
    """Not part of the standard but for 8.4.1.2.2: twin of cpu_simd.decide.rd_candidates_b.rd_candidates_b."""
    height, width = source.y.shape
    mb_width, mb_height = width // 16, height // 16
    arguments = [*source, references.luma, references.chroma, references.slots, references.bi_weights, references.pad]
    arguments += [references.n_ref, references.n_ref1, quantiser.qp, quantiser.chroma_offset, settings.partition_mask]
    arguments += [settings.psy_rd, tools.transform_8x8_mode, mb_width, mb_height, row0, *candidates[:4], *other_costs]
    grid = (-(-mb_width // WARPS), row1 - row0)
    kernel, module = "rd_candidates_b_psy" if settings.psy_rd else "rd_candidates_b", "decide/rd_candidates_b"
    if settings.subme >= RD_B_DIVISIONS:
        kernel, module = kernel + "_vectors", module + "_vectors"
        arguments += [candidates.moved, settings.max_mv_y]
    if quantiser.has_scaling_lists:
        kernel, arguments = kernel + "_lists", [*arguments, quantiser.scaling]
    source.y.device.launch(module, kernel, grid, (32 * WARPS,), arguments, stream)
