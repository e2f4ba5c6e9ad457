"""Streams of libx264 over its options: the decoder returns FFmpeg's frames, tool by tool and in random combinations."""

import os
import random

import pytest

from ..support import round_trip, x264_streams

SEED = int(os.environ.get("H264LITE_SEED", "20261121"))
B = {"bframes": 3, "b_adapt": 0, "ref": 3}
CASES: dict[str, dict] = {
    "baseline": {"profile": "baseline", "ref": 2},
    "baseline, one vector a macroblock": {"profile": "baseline", "partitions": "none"},
    "baseline, every partition": {"profile": "baseline", "partitions": "all", "qp": 18},
    "cavlc": {"cabac": 0, **B},
    "cavlc, 8x8 transform, temporal": {"cabac": 0, "direct": "temporal", "partitions": "all", **B},
    "main": {"profile": "main", **B},
    "cabac, P only": {"bframes": 0},
    "spatial direct": {"direct": "spatial", **B},
    "temporal direct": {"direct": "temporal", **B},
    "no direct": {"direct": "none", **B},
    "B slices as references": {"b_pyramid": "strict", **B},
    "pyramid, open GOP": {"b_pyramid": "normal", "open_gop": 1, "keyint": 9, **B},
    "explicit weights": {"weightp": 2, "bframes": 0, "ref": 4},
    "explicit weights of one reference": {"weightp": 1, **B},
    "implicit weights": {"weightb": 1, **B},
    "no weights": {"weightb": 0, "weightp": 0, **B},
    "no 8x8 transform": {"8x8dct": 0, **B},
    "only 8x8 intra": {"keyint": 1, "partitions": "i8x8"},
    "only 4x4 intra": {"keyint": 1, "partitions": "i4x4", "8x8dct": 0},
    "scaling lists": {"cqm": "jvt", **B},
    "16 references": {"ref": 16, "bframes": 0, "qp": 24},
    "8 references, B": {"ref": 8, "bframes": 5, "b_adapt": 2},
    "slices": {"slices": 4, **B},
    "slices of few bytes": {"slice_max_size": 200, "bframes": 0},
    "slices of 5 macroblocks": {"slice_max_mbs": 5, **B},
    "slices of a few bits": {"slice_max_mbs": 2, "crf": 45, **B},
    "intra refresh": {"intra_refresh": 1, "keyint": 6, "bframes": 0},
    "constrained intra": {"constrained_intra": 1, **B},
    "key frames every 4": {"keyint": 4, "min_keyint": 1, "scenecut": 0, **B},
    "scene cuts": {"keyint": 250, "scenecut": 80, **B},
    "no deblocking": {"no_deblock": 1, **B},
    "strong deblocking": {"deblock": "6,6", "qp": 40, **B},
    "weak deblocking": {"deblock": "-6,-6", **B},
    "chroma QP offset": {"chroma_qp_offset": -12, "qp": 30, **B},
    "qp 0 to 1": {"qp": 1, "bframes": 0},
    "qp 51": {"qp": 51, **B},
    "QP of each macroblock": {"crf": 26, "aq_mode": 2, "aq_strength": 3, **B},
    "a bit rate": {"bitrate": 60, "vbv_maxrate": 60, "vbv_bufsize": 30, **B},
    "delimiters, HRD": {"aud": 1, "nal_hrd": "vbr", "bitrate": 80, "vbv_maxrate": 90, "vbv_bufsize": 90, **B},
    "fast": {"preset": "ultrafast", "bframes": 0},
    "placebo": {"preset": "placebo", "bframes": 5},
    "two fields' worth of timing": {"pic_struct": 1, "bframes": 2},
}


def compare(clip: list[round_trip.Planes], **options: object) -> None:
    """Both decoders on the stream that x264 makes of the clip."""
    stream = x264_streams.encode(clip, **options)
    expected = round_trip.ffmpeg_frames(stream)
    assert len(expected) == len(clip)
    round_trip.assert_same(round_trip.own_frames(stream), expected, "own decoder")


@pytest.mark.parametrize("name", CASES)
def test_tools(name: str) -> None:
    compare(x264_streams.clip(), **CASES[name])


@pytest.mark.parametrize(("width", "height"), [(2, 2), (18, 16), (34, 66), (50, 34), (174, 142), (16, 130), (256, 16)])
def test_sizes_and_cropping(width: int, height: int) -> None:
    compare(round_trip.noise_clip(width, height, 7, width), **B)


def random_options(rng: random.Random) -> dict[str, object]:
    """Options of x264 that go together."""
    options: dict[str, object] = {"qp": rng.randint(1, 51)}
    maybe = {
        "cabac": (0,), "bframes": (0, 1, 2, 5), "b_adapt": (0, 2), "b_pyramid": ("none", "strict", "normal"),
        "direct": ("none", "spatial", "temporal", "auto"), "weightp": (0, 1, 2), "weightb": (0, 1), "8x8dct": (0,),
        "ref": (1, 2, 5, 16), "slices": (2, 3), "slice_max_mbs": (3, 7), "keyint": (1, 2, 5, 12), "open_gop": (1,),
        "scenecut": (0, 60), "deblock": ("-3,2", "5,-4"), "no_deblock": (1,), "chroma_qp_offset": (-7, 9),
        "partitions": ("none", "all", "p8x8,i4x4", "b8x8,i8x8"), "trellis": (0, 2), "subme": (1, 7, 10), "cqm": ("jvt",),
        "constrained_intra": (1,), "aq_mode": (1, 3), "me": ("dia", "umh"), "aud": (1,),
    }  # fmt: skip
    for name, values in maybe.items():
        if rng.random() < 0.35:
            options[name] = rng.choice(values)
    if rng.random() < 0.3:
        options["crf"] = rng.randint(10, 45)
    return options


def random_streams(seed: int, count: int) -> None:
    """Streams of random options and sizes."""
    rng, refused = random.Random(seed), 0
    for _ in range(count):
        width, height = 2 * rng.randint(8, 60), 2 * rng.randint(8, 50)
        options = random_options(rng)
        options["profile"] = rng.choice(("main", "high", "high")) if options.get("cqm") is None else "high"
        print(f"H264LITE_SEED={SEED}: {width}x{height}", options)
        clip = round_trip.noise_clip(width, height, rng.randint(3, 14), rng.randrange(1 << 30))
        try:
            compare(clip, **options)
        except x264_streams.Refused as error:
            print(error)
            refused += 1
    assert refused <= count // 10


@pytest.mark.parametrize("part", range(3))
def test_random_options(part: int) -> None:
    random_streams(SEED + part, 8)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_options(part: int) -> None:
    random_streams(SEED + 100 + part, 60)
