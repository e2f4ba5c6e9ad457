"""What the scheduler knows of the settings of an encode: the numbers of its stages, its memory and its devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..standard.sample_format import chroma_shape
from .arrays import Size

if TYPE_CHECKING:
    from .hybrid.tuning.tuning_file import Tuning


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CodingSettings:
    """The settings of one encode, checked and complete; coding_settings of encoder/settings/coding.py makes them.

    Sizes are in luma samples where nothing else is said.
    """

    # ---- frames
    width: int  # of the display; may be odd
    height: int
    pad: int  # border of the reference planes
    slices: tuple[tuple[int, int], ...]  # macroblock rows [row0, row1) of each

    # ---- references
    ref: int  # most entries of RefPicList0 of different frames
    bframes: int  # most B frames between two others; 0: the stream has one reference list
    dpb_frames: int  # max_num_ref_frames: most frames that are references at the same time
    frames_back: int  # most frames, in coding order, from a reference to a frame that may use it
    most_searches: int  # most entries of both lists of a frame
    weighted_copies: int  # most entries of a frame whose luma is searched weighted

    # ---- search
    me: str  # dia, hex, umh, fsbm or step
    step_grid: int  # 3, 7 or 13: for me "step"
    merange: int  # integer samples; candidates -merange .. merange - 1 around the centre
    max_mv_y: int  # vectors stay in [-max_mv_y, max_mv_y - 0.25]
    max_mvs_per_2mb: int  # Table A-1: most vectors of two macroblocks; 0: no limit
    partitions: frozenset[str]  # of p8x8, p4x4, i8x8, i4x4
    subme: int  # 0 to 7: accuracy of vectors and of decisions

    # ---- residual and bits
    cabac: bool  # entropy_coding_mode_flag
    transform_8x8_mode: bool
    chroma_qp_offset: int  # chroma_qp_index_offset
    scaling_lists: tuple[tuple[int, ...], ...]  # six of 4x4 and two of 8x8 blocks, in scan order
    has_scaling_lists: bool  # one of them is not flat
    trellis: int  # 0 or 1
    psy_rd: float  # strength; 0: none
    deadzone_inter: int  # 1 / 64 of a step, on both sides of zero
    deadzone_intra: int

    # ---- loop filter, 7.4.3
    disable_deblocking_idc: int  # disable_deblocking_filter_idc
    deblock_alpha: int  # slice_alpha_c0_offset_div2
    deblock_beta: int  # slice_beta_offset_div2

    # ---- what is measured
    measures_energies: bool  # of sources on a GPU, for adaptive quantisation
    downloads_levels: bool  # the host counts the bits by kind

    # ---- device
    device: str  # cpu, cuda or hybrid
    ordinal: int  # of the GPU, if the device has one
    may_change_device: bool  # the CPU replaces a lost GPU
    threads: int  # of the encode; at least 1
    stage_threads: int  # those that stages of a CPU's encode use
    team: int  # those of them that share the stages of one frame
    shares_references: bool  # B frames that are references are shared by the team too
    waits_for_packets: bool  # each frame is finished before the next one enters
    split: tuple[int, int] | None  # a plan for "hybrid": rows of the CPU, device of stages that do not split (0: the CPU)
    tuning: "Tuning | None"  # measurements of this machine
    gpu_choices: Mapping[str, int]  # some of CHOSEN in scheduler/hybrid/tuning/tuning_file.py

    @property
    def mb_width(self) -> int:
        """Macroblocks in a row."""
        return -(-self.width // 16)

    @property
    def mb_height(self) -> int:
        """Macroblock rows."""
        return -(-self.height // 16)

    @property
    def has_b_frames(self) -> bool:
        """Whether the stream has B frames, and so two reference lists."""
        return self.bframes > 0

    @property
    def size(self) -> Size:
        """Of the arrays of a frame."""
        return Size(self.mb_width, self.mb_height, self.pad, self.has_b_frames)

    @property
    def display(self) -> tuple[tuple[int, int], ...]:
        """(height, width) of the planes of a source frame."""
        chroma = chroma_shape(self.height, self.width)
        return (self.height, self.width), chroma, chroma
