"""The Python API around a fake pipeline: frames of every form, order of calls, packets, options."""

import subprocess
import sys

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import DeviceError, Error, InputError, OptionError
from h264lite.encoder.frames.layouts import Known
from h264lite.encoder.frames.reader import FrameReader

from ..inside import say_no_gpu
from ..support import fake_pipeline


@pytest.fixture(autouse=True)
def _fake(monkeypatch):
    fake_pipeline.take_place(monkeypatch)


def picture(width=32, height=16, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (height * 3 // 2, width), np.uint8)


def planes(width, height):
    rng = np.random.default_rng(2)
    chroma = ((height + 1) // 2, (width + 1) // 2)
    return tuple(rng.integers(0, 256, shape, np.uint8) for shape in ((height, width), chroma, chroma))


def source(frame, **options):
    """The planes of a frame of 32x16."""
    return FrameReader(**options, known=Known("", 32, 16)).chunk(frame).source(0)


def test_the_class_shows_public_names_alone():
    with h264lite.Encoder(32, 16, qp=26, bframes=0) as encoder:
        shown = {name for name in dir(encoder) if not name.startswith("_")}
    assert shown == {"close", "config", "encode", "flush", "from_config", "headers", "reconfigure", "stats"}


def test_frames_in_packets_out():
    with h264lite.Encoder(32, 16, fps="30000/1001", qp=30, keyint=2, bframes=0) as encoder:
        assert encoder.headers == b"headers"
        packets = [packet for n in range(5) for packet in encoder.encode(picture(seed=n))]
        assert len(packets) == 3, "the fake one lags by two"
        packets += encoder.flush()
        assert encoder.flush() == []
        assert [(p.pts, p.dts, p.duration, p.is_keyframe, p.frame_type, p.qp) for p in packets] == [
            (n, n, 1, n % 2 == 0, "PI"[n % 2 == 0], 27.0 if n % 2 == 0 else 30.0) for n in range(5)]
        assert all(isinstance(p.data, bytes) and p.reconstruction is None for p in packets)
        assert encoder.stats.frames == 5 and encoder.stats.summary()["I"]["frames"] == 3
        with pytest.raises(Error, match="flushed"):
            encoder.encode(picture())
    with pytest.raises(Error, match="closed"):
        encoder.encode(picture())
    encoder.close()


def test_packed_frames_and_planes_are_the_same():
    packed = picture(32, 16)
    y, u, v = packed[:16], packed[16:20].reshape(8, 16), packed[20:].reshape(8, 16)
    pairs = np.stack([u, v], 2)
    for frame in (packed, (y, u, v), (np.asfortranarray(y), u, v), np.pad(packed, 3)[3:-3, 3:-3], packed[None], (y, pairs),
                  (y, pairs.reshape(8, 32))):  # fmt: skip
        for given, expected in zip(source(frame), (y, u, v)):
            assert given.flags.c_contiguous and np.array_equal(given, expected)
    packed_nv12 = np.concatenate([y, pairs.reshape(8, 32)])
    for given, expected in zip(source(packed_nv12, format="nv12"), (y, u, v)):
        assert np.array_equal(given, expected)


def test_anything_that_numpy_understands_is_a_frame():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return picture()

    assert source(Tensor())[0].shape == (16, 32)


def test_odd_sizes_need_planes():
    with h264lite.Encoder(17, 33, keep_reconstruction=True, qp=26, bframes=0) as encoder:
        encoder.encode(planes(17, 33))
        with pytest.raises(InputError, match="odd: give planes"):
            encoder.encode(np.zeros((49, 17), np.uint8))
        packet, = encoder.flush()
    assert [plane.shape for plane in packet.reconstruction] == [(34, 18), (17, 9), (17, 9)]


class NoArray:
    def __array__(self, dtype=None, copy=None):
        return "nothing"


class OnTheGpu:
    __cuda_array_interface__ = {"shape": (24, 32)}  # noqa: RUF012


class OnNoHost(OnTheGpu):
    __cuda_array_interface__ = {"shape": (24, 32), "typestr": "|u1", "data": (256, False), "version": 3}  # noqa: RUF012


BAD_FRAMES = [
    (np.zeros((24, 32), np.float32), "(24, 32)"), (np.zeros((24, 32), np.uint16), "uint16"),
    (np.zeros((24, 32), np.int8), "int8"), (np.zeros((16, 33, 3), np.uint8), "rgb of 33x16"),
    (np.zeros((5, 16, 32, 3), np.uint8), "an array of 5 frames"), (np.zeros((16, 32, 2), np.uint8), "(16, 32, 2)"),
    (np.zeros((32, 24), np.uint8), "gray of 24x32: 32x16 in I420 is (24, 32)"),
    (np.zeros((0, 32, 3), np.uint8), "no samples"),
    (np.zeros(768, np.uint8), "(768,)"), (np.full((16, 32, 3), 2.0), "value_range=(0, 1)"),
    (np.full((3, 16, 32), np.nan, np.float16), "value_range=(0, 1)"), (OnNoHost(), "runs on the CPU"),
    ((np.zeros((16, 32), np.uint8),) * 3, "plane u of shape (16, 32)"), ((np.zeros((16, 32), np.uint8),), "1 planes"),
    ((np.zeros((8, 32), np.uint8),) * 3, "plane y"), ("frame", "str is not an array"), (None, "NoneType"),
    (NoArray(), "NoArray gives no array"), (np.broadcast_to(np.uint8(0), (1 << 20, 1 << 20)), "(24, 32)"),
    (OnTheGpu(), "neither shape nor memory"), ((np.zeros((16, 32), np.uint8), None, None), "u: NoneType"), ((), "0 planes"),
]


@pytest.mark.parametrize(("frame", "words"), BAD_FRAMES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_wrong_frame_is_refused_and_the_encoder_goes_on(frame, words):
    with h264lite.Encoder(32, 16, qp=26, bframes=0) as encoder:
        encoder.encode(picture())
        with pytest.raises(InputError) as caught:
            encoder.encode(frame)
        assert words in str(caught.value) and "\n" not in str(caught.value)
        encoder.encode(picture())
        assert len(encoder.flush()) == 2


def test_options_are_checked_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(fake_pipeline.Pipeline, "__init__", lambda *_: pytest.fail("too early"))
    for options in ({"qp": 99}, {"crf": 99}, {"mernge": 1}, {"seek": 1}, {"csv": "x"}, {"width": 0}, {"fps": "x"}):
        with pytest.raises(OptionError):
            h264lite.Encoder(**{"width": 32, "height": 16, **options})
    say_no_gpu(monkeypatch.setattr, "there is none")
    with pytest.raises(DeviceError, match="there is none"):
        h264lite.Encoder(32, 16, device="cuda")


def test_one_call_for_a_clip():
    clip = [picture(seed=n) for n in range(4)]
    with h264lite.Encoder(32, 16, fps=50, qp=20, bframes=0) as encoder:
        expected = b"".join(p.data for n in clip for p in encoder.encode(n)) + b"".join(p.data for p in encoder.flush())
    assert h264lite.encode(clip, fps=50, qp=20, bframes=0, format="i420") == expected
    assert h264lite.encode(iter(clip), fps=50, qp=20, bframes=0, width=32, height=16) == expected
    assert h264lite.encode(np.stack(clip), qp=26, bframes=0, width=32, height=16) == expected
    assert h264lite.encode([planes(17, 33)], qp=26, bframes=0).count(b"frame") == 1


@pytest.mark.parametrize(("frames", "options", "error"), [
    ([], {}, InputError), ([np.zeros((24, 32), np.uint8)], {}, InputError),
    ([np.zeros((2, 2, 3), np.uint8)], {}, InputError),
    ([picture(), picture(16, 16)], {}, InputError), ([picture()], {"width": 32}, OptionError), ([()], {}, InputError),
    (np.zeros((5, 480, 640), np.uint8), {}, InputError),  # grey frames, or I420 of 640x320
    ([picture()], {"qblur": 5}, OptionError), ([None], {}, InputError), ([(None,) * 3], {}, InputError),
], ids=str)
def test_one_call_with_something_wrong(frames, options, error):
    with pytest.raises(error):
        h264lite.encode(frames, **options)


def test_errors_are_a_tree():
    assert issubclass(OptionError, Error) and issubclass(OptionError, ValueError)
    assert issubclass(InputError, ValueError)
    assert (OptionError.exit_code, DeviceError.exit_code, Error.exit_code) == (2, 3, 1)


def test_import_costs_nothing():
    code = ("import sys, h264lite; dir(h264lite); "
            "sys.exit(sum(n in sys.modules for n in ('numpy', 'numba', 'pycuda', 'av')))")
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
