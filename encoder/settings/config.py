"""The settings of one encode, checked and complete: they exist before any allocation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import floor, log2
from typing import TYPE_CHECKING, Any

from ...scheduler.frame_spec import MOST_DUPLICATES, MOST_ENTRIES
from ...scheduler.hybrid.tuning.tuning_place import cores
from ...standard.levels import profile_name
from ...standard.sample_format import SUB_HEIGHT_C, SUB_WIDTH_C, chroma_shape
from ...standard.syntax_sps import BASELINE, HIGH, MAIN
from ..errors import InputError, OptionError
from .buffer import Buffer, asked_buffer, average_rate, buffer_of, nal_factor
from .device import choose_device, choose_devices
from .frame_requests import Request, Zone, read_qpfile
from .options import ALL, API, OPTIONS, Option, read_options
from .pass_file import READING, WRITING, FirstPass, check_pass, read_pass
from .pyramid import dpb_frames, reference_levels, reordered_frames
from .resolve import (
    check_sar,
    check_slices,
    gops_for,
    resolve_deblocking,
    resolve_level,
    resolve_profile,
    resolve_psy,
    resolve_types,
    settle_qps,
    with_rate_factor,
)
from .scaling_lists import FLAT, ScalingLists
from .tunes import ZERO_LATENCY, split
from .tuning_lookup import find_tuning

if TYPE_CHECKING:
    from ...scheduler.hybrid.tuning.tuning_file import Tuning

_BORDER = 24  # samples that sub-sample filters and partitions may read beyond the motion range
_PAD_UNIT = 16
MB_A_THREAD = 130  # macroblocks of a frame for each thread: with fewer an encode gets slower,
_LEAST_USEFUL = 8  # but so many threads always find frames side by side
MOST_IN_TEAM = 16  # threads that share a frame
_BESIDE = 2  # threads beside them
_SHARES, _MB_SHARED = 8, 4000  # threads and macroblocks from which B frames that are references are shared


@dataclass(frozen=True)
class Config:
    """One encode. Sizes in luma samples; VUI fields are the numbers of Annex E, None = not written."""

    width: int  # of the display, as the user gave it; may be odd
    height: int
    fps: Fraction
    frames: int  # 0 = all
    seek: int
    preset: str
    tune: str | None  # joined by commas
    profile: str
    level: str | None  # as requested; see level_idc
    qpfile: str | None
    requests: tuple[tuple[int, Request], ...]  # of qpfile: by frame of the input, from its first on
    zones: tuple[Zone, ...]  # of frames in display order, the later ones first in rank
    qp: int  # of P frames; with crf the one that slice headers count from
    crf: float | None  # constant rate factor; None: the QP is constant; with bitrate where QPs begin
    bitrate: int  # kbit/s; 0: none is aimed at
    ratetol: float
    pass_: int  # 0: there is one pass
    stats: str
    slow_firstpass: bool
    crf_max: float  # 0: none
    qcomp: float
    mbtree: bool  # with crf: macroblock tree
    qpmin: int  # with crf
    qpmax: int
    vbv_maxrate: int  # kbit/s; 0: no buffer is promised
    vbv_bufsize: int  # kbit
    vbv_init: float
    ipratio: float
    pbratio: float
    aq_mode: int  # 0: none
    aq_strength: float
    chroma_qp_offset: int
    cqm: str  # flat, jvt or the file's name
    cqm4: str | None  # scaling_lists.PARTS, with those that follow
    cqm4i: str | None
    cqm4p: str | None
    cqm8: str | None
    cqm8i: str | None
    cqm8p: str | None
    scaling_lists: ScalingLists
    keyint: int
    ref: int
    slices: int
    me: str
    step_grid: int  # 3, 7 or 13: for me "step"
    merange: int  # integer samples; candidates -merange .. merange - 1 around the centre
    partitions: frozenset[str]  # of p8x8, p4x4, i8x8, i4x4
    subme: int
    trellis: int
    psy_rd: float
    deadzone_inter: int  # 1 / 64 of a step, on both sides of zero
    deadzone_intra: int
    cabac: bool  # entropy_coding_mode_flag
    bframes: int  # most B frames between two others
    b_pyramid: str  # none, normal or dyadic (pyramid.py)
    weightb: bool  # implicit weights in B frames
    b_adapt: int  # 0 without B frames
    b_bias: int
    scenecut: int  # 0: none
    min_keyint: int  # resolved: at least 1, at most keyint
    rc_lookahead: int  # frames
    weightp: int  # 1, 2: weighted_pred_flag; 2: repeats_references
    transform_8x8_mode: bool
    deblock: bool
    deblock_alpha: int  # -6..6
    deblock_beta: int
    deblock_within_slices: bool
    threads: int  # resolved: at least 1
    threads_by_user: bool  # by the user; else the number of CPUs
    device: str  # resolved; the first of several
    devices: tuple[str, ...]  # "cpu", "cuda:0", ...: GOPs are distributed to them
    ordinal: int  # of the GPU, if the device is one
    gops: int  # encoded at once; 0 = auto
    device_reason: str
    may_change_device: bool  # the CPU replaces a lost GPU
    psnr: bool
    ssim: bool
    bits_by_kind: bool  # count them for the statistics
    sar: tuple[int, int] | None  # sar_width, sar_height
    videoformat: int | None  # Table E-2
    range: int | None  # video_full_range_flag
    colorprim: int | None  # Table E-3
    transfer: int | None  # Table E-4
    colormatrix: int | None  # Table E-5
    info_sei: bool
    aud: bool  # access unit delimiters
    nal_hrd: str  # none, vbr or cbr
    filler: bool
    pic_struct: bool

    coded_width: int  # whole macroblocks
    coded_height: int
    level_idc: int
    max_mv_y: int  # luma samples: vectors stay in [-max_mv_y, max_mv_y - 0.25]
    max_mvs_per_2mb: int  # Table A-1; 0 = no limit
    pad: int  # border of the reference planes, luma samples
    buffer: Buffer | None = None  # the coded picture buffer that is promised
    first_pass: FirstPass | None = field(default=None, compare=False, repr=False)  # what it has found, in the second one
    # device "hybrid" by option, not planned: rows of the CPU, and the device of stages that do not split (0: the CPU)
    split: tuple[int, int] | None = None
    tuning: "Tuning | None" = field(default=None, compare=False, repr=False)  # measurements of this machine
    tuning_note: str = field(default="", compare=False)  # why the user's tuning file is not used
    fixed_frame_rate: bool = True  # False: the container has a time for each frame
    # settings of a GPU that override `tuning`: some of CHOSEN in scheduler/hybrid/tuning/tuning_file.py
    gpu_choices: Mapping[str, int] | None = field(default=None, compare=False)

    @property
    def mb_width(self) -> int:
        """Macroblocks in a row."""
        return self.coded_width // 16

    @property
    def mb_height(self) -> int:
        """Macroblock rows."""
        return self.coded_height // 16

    @property
    def stage_threads(self) -> int:
        """Threads of an encode on the CPU: the requested number, or as many as do not delay each other; by themselves without
        B frames, which run side by side, those of one frame, and beside them entropy coding and decisions.
        """
        most = max(_LEAST_USEFUL, self.mb_width * self.mb_height // MB_A_THREAD)
        by_itself = not self.has_b_frames and not self.threads_by_user
        return min(self.threads, self.team + _BESIDE if by_itself else most)

    @property
    def team(self) -> int:
        """Those of `stage_threads` that share the stages of one frame: with more, an encode gets slower."""
        return min(self.threads, MOST_IN_TEAM, max(2, self.mb_width * self.mb_height // MB_A_THREAD))

    @property
    def shares_references(self) -> bool:
        """Whether B frames that are references are shared too: of large frames few are in flight, and would wait for them."""
        return self.team >= _SHARES and self.mb_width * self.mb_height >= _MB_SHARED

    @property
    def display(self) -> tuple[tuple[int, int], ...]:
        """(height, width) of the planes of an input frame."""
        chroma = chroma_shape(self.height, self.width)
        return (self.height, self.width), chroma, chroma

    @property
    def output_width(self) -> int:
        """Width of decoder output: the next even number, because 4:2:0 crops two samples at a time."""
        return self.width + -self.width % SUB_WIDTH_C

    @property
    def output_height(self) -> int:
        """Height of decoder output, even too."""
        return self.height + -self.height % SUB_HEIGHT_C

    @property
    def crop(self) -> tuple[int, int]:
        """(right, bottom) of the cropping rectangle in luma samples; even."""
        return self.coded_width - self.output_width, self.coded_height - self.output_height

    @property
    def disable_deblocking_idc(self) -> int:
        """disable_deblocking_filter_idc (7.4.3): 0 everywhere, 1 off, 2 not between slices."""
        if not self.deblock:
            return 1
        return 2 if self.deblock_within_slices else 0

    @property
    def has_scaling_lists(self) -> bool:
        """Whether a scaling list is not flat."""
        return self.scaling_lists != FLAT

    @property
    def profile_idc(self) -> int:
        """A.2: the lowest profile that has the tools in use; `profile` is the highest that the user allows."""
        if self.transform_8x8_mode or self.has_scaling_lists:
            return HIGH
        return MAIN if self.cabac or self.weightp or self.bframes else BASELINE

    @property
    def repeats_references(self) -> bool:
        """Whether RefPicList0 may hold the last frame several times, with other weights."""
        return self.weightp == 2

    @property
    def has_b_frames(self) -> bool:
        """Whether the stream has B frames, and so two reference lists."""
        return self.bframes > 0

    @property
    def holds_frames(self) -> bool:
        """Whether frames wait until later ones have come: for their types, or since coding order is not display order."""
        return self.has_b_frames or self.decides_by_samples

    @property
    def decides_by_samples(self) -> bool:
        """Whether types, order or QPs of frames follow from their samples, so that one place reads all frames in order."""
        return self.b_adapt > 0 or self.scenecut > 0 or self.crf is not None

    @property
    def needs_host_frames(self) -> str:
        """The option for which samples of the source are read on the host; empty: there is none."""
        return "ssim" if self.ssim else ""

    @property
    def decides_beside(self) -> bool:
        """Whether a CPU may decide about frames while others are coded: no later call may refuse a frame."""
        return self.decides_by_samples and self.first_pass is None and not self.waits_for_packets

    @property
    def waits_for_packets(self) -> bool:
        """Whether each frame is finished before the next one enters: so that no packet comes later than it can, or since its
        size decides about the next one.
        """
        return ZERO_LATENCY in split(self.tune) or self.buffer is not None

    @property
    def planned_frames(self) -> int:
        """Frames that wait, decided, for the plan of a bit rate, or of a buffer as many as fill it: of the lookahead."""
        buffer = self.buffer
        if self.bitrate and self.first_pass is None:
            return self.rc_lookahead
        return 0 if buffer is None else min(self.rc_lookahead, -int(-buffer.size * self.fps // buffer.rate))

    @property
    def dpb_frames(self) -> int:
        """max_num_ref_frames: most frames that are references at the same time."""
        return dpb_frames(self.ref, self.bframes, self.b_pyramid)

    @property
    def max_num_reorder_frames(self) -> int:
        """E.2.1: frames by which decoding runs ahead of display."""
        return reordered_frames(self.bframes, self.b_pyramid)

    @property
    def b_levels(self) -> int:
        """Levels of B frames that are references: so many at the same time at most."""
        return reference_levels(self.bframes, self.b_pyramid)

    @property
    def frames_back(self) -> int:
        """Most frames, in coding order, from a reference to a frame that may use it: B frames may lie between."""
        return self.dpb_frames * (self.bframes + 1)

    @property
    def most_searches(self) -> int:
        """Most entries of both lists of a frame; those of a B frame have one each."""
        return max(self.most_entries, 1 + self.has_b_frames)

    @property
    def most_entries(self) -> int:
        """Most entries of RefPicList0."""
        return min(MOST_ENTRIES, self.ref + MOST_DUPLICATES * self.repeats_references)

    @property
    def profile_name(self) -> str:
        """Of `profile_idc`, for messages."""
        return profile_name(self.profile_idc, constraint_set1_flag=1)

    @property
    def i_qp(self) -> int:
        """QP of I frames before any rate control: finer than P frames by `ipratio`."""
        return min(51, max(0, self.qp - round(6 * log2(self.ipratio))))

    @property
    def b_qp(self) -> int:
        """QP of B frames before any rate control: coarser than P frames by `pbratio`."""
        return min(51, max(0, floor(self.qp + 6 * log2(self.pbratio) + 0.5)))

    @property
    def reference_b_qp(self) -> int:
        """QP of B frames that are references: between the others, rounded up."""
        return (self.qp + self.b_qp + 1) // 2

    @classmethod
    def from_options(cls, **options: Any) -> "Config":
        """Check all options together; OptionError names the wrong one."""
        legal = [row for row in OPTIONS if row.scope in (ALL, API) or row.name in ("frames", "seek")]
        values = read_options(options, legal)
        if values["bitrate"]:
            options = with_rate_factor(options, values["pass_"] in READING)
        for name in ("width", "height"):
            if values[name] is None:
                raise OptionError(f"{name} is missing")
        resolve_deblocking(values, options)
        settle_qps(values, options)
        resolve_profile(values, options)
        resolve_psy(values, options)
        check_pass(values, options)
        values["bits_by_kind"] = values["bits_by_kind"] or values["pass_"] in WRITING
        values["zones"] = values["zones"] or ()
        values["requests"] = read_qpfile(values["qpfile"])
        if values["me"] != "step" and options.get("step_grid") is not None:
            raise OptionError("has no effect without --me step", "step-grid")
        width, height = values["width"], values["height"]
        mb_width, mb_height = -(-width // 16), -(-height // 16)
        check_slices(values, mb_height)
        check_sar(values)
        rate, size = asked_buffer(values, options)
        high = values["transform_8x8_mode"] or values["scaling_lists"] != FLAT
        level = resolve_level(values, options, (rate or average_rate(values["bitrate"], high), size, nal_factor(high)))
        resolve_types(values, options)
        if rate or (values["bitrate"] and values["pass_"] not in READING):
            values["gops"] = 1
        requested_device, named = values.pop("device"), values.pop("devices")
        tuning, note = find_tuning(values.pop("tuning"), requested_device if named is None else "")
        if named is not None and options.get("device") is not None:
            raise OptionError("contradicts device: give one of them", "devices")
        if named is None:
            frame_kind, tools = None, (values["subme"], values["cabac"])
            if tuning is not None:
                from .device_prediction import frame_kind_of  # the planner

                frame_kind = frame_kind_of(mb_width, mb_height, values["ref"], values["me"], 48, *tools, values["bframes"])
            device, reason = choose_device(
                requested_device,
                mb_width * mb_height,
                values["me"],
                tuning,
                frame_kind,
                *tools,
                values["bframes"],
                values["aq_mode"],
                values["mbtree"],
                rate > 0,
            )
            devices: tuple[str, ...] = ({"cuda": "cuda:0"}.get(device, device),)
        else:
            named, reason = choose_devices(named, values["me"], values["subme"], values["cabac"])
            requested_device, devices, device = "", named, named[0].partition(":")[0]
            values["gops"] = gops_for(values["gops"], named)
        threads_by_user = values["threads"] > 0
        values["threads"] = values["threads"] or (tuning and tuning.value("threads")) or cores()
        config = cls(
            **values,
            threads_by_user=threads_by_user,
            device=device,
            device_reason=reason,
            devices=devices,
            ordinal=int(devices[0].partition(":")[2] or 0),
            may_change_device=requested_device in ("auto", "hybrid"),
            coded_width=16 * mb_width,
            coded_height=16 * mb_height,
            level_idc=level.level_idc,
            max_mv_y=level.max_vmv_r,
            max_mvs_per_2mb=level.max_mvs_per_2mb,
            pad=-(-(values["merange"] + _BORDER) // _PAD_UNIT) * _PAD_UNIT,
            buffer=buffer_of(values, (rate, size), level, mb_width * mb_height),
            tuning=tuning,
            tuning_note=note,
        )
        return replace(config, first_pass=read_pass(config)) if config.pass_ in READING else config


def check_fields(rows: Iterable[Option]) -> None:
    """TypeError that names the options of the encoder for which Config has no field; called at import."""
    parts_of_others = {"no_deblock", "no_cabac", "no_8x8dct", "no_weightb", "no_scenecut", "no_mbtree", "no_psy"}
    known = {entry.name for entry in fields(Config)} | parts_of_others
    missing = [row.name for row in rows if row.scope in (ALL, API) and row.name not in known]
    if missing:
        raise TypeError(f"options without a field of the same name in Config (encoder/settings/config.py): {missing}")


check_fields(OPTIONS)


def with_bt709(config: Config, begun: bool) -> Config:
    """The config of a stream of RGB input, which becomes BT.709 in limited range, or the same one (FramePipeline.set_bt709).
    begun: frames were entered.
    """
    wanted = {"colorprim": 1, "transfer": 1, "colormatrix": 1, "range": 0}
    options = {name: getattr(config, name) for name in wanted}
    for name in ("colormatrix", "range"):
        if options[name] not in (None, wanted[name]):
            raise InputError(f"RGB becomes BT.709 in limited range, which contradicts {name}")
    if options["colormatrix"] is not None and options["range"] is not None:
        return config
    if begun:
        raise InputError("RGB after other frames: set colormatrix='bt709' and range='tv' from the start")
    values: dict[str, Any] = {name: value for name, value in wanted.items() if options[name] is None}
    return replace(config, **values)
