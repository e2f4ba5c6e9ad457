"""Completes the FrameSpec of a frame when it is coded: QP by the bit rate, weights, QPs of macroblocks, room in a buffer."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...scheduler.frame_spec import B, FrameSpec
from ...scheduler.frames.device_frame import GpuSource
from ...scheduler.frames.frame import Frame, HostFrame
from ..encoded_frame import InBuffer
from ..settings.config import Config
from ..settings.frame_requests import Request
from .frame_decider import FrameDecider
from .size_feedback import RATE_LAG

if TYPE_CHECKING:  # imported where settings ask for them
    from .buffer_control import BufferControl
    from .coded_picture_buffer import Times
    from .rate_control import RateControl
    from .weights import Weighting

_MOST_IN_FLIGHT = 24  # frames


class CodingDecider:
    """The last decisions about the frames of one pipeline, which come in coding order, each with its source.

    For each frame: `next`, unless it comes with a spec; `lag`; `complete`; with a buffer `again` after each try, until one
    fits, and `take`; `learn` when its size is known.
    """

    def __init__(self, config: Config, warn: Callable[[str], None]) -> None:
        """warn: called with a sentence about what is asked for and does not come out."""
        self._config, self._warn = config, warn
        self._frame_decider: FrameDecider | None = None
        self._rate, self._weighting, self._control = _rate(config), _weighting(config), _buffer_control(config)
        self._changes: deque[tuple[int, Config]] = deque()
        self._warned: set[str] = set()  # promises of the buffer that were not kept
        if config.rate.first_pass is not None:
            from .second_pass import far_off

            if said := far_off(config):
                warn(said)

    @property
    def most_in_flight(self) -> int:
        """Frames that may be coded at once."""
        return _MOST_IN_FLIGHT if self._rate is None else RATE_LAG - 1

    @property
    def has_buffer(self) -> bool:
        """Whether a frame may have to be coded again."""
        return self._control is not None

    def request(self, request: Request | None) -> None:
        """For the next frame of `next`; None: nothing."""
        if request is not None or self._frame_decider is not None:
            self._decider().requests.of_caller(request)

    def next(self) -> FrameSpec:
        """The next frame of a stream in which no frame waits for others; else its spec is the caller's."""
        (spec,) = self._decider().add()
        return spec

    def lag(self, spec: FrameSpec) -> int | None:
        """This frame's predecessor by so many, and all before that, must be finished before `complete`; None: none must."""
        return None if self._rate is None else self._rate.lag(spec.coding_index)

    def complete(self, spec: FrameSpec, ahead: Sequence[FrameSpec], frame: Frame, planes: Sequence[np.ndarray]) -> FrameSpec:
        """The next frame as it is to be coded. Each step may use what the ones before have decided.

        ahead: the frames that follow, for plans. frame: with its source, whose planes are uint8 of display size, or empty if
        it lies on a GPU.
        """
        while self._changes and self._changes[0][0] <= spec.display_index:
            self._change(self._changes.popleft()[1])
        if self._rate is not None:
            spec, ahead = self._rate.assign_qp(spec, ahead)
        if self._weighting is not None:
            sums = None
            if spec.frame_type != B:
                sums = self._weighting.sums_of(planes) if planes else _buffered(frame).sums().copy()
            spec = self._weighting.of(spec, sums)
        if self._config.coding.aq_mode and not spec.mb_qp:  # else decided with the QP
            spec = self._with_mb_qp(spec, frame, planes)
        if spec.qp_offsets:
            from .adaptive_quantisation import with_offsets

            spec = with_offsets(spec, self._config.rate.qpmin, self._config.rate.qpmax)
        return spec if self._control is None else self._control.first(spec, ahead)

    def reconfigure(self, first: int, config: Config) -> None:
        """Other settings of rate control from the first frame in coding order on that is not displayed before `first`."""
        self._changes.append((first, config))

    def _change(self, config: Config) -> None:
        if self._rate is not None:
            self._rate.change(config)
        if self._control is not None:
            self._control.change(config)

    def times(self) -> "Times | None":
        """When the last frame enters and leaves the buffer."""
        return None if self._control is None else self._control.times()

    def again(self, bits: int) -> FrameSpec | None:
        """The last frame with a higher QP, since its bits do not fit the buffer; None: `take` it."""
        assert self._control is not None
        return self._control.again(bits)

    def take(self, spec: FrameSpec, bits: int) -> InBuffer:
        """The last frame enters the buffer as it is. Warns of the first one that breaks a promise."""
        assert self._control is not None
        in_buffer = self._control.take(bits)
        for promise, text in self._control.broken(in_buffer, bits).items():
            if promise not in self._warned:
                self._warned.add(promise)
                self._warn(f"frame {spec.display_index} has {text}")
        return in_buffer

    def learn(self, coding_index: int, bits: int) -> None:
        """The next frame is finished."""
        if self._rate is not None:
            self._rate.add(coding_index, bits)

    def _decider(self) -> FrameDecider:
        if self._frame_decider is None:
            self._frame_decider = FrameDecider(self._config, self._warn)
        return self._frame_decider

    def _with_mb_qp(self, spec: FrameSpec, frame: Frame, planes: Sequence[np.ndarray]) -> FrameSpec:
        from .adaptive_quantisation import AqSettings, energies, with_mb_qp

        energy = energies(frame.wide_planes()) if planes else _buffered(frame).energies()
        return with_mb_qp(spec, energy, AqSettings.of(self._config), self._config.rate.qpmin, self._config.rate.qpmax)


def _buffered(frame: Frame) -> GpuSource:
    """The buffer of a source on the GPU that is measured there."""
    assert isinstance(frame, HostFrame) and frame.device_source is not None and frame.device_source.buffered is not None
    return frame.device_source.buffered


def _rate(config: Config) -> "RateControl | None":
    if not config.rate.bitrate:
        return None
    from .rate_control import RateControl

    return RateControl(config)


def _weighting(config: Config) -> "Weighting | None":
    if not config.coding.weightp:
        return None
    from .weights import Weighting

    return Weighting((config.coding.width, config.coding.height), config.coding.repeats_references)


def _buffer_control(config: Config) -> "BufferControl | None":
    if config.hrd.buffer is None:
        return None
    from .buffer_control import BufferControl

    return BufferControl(config)
