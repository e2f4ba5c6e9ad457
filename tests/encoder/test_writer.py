"""write_video and VideoWriter: every kind of frames to a file, a file object and bytes; equal bytes on every device."""

import io
import os
import sys
import types
import warnings
import weakref

import h264lite
import numpy as np
import pytest
from h264lite.cpu_simd.layout import RGB_DTYPES
from h264lite.cuda_src.runtime.device import Device
from h264lite.encoder.errors import DeviceLost, Error, InputError, OptionError, OutputError

from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..cuda_src.test_cuda_convert import levels
from ..support.foreign_arrays import LAYOUTS, Dlpack, GpuInterface, stored, video

WIDTH, HEIGHT, FRAMES = 48, 34, 5
OPTIONS = {"qp": 20, "threads": 2, "preset": "ultrafast"}


def clip(kind="uint8", frames=FRAMES):
    return stored(video(frames, WIDTH, HEIGHT, 1), kind)


def write(frames, **options):
    return h264lite.write_video(None, frames, 24, **{"device": "cpu", **OPTIONS, **options})


def decoded(data):
    """RGB frames by FFmpeg, and the stream's colours and rate."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
        context = stream.codec_context
        colours = context.color_primaries, context.color_trc, context.colorspace, context.color_range
        return np.stack(frames), colours, stream.average_rate


@pytest.mark.parametrize("kind", RGB_DTYPES)
def test_pixels_come_back(kind):
    samples = clip(kind)
    if kind == "bfloat16":
        data = write(Dlpack(samples, kind))
    else:
        data = write(samples)
    frames, colours, rate = decoded(data)
    wanted = samples if kind == "uint8" else levels(samples.view(np.uint16) if kind == "float16" else samples, kind)
    assert frames.shape == samples.shape and (colours, rate) == ((1, 1, 1, 1), 24)
    assert abs(frames.astype(int) - wanted).mean() < 5


def test_every_form_of_a_video_gives_the_same_bytes(tmp_path):
    samples = clip()
    expected = write(samples)
    frames = list(samples)
    for form in (
        frames, tuple(frames), iter(frames), (frame for frame in frames), [samples[:2], samples[2:]],
        [frames[:2], samples[2:]],
        list(samples.transpose(0, 3, 1, 2)), samples.transpose(3, 0, 1, 2)[None],
    ):  # fmt: skip
        assert write(form) == expected
    name = tmp_path / "out.mp4"
    for target in (name, str(name)):
        assert h264lite.write_video(target, samples, 24, device="cpu", **OPTIONS) is None
        assert name.read_bytes() == expected
    memory = io.BytesIO()
    with h264lite.VideoWriter(memory, 24, device="cpu", **OPTIONS) as writer:
        for k in range(0, FRAMES, 2):
            writer.write(samples[k : k + 2])
            assert writer.frames == min(FRAMES, k + 2)
        assert writer.headers.startswith(b"\0\0\0\1")
    assert memory.getvalue() == expected and not memory.closed
    stream = tmp_path / "out.264"
    h264lite.write_video(stream, samples, 24, device="cpu", **OPTIONS)
    assert stream.read_bytes() == h264lite.encode(samples, 24, device="cpu", **OPTIONS)
    assert write(samples, gops=2) == expected
    assert write(samples, ssim=True) == expected


@on_gpus
@pytest.mark.parametrize(("device", "width", "height"), (("cuda", 48, 34), ("cuda", 33, 17), ("hybrid", 48, 34)))
def test_gpus_give_the_same_bytes(driver, device, width, height):  # noqa: F811
    """Of arrays on the host and on the GPU, each layout and type, by one of two interfaces in turn."""
    other = Device()
    with other:
        for k, kind in enumerate(RGB_DTYPES if device == "cuda" else ("uint8", "bfloat16")):
            samples = stored(video(3, width, height, 1), kind)
            on_host, preset = Dlpack(samples, kind), {"cuda": "ultrafast", "hybrid": "medium"}[device]  # a plan with the GPU
            expected = write(on_host, preset=preset)
            assert write(on_host, device=device, preset=preset) == expected
            for n, (layout, order) in enumerate(LAYOUTS.items(), k):
                whole = np.ascontiguousarray(samples.transpose(order))
                memory = other.upload(whole)
                array = Dlpack(whole, kind, memory.ptr, (2, 0)) if n % 2 else GpuInterface(memory, whole, kind)
                assert write(array, device=device, layout=layout, preset=preset) == expected, (kind, layout)
        grey = stored(video(3, width, height, 1), "uint8")[..., 0].copy()
        memory = other.upload(grey)
        assert write(GpuInterface(memory, grey, "uint8"), device=device, format="gray", preset=preset) == write(
            grey, format="gray", preset=preset)
    other.close()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", RGB_DTYPES)
def test_tensors_of_torch_on_a_real_gpu(kind):
    """Each layout, contiguous and as a view; by a stream of their own, while the next chunk is computed."""
    skip_without()
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    samples = torch.from_numpy(video(9, WIDTH, HEIGHT, 1))
    samples = (255 * samples + 0.5).to(torch.uint8) if kind == "uint8" else samples.to(getattr(torch, kind))
    expected, side = write(samples), torch.cuda.Stream()
    for layout, order in LAYOUTS.items():
        for view in (samples.permute(order), samples.permute(order).contiguous()):
            assert h264lite.write_video(None, view.cuda(), 24, layout=layout, **OPTIONS) == expected
            with h264lite.VideoWriter(None, 24, layout=layout, **OPTIONS) as writer, torch.cuda.stream(side):
                for part in view.cuda().split(4, layout.index("T")):
                    torch.cuda._sleep(20_000_000)
                    chunk = part * 1
                    writer.write(chunk)
                    chunk.zero_()
            assert writer.getvalue() == expected


def test_a_gpu_is_taken_for_its_arrays(driver):  # noqa: F811
    """If no device is said; and its producer waits once a chunk."""
    other = Device()
    with other:
        samples = clip()
        memory = other.upload(samples)
        expected = write(samples)
        driver.libcuda.ordered.clear()
        assert h264lite.write_video(None, GpuInterface(memory, samples, "uint8", 5), 24, **OPTIONS) == expected
        (first, own), then = driver.libcuda.ordered
        assert (first, then) == (5, (own, 5))
        with h264lite.VideoWriter(None, 24, **OPTIONS) as writer:
            writer.write(GpuInterface(memory, samples, "uint8", None), stream=9)
        assert writer.getvalue() == expected
    other.close()


def test_arrays_are_held_no_longer_than_their_frames(driver):  # noqa: F811
    other, samples = Device(), clip()
    with other, h264lite.VideoWriter(None, 24, device="cuda", **OPTIONS) as writer:
        array = GpuInterface(other.upload(samples), samples, "uint8")
        kept = weakref.ref(array)
        writer.write(array)
        del array
        writer.write([samples[0]] * 2)  # as many as are in flight, fewer than the ring has
        assert kept() is None
    other.close()


@on_gpus
def test_values_out_of_range_on_a_gpu(driver):  # noqa: F811
    """Are noticed when the frame is encoded; the frames before are in the file."""
    other = Device()
    with other:
        for bad in (0, 7, 11):
            samples = clip("float32", 12)
            samples[bad, 3, 3, 0] = 2
            array = GpuInterface(other.upload(samples), samples, "float32")
            with pytest.raises(InputError, match=rf"frame {bad} has values.*value_range=\(-1, 1\)"):
                write(samples)
            assert write(array, device="cuda", value_range=(0, 1)) == write(samples, value_range=(0, 1))
            target = io.BytesIO()
            with pytest.raises(InputError, match=f"frame {bad} has values"):
                h264lite.write_video(target, array, 24, device="cuda", **OPTIONS)
            assert bool(target.getvalue()) == bool(bad)
            assert not bad or len(decoded(target.getvalue())[0]) == bad
        last = GpuInterface(other.upload(samples[11]), samples[11], "float32")
        with h264lite.Encoder(WIDTH, HEIGHT, 24, device="cuda", **OPTIONS) as encoder:
            packets = encoder.encode(clip()[0])
            with pytest.raises(InputError, match="frame 1 has values"):  # whichever call sees it
                packets += encoder.encode(last)
                packets += encoder.flush()
            with pytest.raises(Error, match="no frame can follow"):
                encoder.encode(clip()[0])
            assert len(packets + encoder.flush()) == 1
    other.close()


class Tensor:
    """A tensor of PyTorch on a GPU, as far as it is asked; its memory lies on the host."""

    is_cuda, layout, device, dtype = True, "strided", types.SimpleNamespace(index=0, type="cuda"), "torch.uint8"

    def __init__(self, array, copies):
        self.array, self.shape, self.copies = array, array.shape, copies

    def detach(self):
        return self

    def element_size(self):
        return 1

    def stride(self):
        return self.array.strides

    def is_neg(self):
        return False

    def data_ptr(self):
        return 1 << 20

    def __getitem__(self, index):
        return Tensor(self.array[index], self.copies)

    def cpu(self):
        self.copies.append(self.array.nbytes)
        return self.array


def test_arrays_on_a_gpu_without_an_encoder_there(monkeypatch):
    """They are copied to the host frame by frame, which is said, unless the CPU was asked for."""
    module = types.SimpleNamespace(
        Tensor=Tensor, strided="strided", cuda=types.SimpleNamespace(current_stream=lambda device: 1)
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr("h264lite.encoder.feeder.why_no_cuda", lambda: "there is none")
    samples, copies = clip(), []
    for order in LAYOUTS.values():
        tensor = Tensor(np.ascontiguousarray(samples.transpose(order)), copies)
        with pytest.warns(RuntimeWarning, match="there is none"):
            assert h264lite.write_video(None, tensor, 24, **OPTIONS) == write(samples)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert write([tensor]) == write(samples)
    assert set(copies) == {samples[0].nbytes} and len(copies) == 6 * FRAMES
    for array, words in ((samples, "no copy on the host"), (samples[0], r"neither \.cpu\(\) nor \.get\(\)")):
        with pytest.raises(InputError, match=words):
            write(Dlpack(array, "uint8", device=(2, 0)))


def test_generators_are_consumed_as_frames_are_encoded():
    """With bounded memory: what waits is bounded by the frames in flight."""
    given, done = [], []

    class Target:
        def write(self, data):
            done.append(len(given))
            return len(data)

    def frames():
        for frame in np.repeat(clip(), 8, 0):
            given.append(1)
            yield frame

    h264lite.write_video(Target(), frames(), 24, device="cpu", fragment=0.04, keyint=1, **OPTIONS)
    assert len(given) == 8 * FRAMES and done[0] <= 12


def test_an_exception_inside(tmp_path):
    """The file ends with the frames before; nothing is made for an error in the first frame."""
    name, samples = tmp_path / "out.mp4", clip()
    with pytest.raises(KeyError), h264lite.VideoWriter(name, 24, device="cpu", **OPTIONS) as writer:
        writer.write(samples)
        raise KeyError
    assert name.read_bytes() == write(samples)
    for bad in (samples[:, :-2], samples.astype(np.int64), "frame"):
        with pytest.raises(InputError):
            h264lite.write_video(name, [*samples, bad], 24, device="cpu", **OPTIONS)
        assert name.read_bytes() == write(samples)
        with pytest.raises(InputError):
            h264lite.write_video(tmp_path / "none.mp4", [bad if isinstance(bad, str) else bad.astype(np.int64)], 24)
    assert os.listdir(tmp_path) == ["out.mp4"]
    with pytest.raises(InputError, match="no frames"):
        h264lite.write_video(name, [], 24)
    assert name.read_bytes() == write(samples)


def test_calls_in_the_wrong_order():
    writer = h264lite.VideoWriter(None, 24, device="cpu", **OPTIONS)
    for call in (writer.getvalue, lambda: writer.headers):
        with pytest.raises(Error):
            call()
    writer.write(clip())
    writer.close()
    writer.close()
    assert writer.getvalue() == write(clip())
    with pytest.raises(Error, match="closed"):
        writer.write(clip())
    lost = h264lite.VideoWriter(io.BytesIO(), 24, device="cpu", keyint=1, **OPTIONS)
    lost.write(np.repeat(clip(), 4, 0))
    with pytest.warns(ResourceWarning, match="not closed"):
        del lost


@pytest.mark.parametrize(("target", "options", "error"), [
    (5, {}, OptionError), (io.StringIO(), {}, OptionError), ("", {}, OptionError), (None, {"crf": 99}, OptionError),
    (None, {"fragment": -1}, OptionError), (None, {"fps": "fast"}, OptionError), (None, {"width": 48}, OptionError),
    (None, {"layout": "RGB"}, OptionError), (None, {"qp": 99}, OptionError), ("out.avi", {}, OptionError),
    ("/nowhere/out.mp4", {}, OutputError), (None, {"width": 64, "height": 64}, InputError),
], ids=lambda value: "")  # fmt: skip
def test_wrong_arguments(target, options, error):
    with pytest.raises(error):
        h264lite.write_video(target, clip(), **{"device": "cpu", **options})


def test_progress(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    for frames in (list(clip()), clip()):
        write(frames, progress=True)
        assert f"{FRAMES}/{FRAMES} frames" in capsys.readouterr().err
    updates = []

    class Bar:
        def __init__(self, total, unit):
            updates.append(total)

        def update(self, count):
            updates.append(count)

        def close(self):
            updates.append("closed")

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    write(list(clip()), progress=True)
    assert updates[0] == FRAMES and sum(updates[1:-1]) == FRAMES and updates[-1] == "closed"


def test_a_lost_gpu_ends_the_video(driver):  # noqa: F811
    other = Device()
    with other:
        samples = clip("uint8", 12)
        array = GpuInterface(other.upload(samples), samples, "uint8")
        target = io.BytesIO()
        with pytest.raises(DeviceLost), h264lite.VideoWriter(target, 24, device="cuda", **OPTIONS) as writer:
            writer.write(samples[:8])
            driver.fail_after = driver.launches + 5
            writer.write(array)
    driver.fail_after = None
    assert 4 <= len(decoded(target.getvalue())[0]) <= 8
