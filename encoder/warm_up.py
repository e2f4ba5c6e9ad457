"""The first run: a test whether kernels must be compiled, what chooses them, early loading."""

import os
from collections.abc import Iterable
from pathlib import Path

from ..jit.cache_folder import CacheFolder, find_cache_folder
from ..jit.numba_free import cached_modules
from ..scheduler.stages import BY_BITS, BY_QP, CPU, SEARCHES, files, load_launchers
from .settings.config import Config
from .settings.option_types import OptionValues
from .settings.resolve import SHORTEST_CYCLE

_KERNELS = Path(__file__).resolve().parent.parent / "cpu_simd"
_loaded: set[bool] = set()  # arguments `hybrid` for which `load_for_gpu` has ended

# options that choose kernels of stages
_CHOOSE = ("me", "merange", "subme", "profile", "weightp", "bframes", "b_adapt", "scenecut", "aq_mode", "bits_by_kind")
# files of kernels that an option needs
_ON_DEMAND = {
    "search/pattern_search", "search/step_search", "search/neighbour_vectors", "decide/rd_candidates",
    "decide/rd_candidates_b", "decide/rd_decision", "inter/weighting", "quantiser/decoded_qp",
    "intra/intra_refresh", "residual/inter_residual_qp",
}  # fmt: skip


def will_compile(config: Config | None = None) -> bool:
    """Whether a kernel of an encode on the CPU is not in the cache for the current sources. Compiles nothing.

    config: of the encode; None: of one with default options.
    """
    needed = _needed(config or Config.from_options(width=32, height=32, device="cpu"))
    return not needed <= _cached(needed)


def _cached(wanted: Iterable[str]) -> set[str]:
    """Those of the `wanted` files, folder/file, of which all kernels are in the cache."""
    folders: dict[str, set[str]] = {}
    for name in wanted:
        folder, _, file = name.partition("/")
        folders.setdefault(folder, set()).add(file)
    return {f"{folder}/{file}" for folder, names in folders.items() for file in cached_modules(_KERNELS / folder, names)}


def _needed(config: Config) -> set[str]:
    """Files of the kernels of an encode."""
    coding, rate = config.coding, config.rate
    needed = files(CPU, coding.has_b_frames) - _ON_DEMAND
    by_bits = coding.subme >= BY_BITS
    options = (
        ("search/pattern_search", coding.me not in SEARCHES), ("search/step_search", coding.me == "step"),
        ("search/neighbour_vectors", by_bits and coding.cabac),
        ("decide/rd_candidates", by_bits and coding.cabac),
        ("decide/rd_candidates_b", by_bits and coding.cabac and coding.has_b_frames),
        ("decide/rd_decision", by_bits and not coding.cabac), ("inter/weighting", coding.weightp),
        ("inter/explicit_weights", coding.weightp), ("residual/inter_residual_qp", coding.subme >= BY_QP),
        ("intra/intra_refresh", coding.refresh_cycle > 0),
        ("quantiser/decoded_qp", coding.aq_mode > 0 or rate.mbtree),
        ("source/ac_energy", coding.aq_mode > 0), ("quantiser/aq_offsets", coding.aq_mode > 0),
        ("lookahead/macroblock_tree", rate.mbtree),
        ("quantiser/logarithms", rate.bitrate > 0),
        ("entropy/bits_by_kind", coding.bits_by_kind),
    )  # fmt: skip
    needed |= {name for name, wanted in options if wanted}
    return needed


def kernel_cache_folder() -> CacheFolder:
    """The folder of the encoder's compiled kernels."""
    return find_cache_folder(_KERNELS)


def choosing(config: Config) -> OptionValues:
    """The options of an encode that choose kernels of stages, by name."""
    values = config.values
    rate: OptionValues
    if values["bitrate"]:
        rate = {"bitrate": 1000, "no_mbtree": not values["mbtree"]}
    else:
        rate = {"qp": 26} if values["crf"] is None else {"crf": 23, "no_mbtree": not values["mbtree"]}
    refresh: OptionValues = {"intra_refresh": True, "keyint": SHORTEST_CYCLE} if values["refresh_cycle"] else {}
    matrices: OptionValues = {"cqm": "jvt"} if config.coding.has_scaling_lists else {}
    return {name: values[name] for name in _CHOOSE} | {"no_cabac": not values["cabac"]} | rate | refresh | matrices


def load_for_gpu(hybrid: bool = False) -> None:
    """Load launchers, their tables and the host's kernels during GPU start-up: the first frames would wait for them.

    hybrid: see load_writers.
    """
    load_launchers()
    load_writers(hybrid)
    _loaded.add(hybrid)


def loaded_for_gpu(hybrid: bool = False) -> bool:
    """Whether `load_for_gpu` has ended in this process."""
    return hybrid in _loaded


def load_writers(hybrid: bool = False) -> None:
    """Run the host kernels that only frames of a GPU need, so that they are compiled and loaded before the first frame.

    hybrid: also those that write slices of rows from a GPU, for which the first frame would wait 0.2 s.
    """
    import numpy as np

    from ..scheduler.executor import Executor
    from ..scheduler.frames.frame import HostFrame
    from ..scheduler.frames.loop_arrays import Arrays
    from ..scheduler.lookahead.tree_turns import load_turns
    from ..scheduler.threads.copiers import Copiers, Target
    from ..scheduler.threads.readers import Readers
    from .decisions.frame_order import FrameOrder
    from .settings.frame_requests import IDR
    from .slice_writer import SliceWriter

    frame = HostFrame(2, 2, np.zeros, ((32, 32), (16, 16), (16, 16)))
    frame.slice_sizes[0] = 8 * frame.slice_data.size
    copiers = Copiers(1)
    copiers.copy(Target(frame.input_planes), [np.zeros_like(plane) for plane in frame.input_planes])
    copiers.close()
    with open(os.devnull, "rb") as nothing, Readers(1) as readers:
        ticket = readers.begin(nothing.fileno(), 0, frame.source)
        if ticket is not None:
            readers.wait(ticket)
    load_turns()
    config = Config.from_options(width=32, height=32, threads=1, device="cpu", qp=26, bframes=0)
    (frame.spec,), writer = FrameOrder(config).add(IDR), SliceWriter(config)
    frame.headers = writer.headers(frame.spec)
    writer.access_unit(frame)
    if hybrid:
        frame.levels_packed = True
        frame.unpack_levels()
        Arrays.allocate(config.coding, Executor(1, 2, [(0, 4)])).deferred_write(frame)()
