"""What users ask of frames: forced types and QPs (--qpfile, Encoder.encode), zones, tunes; encoded or refused by name."""

import io
import warnings
from dataclasses import replace
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.cli.charts.rates import RatePlot
from h264lite.cli.cli import main
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.decisions.frame_requests import Requests
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.frame_requests import IDR, Request, Zone, read_qpfile, read_zones
from h264lite.encoder.settings.tunes import TUNES
from h264lite.encoder.statistics import FrameRow, Statistics
from h264lite.scheduler.frame_spec import B, I, P

from ..support import round_trip
from .test_scene_cuts import bytes_of

SEED, SIZE = 2407, (64, 48)
CLIP = round_trip.noise_clip(*SIZE, 20, SEED)
QUICK = {"device": "cpu", "preset": "ultrafast", "no_cabac": False, "threads": 1}
SLICES = ((0, 3),)


def config_of(**options):
    return Config.from_options(width=SIZE[0], height=SIZE[1], **{**QUICK, **options})


def packets_of(frames=20, requests=None, **options):
    """Packets of the clip. requests: keyword arguments of `encode`, by frame."""
    packets = []
    with h264lite.Encoder(*SIZE, options.pop("fps", 25), keep_reconstruction=True, **{**QUICK, **options}) as encoder:
        for n, planes in enumerate(CLIP[:frames]):
            packets += encoder.encode(tuple(planes), **(requests or {}).get(n, {}))
        return packets + encoder.flush()


def decoded(packets):
    """Checks the stream with both decoders, and times; returns it."""
    stream, shown = bytes_of(packets), [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")
    assert sorted(packet.pts for packet in packets) == list(range(len(packets)))
    assert all(packet.dts <= packet.pts for packet in packets)
    assert [packet.dts for packet in packets] == list(range(packets[0].dts, packets[0].dts + len(packets)))
    return stream


def letters(packets):
    """A letter a frame in display order, K for IDR."""
    return "".join("K" if packet.is_keyframe else packet.frame_type for packet in sorted(packets, key=lambda some: some.pts))


def requested_types(config, requests, frames=40, seed=SEED):
    """Types in display order, and the warnings."""
    told = []
    types, rng = FrameDecider(config, told.append), np.random.default_rng(seed)
    specs = []
    for n in range(frames):
        types.requests.of_caller(requests.get(n))
        luma = np.kron(rng.integers(0, 256, (6, 8)), np.ones((8, 8))).astype(np.uint8)
        specs += types.add([luma, *np.full((2, 24, 32), 128, np.uint8)])
    specs += types.flush()
    types.close()
    assert [spec.coding_index for spec in specs] == list(range(frames))
    shown = sorted(specs, key=lambda spec: spec.display_index)
    return [IDR if spec.is_idr else spec.frame_type for spec in shown], shown, told


# ---- qpfile and zones: what is read


def test_a_qpfile_is_read(tmp_path):
    path = tmp_path / "types.txt"
    path.write_text("0 I 20\n\n7 b -1\n3 P\n  5 K 0 \n6 B 51\n9 i 30\n")
    assert read_qpfile(str(path)) == (
        (0, Request(IDR, 20)), (3, Request(P)), (5, Request(IDR, 0)), (6, Request(B, 51)), (7, Request(B)),
        (9, Request(I, 30)),
    )  # fmt: skip
    assert read_qpfile(None) == ()


@pytest.mark.parametrize(("text", "why"), [
    ("0 I 20 1", "line 1: not of the form"), ("0", "line 1: not of the form"), ("0 I\n1 X 3", "line 2: X: not one of"),
    ("-1 I", "not in 0"), ("0 I 52", "not in -1..51"), ("0 I 2.5", "not a whole number"), ("one P", "not a whole number"),
    ("2 P\n2 B", "line 2: frame 2 is named twice"), ("\xff\xfe0 I", "line 1"),
], ids=repr)  # fmt: skip
def test_a_wrong_qpfile_is_refused_by_line(tmp_path, text, why):
    path = tmp_path / "types.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match="qpfile") as caught:
        config_of(qpfile=path)
    assert why in str(caught.value)


def test_a_qpfile_that_is_none_is_refused(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x80")
    for name, why in (("nowhere", "No such file"), ("", "directory"), ("binary", "no text")):
        with pytest.raises(OptionError, match=why):
            config_of(qpfile=tmp_path / name)


def test_zones_are_read():
    assert read_zones("0,9,q=20/ 5 , 12 , b=1.5") == (Zone(0, 9, 20), Zone(5, 12, None, 1.5))
    assert config_of().rate.zones == () and config_of(zones="3,3,b=0.25").rate.zones == (Zone(3, 3, None, 0.25),)


@pytest.mark.parametrize(("text", "why"), [
    ("", "not of the form"), ("0,9", "not of the form"), ("9,0,q=3", "ends before"), ("0,9,q=52", "not in 0..51"),
    ("0,9,q=2.5", "whole number"), ("0,9,b=0", "not in 0.01"), ("0,9,b=nan", "finite"), ("0,9,b=x", "not a number"),
    ("0,9,ref=2", "ref: a zone has"), ("0,9,q=20,ref=3", "ref=3: a zone has"), ("0,9,q=20/", "not of the form"),
    ("-1,9,q=20", "not of the form"), (5, "not of the form"),
], ids=repr)  # fmt: skip
def test_wrong_zones_are_refused_by_name(text, why):
    with pytest.raises(OptionError, match="zones") as caught:
        config_of(zones=text)
    assert why in str(caught.value)


# ---- types


TYPES = [
    {"keyint": 250}, {"keyint": 7, "ref": 3}, {"keyint": 1}, {"bframes": 3, "b_adapt": 0, "scenecut": 0},
    {"bframes": 1, "b_adapt": 0, "scenecut": 0, "keyint": 9, "b_pyramid": "none"}, {"bframes": 3},
    {"bframes": 5, "b_adapt": 2, "rc_lookahead": 12, "b_pyramid": "dyadic"}, {"scenecut": 40, "keyint": 12, "min_keyint": 2},
    {"bframes": 2, "crf": 23, "keyint": 20}, {"bframes": 16, "b_adapt": 1, "scenecut": 0},
]  # fmt: skip


@pytest.mark.parametrize("options", TYPES, ids=str)
def test_requested_types_are_kept_where_they_are_possible(options):
    config = config_of(**options)
    for seed in range(8):
        rng = np.random.default_rng([SEED, seed])
        requests = {n: Request(str(rng.choice([IDR, I, P, B, B, ""]))) for n in range(40) if rng.random() < 0.5}
        kinds, _, told = requested_types(config, requests, seed=seed)
        wrong, run = [], 0
        for n, kind in enumerate(kinds):
            wanted, run = requests.get(n, Request()).frame_type, run + 1 if kind == B else 0
            behind = kinds[n + 1] if n < 39 else IDR
            assert n or kind == IDR
            assert (kind != B or behind not in (IDR, I)) and run <= config.coding.bframes
            if wanted not in ("", kind):
                wrong.append(n)
                others = next((m for m in range(n, 0, -1) if requests.get(m, Request()).frame_type != B), 0)
                by_keyint = kind == IDR and (n == 0 or n - max(m for m in range(n) if kinds[m] == IDR) == config.types.keyint)
                no_b = kind == P and wanted == B and (behind in (IDR, I) or n - others > config.coding.bframes)
                assert by_keyint or no_b, n
        assert len(told) == bool(wrong) and (not wrong or told[0].startswith(f"frame {wrong[0]}: {kinds[wrong[0]]}"))


def test_an_impossible_type_is_told_once():
    config = config_of(bframes=2, b_adapt=0, scenecut=0, keyint=10)
    for at, wanted, why in ((0, P, "the first frame"), (10, P, "--keyint"), (39, B, "--bframes"), (19, B, "I frame")):
        kinds, _, (text,) = requested_types(config, {at: Request(wanted)})
        assert why in text and text.startswith(f"frame {at}: {kinds[at]} in place of {wanted}")
    assert requested_types(config, {5: Request(IDR), 6: Request(B), 7: Request(B)})[2] == []
    (text,) = requested_types(config_of(), {n: Request(B) for n in range(3, 9)})[2]
    assert text.startswith("frame 3: P in place of B") and "not reported" in text


def test_a_forced_keyframe_closes_the_gop_and_counts_for_keyint():
    kinds, specs, _ = requested_types(config_of(bframes=3, b_adapt=0, scenecut=0, keyint=10), {6: Request(IDR)})
    assert [n for n, kind in enumerate(kinds) if kind == IDR] == [0, 6, 16, 26, 36]
    assert kinds[5] == P
    for spec in specs:
        earlier = {other.coding_index for other in specs if other.gop == spec.gop}
        assert set(spec.list0 + spec.list1) <= earlier


def test_types_do_not_depend_on_when_costs_are_ready():
    """A request far ahead changes nothing before it."""
    config = config_of(bframes=3, scenecut=40)
    with_it, without = requested_types(config, {30: Request(IDR)})[0], requested_types(config, {})[0]
    assert with_it[:20] == without[:20] and with_it[30] == IDR


# ---- QPs


def test_requested_qps_are_those_of_all_macroblocks():
    for options in ({}, {"bframes": 2}, {"aq_mode": 1}, {"crf": 25}, {"crf": 25, "aq_mode": 2, "bframes": 2}):
        config = config_of(**options)
        specs = requested_types(config, {n: Request("", 10 + n) for n in (0, 4, 5, 9)}, frames=20)[1]
        assert [specs[n].qp for n in (0, 4, 5, 9)] == [10, 14, 15, 19]
        assert all(set(specs[n].mb_qp) <= {10 + n} for n in (0, 4, 5, 9))
        assert all(specs[n].mb_qp for n in (0, 4)) == (config.coding.aq_mode > 0)
        assert all(spec.qp not in (10, 14, 15, 19) or spec.display_index in (0, 4, 5, 9) for spec in specs)


def test_requested_qps_keep_to_the_limits():
    specs = requested_types(config_of(crf=23, qpmin=20, qpmax=30), {3: Request("", 0), 4: Request("", 51)}, frames=8)[1]
    assert (specs[3].qp, specs[4].qp) == (20, 30)


def test_zones_set_qps_as_the_option_does():
    options = {"bframes": 3, "b_adapt": 0, "scenecut": 0, "keyint": 12}
    plain, other = (requested_types(config_of(qp=qp, **options), {})[1] for qp in (26, 35))
    zoned = requested_types(config_of(qp=26, zones="5,20,q=35", **options), {})[1]
    assert [spec.qp for spec in zoned] == [(other if 5 <= n <= 20 else plain)[n].qp for n in range(40)]
    zoned = requested_types(config_of(crf=23, zones="5,20,q=35", **options), {})[1]
    assert all(zoned[n].qp == other[n].qp for n in range(5, 21)) and zoned[21].qp != other[21].qp


@pytest.mark.parametrize("options", [{}, {"crf": 23}, {"crf": 23, "no_mbtree": True, "bframes": 3}], ids=str)
def test_zones_change_the_rate(options):
    plain = requested_types(config_of(**options), {})[1]
    zoned = requested_types(config_of(zones="4,9,b=0.5/20,29,b=2/25,26,b=1", **options), {})[1]
    for n in range(40):
        shift = 6 * (4 <= n <= 9) - 6 * (20 <= n <= 29 and n not in (25, 26))
        assert abs(zoned[n].qp - min(51, max(0, plain[n].qp + shift))) <= (1 if options else 0), n


def test_the_last_zone_of_a_frame_counts_and_requests_more():
    specs = requested_types(config_of(zones="0,30,q=20/10,20,q=30"), {15: Request("", 7)})[1]
    assert [specs[n].qp for n in (5, 12, 15, 25)] == [20, 30, 7, 20]


def test_requests_of_a_file_count_from_the_first_frame_of_the_input(tmp_path):
    (tmp_path / "f").write_text("4 I 20\n12 P 33")
    config = Config.from_options(width=64, height=48, device="cpu", qpfile=str(tmp_path / "f"), seek=4)
    requests = Requests(config)
    assert [requests.enter() for _ in range(10)] == [IDR, *7 * [""], P, ""]


# ---- streams


@pytest.mark.parametrize("options", [
    {}, {"keyint": 8, "ref": 2}, {"bframes": 3}, {"bframes": 3, "b_adapt": 2, "b_pyramid": "dyadic", "crf": 24},
    {"crf": 24, "aq_mode": 1}, {"bframes": 2, "b_adapt": 0, "weightp": 2, "no_cabac": True}, {"scenecut": 40, "slices": 2},
], ids=str)  # fmt: skip
def test_streams_with_requests(options):
    requests = {3: {"keyframe": True}, 4: {"frame_type": "I"}, 6: {"qp": 12}, 9: {"frame_type": "P", "qp": 40},
                14: {"keyframe": True, "qp": 33}}  # fmt: skip
    packets = packets_of(requests=requests, **options)
    stream, types = decoded(packets), letters(packets)
    assert (types[3], types[4], types[9], types[14]) == ("K", "I", "P", "K")
    qps = {packet.pts: packet.qp for packet in packets}
    assert (qps[6], qps[9], qps[14]) == (12, 40, 33)
    assert bytes_of(packets_of(requests=requests, **options, gops=2)) == stream


def test_a_file_asks_as_the_caller_does(tmp_path):
    (tmp_path / "f").write_text("3 I\n4 i 30\n9 P 40\n14 K 33\n")
    requests = {3: {"keyframe": True}, 4: {"frame_type": "I", "qp": 30}, 9: {"frame_type": "P", "qp": 40},
                14: {"keyframe": True, "qp": 33}}  # fmt: skip
    for options in ({}, {"bframes": 2, "crf": 20}):
        assert bytes_of(packets_of(qpfile=tmp_path / "f", **options)) == bytes_of(packets_of(requests=requests, **options))


def test_sync_samples_of_a_file_are_the_keyframes(tmp_path):
    av = pytest.importorskip("av", reason="PyAV reads the file")
    (tmp_path / "f").write_text("5 I\n8 i\n11 K\n")
    frames = [tuple(planes) for planes in CLIP]
    data = h264lite.write_video(None, frames, 25, qpfile=tmp_path / "f", bframes=3, **QUICK)
    with av.open(io.BytesIO(data)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    shown = sorted(packet.pts for packet in packets)
    assert [shown.index(packet.pts) for packet in packets if packet.is_keyframe] == [0, 5, 11]


@pytest.mark.parametrize(("given", "why"), [
    ({"qp": 52}, "qp 52: not in 0..51"), ({"qp": True}, "qp True"), ({"qp": 2.5}, "qp 2.5"),
    ({"frame_type": "X"}, "not one of"),
    ({"keyframe": 1}, "not True or False"), ({"keyframe": True, "frame_type": "B"}, "contradicts"),
], ids=str)  # fmt: skip
def test_wrong_requests_are_refused_and_change_nothing(given, why):
    with h264lite.Encoder(*SIZE, 25, **QUICK) as encoder:
        packets = encoder.encode(tuple(CLIP[0]))
        with pytest.raises(OptionError, match=why):
            encoder.encode(tuple(CLIP[1]), **given)
        with pytest.raises(h264lite.InputError):
            encoder.encode(np.zeros((8, 8, 3), np.uint8), keyframe=True)
        packets += round_trip.packets_of(encoder, CLIP[1:4])
    assert letters(packets) == "KPPP"


@pytest.mark.parametrize("options", [{}, {"gops": 2, "keyint": 4}, {"bframes": 2}], ids=str)
def test_an_impossible_type_of_a_call_is_a_warning(options):
    with pytest.warns(RuntimeWarning, match="frame 0: IDR in place of P"):
        assert letters(packets_of(2, {0: {"frame_type": "P"}}, **options)) == "KP"


def test_a_buffer_holds_with_requests():
    requests = {5: {"keyframe": True, "qp": 0}, 9: {"frame_type": "P", "qp": 51}}
    packets = packets_of(requests=requests, bframes=2, crf=30, vbv_maxrate=150, vbv_bufsize=30)
    decoded(packets)
    qps = {packet.pts: packet.qp for packet in packets}
    assert letters(packets)[5] == "K" and qps[5] > 0 and qps[9] == 51, "the buffer wins over a QP"


# ---- tunes


@pytest.mark.parametrize("tune", [None, *TUNES])
def test_each_tune_is_decoded(tune):
    without_cabac = tune == "fastdecode"
    options = {"tune": tune, "subme": 5 if without_cabac else 6, "trellis": 1, "no_cabac": without_cabac}
    options["bframes"] = None if tune == "zerolatency" else 2
    config = config_of(crf=24, **options)
    packets = packets_of(8, crf=24, **options)
    decoded(packets)
    with h264lite.Encoder(*SIZE, 25, crf=24, **{**QUICK, **options}) as encoder:
        rows = [row for _, row in round_trip.finished(encoder, CLIP[:8])]
    varies = any(row.qp_range[0] < row.qp_range[1] for row in rows)
    assert varies == (config.coding.aq_mode > 0 or config.rate.mbtree)
    if tune == "zerolatency":
        assert all(packet.dts == packet.pts for packet in packets) and not config.rate.mbtree


# ---- statistics


@pytest.mark.parametrize(("options", "by"), [
    ({"qp": 26}, {"type"}), ({"crf": 24}, {"tree"}), ({"crf": 24, "no_mbtree": True, "keyint": 5}, {"complexity", "type"}),
    ({"crf": 24, "bframes": 2, "b_adapt": 0}, {"tree", "type"}), ({"qp": 26, "zones": "2,4,q=30"}, {"type", "zone"}),
    ({"crf": 24, "zones": "0,30,b=0.5"}, {"zone"}),
], ids=lambda value: str(sorted(value)))  # fmt: skip
def test_specs_say_what_their_qp_follows_from(options, by):
    assert {spec.qp_by for spec in requested_types(config_of(**options), {}, 12)[1]} == by
    specs = requested_types(config_of(**options), {3: Request("", 22)}, 12)[1]
    assert [spec.display_index for spec in specs if spec.qp_by == "request"] == [3]


def test_statistics_of_qps():
    stats = Statistics(*SIZE, Fraction(25))
    rows = round_trip.rows(CLIP[:8], *SIZE, **QUICK, crf=26, zones="5,6,q=33", bits_by_kind=True)
    for frame, row in rows:
        stats.add(frame)
        assert stats.row(replace(frame, index=frame.index)) == row
    cells = [dict(zip(FrameRow.header(), row.cells(), strict=True)) for _, row in rows]
    assert [cell["qp_by"] for cell in cells] == 5 * ["tree"] + 2 * ["zone"] + ["tree"]
    assert all(0 <= int(cell["qp_least"]) <= float(cell["qp"]) <= int(cell["qp_most"]) <= 51 for cell in cells)
    told = stats.summary()
    assert (
        told["P"]["qp_by"] == {"tree": 5, "zone": 2}
        and told["I"]["qp_by"] == {"tree": 1}
        and told["all"]["qp_by"]["tree"] == 6
    )
    spreads = [row.qp_range[1] - row.qp_range[0] for _, row in rows]
    assert told["all"]["qp_spread"] == sum(spreads) / 8 > 0
    assert (told["all"]["qp_least"], told["all"]["qp_most"]) == (
        min(row.qp_range[0] for _, row in rows),
        max(row.qp_range[1] for _, row in rows),
    )
    (line,) = [line for line in stats.lines() if line.startswith("QP P")]
    assert line.endswith(f"within a frame:{sum(spreads[1:]) / 7:5.1f}")
    assert stats.why() == ["QP I  by tree: 1", "QP P  by tree: 5, zone: 2"]


def test_rates_are_drawn():
    pytest.importorskip("matplotlib", reason="it draws")
    plot = RatePlot()
    for _, row in round_trip.rows(CLIP[:8], *SIZE, **QUICK, bframes=2, crf=26):
        plot.add(row)
    data = plot.draw(Fraction(25), "a title")
    assert data.startswith(b"\x89PNG")
    from matplotlib.image import imread

    assert imread(io.BytesIO(data))[..., :3].std() > 0.05


def test_without_matplotlib_the_plot_is_refused(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr("h264lite.cli.charts.chart.importlib.util.find_spec", lambda name: None)
    clip = tmp_path / "a_32x32.yuv"
    clip.write_bytes(bytes(32 * 48))
    assert main(["encode", str(clip), str(tmp_path / "o.264"), "--rate-png", str(tmp_path / "c.png")]) == 2
    assert "--rate-png needs matplotlib" in capfd.readouterr().err and not (tmp_path / "o.264").exists()


# ---- random settings

VALUES = {
    "crf": (0, 12.5, 23, 40, 51), "qp": (0, 20, 51), "qpmin": (0, 10, 30), "qpmax": (20, 40, 51, 69), "qcomp": (0, 0.6, 1),
    "tune": (*TUNES, "film,zerolatency"), "aq_mode": (0, 1, 2, 3, 4), "aq_strength": (0, 1, 3), "psy_rd": (0, 1, "1:1"),
    "no_psy": (True,), "no_mbtree": (True,), "ipratio": (0.25, 1, 4), "pbratio": (0.25, 1.3, 4),
    "zones": ("0,3,q=0", "2,4,b=100/3,3,q=51", "0,99,b=0.01", "1,2,b=0", "5,1,q=3"), "bframes": (0, 1, 3, 5),
    "b_adapt": (0, 1, 2), "b_pyramid": ("none", "normal", "dyadic"), "scenecut": (0, 40), "keyint": (1, 3, 250),
    "rc_lookahead": (0, 2, 40), "bitrate": (100,), "vbv_maxrate": (0, 100), "profile": ("baseline", "main", "high"),
    "fps": (0.5, 25, 500), "min_keyint": (0, 2), "weightp": (0, 2), "ref": (1, 3),
}  # fmt: skip


def random_case(seed):
    """Random options of rate control and of types, and requests."""
    rng = np.random.default_rng([SEED, seed])
    names = rng.choice([*VALUES], rng.integers(2, 8), replace=False)
    options = {str(name): VALUES[name][rng.integers(len(VALUES[name]))] for name in names}
    options["crf" if "qp" not in options else "qp"] = int(rng.integers(52))
    requests = {n: Request(str(rng.choice([IDR, I, P, B, ""])), int(rng.integers(52)) if rng.random() < 0.5 else None)
                for n in range(12) if rng.random() < 0.3}  # fmt: skip
    return options, requests


def test_random_settings_decide_or_are_refused_by_name():
    """Types and QPs of all frames, without an encode."""
    decided = 0
    for seed in range(250):
        options, requests = random_case(seed)
        try:
            config = config_of(**options)
        except OptionError as error:
            assert error.option.replace("-", "_") in {*options, "bframes", "weightp", "aq_mode"} or "bitrate" in str(error), (
                error
            )
            continue
        decided += 1
        specs = requested_types(config, requests, 12, seed)[1]
        for spec in specs:
            qps = [*spec.mb_qp, spec.qp]
            assert config.rate.qpmin <= min(qps) and max(qps) <= config.rate.qpmax, (seed, options)
        rate, asked = config.rate, {n: some.qp for n, some in requests.items() if some.qp is not None}
        wanted = {n: min(rate.qpmax, max(rate.qpmin, qp)) for n, qp in asked.items()}
        assert {spec.display_index: spec.qp for spec in specs if spec.qp_by == "request"} == wanted
    assert decided > 80


def check_stream(seed):
    """A stream of random settings is what both decoders make of it; its QPs keep to the limits."""
    options, requests = random_case(seed)
    try:
        config = config_of(**options)
    except OptionError:
        return
    given = {n: {"keyframe": some.frame_type == IDR, "qp": some.qp, "frame_type": some.frame_type or None}
             for n, some in requests.items()}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        packets = packets_of(12, given, **{"fps": 25, **options})
    decoded(packets)
    assert all(config.rate.qpmin <= packet.qp <= config.rate.qpmax for packet in packets), (seed, options)


@pytest.mark.parametrize("seed", range(8))
def test_streams_of_random_settings(seed):
    check_stream(1000 + seed)


@pytest.mark.slow
def test_more_streams_of_random_settings():
    for seed in range(150):
        check_stream(2000 + seed)
