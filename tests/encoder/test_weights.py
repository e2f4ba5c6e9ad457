"""Weighted prediction of P frames: weights from the source, streams of fades and flashes by two decoders, on all devices."""

import numpy as np
import pytest
from h264lite import Encoder
from h264lite.cuda_src.runtime.device import Device
from h264lite.decoder.info import StreamInfo
from h264lite.encoder.decisions.weights import entries, frame_sums
from h264lite.encoder.errors import OptionError
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frame_spec import UNWEIGHTED, Weights

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..support import round_trip, sequences
from .test_cuda_frames import encode as encode_frames
from .test_cuda_frames import upload
from .test_cuda_streams import compare
from .test_hybrid_streams import SPLITS, config
from .test_hybrid_streams import compare as compare_splits
from .test_hybrid_streams import encode as encode_by


def texture(height, width, seed=1):
    """A smooth plane of the whole range."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(16, 236, (height // 8 + 2, width // 8 + 2)).astype(float)
    y, x = np.mgrid[:height, :width] / 8
    i, j, fy, fx = y.astype(int), x.astype(int), y % 1, x % 1
    rows = [coarse[i + k, j] * (1 - fx) + coarse[i + k, j + 1] * fx for k in (0, 1)]
    return rows[0] * (1 - fy) + rows[1] * fy


def faded(planes, share, to=16):
    """Planes mixed with a colour: 1 is the planes, 0 the colour."""
    return tuple(np.clip(share * p + (1 - share) * c + 0.5, 0, 255).astype(np.uint8) for p, c in zip(planes, (to, 128, 128)))


def fade_clip(width, height, shares, to=16):
    """A moving texture, frame k with the share shares[k]."""
    base = [
        texture(h + 16, w + 16, k) for k, (h, w) in enumerate(((height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]))
    ]
    sizes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    return [
        faded([p[k // 2 : k // 2 + h, k : k + w] for p, (h, w) in zip(base, sizes)], share, to)
        for k, share in enumerate(shares)
    ]


def chosen(now, before, repeats=True):
    """Weights of the entries for a frame by its planes and those of its reference."""
    return entries(frame_sums(now), frame_sums(before), now[0].shape[::-1], repeats)


@pytest.mark.parametrize(("share", "to"), [(0.8, 16), (0.5, 235), (0.93, 16), (0.2, 128), (0.0, 16)])
def test_weights_of_a_fade(share, to):
    before, after = ([plane[:n, :m] for plane, (n, m) in zip(faded(planes, mixed, to), ((144, 176), *2 * [(72, 88)]))]
                     for planes in [[texture(144, 176, k) for k in range(3)]] for mixed in (1, share))  # fmt: skip
    (entry,) = chosen(after, before, False)
    assert entry.flags == 3
    colours = (to, 128, 128)
    terms = entry[1:4], (entry.chroma_log2, *entry[5:7]), (entry.chroma_log2, *entry[7:9])
    for (log2, weight, offset), colour in zip(terms, colours):
        assert abs(weight / 2**log2 - share) < 0.02 and -128 <= weight <= 127 and 0 <= log2 <= 7
        assert abs(offset - max(-128, min(127, round((1 - share) * colour)))) <= 3


def test_no_weights_without_a_fade():
    still = texture(144, 176)
    for other in (still, np.roll(still, 7, 1), np.roll(still, -5, 0)):
        now, before = ([np.clip(plane[:n, :m], 0, 255).astype(np.uint8) for n, m in ((144, 176), *2 * [(72, 88)])]
                       for plane in (other, still))  # fmt: skip
        assert chosen(now, before, False) == ()
    flat, brighter = ([np.full(shape, luma, np.uint8) for shape in ((16, 16), (8, 8), (8, 8))] for luma in (90, 120))
    assert chosen(flat, flat, True) == ()
    brighter[1:] = flat[1:]
    assert chosen(brighter, flat, False) == (Weights(1, 0, 1, 30, 0, 1, 0, 1, 0),)


def test_chroma_has_one_denominator():
    """A weight of one beside a finer one is said at a denominator that holds both."""
    luma, cb, other = np.full((32, 32), 90, np.uint8), texture(16, 16), texture(16, 16, 3)
    before, now = ([luma, *(np.clip(plane, 0, 255).astype(np.uint8) for plane in (first, other))]
                   for first in (cb, 0.6 * cb + 50))  # fmt: skip
    (entry,) = chosen(now, before, False)
    assert entry.flags == 2 and entry.chroma_log2 == 6
    assert abs(entry.cb_weight - 0.6 * 64) <= 1 and (entry.cr_weight, entry.cr_offset) == (64, 0)


SHARES = {"fade": [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.0, 0.3, 0.6, 1], "flash": [0.6, 0.6, 1, 0.6, 0.6],
          "caption": [1, 0.8, 0.6, 0.4, 0.2, 0.5, 1], "light": [1, 0.6, 0.6, 1, 1, 0.6]}  # fmt: skip
LOCAL = "caption", "light"  # brightness changes in a part of the frame


def clip_of(kind, width, height, frames=None):
    """Frames of a fade, a flash, a fade below a caption, a light on one side."""
    shares = SHARES[kind][:frames]
    clip, still = fade_clip(width, height, shares), fade_clip(width, height, [1] * len(shares))
    for planes, others in zip(clip, still if kind in LOCAL else ()):
        for plane, other in zip(planes, others):
            if kind == "caption":
                plane[: len(plane) // 3] = other[: len(plane) // 3]
            else:
                plane[:, : plane.shape[1] // 2] = other[:, : plane.shape[1] // 2]
    return clip


def test_second_weights():
    """Of a part of the frame: none at all beside a fade, or those of the part alone."""
    before, after = clip_of("caption", 176, 144, 4)[2:]
    first, second = chosen(after, before)
    assert first.flags & 1 and second == UNWEIGHTED and chosen(after, before, False) == (first,)
    before, after = clip_of("light", 176, 144, 2)
    first, second = chosen(after, before)
    assert not first.flags & 1 and second.flags == 1
    assert 100 * second.luma_weight / 2**second.luma_log2 + second.luma_offset < 80
    still = clip_of("light", 176, 144, 1)[0]
    assert chosen(still, still) == ()


def test_motion_has_no_second_weights():
    """A ground that moves by several blocks, so that all blocks differ badly, in ways that no weights explain."""
    base = texture(144 + 48, 176 + 64)
    before, after = ([faded([base[y : y + h, x : x + w]], 1)[0] for h, w in ((144, 176), (72, 88), (72, 88))]
                     for y, x in ((0, 0), (48, 64)))  # fmt: skip
    assert chosen(after, before) == ()


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize(
    "options", [{}, {"ref": 3, "slices": 2, "subme": 6}, {"keyint": 4, "gops": 2}, {"no_cabac": True}], ids=str
)
def test_streams(kind, options):
    clip = clip_of(kind, 98, 66)
    sizes = []
    for weightp in (1, 2) if kind in LOCAL else (0, 1):
        options = {**options, "qp": 24, "profile": "high", "weightp": weightp, "device": "cpu"}
        stream, expected = round_trip.encode(clip, 98, 66, **options)
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), expected, "FFmpeg")
        round_trip.assert_same(round_trip.own_frames(stream), expected, "own decoder")
        sizes.append(len(stream))
    assert sizes[1] < (0.97 if kind in LOCAL else 0.9) * sizes[0]
    info = StreamInfo()
    lines = [*info.feed(stream), *info.flush(), *info.summary()]
    assert any("weighted prediction in " in line for line in lines)


ON_GPUS = [
    {"weightp": 1}, {"weightp": 1, "ref": 2, "slices": 2, "gops": 2, "keyint": 5}, {"weightp": 2},
    {"weightp": 2, "ref": 3, "subme": 6, "slices": 2},
]  # fmt: skip


@pytest.mark.parametrize("options", ON_GPUS, ids=str)
def test_the_gpu_gives_the_same_bytes(gpu, options):  # noqa: F811
    kind = "fade" if options["weightp"] == 1 else "caption"
    compare(clip_of(kind, 34, 34, 6), 34, 34, qp=24, profile="high", **options)


@pytest.mark.parametrize("options", [*ON_GPUS, {"weightp": 2, "ref": 2, "no_cabac": True, "subme": 6}], ids=str)
def test_rows_of_both_devices_give_the_same_bytes(gpu, options):  # noqa: F811
    splits = [("half", 1), ("one", 0)] if gpu else [(rows, whole) for rows in SPLITS for whole in (0, 1)]
    kind = "fade" if options["weightp"] == 1 else "caption"
    compare_splits(clip_of(kind, 34, 66, 6), 34, 66, splits, profile="high", **options)


@pytest.mark.parametrize("weightp", [1, 2])
def test_frames_on_the_gpu(gpu, weightp):  # noqa: F811
    """Weights by sums that the GPU takes; with rows of both devices too, and RGB."""
    clip = clip_of("fade" if weightp == 1 else "caption", 34, 50, 6)
    rgb = [np.repeat(np.clip(planes[0], 0, 255)[..., None], 3, 2) for planes in clip]
    options = {"profile": "high", "weightp": weightp}
    device = Device()
    with device:
        on_gpu = [tuple(upload(device, plane) for plane in planes) for planes in clip]
        rgb_on_gpu = [upload(device, frame) for frame in rgb]
        for frames, there in ((clip, on_gpu), (rgb, rgb_on_gpu)):
            expected = encode_frames(frames, 34, 50, device="cpu", **options)
            assert expected != encode_frames(frames, 34, 50, device="cpu", profile="high", weightp=0)
            assert encode_frames(there, 34, 50, device="cuda", **options) == expected
        expected, _ = encode_by(clip, config(34, 50, device="cpu", **options))
        mixed = [there if n % 3 else here for n, (there, here) in enumerate(zip(on_gpu, clip))]
        stream, _ = encode_by(mixed, config(34, 50, ("half", 1), device="hybrid", **options))
        assert stream == expected
    device.close()


def real_planes(count):
    clip = sequences.clip("foreman_176x144_30")
    return [(p[:144], p[144:180].reshape(72, 88), p[180:].reshape(72, 88)) for p in clip.pictures(count)]


def test_a_fade_by_default():
    """A picture that fades in, as in shows of slides: better and smaller than without weights, at a lower rate factor."""
    still = real_planes(1)[0]
    clip = [faded(still, min(1, n / 24)) for n in range(36)]

    def coded(**options):
        stream, pictures = round_trip.encode(clip, 176, 144, device="cpu", **options)
        round_trip.assert_same(round_trip.ffmpeg_frames(stream), pictures, "FFmpeg")
        round_trip.assert_same(round_trip.own_frames(stream), pictures, "own decoder")
        return len(stream), np.mean([(a[0].astype(int) - b[0]) ** 2 for a, b in zip(clip, pictures, strict=True)])

    (without, error), (size, least) = coded(crf=23, weightp=0), coded(crf=19)
    assert size < 0.6 * without and least < 0.75 * error


@pytest.mark.parametrize("options", [{}, {"preset": "superfast"}, {"tune": "zerolatency", "ref": 2}], ids=str)
def test_nothing_is_lost_without_a_fade(options):
    """The same pictures as without weights, for a few bits a slice."""
    clip = real_planes(24)
    (without, expected), (stream, pictures) = (
        round_trip.encode(clip, 176, 144, device="cpu", **options, **weights) for weights in ({"weightp": 0}, {})
    )
    round_trip.assert_same(pictures, expected, "weightp 0")
    assert stream != without and len(stream) <= 1.001 * len(without)


def test_defaults():
    """x264's: none without P frames, in Baseline profile, where decoding is to be fast, in the fastest preset."""

    def weightp(**options):
        return Config.from_options(width=64, height=48, device="cpu", **options).coding.weightp

    presets = "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow", "placebo"
    for tools in ({}, {"no_cabac": True}):
        assert [weightp(preset=preset, **tools) for preset in presets] == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert weightp() == weightp(qp=26) == weightp(profile="main") == weightp(tune="zerolatency") == 2
    assert weightp(profile="baseline") == weightp(tune="fastdecode") == weightp(keyint=1) == 0
    for less in ({"keyint": 1}, {"tune": "fastdecode"}, {"preset": "ultrafast"}):
        assert weightp(**less, weightp=1) == 1


def test_refusals():
    with pytest.raises(OptionError, match="tool of Main and High profile"):
        Encoder(32, 32, weightp=1, profile="baseline")
    Encoder(32, 32, weightp=0, device="cpu").close()
