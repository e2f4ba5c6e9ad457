"""Real GPUs with what else happens in a process and beside it: tensors that are overwritten or freed as soon as a call has
returned, threads whose encodes fail, processes that are stopped or killed, kernels of other libraries that fail.
"""

import ctypes
import gc
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import cache

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import Error, InputError

from ..cuda_emulator.driver import Context, EmulatedDriver
from ..cuda_emulator.fixtures import driver, on_gpus  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..support import gpu_process, round_trip

WIDTH, HEIGHT, FRAMES = 640, 368, 14
CYCLES = 20_000_000  # of a GPU's clock: some 10 ms, by which a producer is late
PLACE = "cuda"
OPTIONS = {
    "no B frames": {"bframes": 0, "qp": 26},
    "fixed types": {"bframes": 3, "b_adapt": 0, "scenecut": 0, "qp": 26},
    "lookahead": {"bframes": 3, "b_adapt": 1, "crf": 24, "weightp": 2, "aq_mode": 1},
    "dyadic": {"bframes": 7, "b_pyramid": "dyadic", "ref": 5, "qp": 26},
    "buffer": {"bframes": 2, "bitrate": 900, "vbv_maxrate": 900, "vbv_bufsize": 400},
}


@cache
def rgb_clip(width=WIDTH, height=HEIGHT, frames=FRAMES):
    """RGB with motion, a fade and noise."""
    rng = np.random.default_rng(4)
    texture = rng.integers(0, 256, (height // 8 + 6, width // 8 + 6, 3)).repeat(8, 0).repeat(8, 1)
    pictures = []
    for n in range(frames):
        moved = texture[n : n + height, 2 * n : 2 * n + width] * (20 - min(n, 8)) // 20
        pictures.append(np.minimum(moved + rng.integers(0, 8, moved.shape), 255).astype(np.uint8))
    return pictures


def encode(frames, width=WIDTH, height=HEIGHT, **options):
    """frames: functions that return (frame, stream or None, what is done when the call has returned)."""
    packets = []
    with h264lite.Encoder(width, height, 30, threads=2, **options) as encoder:
        for make in frames:
            frame, stream, after = make()
            packets += encoder.encode(frame, stream)
            del frame
            after()
        packets += encoder.flush()
    return b"".join(packet.data for packet in packets)


def nothing():
    pass


def plain(frames):
    return [lambda frame=frame: (frame, None, nothing) for frame in frames]


@cache
def expected(name, device="cpu"):
    return encode(plain(rgb_clip()), device=device, **OPTIONS[name])


class Interface:
    """A tensor as a library shows it that has the interface alone."""

    def __init__(self, tensor, stream):
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape), "typestr": "|u1", "data": (tensor.data_ptr(), False), "version": 3, "strides": None,
            "stream": stream,
        }  # fmt: skip


class Dlpack:
    """A tensor as a library shows it that has DLPack alone."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return tuple(map(int, self.tensor.__dlpack_device__()))


def overwritten(torch, sources, stream, show):
    """One tensor, which its stream writes late, and overwrites at once; show: what is given of it, and the stream said."""
    with torch.cuda.stream(stream):
        buffer = torch.zeros_like(sources[0])
    torch.cuda.synchronize()

    def make(source):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(CYCLES)
            buffer.copy_(source)
        shown, said = show(buffer)

        def after():
            with torch.cuda.stream(stream):
                buffer.fill_(200)

        return shown, said, after

    return [lambda source=source: make(source) for source in sources]


def freed(torch, sources, stream):
    """A tensor a frame, freed when the call has returned; the next tensors of its stream get the memory, and are written."""

    def make(source):
        torch.cuda._sleep(CYCLES)
        tensor = source.clone()

        def after():
            gc.collect()
            for _ in range(3):
                torch.full_like(source, 200)

        return tensor, None, after

    return [lambda source=source: make(source) for source in sources]


def shown_by(torch, way, side):
    """(stream that writes, what is given of a tensor and said of its stream) of a way."""
    current = torch.cuda.current_stream()
    thread_stream = torch.cuda.ExternalStream(2)  # the default stream of the thread

    def synchronized(tensor):
        torch.cuda.synchronize()
        return Interface(tensor, None), None

    return {
        "current": (current, lambda tensor: (tensor, None)),
        "said": (side, lambda tensor: (tensor, side)),
        "number": (side, lambda tensor: (tensor, side.cuda_stream)),
        "interface": (side, lambda tensor: (Interface(tensor, side.cuda_stream), None)),
        "interface 1": (current, lambda tensor: (Interface(tensor, 1), None)),
        "interface 2": (thread_stream, lambda tensor: (Interface(tensor, 2), None)),
        "complete": (side, synchronized),
        "dlpack": (current, lambda tensor: (Dlpack(tensor), None)),
        "dlpack said": (side, lambda tensor: (Dlpack(tensor), side)),
    }[way]  # fmt: skip


WAYS = ("current", "said", "number", "interface", "interface 1", "interface 2", "complete", "dlpack", "dlpack said")


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_is_overwritten_at_once(way, name):
    skip_without()
    torch = pytest.importorskip("torch")
    sources = [torch.from_numpy(frame).to(PLACE) for frame in rgb_clip()]
    stream, show = shown_by(torch, way, torch.cuda.Stream())
    for device in ("cuda", "hybrid") if way in ("current", "interface 2") else ("cuda",):
        assert encode(overwritten(torch, sources, stream, show), device=device, **OPTIONS[name]) == expected(name), device


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("side", (False, True))
def test_a_tensor_is_freed_at_once(side, name):
    """Whether it belongs to the default stream or to another one; that it is current when the frame is given."""
    skip_without()
    torch = pytest.importorskip("torch")
    sources = [torch.from_numpy(frame).to(PLACE) for frame in rgb_clip()]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream() if side else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        assert encode(freed(torch, sources, stream), device="cuda", **OPTIONS[name]) == expected(name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("pinned", (False, True))
def test_memory_of_the_host_is_written_again_at_once(pinned, name):
    """A ring of three frames, of NumPy or page-locked by PyTorch."""
    skip_without()
    clip = rgb_clip()
    ring = np.zeros((3, *clip[0].shape), np.uint8)
    if pinned:
        torch = pytest.importorskip("torch")
        tensor = torch.zeros(ring.shape, dtype=torch.uint8, pin_memory=True)
        ring = tensor.numpy()

    def make(n, frame):
        ring[n % 3] = frame
        return (tensor[n % 3] if pinned else ring[n % 3]), None, lambda: ring[n % 3].fill(200)

    for device in ("cuda", "hybrid"):
        frames = [lambda n=n, frame=frame: make(n, frame) for n, frame in enumerate(clip)]
        assert encode(frames, device=device, **OPTIONS[name]) == expected(name)


def forms(torch, frame):
    """Tensors of one frame, uint8[H, W, 3], by name."""
    height, width, _ = frame.shape
    tensor = torch.from_numpy(frame)
    wide = torch.zeros((height + 5, 2 * width + 6, 4), dtype=torch.uint8)
    wide[3 : 3 + height, 2 : 2 + 2 * width : 2, :3] = tensor
    yield "columns apart", wide.to(PLACE)[3 : 3 + height, 2 : 2 + 2 * width : 2, :3]
    yield "channels first", tensor.to(PLACE).permute(2, 0, 1)
    yield "channels first, contiguous", tensor.permute(2, 0, 1).contiguous().to(PLACE)
    yield "channels last", tensor.permute(2, 0, 1)[None].contiguous(memory_format=torch.channels_last).to(PLACE)
    yield "turned", tensor.transpose(0, 1).contiguous().to(PLACE).transpose(0, 1)
    yield "one row", tensor[:1].to(PLACE).expand(height, width, 3)
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        yield str(kind), (tensor.to(torch.float64) / 255).to(kind).to(PLACE)
    yield "gradient", (tensor.float() / 255).to(PLACE).requires_grad_(True)
    yield "parameter", torch.nn.Parameter((tensor.float() / 255).to(PLACE))


@pytest.mark.gpu
def test_forms_of_tensors():
    """Small frames, so that it also runs under compute-sanitizer."""
    skip_without()
    torch = pytest.importorskip("torch")
    clip = rgb_clip(64, 48, 3)
    options = OPTIONS["lookahead"]
    for name, _ in forms(torch, clip[0]):
        tensors = [dict(forms(torch, frame))[name] for frame in clip]
        stream = encode(plain(tensors), 64, 48, device="cuda", **options)
        wanted = encode(plain([tensor.detach().cpu() for tensor in tensors]), 64, 48, device="cpu", **options)
        assert stream == wanted, name


@pytest.mark.gpu
def test_tensors_that_are_no_frames():
    """Refused by name, and the encoder goes on."""
    skip_without()
    torch = pytest.importorskip("torch")
    clip = rgb_clip(64, 48, 3)
    good = [torch.from_numpy(frame).to(PLACE) for frame in clip]
    gone = torch.zeros_like(good[0])
    gone.untyped_storage().resize_(0)
    bad = [
        gone, good[0].bool(), good[0].long(), good[0].float().to_sparse(), torch.complex(good[0].float(), good[0].float()),
        torch._neg_view(good[0].float()), good[0][:0], torch.zeros((), device=PLACE), good[0].cpu().to("meta"), good[0][:40],
    ]  # fmt: skip
    if torch.cuda.device_count() > 1:
        bad.append(good[0].to("cuda:1"))
    packets = []
    with h264lite.Encoder(64, 48, 30, device="cuda", **OPTIONS["lookahead"]) as encoder:
        for frame in good:
            for n, other in enumerate(bad):
                with pytest.raises(InputError):
                    encoder.encode(other)
                    pytest.fail(f"number {n} was taken")
            for stream in (-1, "main", object()):
                with pytest.raises(InputError, match="stream"):
                    encoder.encode(frame, stream=stream)
            packets += encoder.encode(frame)
        packets += encoder.flush()
    wanted = encode(plain(clip), 64, 48, device="cpu", **OPTIONS["lookahead"])
    assert b"".join(packet.data for packet in packets) == wanted


@pytest.mark.gpu
def test_encoders_of_other_sizes_in_turn():
    """Each takes over what the one before leaves."""
    skip_without()
    sizes = ((352, 288), (64, 48), (720, 400), (17, 33), (640, 368))
    wanted = {}
    for turn, (size, name) in itertools.product(range(2), itertools.product(sizes, ("dyadic", "lookahead", "buffer"))):
        planes = [tuple(frame) for frame in round_trip.noise_clip(*size, 9, 3)]
        if (size, name) not in wanted:
            wanted[size, name] = encode(plain(planes), *size, device="cpu", **OPTIONS[name])
        assert encode(plain(planes), *size, device="cuda", **OPTIONS[name]) == wanted[size, name], (turn, size, name)


def current_context():
    """The CUcontext that is current to this thread."""
    context = ctypes.c_void_p()
    assert not ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context))
    return context.value


class Refused(Exception):
    """Of a frame source."""


def broken_source(encoder, frames):
    """The source of the frames fails."""
    with pytest.raises(Refused):
        h264lite.encode((raise_refused() if n == 3 else frame for n, frame in enumerate(frames)), 30, device="cuda")


def raise_refused():
    raise Refused


def wrong_size(encoder, frames):
    """A frame of another size, after which the right ones go on."""
    packets = [packet for frame in frames[:3] for packet in encoder.encode(frame)]
    with pytest.raises(InputError, match=r"needs|shape"):
        encoder.encode(tuple(plane[:-1] for plane in frames[0]))
    packets += [packet for frame in frames[3:] for packet in encoder.encode(frame)] + encoder.flush()
    return b"".join(packet.data for packet in packets)


def closed_early(encoder, frames):
    """Closed with frames in flight."""
    for frame in frames[:4]:
        encoder.encode(frame)
    encoder.close()
    with pytest.raises(Error, match="closed"):
        encoder.encode(frames[4])


def whole(encoder, frames):
    """Nothing happens."""
    packets = [packet for frame in frames for packet in encoder.encode(frame)] + encoder.flush()
    return b"".join(packet.data for packet in packets)


@on_gpus
def test_threads_beside_failing_ones(driver):  # noqa: F811
    """Each gets its own bytes or its own error, and its context back."""
    emulated = isinstance(driver, EmulatedDriver)
    sizes, rounds, n_threads = (((16, 16), (34, 18)), 1, 4) if emulated else (((320, 176), (176, 144), (64, 48)), 6, 8)
    name, options = "fixed types", {**OPTIONS["fixed types"], "threads": 2}
    clips = {size: [tuple(frame) for frame in round_trip.noise_clip(*size, 6, 3)] for size in sizes}
    wanted = {size: encode(plain(clips[size]), *size, device="cpu", **OPTIONS[name]) for size in sizes}
    works, wrong, together = (whole, broken_source, wrong_size, closed_early), [], threading.Barrier(n_threads)

    def work(k):
        try:
            before = None if emulated else current_context()
            together.wait(60)
            for n in range(rounds):
                size, done = sizes[(k + n) % len(sizes)], works[(k + n) % len(works)]
                with h264lite.Encoder(*size, 30, device="cuda", **options) as encoder:
                    stream = done(encoder, clips[size])
                if done in (whole, wrong_size) and stream != wanted[size]:
                    wrong.append((k, n, size, done.__name__))
            if Context.stack() if emulated else current_context() != before:
                wrong.append((k, "another context is current"))
        except BaseException as error:
            wrong.append((k, repr(error)))
            raise

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not wrong, wrong
    assert not driver.allocations


# ---- processes
def start(out, *words, what="encode", **environment):
    program = [sys.executable, "-X", "faulthandler", gpu_process.__file__, what, str(out), *words]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(program, text=True, env={**os.environ, **environment}, **pipes)


def said(process):
    """What it says at its end."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and "Traceback" not in err, (process.returncode, err)
    return json.loads(out.splitlines()[-1])


@cache
def bytes_of_process():
    return encode(plain(gpu_process.clip()), gpu_process.WIDTH, gpu_process.HEIGHT, device="cpu",
                  **{k: v for k, v in gpu_process.OPTIONS.items() if k != "threads"})  # fmt: skip


@pytest.fixture
def service(tmp_path, request):
    """The environment of processes that share the GPU by turns, or side by side by a Multi-Process Service of their own."""
    skip_without()
    if not request.param:
        yield {}
        return
    program = shutil.which("nvidia-cuda-mps-control", path=f"{os.environ['PATH']}:/usr/local/nvidia/bin")
    if program is None:
        pytest.skip("nvidia-cuda-mps-control is not on PATH")
    folders = [tmp_path / name for name in ("pipe", "log")]
    for folder in folders:
        folder.mkdir()
    environment = dict(zip(("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"), map(str, folders)))
    inherited = {**os.environ, **environment}
    if subprocess.run([program, "-d"], env=inherited).returncode:
        pytest.skip("the Multi-Process Service does not start")
    time.sleep(1)
    yield environment
    subprocess.run([program], input="quit\n", text=True, env=inherited, timeout=60)


@pytest.mark.gpu
@pytest.mark.parametrize("service", (False, True), indirect=True, ids=("by turns", "side by side"))
@pytest.mark.parametrize("device", ("cuda", "hybrid"))
def test_processes_on_one_gpu(service, device, tmp_path):
    """One is killed and one stopped for a while; the others, and that one, give the usual bytes.

    With the service, whose clients must not be killed while they work (its documentation), only the stop is tried.
    """
    outs = [tmp_path / f"{n}.264" for n in range(4)]
    processes = [start(out, device, H264LITE_WATCHDOG="3", **service) for out in outs]
    try:
        for process in processes:
            assert process.stdout.readline() == "begun\n", process.communicate()
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        time.sleep(0.3)
        stopped, killed = processes[0], None if service else processes[1]
        stopped.send_signal(signal.SIGSTOP)
        if killed is not None:
            killed.send_signal(signal.SIGKILL)
            killed.communicate(timeout=60)
        time.sleep(5)
        stopped.send_signal(signal.SIGCONT)
        for process, out in zip(processes, outs):
            if process is not killed:
                assert said(process) == {"error": None, "text": "", "warnings": []}
                assert out.read_bytes() == bytes_of_process()
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.gpu
@pytest.mark.parametrize("when", ("before", "between"))
@pytest.mark.parametrize("device", ("cuda", "auto", "hybrid"))
def test_a_kernel_of_another_library_fails(device, when, tmp_path):
    """The context is the process's: the encoder loses it too, says so in one line, and goes on on the CPU if it may."""
    skip_without()
    pytest.importorskip("torch")
    outcome = said(start(tmp_path / "out.264", device, when, what="fault"))
    if device == "cuda":
        assert outcome["error"] in ("DeviceError", "DeviceLost", "Error") and "\n" not in outcome["text"], outcome
        assert "assert" in outcome["text"], outcome  # CUDA's word for what has happened
    else:
        assert outcome["error"] is None and len(outcome["warnings"]) <= 1, outcome
        assert (tmp_path / "out.264").read_bytes() == bytes_of_process()
