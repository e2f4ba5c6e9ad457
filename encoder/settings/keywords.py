"""The options of an encoder as typed keyword arguments, for editors and type checkers; meanings are in docs/options.md."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from os import PathLike
from typing import TypedDict

Rate = int | float | str | Fraction | Decimal


class EncoderOptions(TypedDict, total=False):
    """A key for each option of the table that Python takes, without size and frame rate; None: not set."""

    preset: str | None
    tune: str | Iterable[str] | None
    lenient: bool | None
    profile: str | None
    level: str | float | None
    keyint: int | str | None
    intra_refresh: bool | None
    ref: int | None
    bframes: int | None
    b_pyramid: str | None
    b_adapt: int | None
    b_bias: int | None
    scenecut: int | None
    no_scenecut: bool | None
    min_keyint: int | str | None
    rc_lookahead: int | None
    slices: int | None
    slice_max_size: int | None
    no_deblock: bool | None
    no_cabac: bool | None
    deblock: str | tuple[int, int] | bool | None
    deblock_within_slices: bool | None
    qpfile: str | PathLike[str] | None
    qp: int | None
    crf: float | None
    bitrate: int | None
    ratetol: float | None
    pass_: int | None
    stats: str | PathLike[str] | None
    slow_firstpass: bool | None
    qcomp: float | None
    no_mbtree: bool | None
    qpmin: int | None
    qpmax: int | None
    vbv_maxrate: int | None
    vbv_bufsize: int | None
    crf_max: float | None
    vbv_init: float | None
    ipratio: float | None
    pbratio: float | None
    aq_mode: int | None
    aq_strength: float | None
    zones: str | None
    chroma_qp_offset: int | None
    cqm: str | PathLike[str] | None
    cqm4: str | None
    cqm4i: str | None
    cqm4iy: str | None
    cqm4ic: str | None
    cqm4p: str | None
    cqm4py: str | None
    cqm4pc: str | None
    cqm8: str | None
    cqm8i: str | None
    cqm8p: str | None
    partitions: str | Iterable[str] | None
    me: str | None
    step_grid: int | None
    merange: int | None
    subme: int | None
    trellis: int | None
    psy_rd: str | float | None
    no_psy: bool | None
    deadzone_inter: int | None
    deadzone_intra: int | None
    weightp: int | None
    no_weightb: bool | None
    no_8x8dct: bool | None
    threads: int | None
    device: str | None
    gops: int | str | None
    devices: str | Iterable[str] | None
    tuning: str | PathLike[str] | None
    sar: str | tuple[int, int] | None
    videoformat: str | None
    range: str | None
    colorprim: str | None
    transfer: str | None
    colormatrix: str | None
    mastering_display: str | Iterable[int] | None
    cll: str | tuple[int, int] | None
    info_sei: bool | None
    aud: bool | None
    nal_hrd: str | None
    filler: bool | None
    pic_struct: bool | None
    psnr: bool | None
    ssim: bool | None
    bits_by_kind: bool | None


class WriterOptions(EncoderOptions, total=False):
    """Those of a VideoWriter: an encoder's, and what a file says beside its frames (docs/python.md); None: not set."""

    time_base: Rate | None
    metadata: Mapping[str, str] | None
    chapters: Iterable[tuple[float, str]] | None


class VideoOptions(WriterOptions, total=False):
    """Those of `write_video`: a writer's, and a time for each frame; None: not set."""

    timestamps: Iterable[float | Fraction] | None
    pts: Iterable[int] | None
