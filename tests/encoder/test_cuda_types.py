"""Adaptive frame types by a GPU: types and bytes are those of the host; several GOPs, lost GPUs, bounded memory, launches."""

import warnings

import h264lite
import numpy as np
import pytest
from h264lite.encoder.decisions.adaptive_types import AdaptiveTypes
from h264lite.encoder.errors import DeviceLost
from h264lite.scheduler.lookahead.gpu_calls import BatchCalls
from h264lite.scheduler.lookahead.lookahead_memory import LookaheadMemory

from ..cuda_emulator.fixtures import driver, gpu, launches_by_frame, on_gpus  # noqa: F401
from ..support import round_trip
from ..support.steady import steady
from .test_adaptive_types import pan

WIDTH, HEIGHT = 70, 52
GREY = np.full((2, HEIGHT // 2, WIDTH // 2), 128, np.uint8)
OPTIONS = {"preset": "ultrafast", "no_cabac": False, "keyint": 40, "min_keyint": 1, "scenecut": 40, "bframes": 3, "ref": 2,
           "rc_lookahead": 8}  # fmt: skip


def synthetic_clip():
    """Three scenes, and a flash."""
    lumas = [*pan(0, 8), *pan(1, 11, 3, 2), *pan(2, 4)]
    lumas[13] = np.full_like(lumas[13], 250)
    return [(np.ascontiguousarray(luma[:HEIGHT, :WIDTH]), *GREY) for luma in lumas]


CLIP = synthetic_clip()


def packets_of(**options):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, **steady({**OPTIONS, **options})) as encoder:
        return round_trip.packets_of(encoder, CLIP)


def encoder_of(b_adapt, keyint=OPTIONS["keyint"], **options):
    options = steady({**OPTIONS, "keyint": keyint, **options})
    return h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", b_adapt=b_adapt, **options)


def shown(packets):
    return b"".join(packet.data for packet in packets), "".join(
        "K" if packet.is_keyframe else packet.frame_type for packet in sorted(packets, key=lambda packet: packet.pts)
    )


CRF = {"crf": 28, "no_mbtree": False, "b_adapt": 1, "rc_lookahead": 5}  # with macroblock tree


@pytest.mark.parametrize("options", ({"b_adapt": 1}, {"b_adapt": 2}, {"b_adapt": 0}, {"bframes": 0}, CRF), ids=str)
def test_same_types_and_bytes(gpu, options):  # noqa: F811
    stream, types = shown(packets := packets_of(device="cpu", **options))
    assert types.count("K") == 3 and ("B" in types) == ("bframes" not in options)
    assert shown(packets_of(device="cuda", **options)) == (stream, types)
    assert shown(packets_of(device="cuda", tune="zerolatency", **options)) == (stream, types)  # which waits for each cost
    decoded = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), decoded, "FFmpeg")


@pytest.mark.parametrize("options", ({"b_adapt": 1}, {"bframes": 0}), ids=str)
def test_what_a_cut_compares_comes_together(driver, monkeypatch, options):  # noqa: F811
    """Two cuts and a flash: four steps each, of the pair itself and of all others, in place of one for each pair and step.

    A real GPU takes its time, in which decisions are tried again.
    """
    missed, decide = [], AdaptiveTypes._decide

    def noted(self, types, end):
        missed.append(not decide(self, types, end))
        return not missed[-1]

    monkeypatch.setattr(AdaptiveTypes, "_decide", noted)
    shown(packets_of(device="cuda", **options))
    assert sum(missed) <= 3 * 4


@pytest.mark.parametrize(("options", "most"), (({"bframes": 0}, 1 / 2), ({"bframes": 0, "tune": "zerolatency"}, 2)), ids=str)
def test_frames_without_b_frames_are_asked_about_in_groups(gpu, monkeypatch, options, most):  # noqa: F811
    """A batch for several frames of a scene, but where each packet is waited for."""
    batches, run = [], BatchCalls.run

    def noted(self, batch, frames, n_pairs):
        batches.append(len(frames))
        run(self, batch, frames, n_pairs)

    monkeypatch.setattr(BatchCalls, "run", noted)
    scene = [(luma, *GREY) for luma in np.repeat(CLIP[0][0][None], 40, 0)]
    with encoder_of(0, **options) as encoder:
        assert len(round_trip.packets_of(encoder, scene)) == 40
    assert sum(batches) == 40 and len(batches) <= 40 * most and (len(batches) >= 40) == ("tune" in options)


@on_gpus
@pytest.mark.parametrize("options", ({"gops": 2, "keyint": 6}, {"gops": 4, "keyint": 5}), ids=str)
def test_several_gops(driver, options):  # noqa: F811
    expected = shown(packets_of(device="cpu", **{**options, "gops": 1}))
    assert shown(packets_of(device="cuda", threads=2, **options)) == expected


@on_gpus
@pytest.mark.parametrize("options", ({"b_adapt": 1}, {"b_adapt": 2}, CRF), ids=str)
def test_a_gpu_that_is_lost(driver, options):  # noqa: F811
    """Anywhere: in the lookahead, in the loop; the frames that wait are decided as before."""
    expected = shown(packets_of(device="cpu", **options))
    counts = launches_by_frame(driver, CLIP, lambda: encoder_of(**options))
    places = {counts[0], *(counts[n] + k for n, k in ((0, 4), (1, 5), (9, 1), (14, 9))), counts[-1] - 1}
    for place in sorted(places):
        driver.launches, driver.fail_after = counts[0], place
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            packets = shown(packets_of(**options))
        driver.fail_after = None
        assert packets == expected, place
        assert len([w for w in said if "continuing on the CPU" in str(w.message)]) == 1
    driver.launches, driver.fail_after = counts[0], counts[12] + 2
    with pytest.raises(DeviceLost):
        packets_of(**options, device="cuda")
    driver.fail_after = None


@pytest.mark.parametrize("b_adapt, most", ((1, 4), (2, 5)))
def test_memory_and_launches(driver, monkeypatch, b_adapt, most):  # noqa: F811
    """Of a frame: three launches of the half size, the last under another name, and one of intra costs; of frames that are
    asked about together three of motion and one of both. Frames of one kind need no more memory than the first ones. most:
    frames whose work begins in one call.
    """
    arrays, begun = [], []
    make_array = LookaheadMemory.array
    monkeypatch.setattr(LookaheadMemory, "array", lambda *given: arrays.append(given) or make_array(*given))
    names = "half_size", "quarter_size", "lookahead"
    with encoder_of(b_adapt, 200) as encoder:
        for _ in range(40):
            begun.append((len(driver.log), len(arrays)))
            encoder.encode(CLIP[0])
        assert len(arrays) == begun[25][1]
        encoder.flush()
    counts = [sum(name.startswith(names) for name, *_ in driver.log[a:b]) for (a, _), (b, _) in zip(begun, begun[1:])]
    assert max(counts) == 3 * most + 4 and 0 in counts[20:]
    assert not driver.allocations
