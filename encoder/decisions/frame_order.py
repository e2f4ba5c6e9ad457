"""Puts frames with types into coding order, other frames before the B frames between them; references, QP, numbers."""

from ...scheduler.coding_settings import CodingSettings
from ...scheduler.frame_spec import MOST_ENTRIES, B, FrameSpec, I, P, ReferenceFrame
from ..settings.config import Config
from ..settings.frame_requests import IDR
from ..settings.pyramid import coding_order, reference_levels
from .frame_requests import qp_of

CABAC_INIT_IDC = 0  # takes the fewest bits at every QP (docs/tried.md); I slices have none
_DISTANCES = tuple(range(1, MOST_ENTRIES + 1))  # of the frames before


class IntraRefresh:
    """Columns of each P frame that are intra: a bar that wanders from left to right.

    A cycle begins `refresh_cycle` frames after the last one or after an I frame. It takes as many frames as that, or one a
    column where there are fewer columns; then there is no bar up to the next one.
    """

    def __init__(self, coding: CodingSettings) -> None:
        self._cycle, self._frames, self._mb_width = coding.refresh_cycle, coding.refresh_frames, coding.mb_width
        self._clean = 0  # coding index of the last I frame

    def columns(self, index: int, frame_type: str) -> tuple[int, ...]:
        """FrameSpec.refresh of a frame; index: its coding index. Called for each frame, in coding order."""
        if frame_type != P:
            self._clean = index
            return ()
        cycles, step = divmod(index - self._clean, self._cycle)
        if not cycles or step >= self._frames:
            return ()
        return -(-step * self._mb_width // self._frames), -(-(step + 1) * self._mb_width // self._frames)


class FrameOrder:
    """FrameSpecs of a stream. B frames predict from the nearest frame on each side, P frames from the nearest that are not
    B: they wait for no B frame, and all B frames can be coded beside them.
    """

    def __init__(self, config: Config) -> None:
        self._coding, self._pyramid = config.coding, config.types.b_pyramid
        self._slices = config.coding.slice_ranges
        self._displayed = self._coded = 0  # frames so far
        self._waiting = 0  # B frames before the next other frame
        self._gop, self._idr_display, self._idr_id = -1, 0, config.types.first_idr_pic_id
        self._frame_num = 0  # of the next frame (7.4.3)
        self._references: tuple[ReferenceFrame, ...] = ()  # latest in display order first
        self._last: tuple[int, ...] = ()  # the same as coding indices
        self._qps = {(t, is_used): qp_of(config.rate, t, is_used) for t in (I, P, B) for is_used in (True, False)}
        self._delay = config.coding.max_num_reorder_frames
        of_b = reference_levels(config.coding.bframes, self._pyramid)
        self._refresh = IntraRefresh(config.coding) if config.coding.refresh_cycle else None
        self._most_of_p = min(config.coding.ref, config.coding.dpb_frames - of_b)

    def add(self, frame_type: str) -> list[FrameSpec]:
        """The next frame in display order: "IDR", "I", "P" or "B". The specs of the frames that can be coded now, in coding
        order. ValueError for an IDR frame after a B frame.
        """
        if not self._coding.bframes:
            return [self._in_display_order(frame_type)]
        display, waiting = self._displayed, self._waiting
        if frame_type == IDR and waiting:
            raise ValueError("a B frame has no frame of its GOP after it")
        self._displayed += 1
        if frame_type == B:
            self._waiting += 1
            return []
        self._waiting = 0
        if frame_type == IDR:
            self._gop, self._idr_display, self._frame_num, self._references = self._gop + 1, display, 0, ()
        anchor = self._spec(P if frame_type == P else I, display, True)
        order = coding_order(waiting, self._pyramid)
        return [anchor, *(self._spec(B, display - waiting + offset, is_reference) for offset, is_reference in order)]

    def _in_display_order(self, frame_type: str) -> FrameSpec:
        """The next frame of a stream without B frames: a reference, in a sliding window of `ref` frames (8.2.5.3)."""
        # `_spec`, which gives the same, takes 25 us more: 8 % of a small frame's time. Positional for that reason: a tuple
        # made by keywords takes twice as long
        index, is_idr = self._coded, frame_type == IDR
        if is_idr:
            self._gop, self._idr_display, self._frame_num, self._last = self._gop + 1, index, 0, ()
            frame_type = I
        list0 = self._last if frame_type == P else ()
        self._last = (index, *self._last)[: self._coding.ref]
        spec = FrameSpec(
            index,
            index,
            self._gop,
            frame_type,
            is_idr,
            True,
            self._frame_num,
            2 * (index - self._idr_display),
            (self._gop + self._idr_id) % 2,
            self._qps[frame_type, True],
            CABAC_INIT_IDC,
            list0,
            self._last,
            self._slices,
            (),
            _DISTANCES[: len(list0)],
        )
        self._coded += 1
        self._frame_num += 1
        return spec if self._refresh is None else spec._replace(refresh=self._refresh.columns(index, frame_type))

    def _spec(self, frame_type: str, display: int, is_reference: bool) -> FrameSpec:
        """The next frame in coding order."""
        coding, references, count = self._coding, self._references, 2 * (display - self._idr_display)
        later = 0  # references that are displayed later: the first ones
        while later < len(references) and references[later].pic_order_cnt > count:
            later += 1
        list0, list1 = references[later : later + 1], references[max(later - 1, 0) : later]
        if frame_type != B:
            list0 = tuple([frame for frame in references if not frame.is_b][: coding.ref]) if frame_type == P else ()
        if is_reference:
            now = ReferenceFrame(self._coded, self._frame_num, count, frame_type == B)
            self._references = self._kept((*references[:later], now, *references[later:]))
            self._last = tuple([frame.coding_index for frame in self._references])
        # positional: a tuple made by keywords takes three times as long
        spec = FrameSpec(
            display,
            self._coded,
            self._gop,
            frame_type,
            display == self._idr_display,
            is_reference,
            self._frame_num,
            count,
            (self._gop + self._idr_id) % 2,
            self._qps[frame_type, is_reference],
            CABAC_INIT_IDC,
            tuple([frame.coding_index for frame in list0]),
            self._last,
            self._slices,
            (),
            tuple([(count - frame.pic_order_cnt) // 2 for frame in (*list0, *list1)]),
            tuple([frame.coding_index for frame in list1]),
            self._delay,
            frame_type == B and coding.weightb,
            references,
        )
        self._coded += 1
        self._frame_num += is_reference
        return spec

    def _kept(self, references: tuple[ReferenceFrame, ...]) -> tuple[ReferenceFrame, ...]:
        """Those of `references`, latest first, that stay references: those of the next P frame, then the latest."""
        more = len(references) - self._coding.dpb_frames
        if more <= 0:
            return references
        of_p = [frame for frame in references if not frame.is_b][: self._most_of_p]
        dropped = [frame for frame in references if frame not in of_p][-more:]
        return tuple([frame for frame in references if frame not in dropped])
