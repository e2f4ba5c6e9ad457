"""Inter macroblocks on the GPU, each with the QP near its own that costs least: launches inter_residual_qp.cu, in B frames
inter_residual_qp_b.cu."""

from ...cpu_simd.bundles import CodingTools, Motion, Planes, Quantiser, References, Residual
from ..runtime.array import Stream
from .inter_residual import of_frame


def inter_residual_qp(
    source: Planes,
    references: References,
    motion: Motion,
    quantiser: Quantiser,
    tools: CodingTools,
    least_qp: int,
    most_qp: int,
    row0: int,
    row1: int,
    rec: Planes,
    residual: Residual,
    stream: Stream | None = None,
) -> None:
    """8.4, 8.5: twin of cpu_simd.residual.inter_residual_qp.inter_residual_qp."""
    grid, threads, arguments = of_frame(source, references, motion, quantiser, tools, (row0, row1), rec, residual)
    arguments += [quantiser.qp, least_qp, most_qp]
    module = "residual/inter_residual_qp_b" if references.n_ref1 else "residual/inter_residual_qp"
    kernel = module.rpartition("/")[2] + ("_8x8" if tools.transform_8x8_mode else "")
    if quantiser.has_scaling_lists:
        kernel, arguments = kernel + "_lists", [*arguments, quantiser.scaling]
    source.y.device.launch(module, kernel, grid, threads, arguments, stream)
