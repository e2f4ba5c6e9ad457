"""Decides the frames of a stream, which come in display order, and gives them in coding order."""

from collections.abc import Sequence

import numpy as np

from ...scheduler.frame_spec import MOST_ENTRIES, FrameSpec, I, P
from ..settings.config import Config
from .adaptive_types import AdaptiveTypes
from .fixed_types import FixedTypes, TypeSource
from .frame_order import CABAC_INIT_IDC, FrameOrder, Slices

DISTANCES = tuple(range(1, MOST_ENTRIES + 1))  # of the frames before


class FrameTypes:
    """Types by a TypeSource, order and references by FrameOrder.

    Without B frames: an IDR frame every `keyint` frames, P frames between; every frame is a reference, in a sliding window of
    `ref` frames (8.2.5.3). Coding order is display order, and each frame is decided at once.
    """

    def __init__(self, config: Config, slices: Slices) -> None:
        self._config, self._slices = config, slices
        self._last: FrameSpec | None = None
        self._types = _type_source(config)
        self._order = FrameOrder(config, slices)

    def add(self, luma: np.ndarray | None = None, sizes: Sequence[int] = ()) -> list[FrameSpec]:
        """One more source frame has come, in display order. The frames that can be coded now, in coding order.

        luma: uint8[height, width] of display size; None: unknown. sizes: see `next`.
        """
        return [self.next(sizes)] if self._types is None else self._ordered(self._types.add(luma))

    def flush(self) -> list[FrameSpec]:
        """No source frame comes any more: the frames that are left, in coding order."""
        return [] if self._types is None else self._ordered(self._types.flush())

    def close(self) -> None:
        """Release what decisions hold; no call follows."""
        if self._types is not None:
            self._types.close()

    def _ordered(self, types: Sequence[str]) -> list[FrameSpec]:
        return [spec for frame_type in types for spec in self._order.add(frame_type)]

    def next(self, sizes: Sequence[int] = ()) -> FrameSpec:
        """The next frame of a stream without B frames. sizes: bits of the frames that have become known (SizeFeedback); not
        used at a constant QP.
        """
        last = self._last
        index = last.coding_index + 1 if last is not None else 0
        if last is None or last.frame_num + 1 >= self._config.keyint:
            self._last = self._idr(index, last.gop + 1 if last is not None else 0)
        else:
            self._last = self._p(index, last)
        return self._last

    def _idr(self, index: int, gop: int) -> FrameSpec:
        # positional here and below: a tuple made by keywords takes twice as long, in every frame
        return FrameSpec(
            index, index, gop, I, True, True, 0, 0, (gop + 1) % 2, self._config.i_qp, 0, (), (index,), self._slices
        )

    def _p(self, index: int, last: FrameSpec) -> FrameSpec:
        references = last.references_after
        return FrameSpec(
            index, index, last.gop, P, False, True, last.frame_num + 1, last.pic_order_cnt + 2, last.idr_pic_id,
            self._config.qp, CABAC_INIT_IDC, references, (index, *references)[: self._config.ref], self._slices, (),
            DISTANCES[: len(references)],
        )  # fmt: skip


def _type_source(config: Config) -> TypeSource | None:
    """By costs where scene cuts or the number of B frames depend on them; None: `FrameTypes.next` decides."""
    if config.b_adapt or config.scenecut:
        return AdaptiveTypes.of(config, config.b_pyramid != "none")
    return FixedTypes(config) if config.bframes else None
