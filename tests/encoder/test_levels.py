"""Table A-1 and the choice of a level."""

from fractions import Fraction

import pytest
from h264lite.standard.levels import (
    LEVELS,
    level_by_name,
    level_name,
    limits_exceeded,
    max_dpb_frames,
    max_slices,
    smallest_level,
)


@pytest.mark.parametrize(
    "width, height, fps, ref, name",
    [  # luma samples; the examples of Table A-6
        (176, 144, 15, 1, "1"),
        (176, 144, 30, 1, "1.1"),
        (352, 288, 15, 1, "1.2"),
        (352, 288, 30, 1, "1.3"),
        (352, 288, 30, 6, "1.3"),
        (352, 288, 30, 7, "2.1"),
        (352, 576, 25, 1, "2.1"),
        (720, 480, Fraction(30000, 1001), 5, "3"),
        (720, 576, 25, 5, "3"),
        (1280, 720, 30, 5, "3.1"),
        (1280, 720, 60, 5, "3.2"),
        (1920, 1080, 30, 4, "4"),
        (1920, 1080, 30, 5, "5"),
        (1920, 1080, 60, 4, "4.2"),
        (3840, 2160, 30, 5, "5.1"),
        (4096, 2304, 56, 5, "5.2"),
        (8192, 4320, 30, 5, "6"),
        (1, 1, 1, 1, "1"),
    ],
)
def test_choice(width, height, fps, ref, name):
    assert smallest_level(-(-width // 16), -(-height // 16), fps, ref).name == name


def test_other_limits():
    assert smallest_level(11, 9, 15, 1, max_mv_y=64).name == "1"
    assert smallest_level(11, 9, 15, 1, max_mv_y=65).name == "1.1"
    assert smallest_level(11, 9, 15, 1, max_mv_y=512).name == "3.1"
    assert smallest_level(11, 9, 15, 1, bitrate=64 * 1200).name == "1"
    assert smallest_level(11, 9, 15, 1, bitrate=64 * 1200 + 1).name == "1.1"
    assert smallest_level(22, 18, 240, slices=16).name == "4" and smallest_level(22, 18, 240, slices=7).name == "3.1"
    # a side is at most sqrt(8 * MaxFS) macroblocks: 28.1 at level 1
    assert smallest_level(28, 1).name == "1"
    assert smallest_level(29, 1).name == "1.1"
    assert smallest_level(1, 29).name == "1.1"


def test_slices_a_second():
    """Table A-4: SliceRate macroblocks of MaxMBPS for each slice, and as many in the first frame as fR leaves time for."""
    rates = {level.name: level.slice_rate for level in LEVELS}
    assert [rates[name] for name in ("1", "1.1", "2", "2.2", "3", "3.1", "3.2", "4", "4.1", "5.2", "6.2")] == [
        0, 0, 0, 0, 22, 60, 60, 60, 24, 24, 24]  # fmt: skip
    for name, frame, fps, most in (
        ("2.2", 1620, 12, None), ("3", 1620, 25, 73), ("3", 99, 200, 9), ("3.1", 396, 240, 7), ("3.1", 396, 30, 10),
        ("3.1", 3600, 30, 60), ("4", 8160, 30, 136), ("4.1", 8160, 0, 340), ("6", 1, 60, 580), ("5.2", 1, 60, 502),
    ):  # fmt: skip
        assert max_slices(level_by_name(name), frame, fps) == most, name
    assert limits_exceeded(level_by_name("3.1"), 22, 18, 240, slices=8) == ["8 slices a frame (at most 7)"]


def test_refusals():
    with pytest.raises(ValueError, match="2000 macroblocks of width"):
        smallest_level(2000, 1)
    with pytest.raises(ValueError, match="17 reference frames"):
        smallest_level(1, 1, ref_frames=17)
    with pytest.raises(ValueError, match="macroblocks a second"):
        smallest_level(120, 68, 10_000)
    reasons = limits_exceeded(level_by_name("1"), 120, 68, 30, 4, 300, 10**9)
    assert len(reasons) == 7


def test_table():
    for lower, upper in zip(LEVELS, LEVELS[1:]):
        for column in ("level_idc", "max_mbps", "max_fs", "max_dpb_mbs", "max_br", "max_cpb", "max_vmv_r"):
            assert getattr(lower, column) <= getattr(upper, column), (lower.name, column)
    for level in LEVELS:
        assert level.level_idc == round(10 * float(level.name))
        assert level_name(level.level_idc) == level.name
        assert level_by_name(level.name) is level_by_name(str(level.level_idc)) is level
        assert max_dpb_frames(level, 1, 1) == 16
    assert level_name(11, 66, 1) == level_name(9, 100) == "1b"
    assert level_name(11, 100, 1) == "1.1"
    assert level_name(99) == "?99"
    with pytest.raises(ValueError, match=r"5\.3"):
        level_by_name("5.3")
