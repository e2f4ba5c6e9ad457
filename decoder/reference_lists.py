"""8.2.4: reference picture lists of a slice: initialisation and modification; and what kernels need of them."""

import numpy as np

from ..standard.syntax import B, ListModification, Pps, SliceHeader
from .direct import UNSCALED
from .errors import BitstreamError
from .layout import WEIGHT_DEFAULT, WEIGHT_EXPLICIT, WEIGHT_IMPLICIT, References
from .picture import LONG_TERM, NO_SLOT, SHORT_TERM, Picture

RefList = list[Picture | None]


def initial_lists(header: SliceHeader, current: Picture, pictures: list[Picture]) -> tuple[RefList, RefList]:
    """8.2.4.2.1, 8.2.4.2.3: initial RefPicList0 and RefPicList1 of a P or B slice of a frame, not cut to length."""
    short = [p for p in pictures if p.marking == SHORT_TERM]
    long = sorted((p for p in pictures if p.marking == LONG_TERM), key=lambda p: p.long_term_frame_idx)
    if header.type_mod_5 != B:
        return [*sorted(short, key=lambda p: -p.frame_num_wrap), *long], []
    if current.sps.pic_order_cnt_type == 0:
        short = [p for p in short if p.slot != NO_SLOT]
    before = sorted((p for p in short if p.poc <= current.poc), key=lambda p: -p.poc)
    after = sorted((p for p in short if p.poc > current.poc), key=lambda p: p.poc)
    list0: RefList = [*before, *after, *long]
    list1: RefList = [*after, *before, *long]
    if len(list1) > 1 and list0 == list1:
        list1[0], list1[1] = list1[1], list1[0]
    return list0, list1


def modify(
    entries: list[ListModification], initial: RefList, active: int, header: SliceHeader, current: Picture,
    pictures: list[Picture],
) -> RefList:  # fmt: skip
    """8.2.4.3: a list of `active` entries after ref_pic_list_modification(); None where there is no picture."""
    result = initial[:active] + [None] * (active - len(initial))
    max_frame_num = header.max_frame_num(current.sps)
    predicted = header.frame_num  # picNumLXPred
    for index, entry in enumerate(entries):
        if entry.modification_of_pic_nums_idc == 2:
            wanted, marking = entry.long_term_pic_num, LONG_TERM
            matching = [p for p in pictures if p.marking == LONG_TERM and p.long_term_frame_idx == wanted]
        else:
            step = entry.abs_diff_pic_num_minus1 + 1
            if step > max_frame_num:
                raise BitstreamError(f"abs_diff_pic_num_minus1 = {step - 1} is outside 0..{max_frame_num - 1}")
            predicted = (predicted + (step if entry.modification_of_pic_nums_idc else -step)) % max_frame_num
            wanted = predicted - (max_frame_num if predicted > header.frame_num else 0)
            marking = SHORT_TERM
            matching = [p for p in pictures if p.marking == SHORT_TERM and p.frame_num_wrap == wanted]
        if not matching:
            term = "long-term" if marking == LONG_TERM else "short-term"
            raise BitstreamError(f"a reference list asks for {term} picture {wanted}, which does not exist")
        rest = [p for p in result[index:] if p is not matching[0]]
        result = [*result[:index], matching[0], *rest][:active]
        result += [None] * (active - len(result))
    return result


def reference_lists(header: SliceHeader, current: Picture, pictures: list[Picture]) -> tuple[RefList, RefList]:
    """8.2.4: RefPicList0 and RefPicList1 of a P or B slice, as long as num_ref_idx_lX_active says."""
    max_frame_num = header.max_frame_num(current.sps)
    for p in pictures:  # 8.2.4.1
        p.frame_num_wrap = p.frame_num - (max_frame_num if p.frame_num > header.frame_num else 0)
    list0, list1 = initial_lists(header, current, pictures)
    active0 = header.num_ref_idx_l0_active_minus1 + 1
    list0 = modify(header.modifications_l0, list0, active0, header, current, pictures)
    if header.type_mod_5 != B:
        return list0, []
    active1 = header.num_ref_idx_l1_active_minus1 + 1
    return list0, modify(header.modifications_l1, list1, active1, header, current, pictures)


def distance_scale(current: int, poc0: int, poc1: int) -> int:
    """8.4.1.2.3: DistScaleFactor of order counts; UNSCALED where both references have the same."""
    if poc0 == poc1:
        return UNSCALED
    tb = min(127, max(-128, current - poc0))
    td = min(127, max(-128, poc1 - poc0))
    tx = int((16384 + abs(int(td / 2))) / td)
    return min(1023, max(-1024, (tb * tx + 32) >> 6))


def weighting(header: SliceHeader, pps: Pps) -> int:
    """8.4.2.3: how predictions of a slice are weighted."""
    if header.type_mod_5 == B:
        return (WEIGHT_DEFAULT, WEIGHT_EXPLICIT, WEIGHT_IMPLICIT)[pps.weighted_bipred_idc]
    return WEIGHT_EXPLICIT if pps.weighted_pred_flag else WEIGHT_DEFAULT


def kernel_references(header: SliceHeader, pps: Pps, current: Picture, list0: RefList, list1: RefList) -> References:
    """The lists as arrays: slots, numbers, weights and distances (layout.References)."""
    references = References(
        slots=np.full((2, 32), NO_SLOT, np.int32),
        ids=np.full((2, 32), -1, np.int32),
        weights=np.zeros((2, 32, 3, 2), np.int32),
        implicit=np.full((32, 32), 32, np.int32),
        scale=np.full(32, UNSCALED, np.int32),
    )
    for k, pictures in enumerate((list0, list1)):
        for i, picture in enumerate(pictures):
            if picture is not None:
                references.slots[k, i] = picture.slot
                references.ids[k, i] = picture.id
    mode = weighting(header, pps)
    if mode == WEIGHT_EXPLICIT:
        for k, table in enumerate((header.weights_l0, header.weights_l1)):
            for i, w in enumerate(table):
                references.weights[k, i, 0] = w.luma_weight, w.luma_offset
                references.weights[k, i, 1] = w.chroma_weight[0], w.chroma_offset[0]
                references.weights[k, i, 2] = w.chroma_weight[1], w.chroma_offset[1]
    if header.type_mod_5 == B:
        _distances(references, mode, current, list0, list1)
    return references


def _distances(references: References, mode: int, current: Picture, list0: RefList, list1: RefList) -> None:
    """8.4.1.2.3, 8.4.2.3.1: DistScaleFactor of temporal direct, and implicit weights."""
    for i, first in enumerate(list0):
        for j, second in enumerate(list1 if mode == WEIGHT_IMPLICIT else list1[:1]):
            if first is None or second is None:
                continue
            scale = distance_scale(current.poc, first.poc, second.poc)
            if j == 0 and first.marking != LONG_TERM:
                references.scale[i] = scale
            long = LONG_TERM in (first.marking, second.marking)
            if mode == WEIGHT_IMPLICIT and scale != UNSCALED and not long and -64 <= scale >> 2 <= 128:
                references.implicit[i, j] = scale >> 2
