"""Kernels of the papers, for comparison; the encoder does not use them."""

from pathlib import Path

from h264lite.cuda_src.runtime import compiler

HERE = Path(__file__).resolve().parent
MODULES = sorted(f"papers/{path.stem}" for path in HERE.glob("*.cu"))
compiler.OTHERS["papers"] = HERE
