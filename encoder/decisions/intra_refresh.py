"""Intra refresh: the columns of macroblocks of each P frame that are intra, so that in one cycle all are."""

from ...scheduler.coding_settings import CodingSettings
from ...scheduler.frame_spec import P


class IntraRefresh:
    """A bar that wanders from left to right. A cycle begins `refresh_cycle` frames after the last one or after an I frame.

    It takes as many frames as that, or one a column where there are fewer columns; then there is no bar up to the next one.
    """

    def __init__(self, coding: CodingSettings) -> None:
        self._cycle, self._mb_width = coding.refresh_cycle, coding.mb_width
        self._steps = min(self._cycle, self._mb_width)  # frames with a bar
        self._clean = 0  # coding index of the last I frame

    def columns(self, index: int, frame_type: str) -> tuple[int, ...]:
        """FrameSpec.refresh of a frame; index: its coding index. Called for each frame, in coding order."""
        if frame_type != P:
            self._clean = index
            return ()
        cycles, step = divmod(index - self._clean, self._cycle)
        if not cycles or step >= self._steps:
            return ()
        return -(-step * self._mb_width // self._steps), -(-(step + 1) * self._mb_width // self._steps)
