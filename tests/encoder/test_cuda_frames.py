"""Frames that lie on the GPU: every layout gives the stream of the same frame on the host; the rest is refused by name."""

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import Device
from h264lite.encoder.errors import DeviceLost, InputError
from h264lite.scheduler.frames.ring import DOWNLOAD_CYCLE

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..cuda_src.test_cuda_convert import bt709
from ..inside import take_gpu_for_any_size
from ..support import round_trip
from ..support.steady import steady

FRAMES = 6


class Array:
    """Somebody's array on the GPU: a window into memory of ours, with an interface of its own."""

    def __init__(self, memory, shape=None, strides=None, offset=0, stream=1, version=3, typestr="|u1"):
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": shape or memory.shape, "typestr": typestr, "data": (memory.ptr + offset, False), "version": version,
            "strides": strides,
        } | ({"stream": stream} if version >= 3 else {})  # fmt: skip


@pytest.fixture
def device(gpu):  # noqa: F811
    other = Device()  # as another library would have it: the same primary context
    with other:
        yield other
    other.close()


def upload(device, array, **more):
    return Array(device.upload(array), **more)


def encode(frames, width, height, **options):
    options = {"qp": 24, "threads": 2, **options}
    with h264lite.Encoder(width, height, 30, **steady(options)) as encoder:
        packets = round_trip.packets_of(encoder, frames)
    return b"".join(packet.data for packet in packets)


def layouts(device, planes, width, height):
    """The same frame in each layout."""
    y, u, v = planes
    pairs = np.stack([u, v], 2)
    yield "planes", tuple(upload(device, p) for p in planes)
    yield "nv12", (upload(device, y), upload(device, pairs))
    yield "nv12 flat", [upload(device, y), upload(device, pairs.reshape(len(u), -1))]
    wide = [np.pad(p, ((0, 0), (3, 5))) for p in planes]
    yield "windows", tuple(
        Array(device.upload(w), p.shape, (w.shape[1], 1), 3) for w, p in zip(wide, planes)
    )  # fmt: skip
    if not (width % 2 or height % 2):
        packed = np.concatenate([p.ravel() for p in planes]).reshape(-1, width)
        yield "i420", upload(device, packed)
        yield "our own", device.upload(packed)


@pytest.mark.parametrize(("width", "height"), ((34, 18), (17, 33)))
def test_layouts(device, width, height):
    clip = round_trip.noise_clip(width, height, FRAMES, 3)
    expected = encode([tuple(p) for p in clip], width, height, device="cpu")
    for name, _ in layouts(device, clip[0], width, height):
        frames = [dict(layouts(device, planes, width, height))[name] for planes in clip]
        assert encode(frames, width, height, device="cuda") == expected, name
    # and both kinds in one stream, with pictures of I_PCM
    mixed = [dict(layouts(device, planes, width, height))["planes"] if n % 2 else tuple(planes)
             for n, planes in enumerate(clip)]  # fmt: skip
    lossless = encode([tuple(p) for p in clip], width, height, device="cpu", qp=0, threads=1)
    assert encode(mixed, width, height, device="cuda", qp=0, threads=1) == lossless


def test_rgb(device):
    """BT.709 in limited range, which the stream says, unless it says so already."""
    rng = np.random.default_rng(5)
    for width, height in ((34, 18), (17, 33)):
        clip = [rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3)).repeat(8, 0).repeat(8, 1)[:height, :width]
                .astype(np.uint8) for _ in range(3)]  # fmt: skip
        said = {"colorprim": "bt709", "transfer": "bt709", "colormatrix": "bt709", "range": "tv"}
        expected = encode([tuple(bt709(rgb)) for rgb in clip], width, height, device="cpu", **said)
        for options in ({}, said):
            for frames in ([upload(device, rgb) for rgb in clip],
                           [upload(device, np.moveaxis(rgb, 2, 0)) for rgb in clip]):  # fmt: skip
                assert encode(frames, width, height, device="cuda", **options) == expected
        assert h264lite.encode([upload(device, rgb) for rgb in clip], 30, device="cuda", qp=24, bframes=0) == expected
    frame = upload(device, clip[0])
    for options, words in (({"colormatrix": "smpte170m"}, "contradicts colormatrix"), ({"range": "pc"}, "contradicts range")):
        with pytest.raises(InputError, match=words):
            encode([frame], 17, 33, device="cuda", **options)
    with pytest.raises(InputError, match="from the start"):
        encode([tuple(bt709(clip[0])), frame], 17, 33, device="cuda")


def test_it_is_ordered_behind_the_producer(device, gpu):  # noqa: F811
    """And the producer's later work after the read."""
    if gpu is None:
        pytest.skip("only the emulated driver notes it")

    class Stream:
        cuda_stream = 4711

    y, u, v = round_trip.noise_clip(34, 18, 1, 3)[0]
    packed = np.concatenate([p.ravel() for p in (y, u, v)]).reshape(-1, 34)
    for more, given, expected in (
        ({"stream": 5}, None, [(5, 77), (77, 5)]), ({"version": 2}, None, [(1, 77), (77, 1)]), ({"stream": None}, None, []),
        ({"stream": None}, 9, [(9, 77), (77, 9)]), ({"stream": 5}, Stream(), [(4711, 77), (77, 4711)]),
        ({"stream": 5}, 0, [(1, 77), (77, 1)]),
    ):  # fmt: skip
        gpu.libcuda.ordered.clear()
        with h264lite.Encoder(34, 18, 30, device="cuda", threads=1, qp=26, bframes=0) as encoder:
            encoder.encode(upload(device, packed, **more), stream=given)
        handles = {handle for order in gpu.libcuda.ordered for handle in order} - {1, 5, 9, 4711}
        assert [tuple(77 if handle in handles else handle for handle in order) for order in gpu.libcuda.ordered] == expected
        assert len(handles) == bool(expected)


def test_refusals(device, gpu):  # noqa: F811
    width, height = 34, 18
    y, u, v = round_trip.noise_clip(width, height, 1, 3)[0]
    packed = np.concatenate([p.ravel() for p in (y, u, v)]).reshape(-1, width)
    on_gpu = [upload(device, p) for p in (y, u, v)]
    memory = device.upload(np.zeros(4 * width * height, np.uint8))
    for frame, words in (
        (upload(device, packed[:-1]), r"shape \(26, 34\).*\(27, 34\)"),
        (upload(device, packed, typestr="<i4"), "dtype <i4"),
        (Array(memory, packed.shape, (width + 2, 1)), "contiguous"),
        (Array(memory, (3, width, height)), r"rgb of 18x34: all frames of this stream are 34x18"),
        (Array(memory, (4,)), "two dimensions"),
        (Array(memory, packed.shape, stream=0), "stream 0"),
        (Array(memory, packed.shape, stream=-1), "stream -1"),
        (tuple(on_gpu[:1]), "1 planes"),
        ((on_gpu[0], on_gpu[1], v), "plane v is not on the GPU"),
        ((y, on_gpu[1], on_gpu[2]), "plane y is not on the GPU"),
        ((on_gpu[1], *on_gpu[1:]), r"plane y of shape \(9, 17\)"),
        ((on_gpu[0], on_gpu[0]), "plane uv of shape"),
        ((Array(memory, (height, width), (-width, 1)), *on_gpu[1:]), "turned over"),
        ((Array(memory, (height, width), (2 * width, 2)), *on_gpu[1:]), "neighbours"),
        ((on_gpu[0], on_gpu[1], Array(memory, v.shape, (40, 1))), "must be alike"),
        ((upload(device, y, stream=3), upload(device, u, stream=4), on_gpu[2]), "different streams"),
    ):
        with pytest.raises(InputError, match=words):
            encode([frame], width, height, device="cuda")
    with pytest.raises(InputError, match="runs on the CPU"):
        encode([upload(device, packed)], width, height, device="cpu")
    with pytest.raises(InputError, match="ssim"):
        encode([upload(device, packed)], width, height, device="cuda", ssim=True)
    with pytest.raises(InputError, match="neither a number"), h264lite.Encoder(width, height, device="cuda") as encoder:
        encoder.encode(upload(device, packed), stream="main")
    with pytest.raises(InputError, match="stream -1"), h264lite.Encoder(width, height, device="cuda") as encoder:
        encoder.encode(upload(device, packed), stream=-1)

    class Host:
        ptr, shape = packed.ctypes.data, packed.shape

    with pytest.raises(InputError, match="lies on no GPU"):
        encode([Array(Host)], width, height, device="cuda")
    if gpu is not None:
        gpu.libcuda.ordinal = 1
        with pytest.raises(InputError, match=r"lies on GPU 1.*GPU 0"):
            encode([upload(device, packed)], width, height, device="cuda")


@pytest.mark.parametrize(("after", "options"), [(5, {}), (0, {"profile": "main", "weightp": 1})])
def test_a_lost_gpu_takes_them_with_it(device, gpu, monkeypatch, after, options):  # noqa: F811
    """In the loop, or while sums of the source are taken."""
    if gpu is None:
        pytest.skip("only the emulated driver can be lost")
    take_gpu_for_any_size(monkeypatch.setattr)
    clip = round_trip.noise_clip(34, 18, FRAMES, 3)
    frames = [tuple(upload(device, p) for p in planes) for planes in clip]
    packets = []
    with h264lite.Encoder(34, 18, 30, **steady(options)) as encoder:
        for n, frame in enumerate(frames):
            gpu.fail_after = gpu.launches + after if n == 3 else None
            if n == 3:
                with pytest.raises(DeviceLost, match="are lost too"):
                    encoder.encode(frame)
                break
            packets += encoder.encode(frame)
        with pytest.raises(DeviceLost, match="are lost too"):
            encoder.encode(frames[4])
        packets += encoder.flush()
    assert [packet.pts for packet in packets] == [0, 1, 2]
    gpu.fail_after = None


@pytest.mark.parametrize(("there", "lost"), [((6, 7, 8, 9), 10), ((6, 7), 9), ((1, 2), 9), ((), 10)])
def test_pictures_that_would_be_done_again_may_lie_there(device, gpu, monkeypatch, there, lost):  # noqa: F811
    """The GPU is lost at a frame of the host, whose references were not downloaded; those before it are encoded again."""
    if gpu is None:
        pytest.skip("only the emulated driver can be lost")
    take_gpu_for_any_size(monkeypatch.setattr)
    clip = round_trip.noise_clip(34, 18, 12, 3)
    frames = [tuple(upload(device, p) for p in planes) if n in there else planes for n, planes in enumerate(clip)]
    expected = encode(clip, 34, 18, device="cpu")

    def encoded():
        with h264lite.Encoder(34, 18, 30, qp=24, threads=2, bframes=0) as encoder:
            packets = []
            for n, frame in enumerate(frames):
                gpu.fail_after, gpu.silent = (gpu.launches, True) if n == lost else (gpu.fail_after, gpu.silent)
                packets += encoder.encode(frame)
            return b"".join(packet.data for packet in packets + encoder.flush())

    try:
        if lost - max(there, default=-9) < DOWNLOAD_CYCLE:
            with pytest.raises(DeviceLost, match="are lost too"):
                encoded()
        else:
            with pytest.warns(RuntimeWarning, match="continuing on the CPU"):
                assert encoded() == expected
    finally:
        gpu.fail_after, gpu.silent = None, False


def test_a_gpu_that_fails_when_asked_for_a_pointer(device, gpu, monkeypatch):  # noqa: F811
    """Only where the driver does not know the address it lies on no GPU."""
    if gpu is None:
        pytest.skip("only the emulated driver fails")
    frame = upload(device, np.zeros((27, 34), np.uint8))
    with h264lite.Encoder(34, 18, device="cuda", qp=26, bframes=0) as encoder:
        encoder.encode(frame)
        monkeypatch.setattr(gpu.libcuda, "cuPointerGetAttribute", lambda *given: 700)
        with pytest.raises(DeviceLost, match=r"cuPointerGetAttribute: error 700.*are lost too"):
            encoder.encode(frame)


def test_large_pictures_are_copied_by_several_threads(gpu, monkeypatch):  # noqa: F811
    clip = round_trip.noise_clip(33, 35, 4, 9)
    expected, _ = round_trip.encode(clip, 33, 35, device="cpu")
    monkeypatch.setattr("h264lite.scheduler.frames.frame.LEAST_SHARED_BYTES", 0)
    assert round_trip.encode(clip, 33, 35, device="cuda")[0] == expected
