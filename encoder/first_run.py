"""Whether the first frame will wait for the compiler: a cheap look at Numba's cache files."""

import os
from pathlib import Path

_KERNELS = Path(__file__).resolve().parent.parent / "cpu_simd"


def will_compile() -> bool:
    """True if a file of kernels has no cache index at least as new as itself. Compiles and imports nothing."""
    places = [_KERNELS / "__pycache__"]
    if "NUMBA_CACHE_DIR" in os.environ:
        places = list(Path(os.environ["NUMBA_CACHE_DIR"]).glob(f"{_KERNELS.name}_*"))
    for source in _KERNELS.glob("*.py"):
        if "@kernel" not in source.read_text(encoding="utf-8"):
            continue
        newest = max((index.stat().st_mtime for place in places for index in place.glob(f"{source.stem}.*.nbi")),
                     default=0.0)
        if newest < source.stat().st_mtime:
            return True
    return False
