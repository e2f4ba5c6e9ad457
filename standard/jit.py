"""How every numeric kernel of the project is compiled: one decorator.

`nogil`, because the scheduler's threads run kernels side by side; `cache`, so that only the first run compiles; never
`parallel` (it aborts the process when two Python threads meet in it) and never `fastmath` (all arithmetic is integer).
"""

from numba import njit

kernel = njit(nogil=True, cache=True, error_model="numpy")
