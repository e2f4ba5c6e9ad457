"""Decides the frames of a stream, one after another in coding order, from the settings alone."""

from collections.abc import Sequence

from ...scheduler.frame_spec import FrameSpec, I, P
from ..settings.config import Config

Slices = tuple[tuple[int, int], ...]


class FrameTypes:
    """An IDR frame every `keyint` frames, P frames between; every frame is a reference, in a sliding window of `ref` frames
    (8.2.5.3). Coding order is display order.
    """

    def __init__(self, config: Config, slices: Slices) -> None:
        self._config, self._slices = config, slices
        self._last: FrameSpec | None = None

    def next(self, sizes: Sequence[int] = ()) -> FrameSpec:
        """The next frame. sizes: bits of the frames that have become known (SizeFeedback); not used at a constant QP."""
        last = self._last
        index = last.coding_index + 1 if last is not None else 0
        if last is None or last.frame_num + 1 >= self._config.keyint:
            self._last = self._idr(index, last.gop + 1 if last is not None else 0)
        else:
            self._last = self._p(index, last)
        return self._last

    def _idr(self, index: int, gop: int) -> FrameSpec:
        return FrameSpec(
            display_index=index, coding_index=index, gop=gop, frame_type=I, is_idr=True, is_reference=True, frame_num=0,
            pic_order_cnt=0, idr_pic_id=(gop + 1) % 2, qp=self._config.i_qp, list0=(), references_after=(index,),
            slices=self._slices,
        )  # fmt: skip

    def _p(self, index: int, last: FrameSpec) -> FrameSpec:
        references = last.references_after
        return FrameSpec(
            display_index=index, coding_index=index, gop=last.gop, frame_type=P, is_idr=False, is_reference=True,
            frame_num=last.frame_num + 1, pic_order_cnt=last.pic_order_cnt + 2, idr_pic_id=last.idr_pic_id,
            qp=self._config.qp, list0=references, references_after=(index, *references)[: self._config.ref],
            slices=self._slices,
        )  # fmt: skip
