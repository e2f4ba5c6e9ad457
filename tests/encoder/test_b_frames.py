"""B frames: sizes, contents, slices, GOPs, wraps of numbers, decoded as reconstructed; what is told of such streams."""

import csv
import hashlib
import io
import json
import shutil
import subprocess
from fractions import Fraction
from itertools import product

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.statistics import psnr, ssim
from h264lite.standard.bits import NAL_SPS, split_byte_stream
from h264lite.standard.syntax import parse_sps

from ..fuzz.encoder_cases import CONTENTS, Case, check_times
from ..fuzz.encoder_cases import clip as synthetic_clip
from ..support import round_trip, sequences
from .test_adaptive_types import HEIGHT as SCENE_HEIGHT
from .test_adaptive_types import WIDTH as SCENE_WIDTH
from .test_adaptive_types import faded, pan
from .test_baseline import clip as whole_clip
from .test_streams import SIDES, planes

ALL_B = {"b_adapt": 0, "scenecut": 0, "device": "cpu", "threads": 1}  # as many B frames as there may be
TOOLS = (
    {"bframes": 3}, {"bframes": 2, "no_cabac": True, "subme": 4, "weightp": 2, "slices": 2},
    {"bframes": 7, "b_pyramid": "dyadic", "subme": 7, "ref": 3, "no_weightb": True}, {"bframes": 1, "subme": 2, "me": "step"},
    {"bframes": 2, "no_cabac": True, "no_8x8dct": True}, {"bframes": 3, "subme": 9, "ref": 2, "cqm": "jvt", "psy_rd": 1},
)  # fmt: skip
GOLDEN = {
    "": "e3c58242a4c7cbe0",
    "bframes=1 preset=ultrafast": "313eb6fc4b9eb904",
    "bframes=3 preset=veryfast b_pyramid=none": "7418efb9ec27ac41",
    "bframes=3 no_cabac=1 slices=2": "6ec9bc5d8b8a8eef",
    "bframes=7 b_pyramid=dyadic preset=slower subme=7": "f7282916bc443697",
    "bframes=7 b_pyramid=dyadic preset=slower": "0e131ea3e4195361",
    "bframes=2 b_adapt=2 weightp=2 profile=main": "51a0214e1fb8e3d8",
    "bframes=2 trellis=0 no_weightb=1 psy_rd=1": "46ad321e32efb95a",
    "bframes=3 qp=0 cqm=jvt keyint=4": "5787d83d991b87f5",
    "bframes=3 qp=47 ref=3 deblock=1:-1": "63641bc34a64ab62",
}  # fmt: skip


def packets_of(clip, fps=30, **options):
    """All packets, whose times are right and which both decoders show as reconstructed."""
    height, width = clip[0][0].shape
    with h264lite.Encoder(width, height, fps, keep_reconstruction=True, **options) as encoder:
        packets = round_trip.packets_of(encoder, clip)
    check_times(packets, len(clip), encoder.config.coding.max_num_reorder_frames)
    stream = b"".join(packet.data for packet in packets)
    shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")
    return packets


def types(packets):
    """A letter a frame in display order, K for IDR frames."""
    ordered = sorted(packets, key=lambda packet: packet.pts)
    return "".join("K" if packet.is_keyframe else packet.frame_type for packet in ordered)


def b_frames(clip, **options):
    packets = packets_of(clip, **{**ALL_B, **options})
    assert "B" in types(packets) or len(clip) < 3
    return packets


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (16, 16), (17, 33), (66, 14), (3, 65)], ids=str)
def test_sizes(size):
    for n, tools in enumerate(TOOLS):
        tools = {**tools, "slices": min(tools.get("slices", 1), -(-size[1] // 16))}
        b_frames(round_trip.noise_clip(*size, 5, n), qp=24, **tools)


@pytest.mark.slow
@pytest.mark.parametrize("tools", TOOLS, ids=str)
@pytest.mark.parametrize("width", SIDES)
def test_all_sizes(width, tools):
    for height in SIDES:
        slices = min(tools.get("slices", 1), -(-height // 16))
        b_frames(round_trip.noise_clip(width, height, 5, width + height), **{"qp": 24, **tools, "slices": slices})


@pytest.mark.parametrize("qp", (0, 10, 51))
@pytest.mark.parametrize("content", sorted(CONTENTS))
def test_contents(content, qp):
    clip = synthetic_clip(Case(50, 34, 5, content, qp, {}, True))
    for tools in ({"bframes": 3}, {"bframes": 1, "no_cabac": True, "subme": 2}):
        b_frames(clip, qp=qp, **tools)


@pytest.mark.parametrize("no_cabac", (False, True))
def test_derived_motion_beside_i_pcm(no_cabac):
    """A neighbour that becomes I_PCM after the mode decision has no motion: what derives from it is said explicitly."""
    for seed in (2812015535, *range(5)):
        clip = synthetic_clip(Case(37, 38, 4, "checkers", seed, {}, True))
        packets_of(clip, qp=1, ipratio=0.25, merange=60, profile="main", device="cpu")
    for seed in range(6):
        clip = synthetic_clip(Case(82, 66, 6, "checkers", seed, {}, True))
        draw = np.random.default_rng(seed)
        for frame in clip:  # few macroblocks that no prediction serves
            for _ in range(4):
                y, x = 16 * draw.integers(4), 16 * draw.integers(5)
                frame[0][y : y + 16, x : x + 16] = draw.integers(0, 256, (16, 16))
        b_frames(clip, qp=10, pbratio=0.25, bframes=5, subme=4, no_cabac=no_cabac)


@pytest.mark.parametrize("no_cabac", (False, True))
@pytest.mark.parametrize("slices", range(1, 9))
def test_slices(slices, no_cabac):
    clip = round_trip.noise_clip(34, 128, 5, slices)
    b_frames(clip, qp=27, bframes=3, slices=slices, no_cabac=no_cabac)


@pytest.mark.parametrize("keyint", (1, 2, 5, "infinite"))
def test_short_clips_and_gops(keyint):
    clip = round_trip.noise_clip(34, 34, 11, 5)
    for frames, (bframes, pyramid) in product((1, 2, 3, 4, 11), ((1, "none"), (3, "normal"), (16, "dyadic"))):
        packets = packets_of(clip[:frames], qp=30, keyint=keyint, bframes=bframes, b_pyramid=pyramid, **ALL_B)
        letters, length = types(packets), frames if keyint == "infinite" else keyint
        gops = [letters[n : n + length] for n in range(0, frames, length)]
        assert all(gop == "K" or (gop[0] == "K" and gop[-1] == "P" and "K" not in gop[1:]) for gop in gops)
        assert all("B" * (bframes + 1) not in gop and ("B" in gop) == (len(gop) > 2) for gop in gops)


@pytest.mark.parametrize("qp", (12, 30))
def test_a_real_clip(qp):
    clip = sequences.clip("foreman_176x144_30")
    b_frames(planes(clip, 6), qp=qp, bframes=3, b_adapt=1)
    for tools in ({"me": "dia", "subme": 2}, {"me": "hex", "ref": 2}, {"me": "umh", "merange": 24}):
        b_frames(planes(clip, 6), qp=qp, bframes=2, **tools)


@pytest.mark.slow
@pytest.mark.parametrize("qp", (10, 27, 45))
@pytest.mark.parametrize("tools", TOOLS, ids=str)
@pytest.mark.parametrize("name", ("foreman_352x288_30", "mobile_352x288_30", "BasketballPass_416x240_50", "city_704x576_30"))
def test_real_clips(name, tools, qp):
    clip = sequences.clip(name)
    b_frames(planes(clip, 9 if clip.width < 700 else 5), qp=qp, **tools)


@pytest.mark.parametrize("options", GOLDEN, ids=lambda options: options or "medium")
def test_bytes(options):
    words = {"bframes": "3", "qp": "24", "b_adapt": "0", "scenecut": "0", "pbratio": "1.3"}
    words |= dict(word.split("=") for word in options.split())
    switches = {name: words.pop(name) == "1" for name in ("no_cabac", "no_weightb") if name in words}
    packets = packets_of(whole_clip(7), threads=2, device="cpu", **words, **switches)
    digest = hashlib.sha256(b"".join(packet.data for packet in packets)).hexdigest()[:16]
    assert digest == GOLDEN[options]


def test_same_bytes_for_any_threads_and_gops():
    clip = round_trip.noise_clip(50, 66, 14, 9)
    for tools in ({"b_adapt": 0}, {"b_adapt": 2, "weightp": 1, "slices": 2}):
        options = {"qp": 26, "keyint": 5, "bframes": 3, "scenecut": 0, "device": "cpu", **tools}
        expected = b"".join(packet.data for packet in packets_of(clip, **options, threads=1))
        for threads, gops in product((1, 2, 3), (1, 2, 4)):
            stream = round_trip.encode(clip, 50, 66, **options, threads=threads, gops=gops)[0]
            assert stream == expected, (threads, gops)


def _long(frames, **options):
    """A stream of tiny frames in one GOP. Returns how often pic_order_cnt_lsb and frame_num wrap."""
    still = round_trip.noise_clip(32, 16, 5, 11)
    clip = [still[n * n % 5] for n in range(frames)]
    packets = b_frames(clip, qp=32, keyint="infinite", subme=2, **options)
    (unit,) = [unit for unit in split_byte_stream(packets[0].data) if unit.nal_unit_type == NAL_SPS]
    parsed = parse_sps(unit.rbsp())
    assert parsed.pic_order_cnt_type == 0 and "K" not in types(packets)[1:]
    most = 2 * frames >> parsed.log2_max_pic_order_cnt_lsb_minus4 + 4
    references = sum(any(unit.nal_ref_idc for unit in split_byte_stream(packet.data)) for packet in packets)
    return most, references >> parsed.log2_max_frame_num_minus4 + 4


@pytest.mark.parametrize("options", ({"bframes": 3}, {"bframes": 16, "b_pyramid": "dyadic"}), ids=str)
def test_numbers_wrap(options):
    orders, numbers = _long(1300, **options)
    assert orders >= 2 and numbers >= 2, (orders, numbers)


@pytest.mark.slow
@pytest.mark.parametrize("options", ({"bframes": 2}, {"bframes": 5, "b_pyramid": "none", "b_adapt": 1}), ids=str)
def test_ten_minutes(options):
    _long(18_000, **options)


def _with_chroma(lumas):
    return [(np.ascontiguousarray(y), np.ascontiguousarray(y[::2, ::2]), np.ascontiguousarray(y[1::2, ::2])) for y in lumas]


@pytest.mark.parametrize("b_adapt", (1, 2))
def test_cuts(b_adapt):
    """Scenes of 9 frames: I frames, from min_keyint on IDR frames; B frames never reach across."""
    lumas = [luma for number in range(3) for luma in pan(number, 9)]
    packets = packets_of(_with_chroma(lumas), qp=30, bframes=3, b_adapt=b_adapt, min_keyint=12, device="cpu", subme=2)
    letters = types(packets)
    assert [n for n, letter in enumerate(letters) if letter in "KI"] == [0, 9, 18], letters
    assert letters[9] == "I" and letters[18] == "K" and letters[17] != "B" and letters[8] != "B", letters


@pytest.mark.parametrize("b_adapt", (0, 1, 2))
def test_flashes_and_fades(b_adapt):
    """No scene cut, and the streams are right with weights of both kinds."""
    lumas = pan(1, 12)
    lumas[5] = np.full((SCENE_HEIGHT, SCENE_WIDTH), 250, np.uint8)
    for clip in (lumas, faded(pan(2, 12), 3, 6)):
        packets = packets_of(
            _with_chroma(clip), qp=28, bframes=3, b_adapt=b_adapt, weightp=2, device="cpu", subme=2, keyint=250
        )
        assert types(packets).count("K") == 1 and "I" not in types(packets), types(packets)


def _encoded(tmp_path, clip, name, *words):
    """The command on a raw file. Returns the output."""
    source, out = round_trip.write_raw(clip, tmp_path), tmp_path / name
    assert main(["encode", str(source), str(out), "--device=cpu", "--quiet", "--qp=28", "--bframes=3", "--b-adapt=0",
                 "--scenecut=0", *words]) == 0  # fmt: skip
    return out


def test_reports(tmp_path, capsys):
    """decode and info on such a stream; each row and the summary against what FFmpeg shows."""
    clip, tables = whole_clip(8), [tmp_path / name for name in ("rows.csv", "sum.json", "dump.yuv", "own.yuv")]
    rows, summary, dump, decoded_file = tables
    out = _encoded(tmp_path, clip, "o.264", "--ssim", f"--csv={rows}", f"--json={summary}", f"--dump-yuv={dump}", "--fps=30")
    shown = round_trip.ffmpeg_frames(out.read_bytes())
    assert dump.read_bytes() == b"".join(plane.tobytes() for frame in shown for plane in frame)
    assert main(["decode", str(out), str(decoded_file)]) == 0 and decoded_file.read_bytes() == dump.read_bytes()
    assert "8 frames of 96x80 decoded" in capsys.readouterr().err
    assert main(["info", str(out)]) == 0
    said = capsys.readouterr().out
    for text in ("B        5 pictures", "2 frames reordered", "implicit weights in 5 of 8 slices"):
        assert text in said, said
    assert main(["info", "--nal", str(out)]) == 0
    assert capsys.readouterr().out.count(" B, picture ") == 5
    with open(rows, newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in table] == [0, 4, 2, 1, 3, 7, 5, 6]
    assert "".join(row["type"] for row in table) == "IPBBBPBB"
    for row in table:
        source, decoded = clip[int(row["frame"])], shown[int(row["frame"])]
        errors = [int(((a.astype(int) - b) ** 2).sum()) for a, b in zip(source, decoded)]
        wanted = [psnr(error, plane.size) for error, plane in zip(errors, source)]
        assert [float(row[f"psnr_{name}"]) for name in "yuv"] == pytest.approx(wanted, abs=1e-4)
        assert float(row["psnr"]) == pytest.approx(psnr(sum(errors), sum(plane.size for plane in source)), abs=1e-4)
        assert float(row["ssim"]) == pytest.approx(ssim(source[0], decoded[0]), abs=1e-6)
    told = json.loads(summary.read_text())
    assert {kind: told[kind]["frames"] for kind in "IPB"} == {"I": 1, "P": 2, "B": 5}


@pytest.mark.parametrize("fps", ("25", "30000/1001"))
@pytest.mark.parametrize("name", ("o.mp4", "o.mkv", "o.mov"))
@pytest.mark.parametrize("pyramid", ("none", "normal"))
def test_containers(tmp_path, name, fps, pyramid):
    """Times as PyAV and ffprobe read them: each frame at its place, decoding times before, no gap."""
    av = pytest.importorskip("av")
    clip, rate = whole_clip(9), Fraction(fps)
    out = _encoded(tmp_path, clip, name, f"--fps={fps}", "--keyint=5", f"--b-pyramid={pyramid}")
    stream = packets_of(clip, rate, qp=28, bframes=3, keyint=5, b_pyramid=pyramid, **ALL_B)
    with av.open(str(out)) as container:
        video = container.streams.video[0]
        packets = [packet for packet in container.demux(video) if packet.size]
        unit = video.time_base
        assert video.average_rate == rate
        near = 0 if name != "o.mkv" else Fraction(1, 1000)  # Matroska counts milliseconds
        for packet, expected in zip(packets, stream, strict=True):
            assert abs(packet.pts * unit - expected.pts / rate) <= near
            assert packet.is_keyframe == expected.is_keyframe and abs(packet.duration * unit - 1 / rate) <= near
            if name != "o.mkv":  # which has no decoding times
                assert packet.dts * unit == expected.dts / rate
    with av.open(str(out)) as container:
        frames = list(container.decode(video=0))
    assert len(frames) == len(clip)
    assert all(abs(frame.time - n / rate) <= near + 1e-6 for n, frame in enumerate(frames))
    if shutil.which("ffprobe"):
        words = ["ffprobe", "-v", "warning", "-count_frames", "-show_streams", "-of", "json", str(out)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        (told,) = json.loads(done.stdout)["streams"]
        assert not done.stderr and told["nb_read_frames"] == "9" and told["has_b_frames"] == 1 + (pyramid == "normal")
        assert Fraction(told["avg_frame_rate"]) == rate


@pytest.mark.parametrize("pyramid", ("none", "dyadic"))
def test_fragments(pyramid):
    """Of whole GOPs: each begins with a keyframe, and its frames are all shown before the next."""
    av = pytest.importorskip("av")
    target = io.BytesIO()
    frames = [tuple(frame) for frame in whole_clip(11)]
    h264lite.write_video(target, frames, 25, fragment=0.1, qp=30, bframes=3, b_pyramid=pyramid, keyint=4, **ALL_B)
    with av.open(io.BytesIO(target.getvalue())) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        assert sorted(packet.pts * packet.time_base * 25 for packet in packets) == list(range(11))
        assert [packet.pts * packet.time_base * 25 for packet in packets if packet.is_keyframe] == [0, 4, 8]
