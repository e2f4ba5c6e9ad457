"""Compiled kernels in a wheel: for classes of processors, made while it is built, loaded by numba_free.py.

python -m h264lite.jit.wheel_kernels [CLASS,...] compiles them into the package that this module belongs to, for these classes
or each that this processor has. They lie in compiled/CLASS beside the sources and serve the same sources, Python and version
of Numba. Where no Numba is installed, its C modules whose functions they call come from jit/compiled/numba.
"""

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from . import cache_checks
from .cache_root import ALONE, VARIABLE
from .numba_version import BUNDLE, numba_folder

# Features of LLVM by class, the best last: the x86-64 psABI's levels, of which v4 is what AVX-512 of simd/vector.py needs
_V3 = "+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+xsave"
CLASSES = {"x86-64-v3": _V3, "x86-64-v4": f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"}
VARIABLES = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # by which Numba compiles for another processor than this
FOLDER = "compiled"
MODULES = ("numba._dynfunc", "numba._helperlib", "numba.core.runtime._nrt_python")  # see numba_free.py
_ROOT = Path(__file__).resolve().parent.parent


@cache
def processor() -> tuple[str, str, str]:
    """(triple, name, features) of this processor, as LLVM has them."""
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    return binding.get_process_triple(), binding.get_host_cpu_name(), features


def has(name: str, features: str) -> bool:
    """Whether a processor has a class; features: its own, as LLVM lists them."""
    return set(CLASSES[name].split(",")) <= set(features.split(","))


def class_folder(sources: Path, features: str) -> tuple[Path, tuple[str, str]] | None:
    """(folder, (name, features)) of the kernels that the package has for a processor with these features; None: of none.

    Only those of its best class: kernels for AVX2 choose other defaults than sources that see AVX-512.
    """
    if os.environ.get("H264LITE_SIMD") or os.environ.get(ALONE) == "1":
        return None
    name = next((name for name in reversed(CLASSES) if has(name, features)), None)
    if name is None or not _is_safe(sources / FOLDER / name):
        return None
    return sources / FOLDER / name, (name, CLASSES[name])


@cache
def _is_safe(folder: Path) -> bool:
    try:
        return not cache_checks.distrust(os.stat(folder))
    except OSError:
        return False


def build(wanted: Sequence[str]) -> None:
    """Compile all kernels of the CPU for classes, each by a process of its own; none wanted: for those of this processor.

    Beside them Numba's modules.
    """
    import shutil
    import subprocess
    import tempfile

    for name in wanted or CLASSES:
        if name not in CLASSES:
            raise SystemExit(f"{name}: not a class of processors, as {', '.join(CLASSES)}")
        if not has(name, processor()[2]):
            if wanted:
                raise SystemExit(f"this processor has no {name}: kernels for it cannot be compiled here")
            print(f"this processor has no {name}: the package gets no kernels for it", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "H264LITE_"))}
            environment |= {**dict(zip(VARIABLES, (name, CLASSES[name]))), VARIABLE: folder}
            command = [sys.executable, "-m", "h264lite", "compile", "--cpu", "--cache", folder]
            subprocess.run(command, env=environment, check=True)
            for path in Path(folder).rglob("*.nbd"):  # kernels/VERSION/SOURCES, a folder with dots
                target = _ROOT.joinpath(*path.parent.name.split("."), FOLDER, name)
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target / path.name)
        bundle(BUNDLE)


def bundle(target: Path) -> None:
    """Copy to a folder what compiled kernels need of the installed Numba: C modules, and its version; with its licence."""
    import shutil
    from importlib.metadata import files

    folder = numba_folder()
    assert folder is not None and folder != BUNDLE
    names = [f"{name.partition('.')[2].replace('.', '/')}{EXTENSION_SUFFIXES[0]}" for name in MODULES]
    licences = [Path(str(path.locate())) for path in files("numba") or () if path.name.startswith("LICENSE")]
    for path in (*(folder / name for name in names), folder / "_version.py", *licences):
        copy = target / (path.relative_to(folder) if path.is_relative_to(folder) else path.name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


if __name__ == "__main__":
    build(sys.argv[1].split(",") if sys.argv[1:] else [])
