"""Constant rate factor: QPs as a plain model with floats has them, sensible ones for made clips, the same bytes anywhere."""

from fractions import Fraction
from math import log2

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions.fixed_point import LOG2_SHIFT, QP_SHIFT, fixed, log2_fixed, log2_of, scaled
from h264lite.encoder.decisions.frame_order import FrameOrder
from h264lite.encoder.decisions.rate_factor import CrfRules, RateFactor
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frame_spec import B, I

from ..cuda_emulator.fixtures import driver, gpu, on_gpus  # noqa: F401
from ..support import round_trip
from .test_cuda_streams import compare
from .test_scene_cuts import CLIP, HEIGHT, OPTIONS, WIDTH, bytes_of, packets_of

SEED = 24


def test_logarithms():
    rng = np.random.default_rng(SEED)
    numbers = [*range(1, 2000), *(1 << n for n in range(200)), *map(int, rng.integers(1, 1 << 62, 500)), 10**60, 10**18 - 1]
    for number in numbers:
        assert -1.01 <= log2_fixed(number) - log2(number) * 65536 <= 0.01, number
    assert log2_fixed(1) == 0 and log2_fixed(8) == 3 << LOG2_SHIFT
    for number in (0.25, 1.4, Fraction(1001, 30000), 3):
        assert abs(log2_of(number) - log2(number) * 65536) <= 1.01
    assert [scaled(number, 3, 1) for number in (-3, -1, 1, 3)] == [-4, -1, 2, 5] and fixed(0.6, 16) == 39322


class FloatModel:
    """QPs as x264 has them (its ratecontrol.c: rate factor, mean of the QPs of P frames, B frames between two others)."""

    def __init__(self, config):
        self.config, self.cost, self.count, self.sum, self.weight, self.last = config, 0, 0, 0, 0, None
        self.known = {}
        self.ip, self.pb = 6 * log2(config.rate.ipratio), 6 * log2(1.3 if config.rate.mbtree else config.rate.pbratio)
        self.duration = min(1, max(0.01, 1 / config.video.fps)) / 0.04
        self.usual = (136 if config.coding.bframes else 96) * config.coding.n_mb

    def qp(self, spec, cost):
        config, kind = self.config, spec.frame_type
        if kind == B:
            (kind0, qp0), (kind1, qp1) = (self.known[refs[0]] for refs in (spec.list0, spec.list1))
            near, far = spec.distances[0], -spec.distances[len(spec.list0)]
            qp0, qp1 = qp0 - self.pb / 2 * (kind0 == B), qp1 - self.pb / 2 * (kind1 == B)
            qp = (qp0 * far + qp1 * near) / (near + far)
            if I in (kind0, kind1):
                qp = (qp0 + qp1) / 2 + self.ip if kind0 == kind1 else qp1 if kind0 == I else qp0
            qp += self.pb / (2 if spec.is_reference else 1)
        else:
            self.cost, self.count = self.cost / 2 + cost / self.duration, self.count / 2 + 1
            quantiser_step = (self.cost / self.count) ** (1 - config.rate.qcomp) / self.usual ** (1 - config.rate.qcomp)
            qp = config.rate.crf + 6 * log2(quantiser_step)
            if config.rate.mbtree:
                qp = config.rate.crf + (config.rate.crf - 23) / 16
                qp += (1 - config.rate.qcomp) * (13.5 - 6 * log2(self.duration))
            elif self.last is None:
                qp = config.rate.crf - self.ip
            if self.last is not None and kind == I != self.last:
                qp = self.sum / self.weight - self.ip
            self.last = kind
        qp = min(config.rate.qpmax, max(config.rate.qpmin, qp))
        if kind != B:
            self.sum, self.weight = 0.95 * self.sum + qp + self.ip * (kind == I), 0.95 * self.weight + 1
        self.known[spec.coding_index] = kind, qp
        return qp


FLAT = {"no_mbtree": True, "aq_mode": 0}


@pytest.mark.parametrize("options", [
    {"crf": 21.25, "bframes": 3}, {"crf": 27, "fps": 50, "qcomp": 0.8}, {"crf": 20, "keyint": 1},
    {"crf": 23, "bframes": 3, **FLAT}, {"crf": 30.3, "bframes": 5, "b_pyramid": "dyadic", "fps": 50, "qcomp": 0.3, **FLAT},
    {"crf": 18, "fps": "30000/1001", "ipratio": 1.1, **FLAT}, {"crf": 51, "fps": 1000, **FLAT},
    {"crf": 40, "bframes": 2, "pbratio": 1.7, "qcomp": 0, "qpmax": 45, **FLAT},
    {"crf": 5, "fps": "1/3", "qcomp": 1, "bframes": 7, "qpmin": 4},
], ids=str)  # fmt: skip
def test_qps_are_those_of_a_model_with_floats(options):
    config = Config.from_options(**{"width": 640, "height": 368, "device": "cpu", "threads": 1, **options})
    rng = np.random.default_rng(SEED)
    order, factor, model = FrameOrder(config), RateFactor(CrfRules.of(config)), FloatModel(config)
    waiting, seen = 0, []
    for n in range(400):
        kind = "IDR" if n == 0 or config.types.keyint == 1 else str(rng.choice(["P", "P", "P", "I", B, B, B]))
        if (kind == B and waiting == config.coding.bframes) or (kind == "I" and waiting):
            kind = "P"
        waiting = waiting + 1 if kind == B else 0
        for spec in order.add(kind):
            cost = int(2 ** rng.uniform(0 if n % 7 == 0 else 12, 24))
            qp = factor.qp(spec, cost)
            assert abs(qp / 256 - model.qp(spec, cost)) < 0.03
            seen.append(qp)
    assert len(set(seen)) > 1 or options["qcomp"] == 1
    assert min(seen) >= config.rate.qpmin << QP_SHIFT and max(seen) <= config.rate.qpmax << QP_SHIFT


@pytest.mark.parametrize("options", [
    {}, {"bframes": 3}, {"bframes": 2, "b_adapt": 0, "scenecut": 0}, {"scenecut": 40, "min_keyint": 3, "qcomp": 0.2},
    {"keyint": 6, "bframes": 3, "b_adapt": 2}, {"bframes": 4, "weightp": 1, "slices": 2},
], ids=str)  # fmt: skip
def test_the_same_bytes_for_threads_and_gops(options):
    packets = packets_of(**{"crf": 24, **FLAT, "threads": 1, **options})
    stream = bytes_of(packets)
    shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")
    assert len({packet.qp for packet in packets}) > 2
    for more in ({"threads": 3}, {"gops": 2, "threads": 2}):
        assert bytes_of(packets_of(**{"crf": 24, **FLAT, **options, **more})) == stream


def test_no_frame_waits_for_its_qp_alone():
    """Without B frames and scene cuts, each frame is coded as it comes."""
    with_latency = {"tune": "zerolatency", "crf": 24}

    with h264lite.Encoder(WIDTH, HEIGHT, 30, **{**OPTIONS, **with_latency}) as encoder:
        assert [len(encoder.encode(planes)) for planes in CLIP] == [1] * len(CLIP)


def test_what_is_hard_to_predict_gets_a_higher_qp_and_limits_hold():
    still = [CLIP_FRAME] * 12
    rng = np.random.default_rng(SEED)
    noise = [[rng.integers(0, 256, plane.shape).astype(np.uint8) for plane in CLIP_FRAME] for _ in range(12)]

    def qps(clip, **options):
        rows = round_trip.rows(clip, 64, 64, **{"device": "cpu", "preset": "ultrafast", "threads": 1, "crf": 28,
                                                 **FLAT, **options})
        return [frame.qp for frame, _ in rows]

    calm, wild = qps(still), qps(noise)
    assert calm[0] == wild[0] == 25, "the first frame is coded by --crf and --ipratio alone"
    assert max(calm[1:]) < min(wild[1:])
    assert set(qps(noise, qcomp=1)) == {25, 28}
    assert min(qps(still, qpmin=26, qpmax=30)) >= 26 and max(qps(noise, qpmin=26, qpmax=30)) == 30


CLIP_FRAME = round_trip.noise_clip(64, 64, 1, SEED)[0]


@pytest.mark.parametrize("options", [{"keyint": 4}, {"bframes": 2, "scenecut": 40}], ids=str)
def test_the_bytes_of_the_cpu_on_gpus(gpu, options):  # noqa: F811
    """A frame a QP of its own."""
    clip = round_trip.noise_clip(34, 34, 7, 3)
    clip[4:] = round_trip.noise_clip(34, 34, 3, 4)
    compare(clip, 34, 34, **{"crf": 22.5, "threads": 1, "preset": "superfast", **FLAT, **options})
