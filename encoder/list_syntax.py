"""What slice headers say of reference lists and of marking, where the rules of 8.2.4.2 and 8.2.5.3 would give others.

For streams with B frames, from the FrameSpec alone.
"""

from collections.abc import Mapping, Sequence

from ..scheduler.frame_spec import B, FrameSpec
from ..standard.syntax import ListModification, MarkingOperation


def initial_lists(spec: FrameSpec) -> tuple[list[int], list[int]]:
    """8.2.4.2.1, 8.2.4.2.3: initial RefPicList0 and RefPicList1 as coding indices, not cut to length."""
    if spec.frame_type != B:
        return [frame.coding_index for frame in sorted(spec.references_before, key=lambda frame: -frame.frame_num)], []
    ordered = sorted(spec.references_before, key=lambda frame: -frame.pic_order_cnt)
    before = [frame.coding_index for frame in ordered if frame.pic_order_cnt < spec.pic_order_cnt]
    after = [frame.coding_index for frame in reversed(ordered) if frame.pic_order_cnt > spec.pic_order_cnt]
    list0, list1 = before + after, after + before
    if len(list1) > 1 and list1 == list0:
        list1[:2] = list1[1], list1[0]
    return list0, list1


def modifications(spec: FrameSpec, max_frame_num: int) -> tuple[list[ListModification], list[ListModification]]:
    """7.3.3.1: the entries of ref_pic_list_modification() for list0 and list1, where the initial list is another.

    max_frame_num: MaxFrameNum.
    """
    numbers = {frame.coding_index: frame.frame_num for frame in spec.references_before}
    of_list0, of_list1 = (
        _modifications(wanted, initial, numbers, spec.frame_num, max_frame_num)
        for wanted, initial in zip((spec.list0, spec.list1), initial_lists(spec))
    )
    return of_list0, of_list1


def _modifications(
    wanted: Sequence[int], initial: Sequence[int], numbers: Mapping[int, int], predicted: int, max_frame_num: int
) -> list[ListModification]:
    """8.2.4.3: entries from the first on, until the rest follows by itself; predicted: picNumLXPred, first frame_num."""
    wanted = list(wanted)
    entries: list[ListModification] = []
    modified: list[int | None] = [*initial[: len(wanted)], *(len(wanted) - len(initial)) * [None]]
    while modified != wanted:
        count = len(entries)
        frame = wanted[count]
        step, predicted = numbers[frame] - predicted, numbers[frame]
        # the same frame again is a whole turn away
        entries.append(ListModification(int(step > 0), (abs(step) or max_frame_num) - 1))
        rest = [other for other in modified[count:] if other != frame]
        modified = [*modified[:count], frame, *rest, None][: len(wanted)]
    return entries


def relations(spec: FrameSpec) -> tuple[tuple[int, ...], ...]:
    """What the syntax of lists and marking follows from: the references before the frame, and which it uses and leaves."""
    index, number, count = spec.coding_index, spec.frame_num, spec.pic_order_cnt
    named = tuple([index - other for other in (*spec.list0, *spec.list1, *spec.references_after)])
    before = [(index - one, number - its, count - other) for one, its, other, _ in spec.references_before]
    return (len(spec.list0), len(spec.list1), len(spec.references_after)), named, *before


def marking_operations(spec: FrameSpec, max_num_ref_frames: int) -> list[MarkingOperation]:
    """7.3.3.3: which references become unused; empty where the sliding window (8.2.5.3) does the same."""
    dropped = [frame for frame in spec.references_before if frame.coding_index not in spec.references_after]
    full = spec.is_reference and len(spec.references_before) == max_num_ref_frames
    if dropped == ([min(spec.references_before, key=lambda frame: frame.frame_num)] if full else []):
        return []
    return [MarkingOperation(1, spec.frame_num - frame.frame_num - 1) for frame in dropped]
