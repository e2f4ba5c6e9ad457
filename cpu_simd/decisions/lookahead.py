"""Numbers of the lookahead, of the macroblock tree, and of the motion of the camera."""

# ---- lookahead
CAMERA_SCALE = 16  # lookahead_camera has one sample a macroblock
CAMERA_X, CAMERA_Y = 12, 6  # range of lookahead_camera in both directions, macroblocks; at most half the frame
LOOK_PAD = 40  # border of half-size planes, samples of these
LOOK_STILL = 64  # a block whose SATD without motion is less has vector 0
LOOK_VECTOR, LOOK_INTRA = 5, 5  # cost of a vector other than 0 and of two vectors; of intra prediction; in bits
LOOK_BLOCK = 4  # cost of any block
NO_BITS = 2  # what mvd_bits takes for a vector like its predictor

# ---- macroblock_tree
AMOUNT_SHIFT = 12  # of amounts: 1 is what a macroblock without adaptive quantisation is worth
COST_SHIFT = 4  # of `hidden`
SAVED_SHIFT = 2  # a saved cost hides a quarter as much
SHARE_SHIFT = 12  # of shares
TREE_LOG2_SHIFT = 16  # of logarithms
WEIGHT_SHIFT = 6  # of the weight of list 1
TREE_TABLE_BITS = 10  # of a mantissa, which choose a row of the table of logarithms
SQUARE_SHIFT = 16  # of squares of worths
MOST_WEIGHT_LOG2 = 8  # of a worth, or of its inverse
MOST_HIDDEN = (1 << 28) - 1
