"""Inter macroblocks on the GPU, prediction to reconstruction: launches inter_residual.cu, in B frames inter_residual_b.cu."""

from typing import Any

from ...cpu_simd.bundles import CodingTools, Motion, Planes, Quantiser, References, Residual
from ...cpu_simd.decisions.quantise import ROUNDING
from ..runtime.array import Stream

WARPS_OF_ONE, WARPS_OF_CHOICE = 4, 8  # of a block, with one transform and with the choice of it
DEAD_ZONE_BITS = 24  # of a dead zone as kernels have it


def fraction(dead_zone: int) -> int:
    """A dead zone in 1 / ROUNDING of a step -> in 1 / 2^DEAD_ZONE_BITS."""
    return (dead_zone << DEAD_ZONE_BITS) // ROUNDING


def inter_residual(
    source: Planes,
    references: References,
    motion: Motion,
    quantiser: Quantiser,
    tools: CodingTools,
    row0: int,
    row1: int,
    rec: Planes,
    residual: Residual,
    stream: Stream | None = None,
) -> None:
    """8.4, 8.5: twin of cpu_simd.residual.inter_residual.inter_residual."""
    grid, threads, arguments = of_frame(source, references, motion, quantiser, tools, (row0, row1), rec, residual)
    module = "residual/inter_residual_b" if references.n_ref1 else "residual/inter_residual"
    kernel = module.rpartition("/")[2] + ("_8x8" if tools.transform_8x8_mode else "")
    kernel += "_trellis" if tools.trellis and tools.cabac else ""
    if quantiser.has_scaling_lists:
        kernel, arguments = kernel + "_lists", [*arguments, quantiser.scaling]
    source.y.device.launch(module, kernel, grid, threads, arguments, stream)


def of_frame(
    source: Planes,
    references: References,
    motion: Motion,
    quantiser: Quantiser,
    tools: CodingTools,
    rows: tuple[int, int],
    rec: Planes,
    residual: Residual,
) -> tuple[tuple[int, int], tuple[int], list[Any]]:
    """Grid, threads of a block and first arguments of the kernels of both files, P and B frames."""
    height, width = source.y.shape
    mb_width, mb_height = width // 16, height // 16
    arguments: list[Any] = [*source, references.luma, references.chroma, references.slots, references.weights, references.pad]
    arguments += [mb_width, mb_height, rows[0], quantiser.chroma_offset, tools.trellis, fraction(tools.dead_zone_inter)]
    arguments += [motion.sub_mb_type, quantiser.qp, motion.mb_type, motion.ref_idx, motion.mv, *rec, *residual]
    if references.n_ref1:
        arguments += [motion.ref_idx1, motion.mv1, references.bi_weights, references.n_ref, references.n_ref1]
    warps = WARPS_OF_CHOICE if tools.transform_8x8_mode else WARPS_OF_ONE
    return (-(-mb_width // warps), rows[1] - rows[0]), (32 * warps,), arguments
