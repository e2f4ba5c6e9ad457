"""Decisions about frames: types and references of a FrameSpec, I frames that are no IDR frames."""

import h264lite
import pytest
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frame_spec import I

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..support import round_trip
from ..support.steady import steady

WIDTH, HEIGHT, FRAMES = 50, 34, 9
SLICES = ((0, 3),)
DEVICES = (
    {"device": "cpu", "threads": 2}, {"device": "cuda", "threads": 2}, {"device": "hybrid", "threads": 2},
    {"device": "cpu", "threads": 2, "gops": 2},
)  # fmt: skip


def config_of(**options):
    return Config.from_options(width=WIDTH, height=HEIGHT, device="cpu", threads=1, **steady(options))


def packets_of(clip, **options):
    height, width = clip[0][0].shape
    with h264lite.Encoder(width, height, 30, keep_reconstruction=True, **steady(options)) as encoder:
        return round_trip.packets_of(encoder, clip)


def test_a_spec_with_changes():
    spec = FrameDecider(config_of(qp=30)).add()[0]
    changed = spec.changed(qp=3, mb_qp=b"ab", qp_offsets=b"c")
    assert type(changed) is type(spec) and changed == spec._replace(qp=3, mb_qp=b"ab", qp_offsets=b"c") != spec
    with pytest.raises(KeyError):
        spec.changed(qq=3)


def test_frames_of_a_stream():
    types = FrameDecider(config_of(keyint=4, ref=2, qp=30))
    specs = [types.add()[0] for _ in range(9)]
    assert [spec.frame_type for spec in specs] == list("IPPPIPPPI")
    assert [spec.gop for spec in specs] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert [spec.list0 for spec in specs[:6]] == [(), (0,), (1, 0), (2, 1), (), (4,)]
    assert [spec.pic_order_cnt for spec in specs[:5]] == [0, 2, 4, 6, 0]
    assert [spec.idr_pic_id for spec in specs if spec.is_idr] == [1, 0, 1]
    assert all(spec.pts == spec.dts == spec.coding_index == n for n, spec in enumerate(specs))
    assert [spec.nal_ref_idc for spec in specs[:2]] == [3, 2]


class IntraFrames(FrameDecider):
    """Frames 2 and 6 of each GOP are I frames that keep the references."""

    def add(self, planes=()):
        (spec,) = super().add(planes)
        if spec.frame_num % 4 == 2:
            spec = spec._replace(frame_type=I, list0=())
        return [spec]


class DroppableFrames(FrameDecider):
    """Odd frames of each GOP are no references."""

    def __init__(self, config, *more):
        super().__init__(config, *more)
        self.ref = config.coding.ref

    def add(self, planes=()):
        (spec,) = super().add(planes)
        index, place = spec.coding_index, spec.frame_num
        before = tuple(index - k for k in range(1, place + 1) if (place - k) % 2 == 0)[: self.ref]
        if place % 2:
            return [spec._replace(is_reference=False, frame_num=(place + 1) // 2, list0=before, references_after=before)]
        after = (index, *before)[: self.ref]
        return [spec._replace(frame_num=place // 2, list0=before, references_after=after)]


def coded(monkeypatch, types, options, ref):
    """Packets of a clip with these types of frames: decoders agree, and all devices have the same bytes."""
    for module in ("encoder.decisions.coding_decider", "encoder.decision_queue"):
        monkeypatch.setattr(f"h264lite.{module}.FrameDecider", types)
    clip = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    packets = packets_of(clip, qp=28, keyint=7, ref=ref, **options)
    stream = b"".join(packet.data for packet in packets)
    reconstruction = [packet.reconstruction for packet in packets]
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), reconstruction, "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(stream), reconstruction, "own decoder")
    expected, _ = round_trip.encode(clip, WIDTH, HEIGHT, qp=28, keyint=7, ref=ref, device="cpu", threads=1)
    assert stream == expected
    return packets


@pytest.mark.parametrize("ref", (1, 3))
@pytest.mark.parametrize("options", DEVICES, ids=str)
def test_an_i_frame_that_is_no_idr_frame(driver, monkeypatch, options, ref):  # noqa: F811
    """The frames after it use the references before it."""
    packets = coded(monkeypatch, IntraFrames, options, ref)
    assert [packet.frame_type for packet in packets] == list("IPIPPPIIP")
    assert [packet.is_keyframe for packet in packets] == [n in (0, 7) for n in range(FRAMES)]


@pytest.mark.parametrize("ref", (1, 2))
@pytest.mark.parametrize("options", DEVICES, ids=str)
def test_a_frame_that_is_no_reference(driver, monkeypatch, options, ref):  # noqa: F811
    """Without these frames the others decode to the same."""
    packets = coded(monkeypatch, DroppableFrames, options, ref)
    kept = [packet for packet in packets if packet.pts % 7 % 2 == 0]
    stream = b"".join(packet.data for packet in kept)
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), [packet.reconstruction for packet in kept], "FFmpeg")
