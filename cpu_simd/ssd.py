"""Stage "ssd": squared error of the deblocked picture over the display area, for PSNR."""

import numpy as np

from ..standard.jit import kernel


@kernel
def ssd(source, decoded, border, height, width, unit, row0, row1, errors):
    """Not part of the standard: sum of squared differences of one plane, by macroblock row.

    source uint8[h, w]; decoded uint8[h + 2 border, w + 2 border]; height, width of the display area in samples of this
    plane; unit samples a macroblock row (16 luma, 8 chroma); errors int64[mb_height] out.
    """
    for row in range(row0, row1):
        total = 0
        for y in range(row * unit, min(height, row * unit + unit)):
            line = np.int32(0)  # 4096 * 255^2 fits
            for x in range(width):
                difference = np.int32(source[y, x]) - np.int32(decoded[y + border, x + border])
                line += difference * difference
            total += line
        errors[row] = total
