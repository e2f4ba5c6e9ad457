"""frame_params: numbers of a frame that kernels read from one block of memory, so that launches of frames are alike."""

from functools import lru_cache

import numpy as np

from ...cpu_simd.layout import (
    BI_WEIGHTS,
    DISTANCES,
    HEADER_BITS,
    MOST_LISTED,
    N_WEIGHTS,
    PREVIOUS_DISTANCES,
    SEARCHED_SLOTS,
    SLOTS,
    WEIGHTS,
)
from ..bundles import A
from ..frame_spec import Weights, implicit_weights

Numbers = tuple[int, ...]
REFRESH = HEADER_BITS - 2  # columns of FrameSpec.refresh: where implicit weights are that only frames with list 1 have


@lru_cache(maxsize=256)
def list_numbers(
    weights: tuple[Weights, ...], distances: Numbers, n_ref: int, is_weighted: bool, previous: Numbers, slots: Numbers,
    searched: Numbers, refresh: Numbers = (),
) -> bytes:  # fmt: skip
    """int32[HEADER_BITS - WEIGHTS]: weights, and numbers of both lists, 0 without an entry.

    weights, distances, n_ref, is_weighted: as in FrameSpec; previous: distances of the frame whose motion is continued;
    searched: slots as the search sees them; refresh: as in FrameSpec, of P frames alone.
    """
    numbers = np.zeros(HEADER_BITS, np.int32)
    for at, some in (
        (WEIGHTS, [number for one in weights for number in one]), (DISTANCES, distances), (PREVIOUS_DISTANCES, previous),
        (SLOTS, slots), (SEARCHED_SLOTS, searched), (BI_WEIGHTS, implicit_weights(distances, n_ref, is_weighted)),
        (REFRESH, refresh),
    ):  # fmt: skip
        numbers[at : at + len(some)] = some
    return numbers[WEIGHTS:].tobytes()


def decision_params(params: A) -> A:
    """Of frame_params: int32[HEADER_BITS - WEIGHTS], what the stages before the entropy stage read."""
    return params[WEIGHTS:HEADER_BITS]


def list_state(block: A, n_ref: int, n_ref1: int) -> dict[str, A]:
    """Arguments of the stages by name, parts of `decision_params`; n_ref, n_ref1: entries of both lists."""

    def numbers(at: int, count: int) -> A:
        return block[at - WEIGHTS : at - WEIGHTS + count]

    entries = max(1, n_ref + n_ref1)
    return {
        "weights": block[: DISTANCES - WEIGHTS],
        "ref_slots": numbers(SLOTS, entries),
        "searched_slots": numbers(SEARCHED_SLOTS, entries),
        "previous_distances": numbers(PREVIOUS_DISTANCES, MOST_LISTED),
        "bi_weights": numbers(BI_WEIGHTS, max(1, n_ref * n_ref1)),
        "refresh_columns": numbers(REFRESH, 2),
    }


def reference_params(block: A, ref: int, weighted: bool) -> dict[str, A]:
    """The same for the search in entry `ref` of both lists; weighted: whether the search needs a weighted copy of it."""
    at = DISTANCES - WEIGHTS + ref
    params = {"distance": block[at : at + 1]}
    if weighted:
        params["reference_weights"] = block[N_WEIGHTS * ref : N_WEIGHTS * (ref + 1)]
    return params
