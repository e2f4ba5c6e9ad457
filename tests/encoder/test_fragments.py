"""Fragments of the length asked for, whatever scene cuts: from Python and the command line; flush, and a fragment a chunk."""

import io
import struct
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.fragments import with_keyframes
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SPS, split_byte_stream, unescape
from h264lite.standard.syntax import parse_pps, parse_slice_header, parse_sps

from ..support.moving import boxes_of, moving
from .test_given_times import demuxed

WIDTH, HEIGHT = 48, 34


class Pieces:
    """A target that keeps what each call of `write` got."""

    def __init__(self):
        self.all = []

    def write(self, data):
        self.all.append(bytes(data))

    def frames(self):
        """Frames of each fragment, by trun."""
        return [int.from_bytes(piece[at + 8 : at + 12], "big") for piece in self.all if (at := piece.find(b"trun")) >= 0]


def by_command(tmp_path, clip, rate, *words):
    """The bytes that the command makes of RGB frames as grey Y4M."""
    y4m, out = tmp_path / "in.y4m", tmp_path / "o.mp4"
    _, height, width, _ = clip.shape
    head = f"YUV4MPEG2 W{width} H{height} F{rate.numerator}:{rate.denominator} Ip A1:1 C420jpeg\n".encode()
    chroma = b"\x80" * (2 * ((width + 1) // 2) * ((height + 1) // 2))
    y4m.write_bytes(head + b"".join(b"FRAME\n" + frame[..., 1].tobytes() + chroma for frame in clip))
    assert main(["encode", str(y4m), str(out), "--quiet", "--device", "cpu", *words]) == 0
    return out.read_bytes()


def fragments_of(data):
    return [int.from_bytes(inner[inner.find(b"trun") + 8 :][:4], "big") for kind, inner in boxes_of(data) if kind == b"moof"]


@pytest.mark.parametrize("cuts", ({}, {"no_scenecut": True}, {"scenecut": 90}), ids=str)
def test_a_scene_cut_moves_no_fragment(tmp_path, cuts):
    """A cut at frame 37, fragments of 0.5 s at 29.97 frames/s: 15 frames each, in which a cut costs no keyframe."""
    rate, clip = Fraction(30000, 1001), moving(70, WIDTH, HEIGHT, cut=37)
    target = Pieces()
    h264lite.write_video(target, clip, rate, fragment=0.5, device="cpu", **cuts)
    assert target.frames() == [15, 15, 15, 15, 10]
    times, keyframes = demuxed(b"".join(target.all))
    assert times == [n / rate for n in range(70)] and keyframes == [n / rate for n in range(0, 70, 15)]
    words = {"no_scenecut": ["--no-scenecut"], "scenecut": ["--scenecut", "90"]}
    written = by_command(tmp_path, clip, rate, "--fragment", "0.5", *(words[next(iter(cuts))] if cuts else ()))
    assert fragments_of(written) == [15, 15, 15, 15, 10]


def test_a_variable_rate_gets_fragments_by_time_from_the_command_too(tmp_path):
    pytest.importorskip("av")
    times = [Fraction(n, 60) for n in np.cumsum(np.random.default_rng(2).choice([1, 2, 3, 7], 60)).tolist()]
    h264lite.write_video(tmp_path / "in.mp4", moving(60, WIDTH, HEIGHT, cut=20), 25, timestamps=times, device="cpu")
    assert main(["encode", str(tmp_path / "in.mp4"), str(tmp_path / "o.mp4"), "--quiet", "--fragment", "0.7"]) == 0
    written = (tmp_path / "o.mp4").read_bytes()
    shown, keyframes = demuxed(written)
    assert shown == [time - times[0] for time in times]
    assert len(fragments_of(written)) == len(keyframes) > 4
    gaps = [b - a for a, b in zip(keyframes, keyframes[1:])]
    assert min(gaps) >= 0.7 - 0.02 and max(gaps) < 0.7 + 7 / 60


@pytest.mark.parametrize(
    ("options", "seconds", "rate", "keyint", "least"),
    [
        ({}, 2.0, 25, 50, 50),
        ({}, 2.0, "30000/1001", 60, 60),
        ({}, 20.0, 30, 200, 200),  # three GOPs
        ({"keyint": 25}, 2.0, 25, 25, 25),
        ({"keyint": 25, "min_keyint": 5}, 2.0, 25, 25, 5),
        ({"keyint": "infinite"}, 2.0, 25, 1 << 30, 25),  # fragments are GOPs as they come
    ],
)
def test_distances_of_keyframes(options, seconds, rate, keyint, least):
    values = with_keyframes(options, seconds, rate)
    types = Config.from_options(width=48, height=48, fps=rate, **values).types
    assert (types.keyint, types.min_keyint) == (keyint, least)


def decoded(data):
    """RGB frames by FFmpeg."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(data)) as container:
        return [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]


def ids_of_idr_frames(stream):
    """idr_pic_id of all IDR frames, by the project's parser."""
    sps = pps = None
    ids = []
    for unit in split_byte_stream(stream):
        rbsp = unescape(unit.data[1:])
        if unit.nal_unit_type == NAL_SPS:
            sps = parse_sps(rbsp)
        elif unit.nal_unit_type == NAL_PPS:
            pps = parse_pps(rbsp, sps)
        elif unit.nal_unit_type == NAL_IDR:
            ids.append(parse_slice_header(NAL_IDR, unit.nal_ref_idc, rbsp, {0: sps}, {0: pps})[0].idr_pic_id)
    return ids


@pytest.mark.parametrize("options", ({}, {"tune": "zerolatency"}, {"qp": 24, "bframes": 2}), ids=str)
def test_a_fragment_a_chunk(options):
    """What `write` got is out when it returns: whole frames in right order, keyframes where frames had to wait."""
    target, sizes, clip = Pieces(), (5, 1, 1, 8, 3), moving(18, WIDTH, HEIGHT, cut=9)
    writer, at = h264lite.VideoWriter(target, 30, fragment="chunk", device="cpu", **options), 0
    for n, size in enumerate(sizes, 1):
        writer.write(clip[at : at + size])
        at += size
        assert target.frames() == list(sizes[:n]) and len(target.all) == 1 + n
    writer.close()
    data = b"".join(target.all)
    times, keyframes = demuxed(data)
    assert times == [Fraction(n, 30) for n in range(18)] and target.frames() == list(sizes)
    if options.get("tune") != "zerolatency":
        assert keyframes == [Fraction(n, 30) for n in (0, 5, 6, 7, 15)]
    assert all(abs(a - b).mean() < 6 for a, b in zip(decoded(data), clip, strict=True))
    at = 0
    for size, piece in zip(sizes, target.all[1:]):  # the decoding times of fragments follow one another
        assert struct.unpack(">Q", piece[piece.find(b"tfdt") + 8 :][:8])[0] == at * 1000
        at += size


def test_chunks_of_an_iterable_and_idr_frames_one_after_another(tmp_path):
    """7.4.3: their idr_pic_id differ, also if a session has one frame."""
    clip = moving(6, WIDTH, HEIGHT)
    target = Pieces()
    h264lite.write_video(target, (clip[n : n + 1] for n in range(6)), 30, fragment="chunk", device="cpu")
    assert target.frames() == [1] * 6
    with h264lite.VideoWriter(tmp_path / "o.264", 30, device="cpu") as writer:
        for n in range(6):
            writer.write(clip[n : n + 1 + (n == 3)])
            writer.flush()
    ids = ids_of_idr_frames((tmp_path / "o.264").read_bytes())
    assert len(ids) == 6 and all(a != b for a, b in zip(ids, ids[1:]))
    decoder = h264lite.Decoder()
    assert len([*decoder.decode((tmp_path / "o.264").read_bytes()), *decoder.flush()]) == 7


def test_a_flush_without_waiting_frames_costs_no_keyframe():
    clip = moving(10, WIDTH, HEIGHT)
    streams = []
    for flushes in (False, True):
        target = Pieces()
        with h264lite.VideoWriter(target, 30, fragment=1.0, device="cpu", tune="zerolatency", qp=25) as writer:
            for frame in clip:
                writer.write(frame)
                if flushes:
                    writer.flush()
        streams.append(target)
    assert streams[0].frames() == [10] and streams[1].frames() == [1] * 10
    packets = []
    for target in streams:
        av = pytest.importorskip("av")
        with av.open(io.BytesIO(b"".join(target.all))) as container:
            packets.append([(p.pts, p.dts, bytes(p)) for p in container.demux(video=0) if p.size])
    assert packets[0] == packets[1]


def test_times_after_a_flush_are_right_where_the_last_frame_lasted_longer():
    target, times = Pieces(), [0, 0.1, 0.2, 1.0, 1.01, 3.5]
    with h264lite.VideoWriter(target, 30, fragment=60, device="cpu", tune="zerolatency") as writer:
        for frame, time in zip(moving(6, WIDTH, HEIGHT), times):
            writer.write(frame, timestamps=time)
            writer.flush()
    assert demuxed(b"".join(target.all))[0] == [Fraction(str(time)) for time in times]
    assert target.frames() == [1] * 6


def test_flush_of_files_and_before_the_first_frame(tmp_path):
    pytest.importorskip("av")
    clip = moving(8, WIDTH, HEIGHT)
    for name in ("o.mp4", "o.mkv", "o.264"):
        with h264lite.VideoWriter(tmp_path / name, 25, device="cpu") as writer:
            writer.flush()
            writer.write(clip[:4])
            writer.flush()
            writer.flush()
            writer.write(clip[4:])
        assert len(decoded((tmp_path / name).read_bytes())) == 8
    with pytest.raises(h264lite.Error, match="closed"):
        writer.flush()


@pytest.mark.parametrize("options", ({"vbv_maxrate": 900, "vbv_bufsize": 900}, {"zones": "0,3,q=20"}), ids=str)
def test_what_counts_over_the_stream_cannot_be_flushed_while_frames_wait(options):
    with h264lite.VideoWriter(None, 25, device="cpu", **options) as writer:
        writer.write(moving(4, WIDTH, HEIGHT))
        with pytest.raises(OptionError, match="zerolatency"):
            writer.flush()
    assert len(demuxed(writer.getvalue())[0]) == 4
    with h264lite.VideoWriter(None, 25, device="cpu", tune="zerolatency", **options) as writer:
        writer.write(moving(4, WIDTH, HEIGHT))
        writer.flush()
