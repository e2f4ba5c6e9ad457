"""Bits of slice data for kernels (9.1): fixed-length and Exp-Golomb codes, never beyond the end.

`data` is the RBSP with PADDING zero bytes behind it; `s` the reader's state (layout.py). The first error stays in
s[S_ERROR], and reading goes on with zeros, so that callers may look at it once a macroblock.
"""

import numpy as np

from ..jit.intrinsics import outlined
from ..jit.kernel import helper
from .errors import E_END, E_GOLOMB
from .layout import S_END, S_ERROR, S_POS
from .unaligned import leading_zeros32, peek32

PADDING = 256  # bytes: more than a residual block can read before it looks at the end


@helper
def fail(s, error):
    """Note an error, unless there is one already."""
    if s[S_ERROR] == 0:
        s[S_ERROR] = error


@helper
def u(data, s, n):
    """u(n), n <= 32."""
    outlined()
    position = s[S_POS]
    if position + n > s[S_END]:
        fail(s, E_END)
        return np.int64(0)
    s[S_POS] = position + n
    return peek32(data, position) >> (32 - n)


@helper
def ue(data, s):
    """9.1: ue(v); 0 after an error."""
    outlined()
    position = s[S_POS]
    word = peek32(data, position)
    zeros = min(31, leading_zeros32(word))
    size = 2 * zeros + 1
    if position + size > s[S_END]:
        fail(s, E_END)
        return np.int64(0)
    if word == 0:
        fail(s, E_GOLOMB)
        return np.int64(0)
    s[S_POS] = position + size
    return (peek32(data, position + zeros) >> (31 - zeros)) - 1


@helper
def se(data, s):
    """9.1.1: se(v)."""
    outlined()
    code = ue(data, s)
    return (code + 1) >> 1 if code & 1 else -(code >> 1)


@helper
def te(data, s, largest):
    """9.1: te(v) with range 0..largest."""
    if largest == 1:
        return 1 - u(data, s, 1)
    return ue(data, s)
