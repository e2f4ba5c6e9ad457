"""What is decided about a frame before it is coded: its type, its place in both orders, its references, its QP."""

from functools import lru_cache
from typing import Any, NamedTuple

from ..cpu_simd.layout import AVERAGE, LUMA_WEIGHTED, MOST_WEIGHTED

MOST_ENTRIES = 16  # of RefPicList0 (7.4.3)
MOST_DUPLICATES = MOST_WEIGHTED - 1
I, P, B = "I", "P", "B"  # frame types: the slice type of all slices (Table 7-6)
REQUEST = "request"  # qp_by: the user asks for this QP
FIXED_QPS, CHOSEN_QPS = 1, 2  # of FrameSpec.qp_varies
NEEDED, MOST_NEEDED = 2, 3  # nal_ref_idc of reference frames, and of IDR frames


class Weights(NamedTuple):
    """8.4.2.3: explicit weights of an entry of RefPicList0, as the kernels have them (WEIGHTS in cpu_simd/layout.py); log2:
    the denominators luma_log2_weight_denom and chroma_log2_weight_denom.
    """

    flags: int = 0  # LUMA_WEIGHTED + CHROMA_WEIGHTED
    luma_log2: int = 0
    luma_weight: int = 0
    luma_offset: int = 0
    chroma_log2: int = 0
    cb_weight: int = 0
    cb_offset: int = 0
    cr_weight: int = 0
    cr_offset: int = 0


UNWEIGHTED = Weights()


class ReferenceFrame(NamedTuple):
    """A reference frame as slice headers name it, by the fields of its FrameSpec; is_b: whether it is a B frame."""

    coding_index: int
    frame_num: int
    pic_order_cnt: int
    is_b: bool


class FrameSpec(NamedTuple):
    """A frame of the stream. Frames are named by their coding index everywhere in it; indices count from 0.

    display_index, coding_index   place in display order (the pts) and in coding order (the dts)
    gop                           number of the closed GOP; an IDR frame begins it
    frame_type                    "I", "P" or "B"; an I frame that is no IDR frame keeps the references
    frame_num                     7.4.3, not reduced modulo MaxFrameNum
    pic_order_cnt                 8.2.1: twice the distance in display order from the IDR frame
    idr_pic_id                    7.4.3, of the GOP: consecutive IDR frames differ
    qp                            SliceQPY
    cabac_init_idc                7.4.3, 0 without CABAC
    list0                         RefPicList0 (8.2.4); its first frame may follow itself, with other weights
    references_after              the frames that are references after this one, latest in display order first (8.2.5)
    slices                        macroblocks [first_mb, end_mb) of each slice
    weights                       of the first entries of list0; the others have none. All have the same denominators
    distances                     frames in display order from each entry of list0, then of list1, to this one: negative
                                  for one that is displayed later
    list1                         RefPicList1, of B frames
    delay                         frames by which decoding runs ahead of display (max_num_reorder_frames)
    is_weighted                   whether bi-prediction has implicit weights (weighted_bipred_idc 2)
    references_before             the references before this frame, latest in display order first; in streams with B frames
    mb_qp                         uint8[n_mb] as bytes: QP_Y of each macroblock, by subme 10 a start; empty: SliceQPY of all
    qp_by                         what the QP follows from, for statistics
    cost                          of the source frame by its type, as the lookahead finds it; 0: unknown
    is_qp_requested               whether the user asks for the QP, which no rate control changes
    over_factor                   mean QP of the macroblocks in 1 / 256 less the rate factor, as planned; with --pass
    predicted                     bits that a rate control expects; 0: none does
    qp_offsets                    int8[n_mb] as bytes: what the user adds to QP_Y of each macroblock; empty: nothing
    refresh                       of intra refresh: columns [begin, end) that are a bar of intra macroblocks; those before it,
                                  and with it, are clean; a cycle begins at 0. Empty: there is no bar
    """

    display_index: int
    coding_index: int
    gop: int
    frame_type: str
    is_idr: bool
    is_reference: bool
    frame_num: int
    pic_order_cnt: int
    idr_pic_id: int
    qp: int
    cabac_init_idc: int
    list0: tuple[int, ...]
    references_after: tuple[int, ...]
    slices: tuple[tuple[int, int], ...]
    weights: tuple[Weights, ...] = ()
    distances: tuple[int, ...] = ()
    list1: tuple[int, ...] = ()
    delay: int = 0
    is_weighted: bool = False
    references_before: tuple[ReferenceFrame, ...] = ()
    mb_qp: bytes = b""
    qp_by: str = "type"
    cost: int = 0
    is_qp_requested: bool = False
    over_factor: int = 0
    predicted: int = 0
    qp_offsets: bytes = b""
    refresh: tuple[int, ...] = ()

    def changed(self, **fields: Any) -> "FrameSpec":
        """As `_replace`, in half the time, which counts where it is done to every frame. KeyError: a name of no field."""
        values = list(self)
        for name, value in fields.items():
            values[_INDICES[name]] = value
        return tuple.__new__(FrameSpec, values)

    @property
    def qp_varies(self) -> int:
        """Whether macroblocks have QPs of their own: 0, FIXED_QPS where the user asks for one, else CHOSEN_QPS."""
        if not self.mb_qp:
            return 0
        return FIXED_QPS if self.qp_by == REQUEST else CHOSEN_QPS

    @property
    def luma_weighted(self) -> tuple[int, ...]:
        """The entries of list0 of which the search needs a weighted copy."""
        return tuple([k for k, weights in enumerate(self.weights) if weights.flags & LUMA_WEIGHTED]) if self.weights else ()

    @property
    def duplicates(self) -> int:
        """Entries of list0 after the first that are its first frame again."""
        list0 = self.list0
        return list0.count(list0[0]) - 1 if list0 else 0

    @property
    def n_ref(self) -> int:
        """num_ref_idx_l0_active: entries of list0; 0 for an I frame."""
        return len(self.list0)

    @property
    def n_ref1(self) -> int:
        """num_ref_idx_l1_active: entries of list1; 0 for frames that are no B frames."""
        return len(self.list1)

    @property
    def implicit_weights(self) -> tuple[int, ...]:
        """8.4.2.3.1: implicit weights of the second prediction, of 64, for each entry of list0 with each of list1."""
        return implicit_weights(self.distances, len(self.list0), self.is_weighted)

    @property
    def nal_ref_idc(self) -> int:
        """7.4.1: 0 for a frame that is no reference."""
        return MOST_NEEDED if self.is_idr else NEEDED * self.is_reference

    @property
    def pts(self) -> int:
        """Presentation time in frames."""
        return self.display_index

    @property
    def dts(self) -> int:
        """Decoding time in frames, at most the pts; the first are negative where frames are reordered."""
        return self.coding_index - self.delay


_INDICES = {name: index for index, name in enumerate(FrameSpec._fields)}


@lru_cache(1024)
def implicit_weights(distances: tuple[int, ...], n_ref: int, is_weighted: bool) -> tuple[int, ...]:
    """See FrameSpec."""
    pairs = [(d0, d1) for d0 in distances[:n_ref] for d1 in distances[n_ref:]]
    return tuple([implicit_weight(d0, d1) if is_weighted else AVERAGE for d0, d1 in pairs])


def implicit_weight(distance0: int, distance1: int) -> int:
    """8.4.2.3.1: weight of the prediction from list 1, of 64; distances: as in FrameSpec, of both references."""
    tb, td = (max(-128, min(127, 2 * d)) for d in (distance0, distance0 - distance1))
    if td == 0:
        return AVERAGE
    tx = int((16384 + abs(td) // 2) / td)  # towards 0
    weight = max(-1024, min(1023, (tb * tx + 32) >> 6)) >> 2
    return weight if -64 <= weight <= 128 else AVERAGE


class SliceHeaders(NamedTuple):
    """7.3.3: the headers of a frame's slices with frame_num 0: their bits as numbers, the number of these bits, and the place
    of frame_num, counted from the last bit.
    """

    bits: tuple[int, ...]
    numbers: tuple[int, ...]
    shifts: tuple[int, ...]
