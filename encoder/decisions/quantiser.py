"""The Lagrangian multiplier by QP. Not part of the standard."""

import numpy as np

# lambda = 2 ^ (qp / 6 - 2), rounded, at least 1: cost = distortion (SATD or SAD) + lambda * bits.
LAMBDA = np.array([max(1, round(2 ** (qp / 6 - 2))) for qp in range(52)], np.int32)
