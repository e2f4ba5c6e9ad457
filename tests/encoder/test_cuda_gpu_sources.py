"""Frames on the GPU that wait there for later ones: the bytes of the same frames from the host, and bounded memory."""

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import Device
from h264lite.encoder.errors import DeviceLost, InputError
from h264lite.scheduler.frames.gpu_sources import GpuSourcePool

from ..cuda_emulator.driver import EmulatedDriver
from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..cuda_src.test_cuda_convert import bt709
from ..inside import take_gpu_for_any_size
from ..support import round_trip
from .test_cuda_frames import Array, device, upload  # noqa: F401
from .test_cuda_producers import side  # noqa: F401

WIDTH, HEIGHT, FRAMES = 50, 34, 12
B_FRAMES = {"bframes": 3, "b_adapt": 0, "scenecut": 0}
BT709 = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709", "range": "tv"}
OPTIONS = [
    {"bframes": 1, "b_adapt": 0, "scenecut": 0},
    {"bframes": 2, "b_adapt": 1, "b_pyramid": "none"},
    {"bframes": 3, "b_adapt": 2, "scenecut": 40, "keyint": 5, "min_keyint": 2, "weightp": 2},
    {"bframes": 0, "scenecut": 40, "keyint": 30},
    {"bframes": 0, "aq_mode": 1, "weightp": 1},
    {"bframes": 2, "b_adapt": 1, "aq_mode": 2, "weightp": 1},
    {"bframes": 3, "b_adapt": 1, "crf": 23, "qp": None, "rc_lookahead": 6, "aq_mode": 1, "weightp": 2},
    {"bframes": 0, "scenecut": 0, "crf": 23, "qp": None, "no_mbtree": True, "aq_mode": 3},
]


@pytest.fixture(scope="module")
def clip():
    """RGB frames with motion, a fade and a cut."""
    rng = np.random.default_rng(3)
    scenes = [rng.integers(0, 256, (HEIGHT // 4 + 9, WIDTH // 4 + 9, 3)).repeat(4, 0).repeat(4, 1) for _ in range(2)]
    frames = []
    for n in range(FRAMES):
        frame = scenes[n >= 7][n : n + HEIGHT, 2 * n : 2 * n + WIDTH]
        frames.append((frame * (10 - min(n, 6)) // 10).astype(np.uint8))
    return frames


def on_host(clip):
    return [tuple(bt709(rgb)) for rgb in clip]


def given(options):
    return {"qp": 24, "threads": 2, **options}


def encode_all(frames, **options):
    options = {name: value for name, value in given(options).items() if value is not None}
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **options) as encoder:
        packets = round_trip.packets_of(encoder, frames)
    return b"".join(packet.data for packet in packets)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_bytes_of_the_host(device, clip, options):  # noqa: F811
    expected = encode_all(on_host(clip), device="cpu", **BT709, **options)
    assert encode_all([upload(device, rgb) for rgb in clip], device="cuda", **options) == expected
    mixed = [upload(device, rgb) if n % 3 else planes for n, (rgb, planes) in enumerate(zip(clip, on_host(clip)))]
    assert encode_all(mixed, device="cuda", **BT709, **options) == expected


def test_arrays_of_any_kind_among_others(device, clip):  # noqa: F811
    """Types, distances, orders of colours and streams differ from frame to frame; what is recorded fits all."""
    expected, streams = encode_all(on_host(clip), device="cpu", **BT709, **OPTIONS[6]), [device.stream(), device.stream()]

    def given_as(n, rgb):
        if n % 4 == 1:
            return upload(device, (rgb / 255).astype(np.float32), typestr="<f4", stream=streams[n // 4 % 2].handle)
        if n % 4 == 2:  # planes of colours
            return upload(device, np.ascontiguousarray(rgb.transpose(2, 0, 1)), stream=None)
        if n % 4 == 3:  # a part of a larger picture
            wide = np.zeros((HEIGHT, WIDTH + 6, 3), np.uint8)
            wide[:, 4 : 4 + WIDTH] = rgb
            return upload(device, wide, shape=rgb.shape, strides=(3 * (WIDTH + 6), 3, 1), offset=12, stream=2)
        return upload(device, rgb)

    for _ in range(2):
        assert encode_all([given_as(n, rgb) for n, rgb in enumerate(clip)], device="cuda", **OPTIONS[6]) == expected


def test_a_producer_may_overwrite_its_frame_at_once(side, gpu, clip):  # noqa: F811
    """One array for all frames: each is read before the next is written, and the producer's stream waits for the read."""
    expected = encode_all(on_host(clip), device="cpu", **BT709, **B_FRAMES)
    other = Device()
    with other:
        memory = other.upload(np.zeros_like(clip[0]))

        def frames():
            for rgb in clip:
                side.left.append(lambda rgb=rgb: memory.put(rgb))
                yield Array(memory, stream=4711)

        gpu.libcuda.ordered.clear()
        assert encode_all(frames(), device="cuda", **B_FRAMES) == expected
        orders = [order for order in gpu.libcuda.ordered if 4711 in order]
        assert [first == 4711 for first, _ in orders] == [True, False] * FRAMES
    other.close()


def test_videos_of_any_form(device, clip):  # noqa: F811
    """One array, a list, chunks: all without a copy on the host."""
    options = {"device": "cuda", "qp": 24, **B_FRAMES}
    expected = h264lite.encode([upload(device, rgb) for rgb in clip], 30, **options)
    assert h264lite.encode(upload(device, np.stack(clip)), 30, layout="THWC", **options) == expected
    chunks = [upload(device, np.stack(clip[n : n + 4])) for n in range(0, FRAMES, 4)]
    assert h264lite.encode(chunks, 30, layout="THWC", **options) == expected


def test_buffers_are_used_again(device, clip, monkeypatch):  # noqa: F811
    """As many as frames wait at the same time, however long the stream is."""
    buffers, make = [], GpuSourcePool._make

    def counted(self):
        buffers.append(1)
        return make(self)

    monkeypatch.setattr(GpuSourcePool, "_make", counted)
    frames = [upload(device, rgb) for rgb in clip]
    encode_all(4 * frames, device="cuda", **B_FRAMES)
    assert len(buffers) <= B_FRAMES["bframes"] + 2


def test_values_outside_of_the_range(device, clip):  # noqa: F811
    """The stream ends before that frame, in coding order."""
    frames = [upload(device, (rgb / 255).astype(np.float32), typestr="<f4") for rgb in clip]
    frames[6] = upload(device, (clip[6] / 50).astype(np.float32), typestr="<f4")
    packets = []
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", qp=24, threads=2, **B_FRAMES) as encoder:
        with pytest.raises(InputError, match="frame 6 has values far outside"):
            for frame in frames:
                packets += encoder.encode(frame)
            packets += encoder.flush()
        packets += encoder.flush()
    assert packets[0].pts == 0 and 6 not in [packet.pts for packet in packets]
    clipped = encode_all(frames, device="cuda", value_range=(0, 1), **B_FRAMES)
    assert clipped.startswith(b"".join(packet.data for packet in packets))


def test_refused_before_it_enters(device, clip):  # noqa: F811
    """An array of another GPU or size is refused, and the stream goes on."""
    expected = encode_all(on_host(clip), device="cpu", **BT709, **B_FRAMES)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", qp=24, threads=2, **B_FRAMES) as encoder:
        packets = []
        for n, rgb in enumerate(clip):
            if n == 5:
                with pytest.raises(InputError, match="rgb of 40x34"):
                    encoder.encode(upload(device, np.ascontiguousarray(rgb[:, :40])))

                class Host:
                    ptr, shape = rgb.ctypes.data, rgb.shape

                with pytest.raises(InputError, match="lies on no GPU"):
                    encoder.encode(Array(Host))
            packets += encoder.encode(upload(device, rgb))
        packets += encoder.flush()
    assert b"".join(packet.data for packet in packets) == expected


@pytest.mark.parametrize("options", [B_FRAMES, {"bframes": 2, "b_adapt": 1}], ids=str)
@pytest.mark.parametrize("after", [0, 4, 9, 40])
def test_a_lost_gpu_takes_those_that_wait_with_it(device, gpu, clip, monkeypatch, options, after):  # noqa: F811
    """Whether it fails while frames are converted, looked at or coded; what was finished stays."""
    if not isinstance(gpu, EmulatedDriver):
        pytest.skip("only the emulated driver can be lost")
    take_gpu_for_any_size(monkeypatch.setattr)
    frames, packets = [upload(device, rgb) for rgb in clip], []
    with h264lite.Encoder(WIDTH, HEIGHT, 30, qp=24, threads=2, **options) as encoder:
        with pytest.raises(DeviceLost, match="are lost too"):
            for n, frame in enumerate(frames):
                gpu.fail_after = gpu.launches + after if n == 6 else gpu.fail_after
                packets += encoder.encode(frame)
            packets += encoder.flush()
    gpu.fail_after = None
    expected = encode_all(frames, device="cuda", **options)
    assert expected.startswith(b"".join(packet.data for packet in packets))


def test_an_encoder_that_is_closed_early(device, gpu, clip):  # noqa: F811
    """Frames that wait are dropped, and a later encoder is as the first."""
    for count in (1, 3, 6):
        with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", threads=2, crf=23, **B_FRAMES) as encoder:
            for rgb in clip[:count]:
                encoder.encode(upload(device, rgb))
    assert encode_all([upload(device, rgb) for rgb in clip], device="cuda", **B_FRAMES) == encode_all(
        on_host(clip), device="cpu", **BT709, **B_FRAMES
    )
