"""A new QP for each frame: nothing is recorded anew for it, and the stream is that of the CPU and decodes exactly."""

import pytest
from h264lite.cuda_src.runtime.device import Device

from ..cuda_emulator.fixtures import driver, gpu, on_gpus  # noqa: F401
from ..inside import on_each_frame
from ..support import round_trip
from .test_cuda_frames import device, encode, upload  # noqa: F401

WIDTH, HEIGHT, FRAMES = 48, 34, 24
OPTIONS = ({}, {"slices": 2, "ref": 2}, {"keyint": 5})


@pytest.fixture
def recorded(monkeypatch):
    """A list that grows by one with each recording."""
    recordings, record_calls = [], Device.record_calls
    monkeypatch.setattr(Device, "record_calls", lambda self, *given: recordings.append(1) or record_calls(self, *given))
    return recordings


def set_qps(monkeypatch, qps):
    """Frames in each encode have these QPs, again and again; some QPs of slices take more bits in headers than others."""

    def with_qp(pipeline, spec):
        return spec._replace(qp=qps[spec.display_index % len(qps)])

    on_each_frame(monkeypatch.setattr, with_qp)


@on_gpus
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_no_recording_for_a_new_qp(driver, recorded, monkeypatch, options):  # noqa: F811
    clip = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 4)
    options = {"qp": 27, "threads": 1, **options}
    round_trip.encode(clip, WIDTH, HEIGHT, device="cuda", **options)
    with_one = len(recorded)
    set_qps(monkeypatch, [18 + 7 * n % 30 for n in range(FRAMES)])
    stream, decoded = round_trip.encode(clip, WIDTH, HEIGHT, device="cuda", **options)
    assert len(recorded) == 2 * with_one
    wanted, expected = round_trip.encode(clip, WIDTH, HEIGHT, device="cpu", **options)
    round_trip.assert_same(decoded, expected, "the GPU's reconstruction")
    assert stream == wanted
    round_trip.assert_same(round_trip.own_frames(stream), decoded, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), decoded, "FFmpeg")


def test_frames_on_the_gpu(device, monkeypatch):  # noqa: F811
    """Their QP is uploaded without samples."""
    set_qps(monkeypatch, [30, 20, 41])
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 6, 5)
    there = [tuple(upload(device, plane) for plane in planes) for planes in clip]
    wanted = encode([tuple(planes) for planes in clip], WIDTH, HEIGHT, device="cpu")
    assert encode(there, WIDTH, HEIGHT, device="cuda") == wanted
