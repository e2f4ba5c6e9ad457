"""Frames that other libraries write on streams of their own: slow producers, buffers that are used again at once."""

import gc
import itertools
import os
import sys
import time
import types
import weakref
from collections import deque

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime.device import Device, load_driver
from h264lite.encoder.errors import InputError
from h264lite.encoder.frames.producer import LEGACY_STREAM, Producer, common
from h264lite.scheduler.gpu_memory import GpuMemory

from ..cuda_emulator.driver import Context, EmulatedDriver
from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..cuda_emulator.real import skip_without
from ..support import round_trip
from ..support.steady import steady

WIDTH, HEIGHT, FRAMES = 64, 48, 7
SIDE = 4711
CYCLES = 40_000_000  # of a GPU's clock: some 20 ms


@pytest.fixture(scope="module")
def clip():
    planes = round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 3)
    return [np.concatenate([plane.ravel() for plane in frame]).reshape(-1, WIDTH) for frame in planes]


def encode(frames, **options):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **steady({"device": "cuda", "threads": 2, **options})) as encoder:
        packets = round_trip.packets_of(encoder, frames)
    return b"".join(packet.data for packet in packets)


def planes(clip):
    """The same frames on the host."""
    return [(p[:HEIGHT], *np.split(p.ravel()[WIDTH * HEIGHT :].reshape(-1, WIDTH // 2), 2)) for p in clip]


class LazyStream:
    """Pending work of a stream: done when another stream is ordered after it, or the host waits."""

    def __init__(self):
        self.left = deque()

    def catch_up(self):
        while self.left:
            self.left.popleft()()


@pytest.fixture
def side(gpu, monkeypatch):  # noqa: F811
    """A lazy stream with the number SIDE of the emulated driver: what it has got is done when another stream waits for it."""
    if not isinstance(gpu, EmulatedDriver):
        pytest.skip("real producers have a test of their own")
    stream, wait = LazyStream(), gpu.libcuda._wait

    def ordered(then, event, flags):
        if gpu.libcuda.last == SIDE:
            stream.catch_up()
        return wait(then, event, flags)

    monkeypatch.setattr(gpu.libcuda, "_wait", ordered)
    return stream


class Cupy:
    """CuPy's older interface: version 2, without a stream."""

    version, device = 2, "cuda:0"

    def __init__(self, array, stream):
        self.array, self.stream = array, stream
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": "|u1", "data": (array.ptr, False), "version": self.version,
        }  # fmt: skip


class Torch(Cupy):
    """What is asked of a tensor."""

    is_cuda, layout, dtype = True, "strided", "torch.uint8"

    def __init__(self, array, stream):
        super().__init__(array, stream)
        self.shape, self.device = array.shape, types.SimpleNamespace(index=0)

    def detach(self):
        return self

    def is_neg(self):
        return False

    def element_size(self):
        return 1

    def stride(self):
        return self.shape[1], 1

    def data_ptr(self):
        return self.array.ptr


class Jax(Cupy):
    def block_until_ready(self):
        self.stream.catch_up()


class Dlpack(Cupy):
    def __dlpack__(self, stream):
        assert stream == LEGACY_STREAM
        self.stream.catch_up()


def install(monkeypatch, kind):
    """The library of that class among the imported modules."""
    current = types.SimpleNamespace(cuda_stream=SIDE, ptr=SIDE)
    if kind == "torch":
        cuda = types.SimpleNamespace(current_stream=lambda device: current)
        module = types.SimpleNamespace(Tensor=Torch, strided="strided", cuda=cuda)
    elif kind == "cupy":
        module = types.SimpleNamespace(ndarray=Cupy, cuda=types.SimpleNamespace(get_current_stream=lambda: current))
    else:
        module = types.SimpleNamespace(Array=Jax)
    for name in ("torch", "cupy", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if kind in ("torch", "cupy", "jax"):
        monkeypatch.setitem(sys.modules, kind, module)
    return {"torch": Torch, "cupy": Cupy, "jax": Jax, "dlpack": Dlpack}[kind]


@pytest.mark.parametrize("device", ("cuda", "hybrid"))
@pytest.mark.parametrize("kind", ("torch", "cupy", "jax", "dlpack"))
def test_side_streams_that_are_late(clip, side, gpu, kind, device, monkeypatch):  # noqa: F811
    """One buffer, written by a stream that no array names: each frame is complete when it is read."""
    make = install(monkeypatch, kind)
    other = Device()
    with other:
        buffer = other.upload(np.zeros_like(clip[0]))

        def frames():
            for packed in clip:
                side.left.append(lambda packed=packed: buffer.put(packed))
                yield make(buffer, side)

        stream = encode(frames(), device=device)
        orders = gpu.libcuda.ordered
        if kind in ("torch", "cupy"):  # and the producer's stream waits each time until its frame is read
            assert [first == SIDE for first, then in orders if then == SIDE] == [False] * FRAMES
        else:  # the host does
            assert not [then for _, then in orders if then == SIDE]
    other.close()
    assert stream == encode(planes(clip), device="cpu")


def test_a_tensor_says_its_gpu(clip, side, gpu, monkeypatch):  # noqa: F811
    """The driver is asked only where the library may be wrong, or says another GPU."""
    make, asked = install(monkeypatch, "torch"), []
    ordinal_of = GpuMemory.ordinal_of
    monkeypatch.setattr(GpuMemory, "ordinal_of", lambda self, pointer: asked.append(1) or ordinal_of(self, pointer))
    other = Device()
    with other:
        frames = [make(other.upload(packed), side) for packed in clip]
    expected = encode(planes(clip), device="cpu")
    assert encode(frames, device="cuda") == expected and not asked
    frames[2].device.index = 1
    assert encode(frames, device="cuda") == expected and asked
    other.close()


def test_planes_of_several_producers():
    assert common([Producer(5), Producer(None), Producer(5, False)]) == Producer(5, False)
    assert common([Producer(None)]) == Producer(None)
    with pytest.raises(InputError, match="different streams"):
        common([Producer(5), Producer(6)])


def torch_frames(clip):
    torch = pytest.importorskip("torch")
    stream, sources = torch.cuda.Stream(), [torch.from_numpy(packed).cuda() for packed in clip]
    buffer = torch.zeros_like(sources[0])
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for source in sources:
            torch.cuda._sleep(CYCLES)
            buffer.copy_(source)
            yield buffer
            buffer.zero_()


def cupy_frames(clip):
    cupy = pytest.importorskip("cupy")
    code = "extern \"C\" __global__ void spin(long long n) { for (long long t = clock64(); clock64() - t < n;); }"
    spin = cupy.RawKernel(code, "spin")
    stream, sources = cupy.cuda.Stream(non_blocking=True), [cupy.asarray(packed) for packed in clip]
    buffer = cupy.zeros_like(sources[0])
    cupy.cuda.Device().synchronize()
    with stream:
        for source in sources:
            spin((1,), (1,), (np.int64(CYCLES),))
            buffer[...] = source
            yield buffer
            buffer.fill(0)


def jax_frames(clip):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes three quarters of the GPU's memory
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    heavy = jax.numpy.ones((6000, 6000)) / 6000

    @jax.jit
    def late(source, heavy):
        for _ in range(6):
            heavy = heavy @ heavy
        return source + (heavy.sum() * 0).astype(source.dtype)

    for packed in clip:
        yield late(jax.numpy.asarray(packed), heavy)


@pytest.mark.gpu
@pytest.mark.parametrize("device", ("cuda", "hybrid"))
@pytest.mark.parametrize("frames", (torch_frames, cupy_frames, jax_frames), ids=lambda frames: frames.__name__)
def test_real_producers_on_side_streams(clip, frames, device):
    skip_without()
    expected = encode(planes(clip), device="cpu")
    for _ in range(2):
        assert encode(frames(clip), device=device) == expected


@pytest.mark.parametrize("device", ("cuda", "hybrid"))
def test_streams_end_before_their_context(clip, gpu, device, monkeypatch):  # noqa: F811
    """PyCUDA gives back nothing of a context that was let go of: 2.8 MiB of each encoder stayed taken."""
    if load_driver() is not gpu:
        pytest.skip("of PyCUDA's contexts; real GPUs have a test of their own")
    alive, counts = weakref.WeakSet(), []
    make, detach = gpu.Stream, Context.detach

    def noted():
        stream = make()
        alive.add(stream)
        return stream

    def counted(self):
        counts.append(len(alive))
        detach(self)

    monkeypatch.setattr(gpu, "Stream", noted)
    monkeypatch.setattr(Context, "detach", counted)
    encode(planes(clip), device=device)
    assert counts and not any(counts)


BOUND, ROUNDS, JUDGED = 8, 12, 3  # MiB; most rounds; how many undisturbed ones must grow for a fault


def growth(work, free, idle=0.2, reads=8):
    """MiB by which each undisturbed round of `work` lowers free(), bytes, until one stays within BOUND.

    A round is disturbed if the free memory changes while this process does nothing before and after it: another process uses
    the GPU. Empty: all were disturbed.
    """

    def is_still():
        seen = {free()}
        for _ in range(reads):
            time.sleep(idle / reads)
            seen.add(free())
        return len(seen) == 1

    grown = []
    for _ in range(ROUNDS):
        still, before = is_still(), free()
        work()
        after = free()
        if still and is_still():
            grown.append((before - after) >> 20)
            if grown[-1] <= BOUND or len(grown) == JUDGED:
                break
    return grown


def test_growth_is_that_of_this_process():
    """Found in each undisturbed round; what another process takes and gives, or once takes, is none."""
    total, reads = [1 << 34], itertools.count()

    def take(mebibytes):
        total[0] -= mebibytes << 20

    def noisy():
        return total[0] - (next(reads) % 7 << 24)

    assert growth(lambda: take(0), lambda: total[0], 0.0) == [0]
    assert growth(lambda: take(BOUND + 1), lambda: total[0], 0.0) == [BOUND + 1] * JUDGED
    assert growth(lambda: take(0), noisy, 0.0) == [] == growth(lambda: take(100), noisy, 0.0)
    once = iter([500])
    assert growth(lambda: take(next(once, 0)), lambda: total[0], 0.0) == [500, 0]


@pytest.mark.gpu
def test_gpu_memory_of_many_encoders_is_bounded(clip, monkeypatch):
    """Encoders made and closed in turn: what is taken of the GPU does not grow with their number.

    Arrays are counted where this process allocates them; what the driver takes beside, by the GPU's free memory.
    """
    skip_without()
    driver, arrays, allocate = load_driver(), weakref.WeakSet(), Device._allocate

    def noted(self, nbytes, what):
        array = allocate(self, nbytes, what)
        arrays.add(array)
        return array

    monkeypatch.setattr(Device, "_allocate", noted)
    context = driver.retain(0)  # so that the last encoder does not end it
    context.push()
    try:
        encode(planes(clip))
        encode(planes(clip))
        gc.collect()
        held = len(arrays)

        def many():
            for _ in range(30):
                encode(planes(clip))

        grown = growth(many, lambda: driver.memory_left()[0])
        gc.collect()
        assert len(arrays) <= held
        if not grown:
            pytest.skip("other processes use this GPU: its free memory changes by itself")
        assert grown[-1] <= BOUND, grown
    finally:
        context.pop()
        context.detach()
