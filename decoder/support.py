"""What the decoder refuses by name: tools of the standard it does not have, and sizes it does not take."""

from ..standard.syntax import SI, SP, Pps, SliceHeader, Sps
from .errors import BitstreamError, Unsupported

CHROMA_FORMATS = {0: "monochrome (4:0:0)", 2: "4:2:2 chroma", 3: "4:4:4 chroma"}
LARGEST_BUFFER_MBS = 696320  # Table A-1, level 6.2: MaxDpbMbs


def check_sps(sps: Sps) -> None:
    """Formats of samples."""
    if sps.chroma_format_idc != 1:
        raise Unsupported(CHROMA_FORMATS[sps.chroma_format_idc])
    if sps.bit_depth_luma_minus8 or sps.bit_depth_chroma_minus8:
        depth = 8 + max(sps.bit_depth_luma_minus8, sps.bit_depth_chroma_minus8)
        raise Unsupported(f"{depth} bits a sample (more than 8 bits)")
    if sps.qpprime_y_zero_transform_bypass_flag:
        raise Unsupported("lossless transform bypass")


def check_slice(header: SliceHeader, sps: Sps, pps: Pps) -> None:
    """Tools of a slice."""
    if pps.num_slice_groups_minus1:
        raise Unsupported("flexible macroblock ordering (FMO, slice groups)")
    if header.type_mod_5 in (SP, SI):
        raise Unsupported("SP slices" if header.type_mod_5 == SP else "SI slices")
    if header.field_pic_flag:
        raise Unsupported("interlaced coding (field pictures)")
    if sps.mb_adaptive_frame_field_flag:
        raise Unsupported("interlaced coding (macroblock-adaptive frame/field, MBAFF)")


def check_pool(sps: Sps, slots: int) -> None:
    """A.3.1: refuse frames that are more than any level's decoded picture buffer holds: memory stays bounded."""
    if sps.mb_width * sps.mb_height * (slots - 1) > LARGEST_BUFFER_MBS:
        raise BitstreamError(
            f"{slots - 1} frames of {sps.mb_width} x {sps.mb_height} macroblocks are more than any level's buffer holds"
        )
