"""What follows from the options: sizes, cropping, the level, quantisers."""

import os
from fractions import Fraction

import pytest
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.encoder.slice_writer import picture_parameter_set, sequence_parameter_set
from h264lite.mp4.avc import ParameterSets
from h264lite.standard.bits import escape
from h264lite.standard.levels import LEVELS, limits_exceeded, profile_name
from h264lite.standard.syntax import parse_sps, write_pps, write_sps


def config(width=352, height=288, **options):
    return Config.from_options(width=width, height=height, **options)


@pytest.mark.parametrize(
    ("size", "coded", "output", "crop"),
    [((16, 16), (16, 16), (16, 16), (0, 0)), ((1, 1), (16, 16), (2, 2), (14, 14)),
     ((17, 33), (32, 48), (18, 34), (14, 14)),
     ((1920, 1080), (1920, 1088), (1920, 1080), (0, 8)), ((175, 143), (176, 144), (176, 144), (0, 0)),
     ((18, 34), (32, 48), (18, 34), (14, 14))],
)
def test_sizes(size, coded, output, crop):
    coding = config(*size).coding
    assert (coding.width, coding.height) == size
    assert coded == (16 * coding.mb_width, 16 * coding.mb_height)
    assert (coding.output_width, coding.output_height) == output
    assert coding.crop == crop


@pytest.mark.parametrize(
    ("options", "level"),
    [({"width": 176, "height": 144, "fps": 15}, 10), ({"width": 176, "height": 144, "fps": 30}, 11),
     ({"fps": 30}, 13), ({"fps": 30, "ref": 5}, 13), ({"fps": 30, "ref": 6}, 21),
     ({"fps": 30, "ref": 6, "bframes": 0}, 13), ({"fps": 30, "ref": 7}, 21),
     ({"width": 640, "height": 480, "fps": 15}, 22),
     ({"width": 640, "height": 480, "fps": 30}, 30), ({"width": 1280, "height": 720}, 31),
     ({"width": 1920, "height": 1080, "fps": 30}, 40), ({"width": 1920, "height": 1080, "fps": 60}, 42),
     ({"width": 1920, "height": 1080, "ref": 5}, 50), ({"width": 1920, "height": 1080, "ref": 16}, 51),
     ({"width": 3840, "height": 2160, "fps": 30}, 51), ({"width": 16, "height": 16, "merange": 60}, 10),
     ({"width": 16, "height": 16, "merange": 61}, 11), ({"width": 4096, "height": 16}, 40),
     ({"width": 16880, "height": 16}, 60), ({"fps": 240, "slices": 7}, 31), ({"fps": 240, "slices": 18}, 41),
     ({"fps": 30, "slices": 18}, 13), ({"width": 16, "height": 4096, "slices": 256}, 52),
     ({"bitrate": 1152}, 13), ({"bitrate": 1153}, 20), ({"bitrate": 1000, "profile": "main"}, 20),
     ({"bitrate": 2000000}, 62), ({"bitrate": 1153, "vbv_maxrate": 1000, "vbv_bufsize": 1000}, 13)],
    ids=str,
)
def test_the_smallest_level_that_fits(options, level):
    c = config(**options)
    assert c.stream.level_idc == level
    row = next(row for row in LEVELS if row.level_idc == level)
    assert c.coding.max_mv_y == row.max_vmv_r >= c.coding.merange + 4
    assert not limits_exceeded(row, c.coding.mb_width, c.coding.mb_height, c.video.fps, c.coding.ref, c.coding.merange + 4)


@pytest.mark.parametrize(
    ("options", "frames", "searches", "reordered", "level"),
    [({"bframes": 0, "b_pyramid": "dyadic"}, 1, 2, 0, 13), ({"bframes": 0, "weightp": 1}, 1, 1, 0, 13),
     ({"bframes": 1}, 2, 2, 1, 13), ({"bframes": 2}, 3, 2, 1, 13),
     ({"bframes": 3}, 3, 2, 2, 13), ({"bframes": 16, "b_pyramid": "none"}, 2, 2, 1, 13),
     ({"bframes": 3, "ref": 3}, 4, 4, 2, 13), ({"bframes": 3, "ref": 7}, 8, 8, 2, 21),
     ({"bframes": 7, "b_pyramid": "dyadic"}, 4, 2, 3, 13), ({"bframes": 16, "b_pyramid": "dyadic"}, 6, 2, 4, 13),
     ({"bframes": 16, "b_pyramid": "dyadic", "ref": 4}, 8, 5, 4, 21),
     ({"bframes": 3, "ref": 3, "weightp": 1}, 4, 3, 2, 13),
     ({"bframes": 3, "width": 1920, "height": 1080}, 3, 2, 2, 40),
     ({"bframes": 15, "b_pyramid": "dyadic", "width": 1920, "height": 1080}, 5, 2, 4, 50)],
    ids=str,
)
def test_what_b_frames_take(options, frames, searches, reordered, level):
    c = config(**{"fps": 30, **options})
    assert (c.coding.dpb_frames, c.coding.most_searches, c.coding.max_num_reorder_frames) == (frames, searches, reordered)
    assert c.stream.level_idc == level
    sps, pps = sequence_parameter_set(c), picture_parameter_set(c.coding, c.rate.qp)
    read = parse_sps(write_sps(sps))
    assert read.max_num_ref_frames == read.vui.max_dec_frame_buffering == frames
    assert read.vui.max_num_reorder_frames == reordered <= frames
    assert read.pic_order_cnt_type == (0 if c.coding.bframes else 2)
    assert pps.weighted_bipred_idc == (2 if c.coding.bframes else 0) == 2 * c.coding.weightb


def test_b_frames_are_not_for_baseline():
    assert config(bframes=3, no_cabac=True, no_8x8dct=True).coding.profile_idc == 77
    with pytest.raises(OptionError, match=r"bframes 3: B frames are a tool of Main and High profile"):
        config(bframes=3, profile="baseline")
    assert config(bframes=3, devices="cpu").machine.device == "cpu"


def test_levels_refuse_pyramids():
    """Level 3.1 holds five frames of 1280x720, the highest five of 8192x4320."""
    assert config(1280, 720, level="3.1", bframes=15, b_pyramid="dyadic").coding.dpb_frames == 5
    with pytest.raises(OptionError, match=r"level 3\.1: does not allow 6 reference frames \(at most 5\)"):
        config(1280, 720, level="3.1", bframes=16, b_pyramid="dyadic")
    with pytest.raises(OptionError, match=r"b_pyramid dyadic: beyond level 6\.2, the highest: 6 reference frames"):
        config(8192, 4320, bframes=16, b_pyramid="dyadic")


def test_references_of_a_preset_fit_the_level():
    """Those of the user are refused; a pyramid needs two references and one that stays."""
    def refs(**options):
        settings = config(1920, 1080, **{"preset": "veryslow", "bframes": None, **options})
        return settings.coding.ref, settings.types.b_pyramid, settings.stream.level_idc

    assert refs() == (6, "dyadic", 50) and refs(level="4.1") == (3, "normal", 41) and refs(level="4", preset="slow")[0] == 3
    assert refs(level="4.1", bframes=8) == (3, "normal", 41)
    assert config(8192, 4320, preset="veryslow").coding.ref == 2
    with pytest.raises(OptionError, match=r"level 4\.1: does not allow 5 reference frames \(at most 4\)"):
        refs(level="4.1", ref=5)
    with pytest.raises(OptionError, match=r"level 4: does not allow 9000 macroblocks a frame \(at most 8192\)$"):
        config(1920, 1200, preset="veryslow", level="4")


def test_slices_and_rates_that_a_level_does_not_allow():
    """A.3.3 a), b): at 240 frames/s level 3.1 has time for seven slices a frame. MaxBR of level 1.3: 768 * 1500 bits/s."""
    with pytest.raises(OptionError, match=r"level 3\.1: does not allow 18 slices a frame \(at most 7\)"):
        config(fps=240, slices=18, level="3.1")
    with pytest.raises(OptionError, match=r"slices 256: beyond level 6\.2, the highest: 256 slices a frame \(at most 69\)"):
        config(16, 4096, fps=10000, slices=256)
    with pytest.raises(OptionError, match=r"level 1\.3: does not allow 1153000 bits a second \(at most 1152000\)"):
        config(bitrate=1153, level="1.3")
    with pytest.raises(OptionError, match=r"slices 19: not in 1\.\.18"):
        config(slices=19, fps=10000)


def test_most_bytes_of_frames_by_min_cr():
    """A.3.1 c), d): of the first frame by the shortest time between two, 1/172 s, or 1/300 s from level 6 on."""
    buffer = {"vbv_maxrate": 1000, "vbv_bufsize": 1000}
    assert config(fps=25, **buffer).hrd.buffer.compared == (384 * 396 // 2, 384 * 11880 // 25 // 2)
    assert config(16, 16, level="3.1", **buffer).hrd.buffer.compared == (int(384 * 108000 / 172 / 4), 384 * 108000 // 25 // 4)
    level_6 = config(16, 16, level="6", **buffer).hrd.buffer
    assert level_6.compared == (int(384 * 4177920 / 300 / 2), int(384 * 4177920 / 25 / 2))


def test_sample_aspect_ratios_that_leave_less_than_a_sample_of_a_side():
    for sar in ("65535:1", "19:1", "1:21", "37:2"):
        with pytest.raises(OptionError, match=rf"sar {sar}: not in 1:20\.\.18:1 \(a side of 20x18 would be shorter"):
            config(19, 17, sar=sar)
    for sar in ("18:1", "1:20", "36:2", "65535:65534"):
        assert config(19, 17, sar=sar).video.sar == tuple(map(int, sar.split(":")))


def test_a_level_that_is_asked_for_is_kept_or_refused():
    assert config(level="4.1").stream.level_idc == 41
    with pytest.raises(OptionError, match=r"level 1\.2: does not allow .*macroblocks a second"):
        config(level="1.2", fps=30)


def test_quantisers():
    assert config(qp=26).rate.i_qp == 23
    assert config(qp=0).rate.i_qp == 0
    assert config(qp=51, ipratio=0.5).rate.i_qp == 51
    assert config(qp=30, ipratio=1).rate.i_qp == 30
    assert config(qp=30, ipratio=2).rate.i_qp == 24
    assert (config(qp=26).rate.b_qp, config(qp=26).rate.reference_b_qp) == (31, 29)
    assert (config(qp=51).rate.b_qp, config(qp=0, pbratio=0.5).rate.b_qp) == (51, 0)
    assert config(qp=30, pbratio=2).rate.reference_b_qp == 33


@pytest.mark.parametrize("merange", range(4, 65))
def test_borders_hold_the_motion_range(merange):
    pad = config(merange=merange).coding.pad
    assert pad % 16 == 0 and merange + 24 <= pad < merange + 24 + 16


def test_colour_description_takes_the_numbers_of_annex_e():
    video = config(sar="12:11", videoformat="pal", range="pc", colorprim="bt709", transfer="iec61966-2-1",
                   colormatrix="bt470bg").video  # fmt: skip
    assert video[3:9] == (video.sar, video.videoformat, video.range, video.colorprim, video.transfer, video.colormatrix)
    assert video[3:9] == ((12, 11), 1, 1, 1, 13, 5)
    video = config(videoformat="undef", range="auto", colorprim="undef", transfer="undef", colormatrix="undef").video
    assert video[3:9] == (None,) * 6


def test_threads_are_counted():
    three = config(threads=3)
    assert three.machine.threads == three.machine.stage_threads(three.coding) == 3
    assert 1 <= config().machine.threads <= (os.cpu_count() or 1)


def test_a_small_picture_is_shared_by_fewer_threads(monkeypatch):
    monkeypatch.setattr("h264lite.encoder.settings.device.cores", lambda: 16)

    def shared(**options):
        sizes = (16, 16), (352, 288), (1280, 720), (1920, 1080)
        configs = [Config.from_options(width=w, height=h, device="cpu", **options) for w, h in sizes]
        return [(c.machine.team(c.coding), c.machine.stage_threads(c.coding)) for c in configs]

    assert shared(bframes=0) == [(2, 4), (3, 5), (16, 16), (16, 16)]
    assert shared(bframes=3) == [(2, 8), (3, 8), (16, 16), (16, 16)]  # B frames side by side
    assert shared(bframes=0, threads=16) == [(2, 8), (3, 8), (16, 16), (16, 16)]


def test_a_config_is_frozen_and_complete():
    c = config(fps="30000/1001")
    assert c.video.fps == Fraction(30000, 1001)
    with pytest.raises(AttributeError):
        c.rate.qp = 3
    assert len(c.values) == sum(map(len, c)), "names differ between subjects"


@pytest.mark.parametrize(
    ("options", "idc", "name"),
    [({"profile": "baseline"}, 66, "Constrained Baseline"), ({"profile": "main"}, 77, "Main"), ({}, 100, "High"),
     ({"no_8x8dct": True}, 77, "Main"), ({"no_cabac": True}, 100, "High"),
     ({"no_cabac": True, "no_8x8dct": True}, 77, "Main"),
     ({"no_cabac": True, "no_8x8dct": True, "bframes": 0}, 77, "Main"),
     ({"no_cabac": True, "no_8x8dct": True, "bframes": 0, "weightp": 0}, 66, "Constrained Baseline")],
)
def test_profile_is_the_lowest_with_the_tools_in_use(options, idc, name):
    sps = sequence_parameter_set(config(**options))
    coding = config(**options).coding
    assert (coding.profile_idc, coding.profile_name) == (sps.profile_idc, profile_name(idc, sps.constraint_set1_flag))
    assert (coding.profile_idc, coding.profile_name) == (idc, name)
    assert sps.constraint_set0_flag == (idc == 66) and sps.constraint_set1_flag == (idc != 100)
    assert sps.direct_8x8_inference_flag and parse_sps(write_sps(sps)).profile_idc == idc


@pytest.mark.parametrize("profile", ["main", "high"])
def test_mp4_of_profile(profile):
    """avcC repeats profile_idc and the constraint flags; in High the chroma format and the bit depths follow."""
    c = config(profile=profile)
    sps = b"\x67" + escape(write_sps(sequence_parameter_set(c)))
    sets = ParameterSets([sps, b"\x68" + write_pps(picture_parameter_set(c.coding, c.rate.qp))])
    record = sets.configuration()[8:]
    assert record[1:4] == sets.sps_units[0][1:4] == bytes(
        (c.coding.profile_idc, 0x40 if profile == "main" else 0, c.stream.level_idc)
    )  # fmt: skip
    assert record.endswith(bytes((0xFD, 0xF8, 0xF8, 0))) == (profile == "high")
