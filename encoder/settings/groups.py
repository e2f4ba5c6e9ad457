"""The settings of one encode by subject, beside CodingSettings and MachineSettings of the scheduler."""

from fractions import Fraction
from math import floor, log2
from typing import NamedTuple

from .buffer import Buffer
from .frame_requests import Request, Zone
from .pass_file import FirstPass

_MOST_QP = 51


class VideoSettings(NamedTuple):
    """Which frames come, and what the VUI says of them: numbers of Annex E, None = not written."""

    fps: Fraction
    frames: int  # 0 = all
    seek: int
    sar: tuple[int, int] | None  # sar_width, sar_height
    videoformat: int | None  # Table E-2
    range: int | None  # video_full_range_flag
    colorprim: int | None  # Table E-3
    transfer: int | None  # Table E-4
    colormatrix: int | None  # Table E-5
    mastering_display: tuple[int, ...] | None = None  # D.1.29: x, y of G, B, R, white; most and least light
    cll: tuple[int, int] | None = None  # D.1.31: most light of a sample, of a frame's mean
    fixed_frame_rate: bool = True  # False: the container has a time for each frame


class StreamSettings(NamedTuple):
    """Which stream is asked for, and what else it says."""

    preset: str
    tune: str | None  # joined by commas
    profile: str
    level: str | None  # as requested
    level_idc: int
    cqm: str  # flat, jvt or the file's name
    cqm4: str | None  # scaling_lists.LISTS_OF_OPTION, with those that follow
    cqm4i: str | None
    cqm4iy: str | None
    cqm4ic: str | None
    cqm4p: str | None
    cqm4py: str | None
    cqm4pc: str | None
    cqm8: str | None
    cqm8i: str | None
    cqm8p: str | None
    info_sei: bool
    aud: bool  # access unit delimiters


class TypeSettings(NamedTuple):
    """Types and order of frames; bframes is one of CodingSettings."""

    keyint: int
    min_keyint: int  # resolved: at least 1, at most keyint
    scenecut: int  # 0: none
    b_pyramid: str  # none, normal or dyadic (pyramid.py)
    b_adapt: int  # 0 without B frames
    b_bias: int
    rc_lookahead: int  # frames
    qpfile: str | None
    requests: tuple[tuple[int, Request], ...]  # of qpfile: by frame of the input, from its first on
    first_idr_pic_id: int = 1  # of the first IDR frame, 0 or 1


class RateSettings(NamedTuple):
    """QPs of frames; adaptive quantisation is one of CodingSettings."""

    qp: int  # of P frames; with crf the one that slice headers count from
    crf: float | None  # constant rate factor; None: the QP is constant; with bitrate where QPs begin
    bitrate: int  # kbit/s; 0: none is aimed at
    ratetol: float
    pass_: int  # 0: there is one pass
    stats: str
    slow_firstpass: bool
    first_pass: FirstPass | None  # what it has found, in the second one
    qcomp: float
    mbtree: bool  # with crf: macroblock tree
    qpmin: int  # with crf
    qpmax: int
    ipratio: float
    pbratio: float
    zones: tuple[Zone, ...]  # of frames in display order, the later ones first in rank

    @property
    def i_qp(self) -> int:
        """QP of I frames before any rate control: finer than P frames by `ipratio`."""
        return min(_MOST_QP, max(0, self.qp - round(6 * log2(self.ipratio))))

    @property
    def b_qp(self) -> int:
        """QP of B frames before any rate control: coarser than P frames by `pbratio`."""
        return min(_MOST_QP, max(0, floor(self.qp + 6 * log2(self.pbratio) + 0.5)))

    @property
    def reference_b_qp(self) -> int:
        """QP of B frames that are references: between the others, rounded up."""
        return (self.qp + self.b_qp + 1) // 2


class HrdSettings(NamedTuple):
    """What is promised about a decoder's coded picture buffer, the hypothetical reference decoder of Annex C."""

    vbv_maxrate: int  # kbit/s; 0: no buffer is promised
    vbv_bufsize: int  # kbit
    vbv_init: float
    crf_max: float  # 0: none
    nal_hrd: str  # none, vbr or cbr
    filler: bool
    pic_struct: bool
    buffer: Buffer | None


class ReportSettings(NamedTuple):
    """What statistics measure."""

    psnr: bool
    ssim: bool

    @property
    def needs_host_frames(self) -> str:
        """The option for which samples of the source are read on the host; empty: there is none."""
        return "ssim" if self.ssim else ""
