"""Whole encodes on the GPU give the bytes of the CPU: on the emulated device, and on a real one if available."""

import hashlib
import itertools
import json

import pytest
from h264lite.cli.cli import main
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime.driver_calls import DriverCalls

from ..cuda_emulator.fixtures import WAYS, gpu  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..support import round_trip, sequences
from ..support.steady import steady_words
from .test_streams import ALL, planes

TOOLS = (
    {"qp": 12, "keyint": 1},
    {"qp": 27, "ref": 3, "slices": 4},
    {"qp": 40, "keyint": 12, "merange": 8},
    {"qp": 27, "no_deblock": True, "subme": 1, "profile": "baseline"},
    {"qp": 20, "deblock": (-2, 3), "deblock_within_slices": True, "slices": 2, "subme": 0},
    {"qp": 33, "partitions": "none", "subme": 3, "chroma_qp_offset": -5},
    {"qp": 27, "partitions": "p8x8", "subme": 5, "keyint": 2, "ref": 2, "profile": "baseline"},
    {"qp": 1, "merange": 5, "profile": "baseline"},  # I_PCM
    {"qp": 27, "profile": "main", "subme": 6, "ref": 2, "trellis": 0},
    {"qp": 36, "profile": "high", "subme": 7, "slices": 2, "psy_rd": 1},
    {"qp": 24, "profile": "main", "slices": 3, "ref": 2, "trellis": 0},
    {"qp": 22, "profile": "high", "cqm": "jvt", "subme": 6, "chroma_qp_offset": 4, "slices": 2},
    {"qp": 2, "profile": "high", "cqm": "jvt", "no_cabac": True, "keyint": 2},  # I_PCM
    {"qp": 27, "me": "hex", "ref": 2}, {"qp": 31, "me": "dia", "subme": 2}, {"qp": 24, "me": "umh", "merange": 24},
    {"qp": 1, "profile": "main", "keyint": 3, "trellis": 0},  # I_PCM between CABAC
)
SIZES = ((16, 16), (50, 34), (17, 33), (1, 1), (80, 64), (3, 65), (48, 80))


def compare(clip, width, height, **options):
    """Bytes and reconstruction of both devices."""
    stream, decoded = round_trip.encode(clip, width, height, device="cuda", **options)
    wanted, expected = round_trip.encode(clip, width, height, device="cpu", **options)
    round_trip.assert_same(decoded, expected, "the GPU's reconstruction")
    assert hashlib.sha256(stream).digest() == hashlib.sha256(wanted).digest()


@pytest.mark.parametrize("tools", TOOLS, ids=str)
def test_tools(gpu, tools):  # noqa: F811
    compare(round_trip.noise_clip(66, 66, 5, 3), 66, 66, **tools)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_sizes(gpu, width, height):  # noqa: F811
    compare(round_trip.noise_clip(width, height, 3, width), width, height, qp=24)


@pytest.mark.parametrize("threads", (1, 2, 3, 4))
def test_pictures_and_gops_at_once(gpu, threads):  # noqa: F811
    """Frames whose bits are under way, and lanes: timing changes no byte."""
    clip = round_trip.noise_clip(34, 18, 9, 6)
    for gops in (5 - threads,) if gpu else (1, 2, 3, 4):  # the emulated one takes its time
        compare(clip, 34, 18, qp=24, ref=2, keyint=2 + threads % 2, threads=threads, gops=gops)


@pytest.mark.parametrize("options", ({}, {"keyint": 7, "ref": 3}, {"keyint": 1}), ids=str)
def test_pictures_that_are_started_as_others_were(gpu, monkeypatch, options):  # noqa: F811
    """Once all arrays were in use, a frame's work is given to the streams again as it was noted."""
    replayed, replay = [], device_module.Device.replay
    monkeypatch.setattr(device_module.Device, "replay", lambda self, recording: replayed.append(replay(self, recording)))
    compare(round_trip.noise_clip(34, 18, 30, 4), 34, 18, qp=24, threads=1, **options)
    assert len(replayed) > 3


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options", ({}, {"ref": 2, "slices": 2}, {"keyint": 6, "merange": 32}, {"qp": 2}, {"gops": 2, "keyint": 20}), ids=str
)
def test_pictures_whose_kernels_are_graphs(monkeypatch, options):
    """On a real GPU alone: as soon as a kind of frame comes again its kernels are joined; frames of a size that fills
    the GPU little, and of one where kernels overlap.
    """
    skip_without()
    launches, joined = [], DriverCalls.joined

    def count(calls, commands):
        fewer = joined(calls, commands)
        launches.append([sum(command.call_record[0] in starts(calls) for command in given) for given in (fewer, commands)])
        return fewer

    def starts(calls):
        return [calls._address[name] for name in ("launch", "launch_ex", "launch_graph")]

    monkeypatch.setattr(device_module, "OFTEN", 2)
    monkeypatch.setattr(DriverCalls, "joined", count)
    for width, height, frames in ((66, 50, 60), (640, 352, 44)):
        compare(round_trip.noise_clip(width, height, frames, 4), width, height, **{"qp": 27, **options})
    assert len(launches) >= 2 and all(fewer < 0.7 * all_ for fewer, all_ in launches), launches


def test_a_real_clip(gpu):  # noqa: F811
    """So small a part of it that the emulator is done in seconds."""
    clip = sequences.clip("foreman_176x144_30")
    cut = [tuple(p[: s, : s + s // 2] for p, s in zip(frame, (64, 32, 32))) for frame in planes(clip, 4)]
    compare(cut, 96, 64, qp=27)


@pytest.mark.parametrize(
    "tools",
    (
        {"qp": 22, "keyint": 1},
        {"qp": 27, "ref": 3, "slices": 2},
        {"qp": 36, "trellis": 0, "no_deblock": True, "partitions": "p8x8"},
        {"qp": 2},
    ),
    ids=str,
)
def test_8x8_transform(gpu, tools):  # noqa: F811
    clip = sequences.clip("foreman_176x144_30")
    cut = [tuple(p[: s, : s + s // 2] for p, s in zip(frame, (64, 32, 32))) for frame in planes(clip, 3)]
    for no_cabac in (True, False):
        compare(cut, 96, 64, profile="high", no_cabac=no_cabac, **tools)
    compare(round_trip.noise_clip(34, 50, 3, 5), 34, 50, profile="high", no_cabac=True, **tools)


@pytest.mark.parametrize("options", ({"no_cabac": True}, {"slices": 2}), ids=str)
def test_bits_by_kind(gpu, options):  # noqa: F811
    """Counted on the host: levels are downloaded, by recordings too."""
    clip = round_trip.noise_clip(50, 34, 14, 4)
    options |= {"profile": "high", "qp": 26, "threads": 1, "bits_by_kind": True}
    cpu, cuda = (round_trip.rows(clip, 50, 34, device=device, **options) for device in ("cpu", "cuda"))
    assert [row.bits_by_kind for _, row in cpu] == [row.bits_by_kind for _, row in cuda]
    assert all(row.bits_by_kind[2] > 0 for _, row in cpu)


@pytest.mark.parametrize("tools", ({"qp": 24, "profile": "high"}, {"qp": 34, "profile": "main", "slices": 2}), ids=str)
def test_a_cut_decided_by_cost(gpu, tools):  # noqa: F811
    """Intra macroblocks of I and P frames: the third frame is of another corner."""
    frames = planes(sequences.clip("foreman_176x144_30"), 3)
    cut = [tuple(p[: s, : s + s // 2] for p, s in zip(frame, (64, 32, 32))) for frame in frames]
    cut[2] = tuple(p[-s:, -s - s // 2 :] for p, s in zip(frames[2], (64, 32, 32)))
    compare(cut, 96, 64, subme=6, **tools)


@pytest.mark.parametrize("gpu", WAYS, indirect=True)
def test_the_timeline(gpu, tmp_path):  # noqa: F811
    """Every stage, copy and thread of every frame; nothing of a frame before its upload."""
    source, out = tmp_path / "in_48x32.yuv", tmp_path / "trace.json"
    clip = round_trip.noise_clip(48, 32, 4, 3)
    source.write_bytes(b"".join(plane.tobytes() for frame in clip for plane in frame))
    command = ["encode", str(source), str(tmp_path / "o.264"), "--device", "cuda", "--trace", str(out), "--quiet"]
    assert main(steady_words(command)) == 0
    events = json.loads(out.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = {(event["pid"], event["name"]) for event in spans}
    assert {(1, s) for s in ("upload", "full_search", "intra", "deblock", "write_slices", "download")} < names
    assert {(2, s) for s in ("load", "loop", "entropy")} < names
    for frame in range(4):
        of_frame = {event["name"] for event in spans if event.get("args") == {"frame": frame}}
        assert {"upload", "deblock", "entropy"} <= of_frame and ("full_search" in of_frame) == (frame > 0)
    assert all(event["dur"] >= 0 for event in spans)


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize("qp", (12, 27, 40))
@pytest.mark.parametrize("name", ALL)
def test_all_clips(name, qp):
    """On a real GPU alone: real clips x keyint x ref x merange x slices."""
    skip_without()
    clip = sequences.clip(name)
    frames = planes(clip, min(clip.frames, 14 if clip.width < 700 else 4))
    for keyint, ref, merange, slices in itertools.product((1, 12, 250), (1, 3), (8, 16, 32, 64), (1, 4)):
        if keyint == 1 and (ref, merange) != (1, 16):
            continue  # intra frames know neither
        print(name, qp, keyint, ref, merange, slices)
        compare(frames, clip.width, clip.height, qp=qp, keyint=keyint, ref=ref, merange=merange, slices=slices)


@pytest.mark.slow
@pytest.mark.gpu
def test_all_sizes():
    """On a real GPU alone: 25 sizes and more, odd ones among them."""
    skip_without()
    for width, height in itertools.product((1, 2, 16, 33, 130, 175, 640), (1, 15, 34, 98, 144, 361)):
        print(width, height)
        compare(round_trip.noise_clip(width, height, 4, width + height), width, height, qp=26, ref=2)
