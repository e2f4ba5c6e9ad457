"""Rate control by sizes of coded frames, which count at a fixed lag; a second pass has one of its own for each section."""

from bisect import bisect_right
from collections.abc import Sequence

from ...scheduler.frame_spec import FrameSpec
from ..settings.config import Config
from .bitrate_control import BitrateControl
from .second_pass import SecondPass, WholeStream, sections_of
from .size_feedback import RATE_LAG, SizeFeedback, rate_lag


class RateControl:
    """Assigns the QPs of frames. Sections of a second pass share no sizes, so that lanes can code them at once."""

    def __init__(self, config: Config) -> None:
        first = config.rate.first_pass
        self._whole = None if first is None else WholeStream(config)
        self._sections = () if first is None else sections_of(first)
        self._section = range(0)  # coding indices
        self._sizes = SizeFeedback(RATE_LAG, rate_lag)
        self._control: BitrateControl | SecondPass | None = BitrateControl(config) if first is None else None

    def lag(self, coding_index: int) -> int:
        """The frame that many before this one, and all before that, are finished when this one gets its QP."""
        return self._sizes.lag_of(coding_index - self._section.start)

    def assign_qp(self, spec: FrameSpec, ahead: Sequence[FrameSpec]) -> tuple[FrameSpec, tuple[FrameSpec, ...]]:
        """The next frame with its QP; see BitrateControl."""
        index = spec.coding_index
        if self._whole is not None and index not in self._section:
            self._section = self._sections[bisect_right(self._sections, index, key=lambda frames: frames.start) - 1]
            self._control = SecondPass(self._whole, self._section)
            self._sizes = SizeFeedback(RATE_LAG, rate_lag)
        assert self._control is not None
        return self._control.assign_qp(spec, self._sizes.release(index - self._section.start), ahead)

    def change(self, config: Config) -> None:
        """Another bit rate from the next frame on, in one pass."""
        assert isinstance(self._control, BitrateControl)
        self._control.change(config)

    def add(self, coding_index: int, bits: int) -> None:
        """The next finished frame in coding order; those of other sections, coded before, are no longer of use."""
        if self._whole is None or coding_index in self._section:
            self._sizes.add(bits)
