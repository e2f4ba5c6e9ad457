"""Macroblock tree: what stays gets finer quantisers than what goes; the same bytes for threads, GOPs, devices; decoders."""

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frame_spec import B

from ..cuda_emulator.fixtures import driver, gpu, on_gpus  # noqa: F401
from ..support import round_trip
from .test_cuda_streams import compare
from .test_scene_cuts import bytes_of, packets_of

SEED, WIDTH, HEIGHT = 8, 128, 96


def half_still(frames):
    """Left half: a texture that stays; right half: noise, another one in each frame."""
    rng = np.random.default_rng(SEED)
    texture = np.kron(rng.integers(40, 216, (HEIGHT // 4, WIDTH // 4)), np.ones((4, 4)))
    clip = []
    for _ in range(frames):
        luma = texture + rng.normal(0, 1, texture.shape)
        luma[:, WIDTH // 2 :] = rng.integers(0, 256, (HEIGHT, WIDTH // 2))
        clip.append((np.clip(luma, 0, 255).astype(np.uint8), *np.full((2, HEIGHT // 2, WIDTH // 2), 128, np.uint8)))
    return clip


def specs_of(clip, **options):
    """In coding order."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", threads=1, **{"crf": 28, "aq_mode": 0, **options})
    types = FrameDecider(config)
    return [spec for planes in clip for spec in types.add(planes)] + types.flush()


def maps(specs):
    """QPs by display index: int[6, 8], or one."""
    qp_maps = {}
    for spec in specs:
        qps = np.frombuffer(spec.mb_qp, np.uint8).astype(int)
        qp_maps[spec.display_index] = qps.reshape(6, 8) if qps.size else np.full((6, 8), spec.qp)
    return qp_maps


@pytest.mark.parametrize("options", [{}, {"bframes": 3}, {"bframes": 7, "b_pyramid": "dyadic", "b_adapt": 0}], ids=str)
def test_what_stays_gets_lower_qps(options):
    specs = specs_of(half_still(20), **options)
    qp_maps = maps(specs)
    first = qp_maps[0]
    assert first[1:5, 1:3].max() < 28 and first[:, 5:].min() > first[1:5, 1:3].max() + 5
    last = specs[-1].display_index
    assert (qp_maps[last] == qp_maps[last][0, 0]).all(), "no frame depends on the last one"
    assert first[2, 2] <= qp_maps[8][2, 2] or "bframes" in options
    for spec in specs:
        assert bool(spec.mb_qp) == spec.is_reference
        if spec.frame_type == B and not spec.is_reference:
            assert (qp_maps[spec.display_index] == spec.qp).all()
        if spec.mb_qp:
            assert qp_maps[spec.display_index].min() <= spec.qp <= qp_maps[spec.display_index].max()
    flat = maps(specs_of(half_still(20), no_mbtree=True, **options))
    assert all((qps == qps[0, 0]).all() for qps in flat.values())


def test_a_long_gop_is_finer_than_a_short_one_and_limits_hold():
    clip = half_still(24)
    near, far = (maps(specs_of(clip, rc_lookahead=ahead))[0][2, 2] for ahead in (2, 20))
    assert far < near
    weak, strong = (maps(specs_of(clip, qcomp=qcomp))[0][2, 2] - 28 for qcomp in (0.9, 0.6))
    assert strong < weak <= 1
    limited = maps(specs_of(clip, qpmin=26, qpmax=30))
    assert min(qps.min() for qps in limited.values()) == 26 and max(qps.max() for qps in limited.values()) == 30
    assert not any(spec.mb_qp for spec in specs_of(clip, qcomp=1) + specs_of(clip, rc_lookahead=0) + specs_of(clip, keyint=1))


def test_adaptive_quantisation_is_added():
    clip = half_still(12)
    plain, adapted, alone = (maps(specs_of(clip, bframes=2, b_adapt=0, scenecut=0, **options)) for options in (
        {}, {"aq_mode": 2, "aq_strength": 0.5}, {"aq_mode": 2, "aq_strength": 0.5, "no_mbtree": True}))  # fmt: skip
    for number in range(12):
        assert len(np.unique(alone[number])) > 1
        assert np.ptp(adapted[number] - plain[number] - alone[number]) <= 5 < np.ptp(adapted[0])
    assert (maps(specs_of(clip, aq_mode=1, aq_strength=0))[0] == maps(specs_of(clip))[0]).all()


@pytest.mark.parametrize("options", [
    {}, {"bframes": 3, "rc_lookahead": 5}, {"bframes": 2, "b_adapt": 0, "scenecut": 0, "rc_lookahead": 4, "slices": 2},
    {"scenecut": 40, "min_keyint": 3, "aq_mode": 1},
    {"keyint": 6, "bframes": 3, "b_adapt": 2, "rc_lookahead": 3, "aq_mode": 3},
    {"bframes": 5, "b_pyramid": "dyadic", "ref": 3, "subme": 6, "rc_lookahead": 9},
], ids=str)  # fmt: skip
def test_the_same_bytes_for_threads_and_gops(options):
    packets = packets_of(**{"crf": 24, "threads": 1, **options})
    stream = bytes_of(packets)
    shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")
    for more in ({"threads": 3}, {"gops": 2, "threads": 2}):
        assert bytes_of(packets_of(**{"crf": 24, **options, **more})) == stream


def test_frames_wait_for_no_more_than_the_frames_ahead():
    clip = half_still(30)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", threads=1, preset="ultrafast", crf=30, rc_lookahead=8) as encoder:
        counts = np.cumsum([len(encoder.encode(planes)) for planes in clip])
        most = 8 + 8 // 4 + encoder.config.machine.threads
        assert counts[8] == 0 and all(n + 1 - count <= most for n, count in enumerate(counts))
        assert counts[-1] + len(encoder.flush()) == 30


@pytest.mark.parametrize("options", [{}, {"bframes": 2, "scenecut": 40, "aq_mode": 1}], ids=str)
def test_the_bytes_of_the_cpu_on_gpus(gpu, options):  # noqa: F811
    clip = round_trip.noise_clip(34, 34, 7, 3)
    clip[4:] = round_trip.noise_clip(34, 34, 3, 4)
    fast = {"preset": "superfast", "rc_lookahead": 3}
    compare(clip, 34, 34, **{"crf": 22.5, "threads": 1, **fast, **options})


def test_switches():
    def config(**options):
        return Config.from_options(width=64, height=64, device="cpu", **options)

    assert config(crf=20).rate.mbtree and not config(qp=20).rate.mbtree and not config(qp=20, no_mbtree=True).rate.mbtree
    assert not config(crf=20, no_mbtree=True).rate.mbtree and not config(crf=20, tune="zerolatency").rate.mbtree
    assert config(crf=20, mbtree=True) == config(crf=20, no_mbtree=False) == config(crf=20)
