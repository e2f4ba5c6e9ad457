"""How frames are coded: the settings that stages, their memory and the syntax follow from."""

from typing import NamedTuple

from ..standard.levels import profile_name
from ..standard.sample_format import SUB_HEIGHT_C, SUB_WIDTH_C, chroma_shape
from ..standard.syntax_sps import BASELINE, HIGH, MAIN
from .arrays import Size
from .executor import bands
from .frame_spec import MOST_DUPLICATES, MOST_ENTRIES

_FLAT = 16  # each number of a list that scales nothing


class CodingSettings(NamedTuple):
    """Checked and complete: Config.from_options of encoder/settings/config.py makes them. Sizes are in luma samples.

    A field that is an option has its name.
    """

    # ---- frames
    width: int  # of the display, as the user gave it; may be odd
    height: int
    pad: int  # border of the reference planes
    slices: int  # of a frame
    slice_max_size: int  # most bytes of a slice's NAL unit; 0: slices are bands of rows

    # ---- references
    ref: int  # most entries of RefPicList0 of different frames
    bframes: int  # most B frames between two others; 0: the stream has one reference list
    weightp: int  # 1, 2: weighted_pred_flag; 2: repeats_references
    weightb: bool  # implicit weights in B frames
    dpb_frames: int  # max_num_ref_frames: most frames that are references at the same time
    max_num_reorder_frames: int  # E.2.1: frames by which decoding runs ahead of display
    refresh_cycle: int  # frames from one cycle of intra refresh to the next; 0: there is none

    # ---- search
    me: str  # dia, hex, umh, fsbm or step
    step_grid: int  # 3, 7 or 13: for me "step"
    merange: int  # integer samples; candidates -merange .. merange - 1 around the centre
    max_mv_y: int  # vectors stay in [-max_mv_y, max_mv_y - 0.25]
    max_mvs_per_2mb: int  # Table A-1: most vectors of two macroblocks; 0: no limit
    partitions: frozenset[str]  # of p8x8, p4x4, i8x8, i4x4
    subme: int  # 0 to 10: accuracy of vectors and of decisions

    # ---- residual and bits
    cabac: bool  # entropy_coding_mode_flag
    transform_8x8_mode: bool
    chroma_qp_offset: int  # chroma_qp_index_offset
    scaling_lists: tuple[tuple[int, ...], ...]  # six of 4x4 and two of 8x8 blocks, in scan order
    trellis: int  # 0 or 1
    least_qp: int  # limits of QP_Y, of qpmin and qpmax
    most_qp: int
    psy_rd: float  # strength; 0: none
    deadzone_inter: int  # 1 / 64 of a step, on both sides of zero
    deadzone_intra: int
    aq_mode: int  # 0: none
    aq_strength: float
    bits_by_kind: bool  # count them for the statistics, from levels that are downloaded

    # ---- loop filter, 7.4.3
    deblock: bool
    deblock_alpha: int  # slice_alpha_c0_offset_div2, -6..6
    deblock_beta: int  # slice_beta_offset_div2
    deblock_within_slices: bool

    @property
    def mb_width(self) -> int:
        """Macroblocks in a row."""
        return -(-self.width // 16)

    @property
    def mb_height(self) -> int:
        """Macroblock rows."""
        return -(-self.height // 16)

    @property
    def n_mb(self) -> int:
        """Macroblocks of a frame."""
        return self.mb_width * self.mb_height

    @property
    def size(self) -> Size:
        """Of the arrays of a frame."""
        return Size(self.mb_width, self.mb_height, self.pad, self.has_b_frames)

    @property
    def slice_ranges(self) -> tuple[tuple[int, int], ...]:
        """Macroblocks [first_mb, end_mb) of each slice, whole rows; with slice_max_size before a frame is coded."""
        return tuple([(self.mb_width * row0, self.mb_width * row1) for row0, row1 in bands(self.mb_height, self.slices)])

    @property
    def display(self) -> tuple[tuple[int, int], ...]:
        """(height, width) of the planes of a source frame."""
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
        """(right, bottom) of the cropping rectangle; even."""
        return 16 * self.mb_width - self.output_width, 16 * self.mb_height - self.output_height

    @property
    def has_b_frames(self) -> bool:
        """Whether the stream has B frames, and so two reference lists."""
        return self.bframes > 0

    @property
    def refresh_frames(self) -> int:
        """Frames of a cycle of intra refresh with a bar: at the last one all columns are clean."""
        return min(self.refresh_cycle, self.mb_width)

    @property
    def repeats_references(self) -> bool:
        """Whether RefPicList0 may hold the last frame several times, with other weights."""
        return self.weightp == 2

    @property
    def weighted_copies(self) -> int:
        """Most entries of a frame whose luma is searched weighted."""
        return self.weightp

    @property
    def frames_back(self) -> int:
        """Most frames, in coding order, from a reference to a frame that may use it: B frames may lie between."""
        return self.dpb_frames * (self.bframes + 1)

    @property
    def most_searches(self) -> int:
        """Most entries of both lists of a frame; those of a B frame have one each."""
        most_entries = min(MOST_ENTRIES, self.ref + MOST_DUPLICATES * self.repeats_references)
        return max(most_entries, 1 + self.has_b_frames)

    @property
    def has_scaling_lists(self) -> bool:
        """Whether a scaling list is not flat."""
        return any(number != _FLAT for numbers in self.scaling_lists for number in numbers)

    @property
    def disable_deblocking_idc(self) -> int:
        """disable_deblocking_filter_idc (7.4.3): 0 everywhere, 1 off, 2 not between slices."""
        if not self.deblock:
            return 1
        return 2 if self.deblock_within_slices else 0

    @property
    def profile_idc(self) -> int:
        """A.2: the lowest profile that has the tools in use; --profile is the highest that the user allows."""
        if self.transform_8x8_mode or self.has_scaling_lists:
            return HIGH
        return MAIN if self.cabac or self.weightp or self.bframes else BASELINE

    @property
    def profile_name(self) -> str:
        """Of `profile_idc`, for messages."""
        return profile_name(self.profile_idc, constraint_set1_flag=1)
