"""Kernels of the papers, for comparison; the encoder does not use them."""

from functools import partial
from pathlib import Path

from h264lite.cuda_src.runtime import compiler
from h264lite.cuda_src.runtime.headers import GENERATED, numbers_header

HERE = Path(__file__).resolve().parent
MODULES = sorted(f"papers/{path.stem}" for path in HERE.glob("*.cu"))
compiler.OTHERS["papers"] = HERE
GENERATED |= {
    f"papers/{path.stem}_launch.cuh": partial(numbers_header, f"{__name__}.{path.stem}")
    for path in HERE.glob("*.py")
    if path.with_suffix(".cu").exists()
}
