"""Arguments of stages; bundles: names of the stage table that mean several of them, which a kernel takes as one tuple.

Reads, writes, halos and copies are those of the members.
"""

from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from ..cpu_simd.bundles import (
    Candidates,
    Coarse,
    CodingTools,
    Deblocking,
    DecisionSettings,
    DecisionSettingsB,
    Entries,
    InputPlanes,
    InputRgb,
    IntraChoice,
    KeptMotion,
    LumaReferences,
    Macroblocks,
    Motion,
    MovedCandidates,
    OtherCosts,
    Planes,
    PreviousMotion,
    Quantiser,
    References,
    Residual,
    Searches,
    SearchResult,
    SearchStart,
    SliceCounts,
    SliceOrder,
    StrengthData,
)
from ..cuda_src.runtime.array import DeviceArray

AnyArray = np.ndarray | DeviceArray
A = TypeVar("A", np.ndarray, DeviceArray)  # the arrays of one memory, the host's or a GPU's
State = dict[str, Any]  # arguments of stages by name: arrays of one memory, numbers, tuples of numbers, None
GroupKey = tuple[Hashable, ...]
MakeGroup = tuple[GroupKey, Callable[[], State]]  # what the arrays of a group of arguments depend on; makes the group
Getter = Callable[[State], object]

# A row: a name of the stage table, and what it means
Bundle = namedtuple("Bundle", (
    "name",
    "tuple_type",  # of cpu_simd/bundles.py
    "members",  # names of the table of arrays (arrays.py), in the order of the fields of `tuple_type`
))  # fmt: skip

BUNDLES = {bundle.name: bundle for bundle in (
    Bundle("source", Planes, "source_y source_u source_v"),
    Bundle("rec", Planes, "rec_y rec_u rec_v"),
    Bundle("out", Planes, "out_y out_u out_v"),
    Bundle("coarse", Coarse, "coarse_source coarse_reference"),
    Bundle("previous", PreviousMotion, "previous_ref_idx previous_mv distance previous_distances camera"),
    Bundle("start", SearchStart, "centre predictor"),
    Bundle("search_result", SearchResult, "search_cost search_mv"),
    Bundle("searches", Searches, "all_cost all_mv all_predictor"),
    Bundle("luma_references", LumaReferences, "ref_luma searched_slots pad n_ref n_ref1 bi_weights"),
    Bundle("references", References, "ref_luma ref_chroma ref_slots searched_slots weights pad n_ref n_ref1 bi_weights"),
    Bundle("candidates", Candidates, "b_cost b_ref b_mv b_extra"),
    Bundle("moved_candidates", MovedCandidates, "b_cost b_ref b_mv b_extra b_moved"),
    Bundle("kept", KeptMotion, "kept_ref_idx kept_mv kept_still"),
    Bundle("other_costs", OtherCosts, "intra_cost skip_limit"),
    Bundle("decision_settings", DecisionSettings, "subme trellis max_mv_y partition_mask psy_rd"),
    Bundle("decision_settings_b", DecisionSettingsB, "qp subme cabac partition_mask psy_rd"),
    Bundle("motion", Motion, "mb_type sub_mb_type ref_idx mv ref_idx1 mv1"),
    Bundle("slice_counts", SliceCounts, "slice_sizes slice_bins mb_ends"),
    Bundle("slice_order", SliceOrder, "slice_first_mb intra_progress"),
    Bundle("intra_choice", IntraChoice, "mb_type intra4x4_mode intra16x16_mode intra_chroma_mode"),
    Bundle("residual", Residual, "levels total_coeff transform_8x8 cbp"),
    Bundle("strength_data", StrengthData, "mb_type ref_idx mv total_coeff transform_8x8 duplicates n_ref1 n_ref ref_slots "
           "ref_idx1 mv1"),
    Bundle("entries", Entries, "n_ref n_ref1"),
    Bundle("macroblocks", Macroblocks, "mb_type sub_mb_type ref_idx mv intra4x4_mode intra16x16_mode intra_chroma_mode "
           "cbp qp levels total_coeff transform_8x8 ref_idx1 mv1"),
    Bundle("tools", CodingTools, "trellis transform_8x8_mode cabac dead_zone_inter dead_zone_intra intra_8x8 subme"),
    Bundle("intra_tools", CodingTools, "trellis transform_8x8_mode cabac dead_zone_inter dead_zone_intra intra_8x8 "
           "intra_subme"),
    Bundle("quantiser", Quantiser, "qp chroma_qp_offset scaling has_scaling_lists"),
    Bundle("deblocking", Deblocking, "alpha_offset beta_offset disable_idc"),
    Bundle("input_planes", InputPlanes, "input_y input_u input_v pitch chroma_pitch chroma_step"),
    Bundle("input_rgb", InputRgb, "input_red input_green input_blue rgb_dtype rgb_step rgb_pitch rgb_low rgb_scale outside"),
)}  # fmt: skip


def members(names: Iterable[str]) -> tuple[str, ...]:
    """The names with those of the members in place of each bundle's."""
    return tuple(member for name in names for member in (BUNDLES[name].members.split() if name in BUNDLES else (name,)))


def getters(names: Iterable[str]) -> list[Getter]:
    """Functions that take the array, number or bundle of each name from arrays and numbers by name."""
    return [_bundle_getter(BUNDLES[name]) if name in BUNDLES else itemgetter(name) for name in names]


def _bundle_getter(bundle: Bundle) -> Getter:
    tuple_type, values = bundle.tuple_type, itemgetter(*bundle.members.split())
    return lambda state: tuple.__new__(tuple_type, values(state))
