"""An average bit rate: it comes out, with the same bytes for any threads and device, and FFmpeg decodes it exactly."""

from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions.bitrate_control import BitrateControl
from h264lite.encoder.decisions.size_feedback import RATE_LAG
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frame_spec import FrameSpec

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support import round_trip

WIDTH, HEIGHT, FPS = 96, 80, 25


def clip(kind, frames):
    """Planes of a texture that moves, with what `kind` says; static: it stays, with grain; black: nothing is there."""
    rng = np.random.default_rng(5)
    base = np.cumsum(np.cumsum(rng.normal(0, 2, (HEIGHT + 64, WIDTH + 64)), 0), 1)
    base = (base - base.min()) / np.ptp(base) * 200
    pictures = []
    for n in range(frames):
        scene = n // 40 if kind == "cuts" else 0
        x, y = (3 * n + 11 * scene) % 60, (n + 29 * scene) % 60
        if kind == "static":
            x = y = 0
        luma = base[y : y + HEIGHT, x : x + WIDTH] * (0.3 + 0.7 * (scene % 2 == 0))
        if kind == "fade":
            luma = luma * abs(1 - 2 * n / frames)
        luma = luma + rng.normal(0, {"noise": 40, "static": 2}.get(kind, 4), luma.shape)
        if kind == "black":
            luma = np.full(luma.shape, 16)
        chroma = np.full((HEIGHT // 2, WIDTH // 2), 128, np.uint8)
        pictures.append((np.clip(luma, 0, 255).astype(np.uint8), chroma, chroma))
    return pictures


TEN_SECONDS = {"texture": (100, 150, 200, 300), "cuts": (100, 150, 250), "fade": (100, 120, 200), "noise": (100, 500),
               "static": (150, 300)}  # fmt: skip
TWO_SECONDS = {"texture": (100, 300, 500), "cuts": (500,), "fade": (300,), "noise": (200, 500), "static": (200, 300)}


@pytest.mark.parametrize("bframes", (0, 3))
@pytest.mark.parametrize(("kind", "rate", "frames", "within"), (
    *((kind, rate, 260, 0.02 if kind == "noise" else 0.01) for kind, rates in TEN_SECONDS.items() for rate in rates),
    *((kind, rate, 50, 0.03) for kind, rates in TWO_SECONDS.items() for rate in rates),
))  # fmt: skip
def test_the_rate_comes_out(kind, rate, frames, within, bframes):
    options = {"bframes": bframes, "bitrate": rate, "preset": "superfast", "threads": 1}
    data, _ = round_trip.encode(clip(kind, frames), WIDTH, HEIGHT, fps=FPS, **options)
    assert 8 * len(data) * FPS / frames / 1000 == pytest.approx(rate, rel=within)


def test_a_black_picture_has_what_the_least_qp_gives_it():
    """Fewer bits than the rate: no QP gives it more."""
    with h264lite.Encoder(WIDTH, HEIGHT, FPS, preset="superfast", bitrate=100, aq_mode=0, threads=1) as encoder:
        packets = round_trip.packets_of(encoder, clip("black", 50))
    assert 8 * sum(len(packet.data) for packet in packets) < 100_000 and {packet.qp for packet in packets[10:]} == {0}


OPTIONS = ({"bframes": 3}, {"bframes": 0, "no_mbtree": True}, {"bframes": 2, "vbv_maxrate": 200, "vbv_bufsize": 200},
           {"bframes": 0, "aq_mode": 0, "tune": "zerolatency"})  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_stream_is_that_of_any_number_of_threads(options):
    frames, options = clip("cuts", 60), {"preset": "superfast", "bitrate": 150, "fps": FPS, **options}
    streams = {round_trip.encode(frames, WIDTH, HEIGHT, threads=threads, **options)[0] for threads in (1, 2, 4)}
    assert len(streams) == 1


@on_gpus
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_gpu_writes_the_stream_of_the_cpu(driver, options):  # noqa: F811
    frames, options = clip("cuts", 26), {"preset": "superfast", "bitrate": 150, "fps": FPS, **options}
    small = [(y[:48, :64], u[:24, :32], v[:24, :32]) for y, u, v in frames]
    expected = round_trip.encode(small, 64, 48, device="cpu", threads=2, **options)[0]
    assert round_trip.encode(small, 64, 48, device="cuda", **options)[0] == expected


@on_gpus
@pytest.mark.parametrize("frames", (3, 7))
def test_plans_do_not_depend_on_how_many_frames_are_decided(driver, frames):  # noqa: F811
    """A GPU decides about more of them at once."""
    black = [tuple(np.zeros(shape, np.uint8) for shape in ((32, 32), (16, 16), (16, 16)))] * frames
    options = {"preset": "superfast", "bitrate": 1, "aq_mode": 0, "rc_lookahead": 1, "threads": 1}
    expected = round_trip.encode(black, 32, 32, device="cpu", **options)[0]
    assert round_trip.encode(black, 32, 32, device="cuda", **options)[0] == expected


@pytest.mark.parametrize("bframes", (0, 2))
def test_the_stream_decodes_exactly(bframes):
    with h264lite.Encoder(WIDTH, HEIGHT, FPS, preset="fast", bitrate=120, bframes=bframes, threads=2,
                          keep_reconstruction=True) as encoder:  # fmt: skip
        packets = round_trip.packets_of(encoder, clip("cuts", 50))
    shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.ffmpeg_frames(b"".join(packet.data for packet in packets)), shown, "FFmpeg")


def test_qps_that_are_asked_for_stay():
    with h264lite.Encoder(WIDTH, HEIGHT, FPS, preset="superfast", bitrate=100, zones="10,19,q=40", aq_mode=0, no_mbtree=True,
                          bframes=0, threads=1) as encoder:  # fmt: skip
        packets = round_trip.packets_of(encoder, clip("texture", 60))
    assert {packet.qp for packet in packets[11:20]} == {40} and {packet.qp for packet in packets[30:]} != {40}


@pytest.mark.parametrize(("rate", "noise", "frames"), ((400, 0.0, 300), (400, 0.3, 500), (4000, 0.2, 1000)))
def test_the_control_reaches_its_rate(rate, noise, frames):
    """Sizes by another law than that of the model, known as late as in an encode."""
    config = Config.from_options(width=352, height=288, fps=30, device="cpu", bitrate=rate, bframes=0)
    control, rng, sizes, planned = BitrateControl(config), np.random.default_rng(3), [], config.planned_frames
    specs = [FrameSpec(n, n, 0, "P" if n else "I", n == 0, True, n, 2 * n, 0, 26, 0, (), (), (), cost=20000 + 400 * (n % 90))
             for n in range(frames)]  # fmt: skip
    for n, spec in enumerate(specs):
        known = [sizes[n - RATE_LAG]] if n >= RATE_LAG else []
        settled, ahead = control.assign_qp(spec, known, specs[n + 1 : n + 1 + planned])
        assert 0 <= settled.qp <= 51 and not ahead
        sizes.append(int(spec.cost * 9 * 2 ** (-settled.qp / 7.5) * np.exp(rng.normal(0, noise))) + 60)
    assert sum(sizes) / frames == pytest.approx(rate * 1000 / 30, rel=0.01)


@pytest.mark.parametrize("fps", (Fraction(30000, 1001), 25))
def test_the_rate_counts_seconds_and_not_frames(fps):
    data, _ = round_trip.encode(clip("texture", 250), WIDTH, HEIGHT, fps=fps, bitrate=150, preset="superfast", bframes=2)
    assert 8 * len(data) * float(fps) / 250 / 1000 == pytest.approx(150, rel=0.012)


def test_an_encode_of_one_frame_and_of_none():
    assert h264lite.encode(clip("texture", 1), width=WIDTH, height=HEIGHT, bitrate=100)
    with h264lite.Encoder(WIDTH, HEIGHT, bitrate=100) as encoder:
        assert not encoder.flush()


def least_distance(control, specs, budget, low, high):
    """The shift in low .. high by the definition of BitrateControl: one after another, each frame by itself."""

    def bits(shift):
        shifted = [spec._replace(qp=spec.qp if spec.is_qp_requested else min(44, max(12, spec.qp + shift))) for spec in specs]
        return sum(control._model.bits(spec) for spec in shifted)

    qps = [spec.qp for spec in specs]
    low = max(low, min(12 - max(qps) - 12, high))
    high = min(high, max(44 - min(qps) + 12, low))
    shift = next((shift for shift in range(low, high) if bits(shift) <= budget), high)
    return shift - 1 if bits(shift - 1) * bits(shift) < budget**2 and shift > low else shift


@pytest.mark.parametrize("seed", range(20))
def test_the_shift_is_the_one_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    config = Config.from_options(width=64, height=64, device="cpu", bitrate=100, qpmin=12, qpmax=44)
    control = BitrateControl(config)
    specs = [FrameSpec(n, n, 0, "IPB"[n % 3], n == 0, n % 2 == 0, n, 2 * n, 0, int(rng.integers(12, 45)), 0, (), (), (),
                       cost=int(rng.integers(0, 5000)), is_qp_requested=bool(rng.random() < 0.2))
             for n in range(9)]  # fmt: skip
    for spec in specs[:3]:
        control._model.learn(spec, int(rng.integers(1, 20000)))
    control._count, control._shift = 20, int(rng.integers(-9, 10))
    usual = sum(control._model.bits(spec) for spec in specs)
    for budget in (1, usual // 2, usual, int(1.3 * usual), 2 * usual, 1 << 40):
        expected = least_distance(control, specs, budget, control._shift - 4, control._shift + 4)
        least, bits = control._at_shifts(specs, 0)
        assert least + control._nearest(bits.sum(axis=1), budget) == expected
