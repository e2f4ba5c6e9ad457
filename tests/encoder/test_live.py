"""Live senders: a keyframe at once where one is asked for, with tune zerolatency; encoders in an event loop."""

import asyncio
import io
import time

import h264lite
import numpy as np
import pytest
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SPS, split_byte_stream

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..support.moving import moving

WIDTH, HEIGHT = 64, 48
LIVE = {"device": "cpu", "preset": "veryfast", "tune": "zerolatency"}
CLIP = moving(40, WIDTH, HEIGHT)
RATES = ({"crf": 24}, {"qp": 26}, {"bitrate": 400}, {"bitrate": 400, "vbv_maxrate": 500, "vbv_bufsize": 200})


def decoded(packets):
    decoder = h264lite.Decoder()
    frames = [*decoder.decode(b"".join(packet.data for packet in packets)), *decoder.flush()]
    return [tuple(map(np.array, (frame.y, frame.u, frame.v))) for frame in frames]


def encode_live(frames, keyframes, **options):
    """Packets of each call."""
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **{**LIVE, **options}) as encoder:
        calls = [encoder.encode(frame, keyframe=k in keyframes) for k, frame in enumerate(frames)]
        assert encoder.flush() == []
    return calls


@pytest.mark.parametrize("rate", RATES, ids=("crf", "qp", "bitrate", "buffer"))
@pytest.mark.parametrize("threads", (1, 3))
def test_a_keyframe_comes_at_once(rate, threads):
    """The call that asks for it returns it, alone; what follows is decoded without what was before, to the same samples."""
    calls = encode_live(CLIP, (7, 8, 25), threads=threads, keyint=15, **rate)
    packets = [packet for (packet,) in calls]
    keyframes = [k for k, packet in enumerate(packets) if packet.is_keyframe]
    assert keyframes == [0, 7, 8, 23, 25]  # 15 frames after the last one, asked for or not
    assert [packet.pts for packet in packets] == [packet.dts for packet in packets] == [*range(40)]
    whole = decoded(packets)
    for k in keyframes:
        kinds = {unit.nal_unit_type for unit in split_byte_stream(packets[k].data)}
        assert {NAL_SPS, NAL_PPS, NAL_IDR} <= kinds and packets[k].frame_type == "I"
        later = decoded(packets[k:])
        assert len(later) == 40 - k
        for ours, theirs in zip(later, whole[k:]):
            assert all((a == b).all() for a, b in zip(ours, theirs))


@pytest.mark.parametrize("rate", RATES, ids=("crf", "qp", "bitrate", "buffer"))
@pytest.mark.parametrize("device", ("cuda", "hybrid"))
def test_on_a_gpu_too(rate, device, driver):  # noqa: F811
    expected = encode_live(CLIP[:12], (5, 6), merange=8, **rate)
    assert encode_live(CLIP[:12], (5, 6), merange=8, **{**rate, "device": device}) == expected
    assert [k for k, (packet,) in enumerate(expected) if packet.is_keyframe] == [0, 5, 6]


def test_a_keyframe_keeps_to_the_buffer():
    """With a buffer of a third of a second keyframes at any time do not overflow it."""
    rate, size = 300, 100
    calls = encode_live(CLIP, (3, 9, 10, 11, 30), vbv_maxrate=rate, vbv_bufsize=size, crf=12)
    fullness = 900 * size
    for (packet,) in calls:
        fullness -= 8 * len(packet.data)
        assert fullness >= -8
        fullness = min(1000 * size, fullness + 1000 * rate // 30)


def test_an_event_loop_goes_on_while_frames_are_encoded():
    """With `asyncio.to_thread`, which docs/python.md names: other tasks run, and the bytes are the same."""
    frames = np.random.default_rng(1).integers(0, 256, (12, 240, 320, 3), np.uint8)
    options = {"device": "cpu", "threads": 2, "preset": "medium", "crf": 20}
    ticks, is_over = [], []

    async def tick():
        while not is_over:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.001)

    async def write():
        target = io.BytesIO()
        writer = h264lite.VideoWriter(target, 30, **options)
        for frame in frames:
            await asyncio.to_thread(writer.write, frame)
        await asyncio.to_thread(writer.close)
        is_over.append(True)
        return target.getvalue()

    async def both():
        return (await asyncio.gather(write(), tick()))[0]

    h264lite.encode(frames[:2], 30, **options)  # kernels are loaded
    begin = time.monotonic()
    data = asyncio.run(both())
    spent = time.monotonic() - begin
    target = io.BytesIO()
    h264lite.write_video(target, frames, 30, **options)
    assert data == target.getvalue()
    assert len(ticks) > 20 * spent and max(np.diff(ticks)) < max(0.5, spent / 2)


def test_a_task_that_is_cancelled_aborts(tmp_path):
    """The pattern of docs/python.md: the thread goes on until `abort` ends its call."""
    frames = np.random.default_rng(1).integers(0, 256, (6, 240, 320, 3), np.uint8)

    async def serve():
        writer = h264lite.VideoWriter(tmp_path / "o.mp4", 30, device="cpu", preset="ultrafast")
        try:
            while True:
                await asyncio.to_thread(writer.write, frames)
        except asyncio.CancelledError:
            await asyncio.to_thread(writer.abort)
            raise

    async def client():
        task = asyncio.create_task(serve())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(client())
    assert not list(tmp_path.iterdir())
