"""Every stream decodes, by FFmpeg and by the project's decoder, to exactly the encoder's reconstruction."""

import hashlib
import os
import random
import resource

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.standard.macroblock import MB_TYPE_NAMES, P_SKIP, P_8x8, P_8x16, P_16x8, P_16x16

from ..fuzz import encoder_cases
from ..support import round_trip, sequences
from ..support.scaling_lists import random_lists, to_file

SIDES = (2, 4, 14, 16, 18, 30, 32, 34, 62, 64, 66)
ODD = ((1, 1), (17, 33), (175, 143), (1, 16), (16, 1), (3, 65))
VECTORS = np.zeros(len(MB_TYPE_NAMES), int)  # 8.4.1: MvCnt by mb_type, P_8x8 by its sub-types
VECTORS[[P_SKIP, P_16x16, P_16x8, P_8x16]] = 1, 1, 2, 2
QUICK = ("foreman_176x144_30", "BasketballPass_416x240_50")
ALL = (*QUICK, "foreman_352x288_30", "mobile_352x288_30", "city_704x576_30", "crowd_run_1280x720_50", "driving_1920x1080_30")


def planes(clip: sequences.Clip, count: int, start: int = 0) -> list:
    """Frames of a clip as (y, u, v)."""
    w, h = clip.width, clip.height
    return [
        (
            p[:h],
            p.ravel()[w * h : w * h * 5 // 4].reshape(h // 2, w // 2),
            p.ravel()[w * h * 5 // 4 :].reshape(h // 2, w // 2),
        )
        for p in clip.pictures(count, start)
    ]


@pytest.mark.half
@pytest.mark.parametrize("qp", (0, 12, 27, 40, 51))
@pytest.mark.parametrize(
    "tools",
    (
        {"keyint": 1},
        {"ref": 4, "slices": 4},
        {"keyint": 3, "merange": 8},
        {"merange": 32, "ref": 2},
        {"me": "step", "merange": 24},
        {"me": "hex", "ref": 2},
        {"me": "umh", "merange": 32},
        {"me": "dia", "subme": 2},
        {"subme": 6, "ref": 2},
        {"subme": 6, "ref": 2, "profile": "baseline"},
        {"slices": 2, "profile": "baseline"},
    ),
    ids=str,
)
@pytest.mark.parametrize("name", QUICK)
def test_real_clips(name: str, qp: int, tools: dict) -> None:
    clip = sequences.clip(name)
    round_trip.check(planes(clip, 7), clip.width, clip.height, qp=qp, **tools)


@pytest.mark.parametrize("name", ("city_704x576_30", "driving_1920x1080_30"))
def test_large_clips(name: str) -> None:
    clip = sequences.clip(name)
    round_trip.check(planes(clip, 3), clip.width, clip.height, qp=27, slices=3)


@pytest.mark.parametrize(("level", "limit"), (("3", 32), ("3.1", 16)))
def test_vectors_of_two_macroblocks(level: str, limit: int) -> None:
    """Table A-1: MaxMvsPer2Mb in the decoder's arrays, for any two macroblocks on end, and 4x4 where it is allowed."""
    import h264lite

    frames = planes(sequences.clip("foreman_176x144_30"), 5)
    stream, _ = round_trip.encode(frames, 176, 144, qp=8, level=level, subme=5)
    decoder = h264lite.Decoder(macroblocks=True)
    most, largest = 0, 0
    for frame in [*decoder.decode(stream), *decoder.flush()][1:]:
        state = frame.macroblocks
        subs = np.array((1, 2, 2, 4))[state.sub_type].sum(1)
        counts = np.where(state.mb_type == P_8x8, subs, VECTORS[state.mb_type])
        assert counts.any()
        most = max(most, int((counts[1:] + counts[:-1]).max()))
        largest = max(largest, int(counts.max()))
    assert most <= limit and (largest > 8) == (limit == 32), (most, largest)


@pytest.mark.slow
@pytest.mark.parametrize("qp", (12, 27, 40, 51))
@pytest.mark.parametrize("name", ALL)
def test_all_clips(name: str, qp: int) -> None:
    clip = sequences.clip(name)
    count = 14 if clip.width < 700 else 4 if clip.width < 1000 else 2
    frames = planes(clip, min(count, clip.frames))
    for keyint in (1, 12, 250):
        for ref in (1, 4):
            for slices in (1, 4):
                for merange in (8, 16, 32):
                    if keyint == 1 and (ref, merange) != (1, 16):
                        continue  # intra frames know neither
                    round_trip.check(
                        frames, clip.width, clip.height, qp=qp, keyint=keyint, ref=ref, slices=slices, merange=merange
                    )


@pytest.mark.parametrize("options", [
    pytest.param({}, id="medium"), pytest.param({"profile": "baseline"}, marks=pytest.mark.slow, id="baseline"),
    pytest.param({"preset": "slower", "qp": 18}, marks=pytest.mark.slow, id="slower"),
    pytest.param({"no_cabac": True, "qp": 30}, marks=pytest.mark.slow, id="High with CAVLC"),
])  # fmt: skip
@pytest.mark.parametrize("width", SIDES)
def test_sizes(width: int, options: dict) -> None:
    """121 sizes; the default is High profile."""
    for height in SIDES:
        clip = round_trip.noise_clip(width, height, 3, width + height)
        round_trip.check(clip, width, height, **{"qp": 24, **options})


@pytest.mark.parametrize("profile", ("baseline", "high"))
@pytest.mark.parametrize(("width", "height"), ODD)
def test_odd_sizes(width: int, height: int, profile: str) -> None:
    clip = round_trip.noise_clip(width, height, 3, 1)
    stream = round_trip.check(clip, width, height, qp=20, profile=profile)
    y = round_trip.ffmpeg_frames(stream)[0][0]
    assert y.shape == (height + height % 2, width + width % 2)


@pytest.mark.parametrize("sar", ("18:1", "1:20", "65535:65534"))
def test_sample_aspect_ratios_that_are_taken_play(sar: str) -> None:
    """FFmpeg shows IDR pictures alone where a side on the display is shorter than a sample."""
    stream = round_trip.check(round_trip.noise_clip(19, 17, 3, 1), 19, 17, qp=30, sar=sar)
    assert len(round_trip.ffmpeg_frames(stream)) == 3


@pytest.mark.parametrize(("width", "height"), ((4096, 16), (16, 4096)))
def test_long_sides(width: int, height: int) -> None:
    round_trip.check(round_trip.noise_clip(width, height, 2, 5), width, height, qp=30)


@pytest.mark.parametrize("kind", ("black", "white", "checkerboard", "noise", "binary noise"))
@pytest.mark.parametrize("qp", (0, 1, 6, 27, 51))
def test_extreme_content(kind: str, qp: int) -> None:
    rng = np.random.default_rng(7)
    make = {
        "black": lambda shape: np.zeros(shape, np.uint8),
        "white": lambda shape: np.full(shape, 255, np.uint8),
        "checkerboard": lambda shape: (np.indices(shape).sum(0) % 2 * 255).astype(np.uint8),
        "noise": lambda shape: rng.integers(0, 256, shape).astype(np.uint8),
        "binary noise": lambda shape: (rng.integers(0, 2, shape) * 255).astype(np.uint8),
    }[kind]
    clip = [(make((48, 64)), make((24, 32)), make((24, 32))) for _ in range(3)]
    round_trip.check(clip, 64, 48, qp=qp)


def test_residuals_beyond_16_bits() -> None:
    """Binary noise at QP 51: rounded levels of a block say a residual above 511, which decoders wrap."""
    case = encoder_cases.Case(70, 56, 1, "two_values", 3902835259, {}, True)
    round_trip.check(encoder_cases.clip(case), case.width, case.height, qp=51, ipratio=1)


def test_same_bytes_for_any_number_of_threads() -> None:
    clip = round_trip.noise_clip(208, 176, 9, 3)
    digests = {
        threads: hashlib.sha256(
            round_trip.encode(clip, 208, 176, qp=25, ref=2, slices=2, keyint=5, threads=threads)[0]
        ).hexdigest()
        for threads in (1, 2, 4, 7)
    }
    assert len(set(digests.values())) == 1, digests


def test_thousands_of_frames() -> None:
    """frame_num wraps many times, the output is complete, memory stays flat."""
    still = round_trip.noise_clip(32, 32, 4, 11)
    import h264lite

    stream, expected, resident = bytearray(), [], []
    with h264lite.Encoder(32, 32, 30, keyint=100000, qp=30, ref=2, threads=1, keep_reconstruction=True, bframes=0) as encoder:
        for n in range(3000):
            for packet in encoder.encode(tuple(still[n % 4])):
                stream += packet.data
                expected.append(packet.reconstruction)
            if n in (1000, 2999):
                resident.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - len(stream) // 1024 - 2 * n)
        for packet in encoder.flush():
            stream += packet.data
            expected.append(packet.reconstruction)
    assert len(expected) == 3000
    assert resident[1] - resident[0] < 10_000, resident  # kilobytes
    round_trip.assert_same(round_trip.ffmpeg_frames(bytes(stream)), expected, "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(bytes(stream)), expected, "own decoder")


def random_command(rng: random.Random) -> list[str]:
    """Options of one random command line."""
    words = ["--qp", str(rng.choice((0, 3, 10, 18, 24, 28, 33, 40, 47, 51)))]
    maybe = {
        "--keyint": lambda: str(rng.choice((1, 2, 3, 5, 250))),
        "--ref": lambda: str(rng.choice((1, 2, 3, 5, 16))),
        "--slices": lambda: str(rng.randint(1, 3)),
        "--merange": lambda: str(rng.choice((4, 5, 8, 11, 16, 24, 33, 64))),
        "--subme": lambda: str(rng.randint(0, 10)),
        "--psy-rd": lambda: rng.choice(("1", "0.4:0", "10")),
        "--partitions": lambda: rng.choice(("none", "all", "p8x8", "p8x8,p4x4", "i4x4", "i8x8", "p8x8,i8x8,i4x4")),
        "--chroma-qp-offset": lambda: str(rng.randint(-12, 12)),
        "--threads": lambda: str(rng.randint(1, 4)),
        "--ipratio": lambda: rng.choice(("1", "1.4", "2")),
        "--preset": lambda: rng.choice(("ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower")),
        "--fps": lambda: rng.choice(("25", "29.97", "30000/1001")),
        "--colorprim": lambda: "bt709",
        "--range": lambda: rng.choice(("tv", "pc")),
        "--sar": lambda: "16:11",
        "--me": lambda: rng.choice(("esa", "step", "dia", "hex", "umh")),
        "--trellis": lambda: rng.choice(("0", "1")),
        "--profile": lambda: rng.choice(("baseline", "baseline", "main", "high")),
        "--deadzone-inter": lambda: str(rng.randint(0, 32)),
        "--deadzone-intra": lambda: str(rng.randint(0, 32)),
    }
    for option, value in maybe.items():
        if rng.random() < 0.4:
            words += [option, value()]
    if "step" in words and rng.random() < 0.7:
        words += ["--step-grid", rng.choice(("3", "7", "13"))]
    kind = rng.random()
    if kind < 0.2:
        words.append("--no-deblock")
    elif kind < 0.6:
        words += ["--deblock", f"{rng.randint(-6, 6)}:{rng.randint(-6, 6)}"]
    if "baseline" not in words and rng.random() < 0.4:
        words += ["--weightp", rng.choice("12")]
    if "high" in words and rng.random() < 0.5:
        words += ["--cqm", rng.choice(("jvt", "random"))]
    words += [switch for switch in ("--deblock-within-slices", "--no-cabac", "--no-8x8dct") if rng.random() < 0.3]
    return words


SEED = int(os.environ.get("H264LITE_SEED", "20261121"))


@pytest.mark.parametrize("part", range(6))
def test_random_command_lines(part: int, tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(SEED + part)
    for number in range(10):
        width, height = rng.choice(((176, 144), (64, 48), (130, 98), (33, 65), (16, 80)))
        clip = round_trip.noise_clip(width, height, rng.randint(2, 6), rng.randrange(1 << 30))
        source, stream, dump = (tmp_path / f"{number}_{width}x{height}{end}" for end in (".yuv", ".264", "_rec.yuv"))
        source.write_bytes(b"".join(plane.tobytes() for frame in clip for plane in frame))
        lists = str(to_file(random_lists(np.random.default_rng(number), 2, 99), tmp_path / f"{number}.cfg"))
        words = [lists if word == "random" else word for word in random_command(rng)]
        command = ["encode", str(source), str(stream), "--dump-yuv", str(dump), "--quiet", *words]
        print(f"H264LITE_SEED={SEED}, part {part}:", *command)
        assert main(command) == 0
        data = stream.read_bytes()
        frames = round_trip.ffmpeg_frames(data)
        assert b"".join(plane.tobytes() for frame in frames for plane in frame) == dump.read_bytes()
        round_trip.assert_same(round_trip.own_frames(data), frames, "own decoder")
