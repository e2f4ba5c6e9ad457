"""The table of options: every row reads, refuses and documents itself; bad settings are refused by name."""

import math
import pickle
import runpy
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from h264lite.encoder.errors import DeviceError, Error, OptionError
from h264lite.encoder.settings.config import Config, check_fields
from h264lite.encoder.settings.keywords import EncoderOptions
from h264lite.encoder.settings.options import ALL, API, BY_NAME, OPTIONS, show
from h264lite.encoder.settings.presets import CAVLC_PRESETS, PRESETS, preset
from h264lite.encoder.settings.tunes import OF_USE, TUNES, TUNES_WITH_RATE, WITH_RATE, ZERO_LATENCY, Change
from h264lite.encoder.settings.user_options import read_options, unknown_option
from h264lite.encoder.settings.x264_options import DISPENSABLE, EQUAL, HINTS, IS_SWITCH, SHORT, UNBUILT, VALUES
from h264lite.scheduler.stages import BY_BITS

from ..inside import changed

ROOT = Path(__file__).resolve().parent.parent.parent


class RaisesAlways:
    """An object of the caller that fails in whatever it is asked."""

    def __index__(self):
        raise TypeError("no")

    __repr__ = __index__


@pytest.mark.parametrize("error", (TimeoutError, MemoryError, RuntimeError))
def test_an_exception_that_comes_while_a_value_is_read_is_no_fault_of_the_value(error):
    """That of a signal handler, say: it passes through as it is."""

    class Interrupted:
        def __index__(self):
            raise error("by a signal")

        __repr__ = __index__

    for call in (lambda: BY_NAME["threads"].value(Interrupted()), lambda: BY_NAME["fps"].value(Interrupted()),
                 lambda: config(nr=Interrupted())):  # fmt: skip
        with pytest.raises(error, match="by a signal"):
            call()


def config(**options):
    return Config.from_options(**({"width": 352, "height": 288} | options))


def test_keyword_arguments_are_those_of_the_table():
    names = {row.name for row in OPTIONS if row.scope in (ALL, API)} - {"width", "height", "fps"}
    assert set(EncoderOptions.__annotations__) == names


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("fps", np.float64(30), 30), ("fps", np.float32(29.97), Fraction(30000, 1001)), ("fps", np.int64(24), 24),
    ("fps", np.array(25.0), 25), ("qp", np.uint8(30), 30), ("psnr", np.bool_(True), True), ("level", 4.1, "4.1"),
    ("level", 4, "4"), ("level", 4.0, "4"), ("level", "41", "4.1"), ("level", 41, "4.1"), ("level", np.float64(3.1), "3.1"),
    ("level", "4.0", "4"), ("level", 10, "1"),
])  # fmt: skip
def test_numbers_of_other_libraries(name, value, expected):
    number = BY_NAME[name].value(value)
    assert number == expected and type(getattr(number, "numerator", 0)) in (int, bool)


@pytest.mark.parametrize("value", (True, 0, 99, -4, 3.0000001, "", "4.10", "9.9", [], "1b", "²1"))
def test_levels_that_do_not_exist(value):
    with pytest.raises(OptionError, match=r"level .*not one of 1, 1\.1"):
        BY_NAME["level"].value(value)


def test_every_row_is_whole():
    assert len(BY_NAME) == len(OPTIONS)
    for row in OPTIONS:
        assert row.help and row.group and row.name.isidentifier(), row.name
        assert row.is_switch or row.metavar or row.choices, f"{row.name}: nothing says what its value is"
        row.default_value  # noqa: B018 - reads, or raises
    assert not set(BY_NAME) & set(UNBUILT)
    letters = [row.short for row in OPTIONS if row.short] + list(SHORT)
    assert len(set(letters)) == len(letters)
    assert set(SHORT.values()) <= set(UNBUILT) and DISPENSABLE <= set(UNBUILT)
    assert not set(HINTS) & (set(BY_NAME) | set(UNBUILT)) and set(IS_SWITCH) >= set(HINTS) | set(UNBUILT)


def test_numbers_are_read_at_their_limits_and_refused_beyond():
    for row in OPTIONS:
        for limit, step in ((row.low, -1), (row.high, 1)):
            if limit is None:
                continue
            assert row.value(str(limit)) == limit
            with pytest.raises(OptionError, match=r"not in"):
                row.value(limit + step)


@pytest.mark.parametrize("name", [row.name for row in OPTIONS if row.choices])
def test_choices_refuse_what_they_do_not_list(name):
    row = BY_NAME[name]
    for legal in row.choices:
        row.value(legal)
    with pytest.raises(OptionError, match="not one of") as caught:
        row.value("nonsense")
    assert name.rstrip("_") in str(caught.value) and next(iter(row.choices)) in str(caught.value)


BAD = [
    {"width": 0},
    {"width": -2},
    {"height": 0},
    {"width": "wide"},
    {"width": 352.5},
    {"width": None},
    {"width": True},
    {"width": 20000, "height": 20000},
    {"width": 16896, "height": 16},
    {"width": 16, "height": 16896},
    {"width": 10**9, "height": 10**9},
    {"fps": 0},
    {"fps": -25},
    {"fps": "fast"},
    {"fps": "1/0"},
    {"fps": 1e9},
    {"fps": float("nan")},
    {"fps": float("inf")},
    {"fps": True},
    {"fps": "30000/1001/2"},
    {"fps": Fraction(2**33 + 1, 2**32)},
    {"width": 1920, "fps": 9999},
    {"qp": -1},
    {"qp": 52},
    {"qp": 26.5},
    {"qp": "low"},
    {"qp": [26]},
    {"chroma_qp_offset": -13},
    {"chroma_qp_offset": 13},
    {"ipratio": 0},
    {"ipratio": float("nan")},
    {"ipratio": "x"},
    {"keyint": 0},
    {"keyint": -1},
    {"keyint": "never"},
    {"keyint": 2**31},
    {"ref": 0},
    {"ref": 17},
    {"width": 8192, "height": 4320, "ref": 16},
    {"slices": 19},
    {"me": "tesa"},
    {"me": ""},
    {"merange": 3},
    {"merange": 65},
    {"step_grid": 5},
    {"step_grid": "x"},
    {"step_grid": True},
    {"step_grid": 3},
    {"step_grid": 3, "me": "esa"},
    {"subme": -1},
    {"subme": 11},
    {"psy_rd": -1},
    {"psy_rd": "11:0"},
    {"psy_rd": "1:11"},
    {"psy_rd": "1:0:0"},
    {"psy_rd": "a"},
    {"partitions": "p16x16"},
    {"partitions": "p4x4"},
    {"partitions": "b8x8"},
    {"partitions": 7},
    {"partitions": ""},
    {"partitions": "all,p8x8"},
    {"deblock": "7:0"},
    {"deblock": "0:-7"},
    {"deblock": "a:b"},
    {"deblock": "1:2:3"},
    {"deblock": (1,)},
    {"deblock": "1:1", "no_deblock": True},
    {"no_deblock": "yes"},
    {"threads": -1},
    {"threads": 257},
    {"device": "gpu"},
    {"preset": "slowest"},
    {"preset": "quick"},
    {"profile": "high10"},
    {"level": "1"},
    {"level": "7"},
    {"sar": "0:1"},
    {"sar": "1:65536"},
    {"sar": "1"},
    {"videoformat": "vhs"},
    {"range": "full"},
    {"colorprim": "red"},
    {"transfer": 1},
    {"colormatrix": "GBR"},
    {"psnr": 1},
    {"ssim": "on"},
    {"seek": -1},
    {"frames": -1},
    {"crf": 23, "qp": 26},
    {"crf": 52},
    {"crf": -1},
    {"crf": "x"},
    {"qcomp": 1.5},
    {"crf": 23, "qcomp": 2},
    {"qp": 26, "qpmin": 1},
    {"qp": 26, "qpmax": 50},
    {"crf": 23, "qpmin": 30, "qpmax": 29},
    {"crf": 23, "qpmax": 70},
    {"bitrate": 1000, "qp": 26},
    {"bitrate": 1000, "crf": 23},
    {"bitrate": 1000, "gops": 2},
    {"bitrate": -1},
    {"bitrate": 1000, "ratetol": 0},
    {"bframes": 17},
    {"bframes": 3, "profile": "baseline"},
    {"bframe": 3, "profile": "baseline"},
    {"bframes": 3, "b_pyramid": 3},
    {"bframes": 3, "b_pyramid": True},
    {"bframes": 3, "b_adapt": 3},
    {"bframes": 3, "direct": "temporal"},
    {"bframes": 3, "direct": "none"},
    {"bframes": 7, "b_pyramid": "dyadic", "level": "1.1", "width": 352, "height": 288, "fps": 5},
    {"width": 8192, "height": 4320, "bframes": 16, "b_pyramid": "dyadic"},
    {"pbratio": 0},
    {"weightb": True, "no_weightb": True},
    {"cabac": True, "profile": "baseline"},
    {"8x8dct": True, "profile": "main"},
    {"tuning": "a\0b"},
    {"tuning": "\ud800"},
    {"tuning": ""},
    {"tuning": b"a"},
    {"tuning": "a\0\nb"},
    {"seek": 2**31},
    {"frames": "9" * 4000},
    {"width": 10**5000},
    {"ipratio": 10**400},
    {"fps": Fraction(10**5000)},
    {"fps": "1" * 101},
    {"fps": Decimal("sNaN")},
    {"me": np.arange(2)},
    {"devices": repeat("cpu")},
    {"slices": 1056},
    {"fps": "9" * 10**6},
    {"qp": "9" * 10**6},
    {"x" * 10**6: 1},
    {"device": "1:2:3"},
    {"threads": RaisesAlways()},
    {"trellis": 2},
    {"subme": 12},
    {"open_gop": 1},
    {"codec": "hevc"},
    {"lenient": 1},
    {"level": "1b", "lenient": True},
    {"weightp": 3},
    {"interlaced": True},
    {"tune": "touhou"},
    {"tune": ""},
    {"tune": "film,"},
    {"tune": "film,grain"},
    {"tune": "psnr,fastdecode,ssim"},
    {"tune": 1},
    {"tune": ["film", 2]},
    {"no_such_option": 1},
    {"progress": "none"},
]


@pytest.mark.parametrize("options", BAD, ids=lambda options: str(list(options))[:40])
def test_a_bad_setting_is_refused_by_name_in_one_line(options):
    with pytest.raises(OptionError) as caught:
        config(**options)
    text = str(caught.value)
    assert "\n" not in text and len(text) < 400
    names = [name.replace("_", "-")[:40] for name in options] + ["size", *options]
    assert any(name in text for name in names), text


def test_two_hundred_random_settings_are_taken_or_refused_and_nothing_else():
    seed = np.random.SeedSequence().entropy
    print("seed", seed)
    rng = np.random.default_rng(seed)
    values = [
        -1,
        0,
        1,
        2,
        5,
        16,
        51,
        64,
        65,
        288,
        1 << 40,
        1.4,
        float("nan"),
        "",
        "all",
        "none",
        "tv",
        "bt709",
        "1:1",
        "-6:6",
        "medium",
        "30000/1001",
        None,
        True,
        False,
        (),
        [],
        {},
        b"x",
        Fraction(24),
        np.int64(7),
    ]
    names = [row.name for row in OPTIONS if row.scope == "all"] + ["bitrate", "nonsense"]
    taken = 0
    for _ in range(200):
        picked = rng.choice(names, rng.integers(1, 4), replace=False)
        try:
            config(**{name: values[rng.integers(len(values))] for name in picked})
            taken += 1
        except Error as error:
            assert "\n" not in str(error)
    assert 0 < taken < 200


def test_gops_are_auto_by_themselves_with_devices_as_with_a_device():
    for given in ({"device": "cpu"}, {"devices": "cpu"}):
        assert config(**given) == config(**given, gops="auto") and config(**given).machine.gops == 0


def test_an_unknown_name_gets_a_near_match():
    with pytest.raises(OptionError, match="did you mean 'merange'"):
        config(mernge=16)
    with pytest.raises(OptionError, match=r"unknown option 'zzz'$"):
        config(zzz=16)


def test_what_x264_has_and_this_has_not_is_refused_with_a_reason():
    for name, row in UNBUILT.items():
        if (name, False) in EQUAL:
            continue
        wrong = not row.neutral[0] if row.is_switch and row.neutral else True if row.is_switch else "1000"
        with pytest.raises(OptionError) as caught:
            read_options({name: wrong, "ref": 2, "profile": "baseline"})
        assert row.why in caught.value.command_text and caught.value.option == name.replace("_", "-")
        assert ("lenient=True leaves it out" in str(caught.value)) == (name in DISPENSABLE)
    for row in VALUES:
        for value in row.values:
            with pytest.raises(OptionError) as caught:
                read_options({row.name: value})
            assert row.why in caught.value.command_text and value in str(caught.value)
            assert (f"lenient=True takes {row.nearest}" in str(caught.value)) == bool(row.nearest)


def test_values_that_ask_for_nothing_are_accepted_and_change_nothing():
    for name, row in UNBUILT.items():
        for value in row.neutral:
            assert config(**{name: value}) == config(), name
    assert config(slow_firstpass=True).coding == config().coding
    for options in ({"psy_rd": (0, 0)}, {"psy_rd": "0.00:0.00"}, {"bframes": 0}, {"aq_mode": "0"}, {"crf": None},
                    {"min_keyint": "auto"}, {"min_keyint": 0}, {"scenecut": 0}, {"no_scenecut": True}, {"b_adapt": 2},
                    {"no_mixed_refs": True}, {"threads": "auto"}, {"weightb": True}, {"direct": "none"}, {"direct": 0},
                    {"qpmin": 0}, {"qpmax": 51}, {"qpmax": "69"},
                    {"pbratio": 1.8}, {"b_pyramid": "2"}, {"b_pyramid": 2}, {"b_pyramid": "strict"},
                    {"b_pyramid": 1}):  # fmt: skip
        assert config(**{"qp": 26, "bframes": 0} | options) == config(qp=26, bframes=0), options
    for profile, name in (("main", "cabac"), ("high", "cabac"), ("high", "8x8dct")):
        assert config(profile=profile, **{name: True}) == config(profile=profile)
        with pytest.raises(OptionError, match="see profile"):
            config(profile="baseline", **{name: True})
        with pytest.raises(OptionError, match="see profile"):
            config(profile=profile, **{name: True, f"no_{name}": True})
    for options in ({"no_mixed_refs": True, "ref": 2}, {"open_gop": "1"}, {"no_mixed_refs": True, "preset": "slower"},
                    {"nr": RaisesAlways()}):  # fmt: skip
        with pytest.raises(OptionError, match="is not available") as caught:
            config(**options)
        assert caught.value.option == next(iter(options)).replace("_", "-")


@pytest.mark.parametrize(("given", "same"), (
    ({"no_progress": True}, {}), ({"log_level": "debug"}, {}), ({"log_level": -1}, {}), ({"log_level": None}, {}),
    ({"nf": True}, {"no_deblock": True}),
    ({"filter": "1:1"}, {"deblock": "1:1"}), ({"cqmfile": "jvt"}, {"cqm": "jvt"}), ({"slices": 0}, {}),
    ({"analyse": "none"}, {"partitions": "none"}), ({"cabac": 0}, {"no_cabac": True}),
    ({"8x8dct": "0"}, {"no_8x8dct": True}),
    ({"weightb": False}, {"no_weightb": True}), ({"mbtree": 0}, {"no_mbtree": True}), ({"psy": 0}, {"no_psy": True}),
    ({"no_b_adapt": True}, {"b_adapt": 0}), ({"no_trellis": 1}, {"trellis": 0}), ({"open_gop": 0}, {}),
    ({"preset": "Faster"}, {"preset": "faster"}), ({"preset": "3"}, {"preset": "faster"}),
    ({"preset": 0}, {"preset": "ultrafast"}),
    ({"tune": "Grain,ZeroLatency"}, {"tune": "grain,zerolatency"}), ({"profile": "Baseline"}, {"profile": "baseline"}),
    ({"colormatrix": "ycgco"}, {"colormatrix": "YCgCo"}), ({"me": "UMH"}, {"me": "umh"}),
    ({"no_ssim": 1, "no_aud": True}, {}),
    ({"no_open_gop": 1}, {}), ({"codec": "libx264", "pix_fmt": "yuv420p", "movflags": "+faststart"}, {}),
    ({"sar": Fraction(4, 3)}, {"sar": (4, 3)}), ({"sync_lookahead": 0, "opencl": 0, "asm": None}, {}),
))  # fmt: skip
def test_what_x264_and_ffmpeg_say_in_other_words(given, same):
    """Without a warning, for it means the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config(**given) == config(**same)


@pytest.mark.parametrize(("given", "same", "said"), (
    ({"psy_rd": "1:0.15"}, {"psy_rd": 1}, "psy_rd 1:0.15 acts as 1: the trellis"),
    ({"psy_rd": (0.5, 1)}, {"psy_rd": 0.5}, r"psy_rd \(0.5, 1\) acts as 0.5"),
    ({"asm": "AVX2"}, {}, "asm has no effect: the variable"), ({"sliced_threads": 1}, {}, "sliced_threads has no effect"),
    *(({"lenient": True} | given, same, said) for given, same, said in (
        ({"subme": 11}, {"subme": 10}, "subme 11: 10 is taken, the nearest"),
        ({"trellis": "2"}, {"trellis": 1}, "trellis 2: 1 is"),
        ({"crf": -4}, {"crf": 0}, "crf -4: 0 is"), ({"qp": 69}, {"qp": 51}, "qp 69: 51 is"),
        ({"ratetol": "inf"}, {"ratetol": 100}, "ratetol inf: 100 is"), ({"me": "tesa"}, {"me": "esa"}, "me tesa: esa is"),
        ({"direct": "auto"}, {}, "direct is left out: direct prediction"), ({"open_gop": True}, {}, "open_gop is left out"),
        ({"no_mixed_refs": True, "ref": 2}, {"ref": 2}, "no_mixed_refs is left out"),
        ({"cabac": True, "profile": "baseline"}, {"profile": "baseline"}, "cabac is left out"),
    )),
))  # fmt: skip
def test_what_acts_otherwise_than_in_x264_is_told(given, same, said):
    with pytest.warns(RuntimeWarning, match=f"^{said}"):
        assert config(**given) == config(**same)


OF_KBITS = "the unit is kbit, 2000 is what FFmpeg calls 2M"


def test_a_number_beyond_the_range_names_the_nearest():
    for name, value, text in (("subme", 11, "subme 11: not in 0..10 (lenient=True takes 10)"),
                              ("qp", -1, "(lenient=True takes 0)"), ("bitrate", -1, "not in 0..2000000"),
                              ("bitrate", "1M", f"bitrate 1M: not a whole number: {OF_KBITS}"),
                              ("vbv_maxrate", 5000000, f"vbv_maxrate 5000000: not in 0..2000000: {OF_KBITS}"),
                              ("vbv_bufsize", 1.5e6, f"vbv_bufsize 1500000.0: not a whole number: {OF_KBITS}"),
                              ("subme", "x", "subme x: not a whole number")):  # fmt: skip
        with pytest.raises(OptionError) as caught:
            config(**{name: value})
        assert str(caught.value).endswith(text)


@pytest.mark.parametrize("options", (
    {"preset": "10"}, {"preset": -1}, {"preset": "fast,slow"}, {"preset": "\u0663"}, {"tune": "5"}, {"me": "umh,hex"},
    {"profile": True},
))  # fmt: skip
def test_what_is_no_name_in_any_case_stays_refused(options):
    with pytest.raises(OptionError, match="not one of"):
        config(**options)


@pytest.mark.parametrize(("text", "option", "command", "python"), (
    ("2: beyond the level, see --ref and (--b-adapt) or --pass 1", "b-pyramid",
     "--b-pyramid 2: beyond the level, see --ref and (--b-adapt) or --pass 1",
     "b_pyramid 2: beyond the level, see ref and (b_adapt) or pass_ 1"),
    ("69 (--lenient takes 51)", "qp", "--qp 69 (--lenient takes 51)", "qp 69 (lenient=True takes 51)"),
    ("x: a---b --c-", "", "x: a---b --c-", "x: a---b c-"), ("unknown '--x-y' - a-b", "", *2 * ("unknown '--x-y' - a-b",)),
))  # fmt: skip
def test_a_refusal_has_words_of_the_command_line_and_those_of_python(text, option, command, python):
    for error in (refusal := OptionError(text, option), pickle.loads(pickle.dumps(refusal))):
        assert (error.command_text, str(error), error.option) == (command, python, option)


def test_lenient_helps_neither_unknown_names_nor_other_streams():
    for given in ({"interlaced": True}, {"profile": "high10"}, {"mernge": 3}, {"bitrate": -1}, {"subme": "many"},
                  {"subme": math.nan}, {"pix_fmt": "yuv444p"}, {"quality": 5}):  # fmt: skip
        with pytest.raises(OptionError) as caught:
            config(lenient=True, **given)
        assert "lenient" not in str(caught.value)


def test_frame_types_are_settled():
    settings = config(bframes=3, b_adapt=2, fps=60)
    assert (settings.types.scenecut, settings.types.b_adapt, settings.types.min_keyint) == (40, 2, 25)
    assert (config().types.scenecut, config().types.b_adapt, config(qp=26).types.scenecut) == (40, 1, 40)
    assert (config(bframes=0).types.scenecut, config(bframes=0, qp=26).types.scenecut) == (40, 0)
    assert config(bframes=0).types.b_adapt == 0
    assert config(scenecut=40).types.scenecut == 40 and config(bframes=3, no_scenecut=True).types.scenecut == 0
    assert [config(keyint=keyint, fps=24).types.min_keyint for keyint in (5, 100, 250, "infinite")] == [1, 10, 24, 24]
    assert config(min_keyint=250).types.min_keyint == 250
    for options, name in (({"min_keyint": 251}, "min-keyint"), ({"min_keyint": 25, "keyint": 24}, "min-keyint"),
                          ({"scenecut": 40, "no_scenecut": True}, "no-scenecut"),
                          ({"min_keyint": RaisesAlways()}, "min-keyint"), ({"b_bias": 101}, "b-bias"),
                          ({"b_adapt": 3}, "b-adapt"), ({"scenecut": -1}, "scenecut"),
                          ({"rc_lookahead": 251}, "rc-lookahead")):  # fmt: skip
        with pytest.raises(OptionError) as caught:
            config(**options)
        assert caught.value.option == name


def test_all_refused_options_are_in_one_message():
    with pytest.raises(OptionError) as caught:
        config(nr=2, qpstep=9, me="tesa", mernge=4, qp=26, aq_mode=0)
    assert str(caught.value) == (
        "not available: nr 2 (there is no noise reduction, filter before; lenient=True leaves it out); "
        "qpstep (rate control has no such setting; lenient=True leaves it out); "
        "me tesa (choose dia, hex, umh, fsbm (esa) or step; lenient=True takes esa); unknown option 'mernge'; did you mean "
        "'merange'?"
    )


def test_only_near_options_that_work_are_proposed():
    for name in ("opengl", "open_gp", "annex-b", "rate-control", "x", "cuda", "lossless", "out", "cfr", "angle"):
        assert "mean" not in str(unknown_option(name, BY_NAME))
    for name, near in (("Preset", "preset"), ("dump-yuvs", "dump_yuv"), ("slice", "slices"), ("frame", "frames")):
        assert f"did you mean {near!r}?" in str(unknown_option(name, BY_NAME))


def test_an_option_without_a_field_of_config_is_named_at_import():
    check_fields(OPTIONS)
    check_fields([BY_NAME["csv"]._replace(name="of_the_command")])
    with pytest.raises(TypeError, match=r"of Config \(settings/groups.py\): \['sharpness', 'grain'\]$"):
        check_fields([BY_NAME["qp"]._replace(name="sharpness"), BY_NAME["qp"], BY_NAME["width"]._replace(name="grain")])


def test_two_names_for_one_option_are_not_given_both():
    assert config(frame_rate=30).video.fps == 30
    with pytest.raises(OptionError, match="twice"):
        config(frame_rate=30, fps=30)


def test_none_means_not_given():
    assert config(qp=None, preset=None, deblock=None) == config()


@pytest.mark.parametrize(
    ("given", "fps"),
    [
        ("25", 25),
        (29.97, Fraction(30000, 1001)),
        ("29.97", Fraction(30000, 1001)),
        (23.976, Fraction(24000, 1001)),
        ("23.98", Fraction(24000, 1001)),
        (59.94, Fraction(60000, 1001)),
        ("29.97003", Fraction(30000, 1001)),
        ("2997/100", Fraction(2997, 100)),
        (Fraction(2997, 100), Fraction(2997, 100)),
        ("23.97", Fraction(2397, 100)),
        (29.9, Fraction(299, 10)),
        ("30000/1001", Fraction(30000, 1001)),
        (30 / 1.001, Fraction(30000, 1001)),
        (24 / 1.001, Fraction(24000, 1001)),
        (Fraction(24), 24),
        (np.int64(50), 50),
        ("0.5", Fraction(1, 2)),
        (np.float64(29.97), Fraction(30000, 1001)),
        ("2.5e1", 25),
        (Decimal("25"), 25),
        (np.float64(30 / 1.001), Fraction(30000, 1001)),
        ("2_5", 25),
        (" 25 ", 25),
    ],
)
def test_frame_rates(given, fps):
    assert config(fps=given).video.fps == fps


@pytest.mark.parametrize("fps", ("'1e99999999'", "'1e-99999999'", "'1E+0_9_9_9_9_9_9_9'", "Decimal('1e99999999')",
                                 "Decimal('-1e-99999999')"))  # fmt: skip
def test_a_rate_of_a_hundred_million_digits_is_refused_at_once(fps):
    """In a process of its own: making that number cannot be interrupted."""
    code = ("from decimal import Decimal; from h264lite.encoder.settings.options import BY_NAME\n"
            f"try: BY_NAME['fps'].value({fps})\nexcept ValueError as error: print(error)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout.startswith("fps ") and "not a frame rate" in done.stdout, done.stderr


def test_partitions():
    everything = frozenset(("p8x8", "p4x4", "i8x8", "i4x4"))
    for given, read in (
        ("all", everything),
        ("none", frozenset()),
        ("i8x8", {"i8x8"}),
        ("i4x4", {"i4x4"}),
        ("p8x8, p4x4", {"p8x8", "p4x4"}),
        (("p8x8", "i4x4"), {"p8x8", "i4x4"}),
        ("p8x8,b8x8,i8x8,i4x4", {"p8x8", "i8x8", "i4x4"}),
    ):
        assert config(partitions=given, profile="high").coding.partitions == read
        assert config(partitions=given, profile="high", no_8x8dct=True).coding.partitions == read - {"i8x8"}
        assert config(partitions=given, profile="main").coding.partitions == read - {"i8x8"}


def test_psy_rd_forms():
    assert config(qp=26).coding.psy_rd == config(psy_rd=0).coding.psy_rd == config(psy_rd="0:0").coding.psy_rd == 0
    assert all(config(psy_rd=given).coding.psy_rd == 1.0 for given in (1, "1.0:0", (1, 0.0)))


def test_deblocking_forms():
    def read(**options):
        c = config(**options)
        return c.coding.deblock, c.coding.deblock_alpha, c.coding.deblock_beta, c.coding.disable_deblocking_idc

    assert read() == (True, 0, 0, 0)
    assert read(deblock="-1:2") == read(deblock=(-1, 2)) == read(deblock="-1,2") == (True, -1, 2, 0)
    assert read(deblock="3") == (True, 3, 3, 0)
    assert read(deblock=False) == read(no_deblock=True) == (False, 0, 0, 1)
    assert read(deblock=False, no_deblock=True) == (False, 0, 0, 1)
    assert read(deblock=True) == (True, 0, 0, 0)
    assert read(deblock_within_slices=True) == (True, 0, 0, 2)
    fast = {"preset": "ultrafast", "profile": "baseline"}
    assert read(**fast) == (False, 0, 0, 1)
    assert read(**fast, deblock="1:1") == (True, 1, 1, 0)


def test_presets_pass_the_same_checks_and_differ():
    assert PRESETS.keys() == CAVLC_PRESETS.keys()
    for options in ({}, {"profile": "main"}, {"profile": "baseline"}, {"no_cabac": True}):
        configs = [config(preset=name, **options) for name in PRESETS]
        names = ("ref", "merange", "subme", "trellis", "partitions", "deblock", "cabac", "transform_8x8_mode")
        kinds = {tuple(getattr(c.coding, name) for name in names) for c in configs}
        assert len(kinds) == len(configs)
        assert config(preset="medium", **options) == config(**options)
    assert config(preset="slow", merange=8).coding.merange == 8
    for name in PRESETS:
        for key in (*preset(name), *preset(name, cavlc=True)):
            assert BY_NAME[key].scope == "all"


def test_presets_without_cabac_have_no_decisions_that_a_gpu_lacks():
    for name in PRESETS:
        assert config(preset=name).coding.cabac or config(preset=name).coding.subme < BY_BITS
        for options in ({"profile": "baseline"}, {"no_cabac": True}):
            assert config(preset=name, **options).coding.subme < BY_BITS or name == "placebo"


def test_qps_by_rate_and_distortion_need_what_they_choose_by():
    crf = {"crf": 23}
    for options in (crf, {"bitrate": 90}, {**crf, "aq_mode": 0}, {**crf, "no_mbtree": True}, {"qp": 26, "aq_mode": 1}):
        assert config(subme=10, **options).coding.subme == 10
    for options in ({"qp": 26}, {**crf, "aq_mode": 0, "no_mbtree": True}, {**crf, "trellis": 0}, {**crf, "no_cabac": True}):
        assert config(subme=10, **options).coding.subme == 9
    limits = config(crf=23, qpmin=9, qpmax=40).coding
    assert (limits.least_qp, limits.most_qp) == (9, 40)


def test_tools_of_x264_override_a_preset():
    fast = {"preset": "ultrafast"}
    assert config(**fast).coding.profile_idc == 77
    assert config(tune="fastdecode", cabac=True).coding.cabac and config(**fast, **{"8x8dct": True}).coding.transform_8x8_mode
    for options in ({"cabac": True, "no_cabac": True}, {"cabac": True, "profile": "baseline"}):
        with pytest.raises(OptionError, match="see profile"):
            config(**fast, **options)


TUNED = [
    ("psnr", {}, {"aq_mode": 0, "psy_rd": 0}),
    ("psnr", {"qp": 26}, {}),
    ("ssim", {"qp": 26, "psy_rd": 1}, {}),
    ("ssim", {}, {"aq_mode": 2, "psy_rd": 0}),
    ("ssim", {"crf": 20, "aq_mode": 1, "psy_rd": 2}, {}),
    ("film", {"crf": 20}, {"aq_mode": 1, "psy_rd": 1, "deblock": "-1:-1"}),
    ("animation", {"bframes": 3}, {"aq_mode": 1, "aq_strength": 0.6, "psy_rd": 0.4, "deblock": "1:1"}),
    ("animation", {"bitrate": 500}, {"aq_strength": 0.6, "psy_rd": 0.4, "deblock": "1:1", "bframes": 5}),
    ("grain", {"deadzone_inter": 21, "deadzone_intra": 11, "pbratio": 1.8, "ipratio": 1.4},
     {"aq_strength": 0.5, "qcomp": 0.8, "deblock": "-2:-2"}),
    ("stillimage,zerolatency", {},
     {"aq_strength": 1.2, "psy_rd": 2, "deblock": "-3:-3", "rc_lookahead": 0, "bframes": 0, "scenecut": 0}),
    ("film", {}, {"deblock": "-1:-1"}),
    ("film", {"deblock": "2:2"}, {}),
    ("film", {"no_deblock": False, "preset": "slow"}, {"deblock": "-1:-1"}),
    ("animation", {"qp": 26}, {"deblock": "1:1", "bframes": 5}),
    ("animation", {"qp": 26, "preset": "slower"}, {"deblock": "1:1", "ref": 8, "bframes": 10}),
    ("animation", {"qp": 26, "preset": "placebo"}, {"deblock": "1:1", "ref": 16, "bframes": 10}),
    ("animation", {"qp": 26, "preset": "slower", "ref": 2}, {"deblock": "1:1", "bframes": 10}),
    ("animation", {"qp": 26, "bframes": 3}, {"deblock": "1:1"}),
    ("animation", {"qp": 26, "profile": "baseline"}, {"deblock": "1:1"}),
    ("grain", {"qp": 26}, {"deblock": "-2:-2", "ipratio": 1.1, "pbratio": 1.1, "deadzone_inter": 6, "deadzone_intra": 6,
                           "qcomp": 0.8}),
    ("grain", {"qp": 26, "ipratio": 1.4, "deadzone_inter": 21, "deblock": "0:0"},
     {"pbratio": 1.1, "deadzone_intra": 6, "qcomp": 0.8}),
    ("stillimage", {"qp": 26}, {"deblock": "-3:-3"}),
    ("fastdecode", {}, {"no_cabac": True, "no_deblock": True, "no_weightb": True, "weightp": 0}),
    ("fastdecode", {"preset": "slow", "profile": "baseline"}, {"no_deblock": True}),
    ("fastdecode", {"bframes": 2}, {"no_cabac": True, "no_deblock": True, "no_weightb": True, "weightp": 0}),
    ("fastdecode", {"weightb": True}, {"no_cabac": True, "no_deblock": True, "weightp": 0}),
    ("fastdecode", {"weightp": 1, "deblock": "0:0"}, {"no_cabac": True, "no_weightb": True}),
    ("fastdecode", {"cabac": True, "preset": "faster"}, {"no_deblock": True, "no_weightb": True, "weightp": 0}),
    ("fastdecode", {"no_cabac": False}, {"no_deblock": True, "no_weightb": True, "weightp": 0}),
    ("zerolatency", {}, {"bframes": 0, "rc_lookahead": 0, "scenecut": 0}),
    ("zerolatency", {"qp": 26}, {"bframes": 0, "rc_lookahead": 0, "scenecut": 0}),
    ("zerolatency", {"bframes": 2}, {"rc_lookahead": 0, "scenecut": 0}),
    ("zerolatency", {"rc_lookahead": 10, "scenecut": 20}, {"bframes": 0, "no_mbtree": True}),
    ("zerolatency,stillimage", {"qp": 26}, {"bframes": 0, "rc_lookahead": 0, "scenecut": 0, "deblock": "-3:-3"}),
    (("fastdecode", "zerolatency", "psnr"), {"qp": 26},
     {"bframes": 0, "rc_lookahead": 0, "scenecut": 0, "no_cabac": True, "no_deblock": True, "weightp": 0}),
]


@pytest.mark.parametrize(("tune", "given", "by_tune"), TUNED)
def test_a_tune_stands_for_options_and_gives_way_to_those_that_are_given(tune, given, by_tune):
    tuned, said = config(**given, tune=tune), config(**given | by_tune)
    assert tuned.stream.tune == (tune if isinstance(tune, str) else ",".join(tune))
    assert changed(tuned, tune=None, waits_for_packets=False) == changed(said, tune=None)


def test_a_tune_changes_the_b_frames_of_a_preset():
    assert [config(tune=tune).coding.bframes for tune in (None, "animation", "zerolatency")] == [3, 5, 0]
    for both in ("animation,zerolatency", "zerolatency,animation"):
        assert config(tune=both).coding.bframes == 0
    assert config(tune="animation", bframes=1).coding.bframes == 1
    assert config(tune="animation", profile="baseline").coding.bframes == 0


def test_a_rate_factor_is_the_default():
    assert config().rate.crf == config(profile="baseline").rate.crf == config(tune="zerolatency").rate.crf == 23
    assert config(qp=30).rate.crf is None and (config(bitrate=500).rate.bitrate, config(bitrate=500).rate.crf) == (500, 23)
    assert config(qp=None, crf=None, bitrate=0) == config()
    assert config().rate.mbtree and config(preset="ultrafast").rate.mbtree and not config(qp=26).rate.mbtree


def test_the_b_frames_of_a_preset_give_way():
    """To the profile, and where each frame is an IDR frame; their pyramid to a level without room for their references."""
    assert [config(preset=name).coding.bframes for name in ("ultrafast", "superfast", "medium", "placebo")] == [0, 3, 3, 8]
    assert config(profile="baseline").coding.bframes == config(keyint=1).coding.bframes == 0
    low = [config(width=352, height=288, fps=3, level=level) for level in ("1.1", "1.2")]
    assert [(c.coding.bframes, c.types.b_pyramid, c.coding.dpb_frames) for c in low] == [(3, "none", 2), (3, "normal", 3)]
    for options in ({"bframes": 3}, {"b_pyramid": "normal", "bframes": 2}):
        with pytest.raises(OptionError, match="does not allow 3 reference frames"):
            config(width=352, height=288, fps=5, level="1.1", **options)
    assert config(keyint=1, bframes=3).coding.bframes == 3


def test_a_rate_factor_has_adaptive_quantisation_and_psy():
    constant = config(qp=26)
    assert (config().coding.aq_mode, config().coding.psy_rd, constant.coding.aq_mode, constant.coding.psy_rd) == (1, 1, 0, 0)
    assert config() == config(crf=23) == config(psy=True) == config(psy_rd=1, aq_mode=1)
    assert config(no_psy=True) == config(psy_rd=0) and config(qp=26, no_psy=True) == config(qp=26, psy=True) == constant
    for options in ({"psy_rd": 1, "no_psy": True}, {"psy": True, "no_psy": True}):
        with pytest.raises(OptionError, match="psy"):
            config(**options)


def test_tunes_are_options_of_the_table():
    for changes in (*TUNES.values(), *TUNES_WITH_RATE.values(), WITH_RATE):
        for name, value in changes.items():
            assert BY_NAME[name].scope == ALL
            BY_NAME[name].value(value.of(1) if isinstance(value, Change) else value)
    assert set(OF_USE) < set(TUNES) and ZERO_LATENCY in OF_USE


def test_a_device_that_is_asked_for_by_name_never_degrades(monkeypatch):
    missing: list[str | None] = ["there is none"]
    monkeypatch.setattr("h264lite.encoder.settings.device.why_no_cuda", lambda: missing[0])
    assert config(device="cpu").machine.device == config().machine.device == "cpu"
    assert "there is none" in config().machine.device_reason
    for name in ("cuda", "hybrid"):
        with pytest.raises(DeviceError, match=f"device {name}") as caught:
            config(device=name)
        assert caught.value.exit_code == 3
    missing[0] = None
    assert config(device="cuda").machine.device == "cuda" and not config(device="cuda").machine.may_change_device
    assert config(device="auto", me="step").machine.device == "cpu" and "step" in config(me="step").machine.device_reason
    assert config(device="cuda", me="hex").coding.me == "hex"
    with pytest.raises(OptionError, match="step exists for the CPU only") as caught:
        config(device="cuda", me="step")
    assert caught.value.option == "me"
    by_bits = {"subme": 6, "profile": "baseline"}
    machine = config(**by_bits).machine
    assert machine.device == "cpu" and "--subme 6 exists for the CPU only" in machine.device_reason
    for device in ({"device": "cuda"}, {"devices": "cuda:0"}):
        with pytest.raises(OptionError, match="6 exists for the CPU only") as caught:
            config(**by_bits, **device)
        assert caught.value.option == "subme"
    assert config(subme=7, profile="main", device="cuda").machine.device == "cuda"
    assert config(subme=6, device="hybrid").machine.device == "hybrid"  # whose rows of the CPU have the stages of the CPU
    with pytest.raises(OptionError, match="6 exists for the CPU only"):
        config(subme=6, profile="main", no_cabac=True, device="cuda")
    small, large = (config(width=16 * n, height=16 * n).machine for n in (10, 20))
    assert (small.device, large.device) == ("cpu", "cuda") and large.may_change_device


def test_the_document_is_current():
    text = runpy.run_path(str(ROOT / "docs" / "make_options.py"))["text"]()
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == text, "run make docs"
    for row in OPTIONS:
        assert (row.name if row.scope == API else row.flag) in text


@pytest.mark.parametrize(("value", "text"), (
    (Fraction(10**6), "1000000"), (Fraction(1, 3), "1/3"), (np.zeros((2, 2), int), "array([[0, 0], [0, 0]])"),
    ("a\nb", "'a\\nb'"), (10**5000, "a value of type int"), (list(range(99)), str(list(range(99)))[:57] + "..."),
), ids=lambda value: type(value).__name__)  # fmt: skip
def test_values_in_messages_are_one_short_line(value, text):
    assert show(value) == text
