"""The table of x264's defaults is that of x264, and what differs here is told."""

import io
import re
import runpy
from pathlib import Path

import pytest

MADE = runpy.run_path(str(Path(__file__).resolve().parent.parent.parent / "docs" / "make_options.py"))
X264_DEFAULTS, X264_WITH_QP, differing = (MADE[name] for name in ("X264_DEFAULTS", "X264_WITH_QP", "differing"))


def stream_of_x264(options=None):
    """One grey frame by x264, Annex B."""
    av = pytest.importorskip("av")
    if "libx264" not in av.codecs_available:
        pytest.skip("PyAV has no libx264")
    out = io.BytesIO()
    with av.open(out, "w", format="h264") as container:
        stream = container.add_stream("libx264", 25, options or {}, width=64, height=48, pix_fmt="yuv420p")
        container.mux(stream.encode(av.VideoFrame(64, 48, "yuv420p")))
        container.mux(stream.encode(None))
    return out.getvalue()


def written(options=None):
    """x264's options by name, which it writes into the stream."""
    text = stream_of_x264(options).partition(b" - options:")[2].partition(b"\0")[0] + b"\0"
    return {key.decode(): value.decode() for key, value in re.findall(rb" (\w+)=([^ \0]*)", text)}


def test_defaults_of_x264_are_those_of_x264():
    names = {"keyint_min": "min_keyint", "me_range": "merange", "8x8dct": "transform_8x8_mode", "ip_ratio": "ipratio"}
    told = {names.get(name, name): text for name, text in written().items()}
    told["deadzone_inter"], told["deadzone_intra"] = told.pop("deadzone").split(",")
    told["aq_mode"], told["aq_strength"] = told.pop("aq").split(":")
    told["psy_rd"] = told["psy_rd"].partition(":")[0]
    told["cqm"] = {"0": "flat"}[told["cqm"]]
    told["b_pyramid"] = {"2": "normal"}[told["b_pyramid"]]
    told["deblock"], told["deblock_alpha"], told["deblock_beta"] = told["deblock"].split(":")
    intra, inter = (int(part, 16) for part in told.pop("analyse").split(":"))
    assert (intra, inter) == (3, 0x113), "i4x4, i8x8; with p8x8 and b8x8, without p4x4"
    not_told = {"partitions", "pbratio", "ratetol", "vbv_init", "slices", "info_sei", "psnr", "chroma_qp_offset", "crf"}
    assert float(told["crf"]) == X264_DEFAULTS["crf"] and told["rc"] == "crf"
    for name in X264_DEFAULTS.keys() - not_told:
        ours = X264_DEFAULTS[name]
        assert told[name] == ours if isinstance(ours, str) else float(told[name]) == ours, name
    # psy-rd moves the offset that x264 says
    assert int(told["chroma_qp_offset"]) == X264_DEFAULTS["chroma_qp_offset"] - 2


def test_the_defaults_that_differ_are_told():
    values = {name: (here, there) for name, here, there in differing()}
    assert values["--ref"] == ("1", "3") and "--crf" not in values
    assert values["--partitions"] == ("p8x8,p4x4,i8x8,i4x4", "p8x8,i8x8,i4x4")
    assert all(here != there for here, there in values.values())
    assert differing(qp=26) == [("--psy-rd", "0.0", "1.0")]


def test_what_a_constant_qp_changes_in_x264():
    """Those of the table alone: psy-RD and scene cuts stay."""
    told, plain = written({"qp": "26"}), written()
    assert X264_WITH_QP == {"crf": None, "aq_mode": 0, "mbtree": False}
    assert told["rc"] == "cqp" and told["aq"] == "0" and told["mbtree"] == "0" and "crf" not in told
    same = plain.keys() & told.keys() - {"rc", "aq", "mbtree"}
    assert {"psy_rd", "scenecut", "ip_ratio", "bframes", "ref", "trellis", "weightp"} <= same
    assert {name for name in same if told[name] != plain[name]} <= {"rc_lookahead"}


def test_x264_is_lossless_at_qp_0_and_crf_0():
    """So says its profile, 4:4:4 Predictive: what the command says of these options is true."""
    for name, value, lossless in (("qp", "0", True), ("crf", "0", True), ("qp", "1", False)):
        stream = stream_of_x264({name: value})
        assert (stream[stream.index(b"\0\0\1\x67") + 4] == 244) == lossless, (name, value)
