"""The decoded picture buffer: marking of references (8.2.5) and order of output (C.4)."""

from collections.abc import Callable

from ..standard.levels import LEVEL_1B, LEVELS, MAX_DPB_FRAMES, level_name, max_dpb_frames
from ..standard.syntax import MarkingOperation, SliceHeader, Sps
from .errors import BitstreamError
from .picture import LONG_TERM, SHORT_TERM, UNUSED, Picture


def dpb_size(sps: Sps) -> int:
    """A.3.1, C.4.5.3: frames the buffer holds, never less than the references the stream asks for."""
    name = level_name(sps.level_idc, sps.profile_idc, sps.constraint_set3_flag)
    size = MAX_DPB_FRAMES
    for level in (*LEVELS, LEVEL_1B):
        if level.name == name:
            size = max_dpb_frames(level, sps.mb_width, sps.mb_height)
    if sps.vui.bitstream_restriction_flag:
        size = sps.vui.max_dec_frame_buffering
    return max(size, sps.max_num_ref_frames, 1)


class PictureBuffer:
    """Pictures that are references or wait for their output, which `output` gets in order."""

    def __init__(self, sps: Sps, output: Callable[[Picture], None]) -> None:
        self.sps = sps
        self.size = dpb_size(sps)
        self.pictures: list[Picture] = []
        self._output = output
        # At most this many pictures wait: bumping earlier than C.4.5.3 must does not change the order.
        self._reorder = self.size
        if sps.pic_order_cnt_type == 2:
            self._reorder = 0
        elif sps.vui.bitstream_restriction_flag:
            self._reorder = sps.vui.max_num_reorder_frames
        self._max_long_term_frame_idx = -1  # "no long-term frame indices"

    # 8.2.5: marking -------------------------------------------------------------------------------------------------

    def references(self) -> list[Picture]:
        """All pictures used for reference."""
        return [p for p in self.pictures if p.marking != UNUSED]

    def mark_idr(self, current: Picture, header: SliceHeader) -> None:
        """8.2.5.1: an IDR picture."""
        for p in self.pictures:
            p.marking = UNUSED
        current.marking = LONG_TERM if header.long_term_reference_flag else SHORT_TERM
        current.long_term_frame_idx = 0
        self._max_long_term_frame_idx = 0 if header.long_term_reference_flag else -1

    def slide(self, frame_num: int) -> None:
        """8.2.5.3: sliding window: room for one more short-term reference."""
        references = self.references()
        max_frame_num = 1 << (self.sps.log2_max_frame_num_minus4 + 4)
        while len(references) >= max(self.sps.max_num_ref_frames, 1):
            short = [p for p in references if p.marking == SHORT_TERM]
            if not short:
                raise BitstreamError("sliding window without a short-term reference")
            oldest = min(short, key=lambda p: p.frame_num - (max_frame_num if p.frame_num > frame_num else 0))
            oldest.marking = UNUSED
            references.remove(oldest)

    def mark_adaptive(self, current: Picture, operations: list[MarkingOperation]) -> bool:
        """8.2.5.4: memory_management_control_operations; whether one of them was 5."""
        max_frame_num = 1 << (self.sps.log2_max_frame_num_minus4 + 4)
        reset = False
        current.marking = SHORT_TERM
        for operation in operations:
            control = operation.memory_management_control_operation
            if control in (1, 3):
                number = current.frame_num - (operation.difference_of_pic_nums_minus1 + 1)
                for p in self.references():
                    wrap = p.frame_num - (max_frame_num if p.frame_num > current.frame_num else 0)
                    if p.marking == SHORT_TERM and wrap == number:
                        if control == 1:
                            p.marking = UNUSED
                        else:
                            self._make_long_term(p, operation.long_term_frame_idx)
                        break
            elif control == 2:
                for p in self.references():
                    if p.marking == LONG_TERM and p.long_term_frame_idx == operation.long_term_pic_num:
                        p.marking = UNUSED
            elif control == 4:
                self._max_long_term_frame_idx = operation.max_long_term_frame_idx_plus1 - 1
                for p in self.references():
                    if p.marking == LONG_TERM and p.long_term_frame_idx > self._max_long_term_frame_idx:
                        p.marking = UNUSED
            elif control == 5:
                for p in self.pictures:
                    p.marking = UNUSED
                self._max_long_term_frame_idx = -1
                reset = True
            elif control == 6:
                self._make_long_term(current, operation.long_term_frame_idx)
        if len(self.references()) >= max(self.sps.max_num_ref_frames, 1):
            raise BitstreamError("more reference pictures than max_num_ref_frames")
        return reset

    def _make_long_term(self, picture: Picture, index: int) -> None:
        """8.2.5.4.3, 8.2.5.4.6: give a picture a long-term frame index, which another may lose."""
        if index > self._max_long_term_frame_idx:
            raise BitstreamError(f"long_term_frame_idx = {index} is outside 0..{self._max_long_term_frame_idx}")
        for p in self.pictures:
            if p is not picture and p.marking == LONG_TERM and p.long_term_frame_idx == index:
                p.marking = UNUSED
        picture.marking = LONG_TERM
        picture.long_term_frame_idx = index

    # C.4: output ----------------------------------------------------------------------------------------------------

    def store(self, current: Picture) -> None:
        """C.4.5.1, C.4.5.2, C.4.5.3: put a decoded picture in, after output of as many others as that takes."""
        self._remove_unused()
        while len(self.pictures) >= self.size:
            first = self._first()
            if current.waiting and current.marking == UNUSED and (first is None or current.poc < first.poc):
                self._emit(current)
                return
            if first is None:
                raise BitstreamError("the decoded picture buffer is full of references")
            self._emit(first)
            self._remove_unused()
        self.pictures.append(current)
        while sum(p.waiting for p in self.pictures) > self._reorder:
            self._emit(self._first())
        self._remove_unused()

    def flush(self, discard: bool = False) -> None:
        """C.4.4: output (or no output) of everything that waits."""
        while (first := self._first()) is not None:
            if discard:
                first.waiting = False
            else:
                self._emit(first)
        self._remove_unused()

    def free_slot(self) -> int:
        """A place in the pool that no picture of the buffer occupies."""
        taken = {p.slot for p in self.pictures}
        return next(slot for slot in range(self.size + 1) if slot not in taken)

    def _first(self) -> Picture | None:
        """The waiting picture that comes first in output order."""
        return min((p for p in self.pictures if p.waiting), key=lambda p: p.poc, default=None)

    def _emit(self, picture: Picture | None) -> None:
        if picture is not None:
            self._output(picture)  # where memory runs out, the picture goes on waiting
            picture.waiting = False

    def _remove_unused(self) -> None:
        self.pictures = [p for p in self.pictures if p.waiting or p.marking != UNUSED]
