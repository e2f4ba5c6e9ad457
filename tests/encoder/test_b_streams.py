"""Whole streams with B frames: decoders agree, in display order; times, statistics, several GOPs, containers."""

import io
import json
import time

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.scheduler.devices import GpuLost
from h264lite.scheduler.frames.loop import Loop
from h264lite.scheduler.frames.ring import FrameRing

from ..cuda_emulator.fixtures import driver, gpu  # noqa: F401
from ..inside import on_each_b_frame
from ..support import round_trip

WIDTH, HEIGHT, FRAMES = 50, 34, 10
OPTIONS = {"qp": 28, "device": "cpu", "b_adapt": 0, "scenecut": 0}
TOOLS = (
    {"bframes": 1}, {"bframes": 2, "b_pyramid": "none"}, {"bframes": 3, "ref": 2, "keyint": 6},
    {"bframes": 5, "b_pyramid": "dyadic", "ref": 3}, {"bframes": 2, "no_cabac": True, "slices": 2},
    {"bframes": 3, "subme": 7, "profile": "main", "no_weightb": True}, {"bframes": 2, "weightp": 2, "keyint": 4},
)  # fmt: skip


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7)


def packets_of(clip, **options):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, **{**OPTIONS, **options}) as encoder:
        return round_trip.packets_of(encoder, clip)


def check(packets):
    assert sorted(packet.pts for packet in packets) == list(range(len(packets)))
    first = packets[0].dts
    assert [packet.dts for packet in packets] == list(range(first, first + len(packets)))
    assert first <= 0 and all(packet.dts <= packet.pts for packet in packets)
    stream = b"".join(packet.data for packet in packets)
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), round_trip.shown(packets), "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(stream), round_trip.shown(packets), "own decoder")


@pytest.mark.parametrize("options", TOOLS, ids=str)
def test_decoders_agree(clip, options):
    """The same stream for any number of threads and lanes."""
    packets = packets_of(clip, threads=1, **options)
    check(packets)
    assert "B" in {packet.frame_type for packet in packets}
    for other in ({"threads": 3}, {"threads": 2, "gops": 2}):
        assert [packet.data for packet in packets_of(clip, **options, **other)] == [packet.data for packet in packets]


@pytest.mark.parametrize("options", TOOLS, ids=str)
def test_b_frames_that_end_late(clip, options, monkeypatch):
    """On a CPU later frames are coded before B frames that are no references; they overwrite nothing that these read."""
    expected = [packet.data for packet in packets_of(clip, threads=1, **options)]
    late = []

    def wait(frame):
        time.sleep(0.02)
        late.append(frame.spec.coding_index)

    on_each_b_frame(monkeypatch.setattr, wait)
    assert [packet.data for packet in packets_of(clip, threads=3, **options)] == expected and late


ADAPTIVE = (
    {"bframes": 0, "scenecut": 40}, {"bframes": 3, "b_adapt": 1}, {"bframes": 2, "scenecut": 40, "keyint": 7, "ref": 3},
    {"bframes": 3, "b_adapt": 2, "scenecut": 40, "min_keyint": 4},
    {"bframes": 4, "b_adapt": 2, "rc_lookahead": 5, "b_pyramid": "none"},
)  # fmt: skip


@pytest.mark.parametrize("options", ADAPTIVE, ids=str)
def test_types_by_content(clip, options):
    """Frames wait for the lookahead; scenes begin with I frames, or IDR frames far enough from the last."""
    scenes = [*clip[:6], *([255 - plane for plane in planes] for planes in clip[:7]), *clip[:2]]
    packets = packets_of(scenes, threads=1, **options)
    check(packets)
    assert [packet.data for packet in packets_of(scenes, threads=3, **options)] == [packet.data for packet in packets]
    intra = sorted(packet.pts for packet in packets if packet.frame_type == "I")
    assert intra[0] == 0 and ("scenecut" not in options or {6, 13} <= set(intra))


def test_types_by_content_in_lanes(clip):
    """The front decides, lanes encode; a raw file too."""
    options = {"bframes": 3, "b_adapt": 2, "keyint": 4}
    expected = packets_of(clip, **options)
    check(expected)
    assert [packet.data for packet in packets_of(clip, gops=3, threads=2, **options)] == [p.data for p in expected]


@pytest.mark.parametrize("frames", (1, 2, 3, 4, 5))
def test_short_clips(clip, frames):
    check(packets_of(clip[:frames], bframes=3, b_pyramid="normal"))


def test_the_command(clip, tmp_path):
    """Rows, summary and reconstruction."""
    source, out = round_trip.write_raw(clip, tmp_path), tmp_path / "out.264"
    rows, dump, summary = (tmp_path / name for name in ("rows.csv", "dump.yuv", "summary.json"))
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {**OPTIONS, "fps": 30, "bframes": 2}.items()]
    reports = ["--csv", str(rows), "--dump-yuv", str(dump), "--json", str(summary)]
    assert main(["encode", str(source), str(out), "--quiet", *words, *reports]) == 0
    expected = packets_of(clip, bframes=2)
    assert out.read_bytes() == b"".join(packet.data for packet in expected)
    assert dump.read_bytes() == b"".join(plane.tobytes() for frame in round_trip.shown(expected) for plane in frame)
    names, *lines = [line.split(",") for line in rows.read_text().splitlines()]
    table = [dict(zip(names, line)) for line in lines]
    assert [(int(row["frame"]), int(row["coded"]), row["type"]) for row in table] == [
        (packet.pts, n, packet.frame_type) for n, packet in enumerate(expected)
    ]
    told = json.loads(summary.read_text())
    n_mb = -(-WIDTH // 16) * -(-HEIGHT // 16)
    counts = told["B"]["macroblocks"]
    assert told["B"]["frames"] == sum(packet.frame_type == "B" for packet in expected) > 0
    assert sum(counts.values()) == n_mb * told["B"]["frames"] and sum(counts[name] for name in counts if name[0] == "B")
    assert told["all"]["frames"] == FRAMES
    for row, packet in zip(table, expected):
        kinds = [int(row[f"bits_{kind}"]) for kind in ("headers", "vectors", "luma", "chroma")]
        assert sum(kinds) == 8 * len(packet.data) and min(kinds) >= 0


@pytest.mark.parametrize("fragment", (None, 0.1))
@pytest.mark.parametrize("pyramid", ("none", "dyadic"))
def test_times_in_mp4(clip, pyramid, fragment):
    av = pytest.importorskip("av")
    target = io.BytesIO()
    frames = [tuple(planes) for planes in clip]
    h264lite.write_video(target, frames, 25, fragment=fragment, bframes=4, b_pyramid=pyramid, keyint=6, **OPTIONS)
    with av.open(io.BytesIO(target.getvalue())) as container:
        stream = container.streams.video[0]
        in_file = list(container.decode(stream))
        assert [frame.pts * stream.time_base for frame in in_file] == [n / stream.average_rate for n in range(FRAMES)]
        assert stream.duration * stream.time_base * stream.average_rate == FRAMES and stream.start_time == 0
    assert all(np.abs(frame.to_ndarray()[:HEIGHT, :WIDTH].astype(int) - planes[0]).mean() < 9
               for frame, planes in zip(in_file, clip))  # fmt: skip


def test_ssim_is_of_the_frame(clip):
    """Frames that differ much: a wrong source would give a low value."""
    with h264lite.Encoder(WIDTH, HEIGHT, 30, ssim=True, bframes=3, **OPTIONS) as encoder:
        rows = [row for _, row in round_trip.finished(encoder, clip)]
    assert len(rows) == FRAMES and min(row.ssim for row in rows) > 0.8


SCENES = {"bframes": 0, "scenecut": 40, "ref": 2}


def test_scene_cuts_on_other_devices(driver, clip):  # noqa: F811
    scenes = [*clip[:4], *([255 - plane for plane in planes] for planes in clip[:5])]
    expected = packets_of(scenes, **SCENES)
    assert [packet.pts for packet in expected if packet.frame_type == "I"] == [0, 4]
    for device in ("cuda", "hybrid"):
        packets = packets_of(scenes, threads=2, **{**SCENES, "device": device})
        assert [packet.data for packet in packets] == [packet.data for packet in expected]


@pytest.mark.parametrize("at", (3, 6, 9))
@pytest.mark.parametrize("options", ({"bframes": 2}, {"bframes": 5, "b_pyramid": "dyadic", "ref": 2}), ids=str)
def test_another_loop_continues(clip, monkeypatch, options, at):
    """As after the loss of a GPU: the decoded frames, their motion and the distances to their references come back."""
    expected, run, calls = packets_of(clip, threads=2, **options), Loop.run, []

    def failing(self, frame):
        calls.append(frame)
        if len(calls) == at:
            raise GpuLost("a test")
        return run(self, frame)

    monkeypatch.setattr(Loop, "run", failing)
    monkeypatch.setattr(FrameRing, "_length", lambda self: 40)
    with pytest.warns(RuntimeWarning, match="continuing on the CPU"):
        packets = packets_of(clip, threads=2, **{**options, "device": "auto"})
    assert [packet.data for packet in packets] == [packet.data for packet in expected]


@pytest.mark.parametrize("options", ({}, {"slices": 2, "keyint": 3}), ids=str)
def test_a_packet_for_each_call_with_zerolatency(clip, options):
    """The bytes are those of the same options without the tune."""
    with h264lite.Encoder(WIDTH, HEIGHT, 30, threads=3, tune="zerolatency", **OPTIONS, **options) as encoder:
        calls = [encoder.encode(tuple(planes)) for planes in clip]
        assert [len(packets) for packets in calls] == FRAMES * [1] and encoder.flush() == []
    assert [packet.data for (packet,) in calls] == [packet.data for packet in packets_of(clip, bframes=0, **options)]
