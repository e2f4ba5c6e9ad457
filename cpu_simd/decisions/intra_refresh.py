"""Numbers of intra_refresh: how far samples that are not clean reach, and the modes that reach beyond a macroblock."""

# Luma samples on each side of an edge that the deblocking filter may change (8.7.2.3, 8.7.2.4); of chroma it is one
DEBLOCKED = 3
# Luma samples to the right of a block that a vector between samples needs (8.4.2.2.1). The reach in chroma is shorter
TAPS = 3
# Names of Intra4x4PredMode and Intra8x8PredMode (Tables 8-2, 8-3)
VERTICAL, HORIZONTAL, TO_DOWN_LEFT, TO_VERTICAL_LEFT, TO_HORIZONTAL_DOWN, TO_HORIZONTAL_UP = 0, 1, 3, 7, 6, 8
ABOVE_RIGHT = 3  # the 4x4 block, raster order, whose samples above right lie in the next column of macroblocks
