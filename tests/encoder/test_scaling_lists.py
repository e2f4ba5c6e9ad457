"""Scaling matrices (--cqm): two decoders return the reconstruction with any lists; files, refusals, bits in headers."""

import h264lite
import numpy as np
import pytest
from h264lite.decoder.info import StreamInfo
from h264lite.encoder.settings.scaling_lists import DEFAULT, FLAT, NAMES, parse_lists, scaling_lists
from h264lite.standard.bits import NAL_SPS, split_byte_stream
from h264lite.standard.syntax import parse_sps
from h264lite.standard.tables import ZIGZAG_4x4, ZIGZAG_8x8

from ..support import round_trip, sequences
from ..support.scaling_lists import random_lists, to_file
from ..support.steady import steady
from .test_streams import planes

TOOLS = (
    {"ref": 2, "slices": 2}, {"trellis": 0, "slices": 3}, {"keyint": 1}, {"subme": 6, "chroma_qp_offset": 7},
    {"no_8x8dct": True, "chroma_qp_offset": -9}, {"keyint": 2, "no_cabac": True, "trellis": 0}, {"no_cabac": True},
)  # fmt: skip


def written_lists(stream):
    """The lists that the first sequence parameter set says, in scan order; None: none."""
    unit = next(unit for unit in split_byte_stream(stream) if unit.nal_unit_type == NAL_SPS)
    sps = parse_sps(unit.rbsp())
    if not sps.seq_scaling_matrix_present_flag:
        return None
    return tuple(map(tuple, sps.scaling.resolve([list(values) for values in (*DEFAULT, *DEFAULT[6:], *DEFAULT[6:])])[:8]))


@pytest.mark.parametrize("qp", (1, 27, 51))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_decoders_agree(tools, qp, tmp_path):
    clip = round_trip.noise_clip(66, 50, 4, qp)
    rng = np.random.default_rng(qp)
    lists = random_lists(rng, *((1, 40), (8, 60), (1, 255))[qp % 3])
    for cqm in ("jvt", to_file(lists, tmp_path / "lists.cfg")):
        stream = round_trip.check(clip, 66, 50, qp=qp, profile="high", cqm=cqm, device="cpu", **tools)
        assert written_lists(stream) == scaling_lists(str(cqm))


@pytest.mark.parametrize("given", ("cqm4", "cqm8", "cqm4p cqm8i", "cqm4 cqm4i cqm8 cqm8p", "cqm4iy cqm4pc",
                                    "cqm4i cqm4ic cqm4p cqm4py"))
def test_single_lists(given):
    """Two decoders agree; the list of each kind of block is that of the last option for it, row by row."""
    rng = np.random.default_rng(len(given))
    lists = {name: rng.integers(1, 60, 16 if name[3] == "4" else 64) for name in given.split()}
    texts = {name: ",".join(map(str, values)) for name, values in lists.items()}
    stream = round_trip.check(round_trip.noise_clip(66, 50, 4, 3), 66, 50, qp=24, device="cpu", ref=2, **texts)
    kinds = {"cqm4": (0, 1, 2, 3, 4, 5), "cqm4i": (0, 1, 2), "cqm4p": (3, 4, 5), "cqm8": (6, 7), "cqm8i": (6,), "cqm8p": (7,),
             "cqm4iy": (0,), "cqm4ic": (1, 2), "cqm4py": (3,), "cqm4pc": (4, 5)}
    expected = [np.full(16 if k < 6 else 64, 16) for k in range(8)]
    for name in lists:
        for k in kinds[name]:
            expected[k] = lists[name]
    in_stream = written_lists(stream)
    for k, values in enumerate(expected):
        scan = ZIGZAG_4x4 if k < 6 else ZIGZAG_8x8
        assert in_stream[k] == tuple(values[list(scan)])


@pytest.mark.parametrize("name, text, message", (
    ("cqm4", "16,16", "cqm4 has 2 numbers, not 16"), ("cqm8p", ",".join(64 * ["0"]), "cqm8p 0: not in 1..255"),
    ("cqm4i", "256" + 15 * ",1", "cqm4i 256: not in 1..255"), ("cqm8", "x", "cqm8 x: not in 1..255"),
))  # fmt: skip
def test_refused_lists(name, text, message):
    with pytest.raises(h264lite.OptionError, match=f"^{message}"):
        h264lite.Encoder(32, 32, device="cpu", **{name: text})
    with pytest.raises(h264lite.OptionError, match=f"^{name} .*: scaling matrices are a tool of High profile"):
        h264lite.Encoder(32, 32, device="cpu", profile="main", **{name: ",".join(16 * ["9"])})


def test_flat_lists_change_no_byte(tmp_path):
    clip = round_trip.noise_clip(34, 34, 3, 1)
    (tmp_path / "flat.cfg").write_text("# nothing\nINTRA4X4_LUMA =\n16,16,16,16\n" + "16, 16, 16, 16,\n" * 3)
    streams = {round_trip.encode(clip, 34, 34, profile="high", **options)[0]
               for options in ({}, {"cqm": "flat"}, {"cqm": tmp_path / "flat.cfg"})}  # fmt: skip
    assert len(streams) == 1


def test_default_lists_take_few_bits():
    sets = [h264lite.Encoder(32, 32, profile="high", device="cpu", cqm=cqm).headers for cqm in ("flat", "jvt")]
    assert len(sets[1]) <= len(sets[0]) + 1  # eight flags


def test_default_lists_on_a_real_clip():
    """Frequencies that are seen less get fewer levels."""
    clip = sequences.clip("foreman_176x144_30")
    frames, sizes = planes(clip, 4), []
    for cqm in ("flat", "jvt"):
        sizes.append(len(round_trip.encode(frames, clip.width, clip.height, qp=22, profile="high", cqm=cqm)[0]))
    assert 0.5 < sizes[1] / sizes[0] < 0.95


def test_files():
    text = "INTRA4X4_LUMA =  # rows\n" + "\n".join(", ".join(str(4 * y + x + 1) for x in range(4)) + "," for y in range(4))
    lists = parse_lists(text + "\nINTER8X8_LUMA = 0\nINTER4X4_CHROMAV=" + ",".join(["7"] * 16), "x")
    assert lists[0] == (1, 2, 5, 9, 6, 3, 4, 7, 10, 13, 14, 11, 8, 12, 15, 16)
    assert (lists[5], lists[7]) == ((7,) * 16, DEFAULT[7])
    assert [lists[k] for k in (1, 2, 3, 4, 6)] == [FLAT[k] for k in (1, 2, 3, 4, 6)]
    assert parse_lists("", "x") == FLAT and len(NAMES) == 8


@pytest.mark.parametrize(("text", "message"), [
    ("\n\nINTRA4X4_LUMA = 1,2,3", "lists, line 3: INTRA4X4_LUMA has 3 numbers, not 16"),
    ("# a\nINTRA8X8_LUMA = 256", "lists, line 2: 256: not in 1..255"),
    ("INTER4X4_LUMA =\n1,0", "lists, line 2: 0: not in 1..255"),
    ("7", "lists, line 1: 7: a number before the name of a list"),
    ("INTER4X4_LUMA = 7 -1", "lists, line 1: -1: not a number or one of INTRA4X4_LUMA, "),
    ("INTER4X4_LUMA = 0\nINTER4X4_LUMA = 0", "lists, line 2: INTER4X4_LUMA is there twice"),
])  # fmt: skip
def test_files_that_are_refused(text, message):
    with pytest.raises(h264lite.OptionError, match=f"^cqm {message}"):
        parse_lists(text, "lists")


@pytest.mark.parametrize(("options", "message"), [
    ({"cqm": "jvt", "profile": "main"}, "cqm jvt: scaling matrices are a tool of High profile"),
    ({"cqm": "jvt", "profile": "baseline"}, "cqm jvt: scaling matrices are a tool of High profile"),
    ({"cqm": "no_such_file", "profile": "high"}, "cqm no_such_file: not flat or jvt, and as a file: No such file"),
    ({"cqm": "/", "profile": "high"}, "cqm /: not flat or jvt, and as a file: Is a directory"),
])  # fmt: skip
def test_refusals(options, message):
    with pytest.raises(h264lite.OptionError, match=message):
        h264lite.Encoder(32, 32, device="cpu", **steady(options))


def test_info_names_them():
    clip = round_trip.noise_clip(34, 34, 2, 1)
    stream, _ = round_trip.encode(clip, 34, 34, profile="high", cqm="jvt", chroma_qp_offset=-3, device="cpu")
    info = StreamInfo()
    lines = [*info.feed(stream), *info.flush(), *info.summary()]
    assert "scaling matrices in 2 of 2 slices" in lines and "chroma QP offset -3 in 2 of 2 slices" in lines
    assert any("PPS" in line and "chroma QP offset -3" in line for line in lines)
