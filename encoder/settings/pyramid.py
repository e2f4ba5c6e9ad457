"""The B frames between two other frames: which are references, their coding order, what that takes of a decoder.

Not part of the standard. In a pyramid of one level ("normal") the middle frame is a reference for both halves; with more
levels ("dyadic") the halves are divided in the same way.
"""

LEVELS = {"none": 0, "normal": 1, "dyadic": 4}  # of references; 16 frames have no more than 4
_MOST_FRAMES = 16  # of any level (A.3.1)


def coding_order(count: int, pyramid: str) -> list[tuple[int, bool]]:
    """(place in display order, whether it is a reference) of each of `count` B frames, in coding order."""
    return _run(0, count, LEVELS[pyramid])


def _run(first: int, count: int, levels: int) -> list[tuple[int, bool]]:
    if count < 2 or not levels:
        return [(first + offset, False) for offset in range(count)]
    middle = (count - 1) // 2
    before, after = _run(first, middle, levels - 1), _run(first + middle + 1, count // 2, levels - 1)
    return [(first + middle, True), *before, *after]


def reference_levels(count: int, pyramid: str) -> int:
    """Levels of references among at most `count` B frames."""
    return min(LEVELS[pyramid], max(count, 1).bit_length() - 1)


def dpb_frames(ref: int, bframes: int, pyramid: str) -> int:
    """max_num_ref_frames: those of a P frame, or the two around B frames, and one B frame of each level."""
    return min(_MOST_FRAMES, max(ref, 2) + reference_levels(bframes, pyramid)) if bframes else ref


def reordered_frames(bframes: int, pyramid: str) -> int:
    """max_num_reorder_frames: most frames that are decoded before a frame and displayed after it."""
    count = int(bframes > 0)
    for _ in range(LEVELS[pyramid]):
        count += bframes > 2
        bframes = (bframes - 1) // 2
    return count
