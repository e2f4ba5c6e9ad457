"""Memory of a GPU that runs out, whatever is made then: the same bytes from the CPU or one named error, and nothing stays
taken. What is made: arrays, page-locked memory, streams, events; and kernels, which get memory when they first run.
"""

import re
import warnings

import h264lite
import pytest
from h264lite.cuda_src.runtime import device as device_module
from h264lite.cuda_src.runtime.device import DeviceMemoryError
from h264lite.encoder.errors import DeviceLost, Error
from h264lite.encoder.settings.config import Config

from ..cuda_emulator.driver import Context, EmulatedDriver, Function, OutOfMemory
from ..inside import changed, take_gpu_for_any_size
from ..support import round_trip
from ..support.steady import steady

WIDTH, HEIGHT = 16, 32
KINDS = {
    "no B frames": {"bframes": 0},
    "lookahead": {"bframes": 2, "b_adapt": 1, "weightp": 1, "aq_mode": 1, "crf": 24},
    "buffer": {"bframes": 0, "bitrate": 300, "vbv_maxrate": 300, "vbv_bufsize": 150},
}


class Full(EmulatedDriver):
    """What is made as number `at` finds no memory, nor, with `stays`, all after it; at_launch: the same for kernels.

    taken_names: what each call took, in order.
    """

    def __init__(self, at=None, stays=False, at_launch=None):
        self.at, self.stays, self.at_launch, self.taken_names = at, stays, at_launch, []
        super().__init__()

    def _take(self, name):
        self.taken_names.append(name)
        n = len(self.taken_names)
        if self.at is not None and (n == self.at or (self.stays and n > self.at)):
            raise OutOfMemory(f"{name}: out of memory")

    def mem_alloc(self, nbytes):
        self._take("array")
        return super().mem_alloc(nbytes)

    def pagelocked_empty(self, shape, dtype):
        self._take("page-locked")
        return super().pagelocked_empty(shape, dtype)

    def Stream(self):
        self._take("stream")
        return super().Stream()

    def Event(self, flags=0):
        self._take("event")
        return super().Event(flags)


@pytest.fixture(autouse=True)
def around(monkeypatch):
    """`auto` takes the GPU for frames of any size; launches of a Full may fail."""
    take_gpu_for_any_size(monkeypatch.setattr)
    call = Function.launch

    def limited(self, *arguments):
        if self.driver.launches == getattr(self.driver, "at_launch", None):
            raise OutOfMemory("cuLaunchKernel: out of memory")
        call(self, *arguments)

    monkeypatch.setattr(Function, "launch", limited)
    yield
    device_module.use_driver(None)


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, 4, 5)


def encode(clip, device, **options):
    """hybrid: the rows of each frame are divided between both."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, device=device, threads=2, **steady(options))
    with h264lite.Encoder.from_config(changed(config, split=(1, 1) if device == "hybrid" else None)) as encoder:
        packets = round_trip.packets_of(encoder, clip)
    return b"".join(packet.data for packet in packets)


def check(clip, wanted, driver, device, options):
    """The encode on a GPU that is full at some time, and that everything is given back. A lookahead says nothing if it alone
    goes on on the CPU.
    """
    device_module.use_driver(driver)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if device == "cuda":
            try:
                assert encode(clip, device, **options) == wanted
                assert driver.at is not None and driver.taken_names[driver.at - 1] == "page-locked", "a source's need not be"
            except Error as error:
                assert re.search(r"no memory left for|MiB left.*needs|no page-locked memory", str(error))
                assert "\n" not in str(error)
        else:
            assert encode(clip, device, **options) == wanted
            texts = [str(w.message) for w in said]
            happened = driver.at is None or len(driver.taken_names) >= driver.at  # hybrid: as many events as needed
            assert all("the CPU" in text for text in texts), texts
            has_lookahead = "crf" in options or "bitrate" in options
            assert len(texts) == int(happened) or (has_lookahead and not texts), texts
    assert not driver.allocations and not Context.stack()
    went_on = any("continuing" in str(w.message) for w in said)  # with frames in page-locked memory of the context
    assert driver.gpus[0].holders == went_on


def places(taken_names):
    """Where to fail: a middle and the last of each name."""
    for name in dict.fromkeys(taken_names):
        of_name = [n for n, other in enumerate(taken_names, 1) if other == name]
        yield from dict.fromkeys((of_name[len(of_name) // 2], of_name[-1]))


@pytest.mark.parametrize("every", (False, pytest.param(True, marks=pytest.mark.slow)), ids=("some", "every"))
@pytest.mark.parametrize("device", ("cuda", "auto", "hybrid"))
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_there_for_what_is_made(clip, name, device, every):
    options, driver = KINDS[name], Full()
    device_module.use_driver(driver)
    wanted = encode(clip, "cpu", **options)
    assert encode(clip, device, **options) == wanted
    assert {"array", "page-locked", "stream", "event"} <= set(driver.taken_names)
    numbers = range(1, len(driver.taken_names) + 1) if every else places(driver.taken_names)
    for at in numbers:
        for stays in (False, True) if every else (at % 2 == 0,):
            driver = Full(at, stays)
            check(clip, wanted, driver, device, options)
    driver.at = None
    assert encode(clip, "cuda", **options) == wanted


@pytest.mark.parametrize("device", ("cuda", "auto"))
def test_nothing_is_there_for_a_kernel(clip, device):
    """When it is replayed, or part of a graph."""
    clip, driver = 3 * clip, Full()
    device_module.use_driver(driver)
    wanted = encode(clip, device)
    for at in (0, driver.launches // 12, driver.launches // 2, driver.launches - 1):
        check(clip, wanted, Full(at_launch=at), device, {})
    assert driver.graph_launches


@pytest.mark.parametrize("device", ("auto", "hybrid"))
def test_where_the_cpu_encodes_it_decides(clip, device):
    """From the start, for want of memory for more than the lookahead, or by the plan: no frame is looked at on the GPU."""
    options, driver = {**KINDS["lookahead"], "threads": 3}, Full(at=2 if device == "auto" else None)
    device_module.use_driver(driver)
    given = clip * 2
    wanted = h264lite.encode(given, 30, device="cpu", **options)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert h264lite.encode(given, 30, device=device, **options) == wanted
    assert len(said) == (device == "auto") and driver.launches == 0


def test_a_gpu_without_memory_is_not_lost():
    device_module.use_driver(Full(at=1))
    gpu = device_module.Device()
    with gpu:
        with pytest.raises(DeviceMemoryError, match=r"^emulated device has no memory left for a stream \(stream: out"):
            gpu.stream()
        assert not gpu.lost and gpu.zeros((4,), "i4").get().tolist() == [0] * 4
    gpu.close()


def test_finished_frames_can_be_fetched(clip):
    """As after other failures of a GPU."""
    device_module.use_driver(driver := Full())
    packets = []
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cuda", threads=2, qp=26, bframes=0) as encoder:
        for planes in clip[:3]:
            packets += encoder.encode(tuple(planes))
        driver.at_launch = driver.launches + 3
        with pytest.raises(DeviceLost, match="no memory left for the kernel"):
            encoder.encode(tuple(clip[3]))
        packets += encoder.flush()
    assert [packet.pts for packet in packets] == [0, 1, 2]
