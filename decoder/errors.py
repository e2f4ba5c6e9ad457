"""What can go wrong while decoding: a broken stream, or a tool of the standard that is not built."""

from ..standard.bits import BitstreamError

__all__ = ["CAUSES", "BitstreamError", "Lines", "StateError", "Unsupported"]

MOST_LINES = 100


class Unsupported(BitstreamError):
    """A stream that may be valid but uses a tool this decoder does not have; `tool` is its name."""

    def __init__(self, tool: str, position: int | None = None) -> None:
        super().__init__(f"not supported: {tool}", position)
        self.tool = tool


class StateError(RuntimeError):
    """Arrays that do not have the sizes that a kernel's parameters say: a defect of the decoder, and nothing is decoded."""


class Lines(list[str]):
    """Messages about a stream: the first hundred, then one that counts the others, so that memory is bounded."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0  # of all messages

    def add(self, line: str) -> None:
        """One more message."""
        self.total += 1
        more = self.total - MOST_LINES
        self[MOST_LINES:] = [line] if more <= 0 else [f"{more} more message{'s' * (more > 1)}"]


# Error codes that kernels return: they carry no strings. 0 is success.
(
    OK,
    E_END,
    E_GOLOMB,
    E_MB_TYPE,
    E_SUB_MB_TYPE,
    E_REF_IDX,
    E_MVD,
    E_MV,
    E_INTRA_MODE,
    E_CHROMA_MODE,
    E_CBP,
    E_QP_DELTA,
    E_COEFF_TOKEN,
    E_TOTAL_ZEROS,
    E_RUN_BEFORE,
    E_LEVEL,
    E_SKIP_RUN,
    E_OVERLAP,
    E_TOO_MANY,
    E_NO_REFERENCE,
    E_INTRA_NEIGHBOUR,
    E_NO_COLOCATED,
    E_CABAC,
) = range(23)

CAUSES = {
    E_END: "the data ends within a macroblock",
    E_GOLOMB: "no Exp-Golomb code",
    E_MB_TYPE: "mb_type is out of range",
    E_SUB_MB_TYPE: "sub_mb_type is out of range",
    E_REF_IDX: "ref_idx is beyond the reference list",
    E_MVD: "mvd is out of range",
    E_MV: "motion vector out of range",
    E_INTRA_MODE: "rem_intra_pred_mode is out of range",
    E_CHROMA_MODE: "intra_chroma_pred_mode is out of range",
    E_CBP: "coded_block_pattern is out of range",
    E_QP_DELTA: "mb_qp_delta is out of range",
    E_COEFF_TOKEN: "no such coeff_token",
    E_TOTAL_ZEROS: "no such total_zeros",
    E_RUN_BEFORE: "run_before goes beyond the block",
    E_LEVEL: "transform coefficient level out of range",
    E_SKIP_RUN: "mb_skip_run goes beyond the picture",
    E_OVERLAP: "the macroblock is coded twice",
    E_TOO_MANY: "macroblocks beyond the end of the picture",
    E_NO_REFERENCE: "prediction from a reference picture that does not exist",
    E_INTRA_NEIGHBOUR: "intra prediction from samples that are not available",
    E_NO_COLOCATED: "direct prediction without a co-located picture",
    E_CABAC: "the arithmetic codeword runs beyond the end of the slice",
}
