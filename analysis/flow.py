"""Motion fields as optical flow: a displacement of each luma sample, from the vectors of a frame."""

import numpy as np

from .frame import AnalysedFrame


def motion_field(
    frame: AnalysedFrame, list_index: int = 0, *, per_frame: bool = False, missing: float = np.nan
) -> np.ndarray:
    """The dense field of one list's vectors, float32[height, width, 2]: (x, y) in luma samples, of the shown part.

    A sample at p is predicted from p + field[p] in its reference (8.4.2.2): where `list_index` is 0 mostly an earlier frame,
    where it is 1 mostly a later one. per_frame: divided by the distance of the reference in display order, so that vectors
    to earlier and later references agree: motion from this frame to the next. missing: the value where the list is not used
    (intra macroblocks, the other list), and with per_frame where the reference is never shown. Vectors are what an encoder
    finds cheap, not always true motion. ValueError for a list other than 0 and 1.
    """
    if list_index not in (0, 1):
        raise ValueError(f"list_index = {list_index!r} is not 0 or 1")
    arrays = frame.macroblocks
    field = arrays.mv[list_index].astype(np.float32) / 4
    known = arrays.ref_idx[list_index] >= 0
    if per_frame:
        known = known & (arrays.reference[list_index] >= 0)
        distance = arrays.reference[list_index] - frame.display_index
        field /= np.where(known, distance, 1)[..., None]
    field[~known] = missing
    dense = np.repeat(np.repeat(field, 4, axis=0), 4, axis=1)
    left, _, top, _ = frame.crop
    return dense[top : top + frame.height, left : left + frame.width].copy()
