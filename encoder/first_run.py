"""The first run: whether the compiler will be waited for, and a second process that compiles beside this one."""

import atexit
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from ..scheduler.stages import CPU, files, load_launchers
from ..standard.jit_cache import KernelCache, whole_modules
from ..standard.kernel_place import Place, find_place

_KERNELS = Path(__file__).resolve().parent.parent / "cpu_simd"
_begun = False  # the second process

# Stages that a second process compiles while the first one compiles what an I picture needs: the larger half last.
_BESIDE = (
    "mode_decision", "subpel_refine", "intra_estimate", "inter_residual", "full_search", "search_centre", "subsample",
    "mark_skipped",
)  # fmt: skip
_ON_DEMAND = {"step_search", "rd_decision"}  # compiled when an option asks for them
_COMPILE = """
from h264lite.encoder.first_run import compile_stages
compile_stages()
"""


def will_compile() -> bool:
    """True if a kernel that an encode on the CPU calls is not in the cache as the sources are now. Compiles nothing."""
    return bool((files(CPU) - _ON_DEMAND | {"entropy"}) - whole_modules(_KERNELS))


def kernel_problems() -> list[str]:
    """Compiled kernels of encoder and decoder that are there and not loaded, and why."""
    for folder in (_KERNELS, _KERNELS.parent / "decoder"):
        for source in folder.glob("[a-z]*.py"):
            import_module(f"..{folder.name}.{source.stem}", __package__)
    return KernelCache.problems()


def kernel_place() -> Place:
    """Where the encoder's compiled kernels are kept."""
    return find_place(_KERNELS)


def compile_beside() -> None:
    """Start a process, once, that compiles half of the stages into the shared cache; it ends by itself, or with this one.

    H264LITE_COMPILE_BESIDE=0 does without.
    """
    global _begun
    if _begun or os.environ.get("H264LITE_COMPILE_BESIDE") == "0" or (os.cpu_count() or 1) < 2 or not kernel_place().writable:
        return
    _begun = True
    environment = os.environ | {"H264LITE_COMPILE_BESIDE": "0"}
    quiet = subprocess.DEVNULL
    try:
        child = subprocess.Popen([sys.executable, "-c", _COMPILE], env=environment, stdin=quiet, stdout=quiet,
                                 stderr=quiet, start_new_session=True)
    except OSError:
        return  # then this process compiles everything
    atexit.register(child.kill)


def compile_stages(names: tuple[str, ...] = _BESIDE) -> None:
    """Run stages once on an empty picture, so that their kernels are compiled and cached."""
    from .config import Config
    from .pipeline import Pipeline

    pipeline = Pipeline(Config.from_options(width=32, height=32, threads=1, device="cpu"))
    load_writers()
    pipeline.compile(names)
    pipeline.close()


def load_for_a_card(bits: bool = False) -> None:
    """What the first pictures on a card would wait for, while it is got ready: launchers, their tables, the host's kernels.

    bits: see load_writers.
    """
    load_launchers()
    load_writers(bits)


def load_writers(bits: bool = False) -> None:
    """Run the kernels of the host that only pictures from a card need: they are compiled, and loaded before one comes.

    bits: the one that writes slices as well, a fifth of a second that the first picture would wait for.
    """
    import numpy as np

    from ..scheduler.copiers import Copiers, Target
    from ..scheduler.readers import Readers
    from .config import Config
    from .frame import HomeFrame
    from .slice_writer import SliceWriter

    frame = HomeFrame(2, 2, np.zeros, ((32, 32), (16, 16), (16, 16)))
    frame.is_idr = frame.crossed = frame.coded = True
    frame.slice_sizes[0] = 8 * frame.slice_data.size
    frame.arrive()
    copiers = Copiers(1)
    copiers.copy(Target(frame.given), [np.zeros_like(plane) for plane in frame.given])
    copiers.close()
    with open(os.devnull, "rb") as nothing, Readers(1) as readers:
        ticket = readers.begin(nothing.fileno(), 0, frame.source)
        if ticket is not None:
            readers.came(ticket)
    writer = SliceWriter(Config.from_options(width=32, height=32, threads=1, device="cpu"), [(0, 2)])
    writer.access_unit(frame)
    if bits:
        frame.coded = False
        writer.access_unit(frame)


def compile_all() -> float:
    """Compile everything that an encode on the CPU needs, by a tiny encode; seconds it took."""
    import numpy as np

    from .encoder import Encoder

    begin = time.perf_counter()
    load_writers()
    with Encoder(32, 32, device="cpu") as encoder:
        for _ in range(2):
            encoder.encode(np.zeros((48, 32), np.uint8))
        encoder.flush()
    return time.perf_counter() - begin


if __name__ == "__main__":  # python -m h264lite.encoder.first_run
    compile_all()
