"""The format of samples: their type and bit depth, and the size of chroma beside luma (clause 6.2): 8 bits, 4:2:0.

What handles samples takes these names: the CPU's kernels, tables of arrays, input, the decoder; the GPU's kernels as
sample_format.cuh. docs/kernels.md says which files need more than names for another format.
"""

import numpy as np

# 7.4.2.1.1: BitDepthY and BitDepthC, which are equal. Sample: in memory. SAMPLE_MIDDLE: what intra prediction takes where no
# samples are available (8.3.1.2.3).
Sample = np.uint8
BIT_DEPTH = 8
SAMPLE_MAX = (1 << BIT_DEPTH) - 1
SAMPLE_MIDDLE = 1 << (BIT_DEPTH - 1)

# Table 6-1: luma samples a chroma sample, across and down. (6-1), (6-2): sides of a macroblock in chroma samples.
SUB_WIDTH_C, SUB_HEIGHT_C = 2, 2
MB_WIDTH_C = 16 // SUB_WIDTH_C
MB_HEIGHT_C = 16 // SUB_HEIGHT_C
MB_SAMPLES = 16 * 16 + 2 * MB_WIDTH_C * MB_HEIGHT_C  # of a macroblock: Y, Cb, Cr


def chroma_shape(height: int, width: int) -> tuple[int, int]:
    """(height, width) of a chroma plane beside luma of any size: an odd last column or row counts as a whole one."""
    return -(-height // SUB_HEIGHT_C), -(-width // SUB_WIDTH_C)
