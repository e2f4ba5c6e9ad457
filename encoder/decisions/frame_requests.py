"""Types and QPs that users ask for, frame by frame: what of it is possible, and the QP of each frame that follows."""

from collections.abc import Callable, Sequence

from ...scheduler.frame_spec import REQUEST, B, FrameSpec, I, P
from ..settings.config import Config
from ..settings.frame_requests import IDR, Request
from ..settings.groups import RateSettings
from .fixed_point import LOG2_SHIFT, QP_SHIFT, log2_of, scaled

_STEP = 6  # QPs that double the quantiser step
_NOTHING = Request()
ZONE = "zone"  # FrameSpec.qp_by
_WHY = {
    IDR: "--keyint asks for it",
    P: "at most --bframes B frames follow one another, and none stands before an I frame or at the end",
}


class Requests:
    """Requests of a stream: those of --qpfile and --zones, and of the caller."""

    def __init__(self, config: Config, warn: Callable[[str], None] | None = None) -> None:
        """warn: called with a sentence at the first type that is not possible."""
        self._config, self._warn = config, warn
        first = config.video.seek
        self._of_file = {frame - first: request for frame, request in config.types.requests if frame >= first}
        self._of_caller = _NOTHING
        self._entered = self._decided = 0  # frames
        self._b_frames = 0  # requests for B frames one after another
        self._types: dict[int, str] = {}  # requested, of frames that are not decided
        self._qps: dict[int, int] = {}
        self._offsets: dict[int, bytes] = {}  # FrameSpec.qp_offsets, of frames whose QP is not decided
        self._zones = [(zone, None if zone.qp is None else config.rate._replace(qp=zone.qp)) for zone in config.rate.zones]

    def of_caller(self, request: Request | None) -> None:
        """For the next frame that enters, in place of that of the file; None: nothing."""
        self._of_caller = request or _NOTHING

    def enter(self) -> str:
        """The next frame comes, in display order. Its type, as far as the frames before it allow that; empty: any."""
        frame, request = self._entered, self._of_file.pop(self._entered, _NOTHING)
        if self._of_caller is not _NOTHING:
            request, self._of_caller = self._of_caller, _NOTHING
        self._entered += 1
        if request.qp is not None:
            self._qps[frame] = request.qp
        if request.qp_offsets:
            self._offsets[frame] = request.qp_offsets
        self._b_frames = self._b_frames + 1 if request.frame_type == B and frame else 0
        if not request.frame_type:
            return ""
        self._types[frame] = request.frame_type
        if self._b_frames > self._config.coding.bframes:
            self._b_frames = 0
            return P
        return request.frame_type

    def check(self, types: Sequence[str]) -> None:
        """The types of the next frames in display order are decided: warns at the first that is not the requested one."""
        for decided in types:
            requested = self._types.pop(self._decided, decided)
            if requested != decided and self._warn is not None:
                why = "the first frame is one" if not self._decided else _WHY.get(decided, "it is a new scene")
                self._warn(f"frame {self._decided}: {decided} in place of {requested}: {why} (later frames are not reported)")
                self._warn = None
            self._decided += 1

    def with_requested_qp(self, spec: FrameSpec) -> FrameSpec | None:
        """The spec with the QP that is asked for, whatever the content; None: rate control decides."""
        qp, config = self._qps.pop(spec.display_index, None), self._config
        if qp is not None:
            qp = min(config.rate.qpmax, max(config.rate.qpmin, qp))
            all_alike = bytes([qp]) * (config.coding.n_mb) if config.coding.aq_mode else b""
            return spec._replace(qp=qp, mb_qp=all_alike, is_qp_requested=True, qp_by=REQUEST)
        for zone, like in reversed(self._zones):
            if zone.first <= spec.display_index <= zone.last:
                if like is None:
                    return None
                zone_qp = qp_of(like, spec.frame_type, spec.is_reference)
                zone_qp = min(config.rate.qpmax, max(config.rate.qpmin, zone_qp))
                return spec._replace(qp=zone_qp, is_qp_requested=True, qp_by=ZONE)
        return None

    def shift(self, display_index: int) -> int:
        """QP in 1 / 256 to be added for the rate of the zone of a frame."""
        for zone, _ in reversed(self._zones):
            if zone.first <= display_index <= zone.last:
                return -scaled(_STEP * log2_of(zone.rate), 1, LOG2_SHIFT - QP_SHIFT)
        return 0

    def with_offsets(self, specs: list[FrameSpec]) -> list[FrameSpec]:
        """Frames whose QPs are decided, with the offsets that are asked for."""
        if not self._offsets:
            return specs
        return [spec._replace(qp_offsets=self._offsets.pop(spec.display_index, b"")) for spec in specs]

    def constant(self, specs: list[FrameSpec]) -> list[FrameSpec]:
        """The specs of frames in a stream of constant QP."""
        return [self._constant(spec) for spec in specs] if self._qps or self._zones else specs

    def _constant(self, spec: FrameSpec) -> FrameSpec:
        with_qp = self.with_requested_qp(spec)
        if with_qp is None:
            shift = scaled(self.shift(spec.display_index), 1, QP_SHIFT)
            with_qp = spec._replace(qp=min(51, max(0, spec.qp + shift)), qp_by=ZONE if shift else spec.qp_by)
        return with_qp


def qp_of(rate: RateSettings, frame_type: str, is_reference: bool) -> int:
    """Of a frame at a constant QP."""
    if frame_type == B:
        return rate.reference_b_qp if is_reference else rate.b_qp
    return rate.i_qp if frame_type == I else rate.qp
