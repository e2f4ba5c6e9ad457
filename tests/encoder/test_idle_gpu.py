"""The GPU of a closed encoder serves the next one: equal bytes for all settings, after errors too; then it is freed."""

import os

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime import idle
from h264lite.cuda_src.runtime.device import Device, DeviceUnavailable
from h264lite.cuda_src.runtime.pool import Pool
from h264lite.encoder.errors import DeviceLost, InputError
from h264lite.scheduler.frames import ring
from h264lite.scheduler.frames.cuda_loop import CudaLoop
from h264lite.scheduler.frames.frame import SourceBuffer
from h264lite.scheduler.lookahead.gpu_costs import GpuCosts

from ..cuda_emulator.fixtures import gpu  # noqa: F401
from ..inside import allocations_of, executor_of, gpu_of, kept_gpu, kept_gpus, resources_of
from ..support import round_trip
from ..support.foreign_arrays import GpuInterface

KINDS = (  # width, height, options
    (48, 32, {}), (64, 48, {"slices": 2}), (48, 32, {"preset": "ultrafast"}), (48, 32, {"ref": 2}), (48, 32, {}),
)  # fmt: skip


@pytest.fixture
def kept(gpu, monkeypatch):  # noqa: F811
    """The driver, with GPUs that are kept; afterwards none is."""
    idle.release_gpu()
    monkeypatch.setattr(idle, "keeping", True)
    yield gpu
    idle.release_gpu()


def make(width, height, **options):
    options = {"device": "cuda", "bframes": 0, **options}
    return h264lite.Encoder(width, height, 30, threads=2, qp=26, **options)


def stream(encoder, clip):
    packets = round_trip.packets_of(encoder, clip)
    return b"".join(packet.data for packet in packets)


def encode(width, height, **options):
    with make(width, height, **options) as encoder:
        return stream(encoder, round_trip.noise_clip(width, height, 4, 5))


def test_the_same_bytes_for_all_sizes_and_settings(kept):
    for width, height, options in KINDS:
        assert encode(width, height, **options) == encode(width, height, device="cpu", **options)
    assert len(kept_gpus()) == len(KINDS) - 1, "the last took over what the first left"


RATES = {"bframes": 3, "crf": 26, "scenecut": 40, "aq_mode": 1, "weightp": 2}


@pytest.mark.parametrize("options", [{}, RATES, {"bitrate": 200, "ref": 2}, {"tune": "zerolatency"}])
def test_clips_one_after_another(kept, options):
    """With equal settings, of other contents and lengths, some left in the middle."""
    lengths, streams = (9, 3, 14, 1, 6), {}
    for device in ("cpu", "cuda"):
        streams[device] = []
        for seed, frames in enumerate(lengths):
            clip = round_trip.noise_clip(48, 32, frames, seed)
            with h264lite.Encoder(48, 32, 30, device=device, threads=2, **options) as encoder:
                streams[device].append(stream(encoder, clip))
            with h264lite.Encoder(48, 32, 30, device=device, threads=2, **options) as encoder:
                for planes in clip[: seed + 2]:
                    encoder.encode(planes)
    assert streams["cuda"] == streams["cpu"]
    if kept is not None:
        held = sum(len(allocations_of(gpu)) for gpu in kept_gpus())
        assert len(kept.allocations) == held, "all memory is of what is kept"


@pytest.mark.parametrize("options", [{}, RATES], ids=["P frames", "rates"])
def test_rgb_clips_one_after_another(kept, options):
    """On the host and on the GPU by turns."""
    rng = np.random.default_rng(2)
    clips = [rng.integers(0, 256, (4 + n, 32, 48, 3), np.uint8) for n in range(4)]
    expected = [h264lite.write_video(None, clip, 24, device="cpu", threads=2, **options) for clip in clips]
    other = Device()
    with other:
        for _ in range(2):
            on_gpu = [GpuInterface(other.upload(clip), clip, "uint8") for clip in clips]
            for pair, data in zip(zip(clips, on_gpu), expected):
                for frames in pair:
                    assert h264lite.write_video(None, frames, 24, device="cuda", threads=2, **options) == data
    other.close()


def test_another_size_takes_a_gpu_whose_user_is_gone(kept, monkeypatch):
    monkeypatch.setattr(idle, "MOST_USERS", 1)
    encode(48, 32)
    first, modules = kept_gpu(), resources_of(kept_gpu())[2]
    encode(64, 48)
    second = kept_gpu()
    assert second is not first and len(kept_gpus()) == 1
    assert encode(96, 64) == encode(96, 64, device="cpu")
    assert kept_gpu() is first and resources_of(first)[2] == modules, "with its kernels"


def test_nothing_is_made_for_the_second_of_two_like_encoders(kept):
    encode(48, 32)
    device = kept_gpu()
    before = resources_of(device)
    encode(48, 32)
    assert kept_gpu() is device and resources_of(device) == before
    if kept is not None:
        assert len(kept.allocations) == len(allocations_of(device)), "all memory is of the GPU that is kept"
    h264lite.release_gpu()
    assert kept_gpu() is None and not allocations_of(device)
    if kept is not None:
        assert not kept.allocations
    h264lite.release_gpu()  # nothing to free


def test_waiting_frames_take_the_buffers_of_an_encoder_before(kept, monkeypatch):
    buffers, options = [], {"bframes": 1, "b_adapt": 1, "scenecut": 0, "subme": 0, "merange": 4, "partitions": "none"}
    monkeypatch.setattr(ring, "SourceBuffer", lambda *arguments: buffers.append(SourceBuffer(*arguments)) or buffers[-1])
    clip = 40 * round_trip.noise_clip(16, 16, 1, 5)
    for _ in range(2):
        with make(16, 16, **options) as encoder:
            stream(encoder, clip)
    assert 0 < len(buffers) < len(clip) // 2


def test_memory_of_another_size_is_freed_by_the_encoder_after(kept):
    encode(48, 32)
    small = kept_gpu().allocated_bytes[0]
    encode(96, 64)
    encode(48, 32)
    assert kept_gpu().allocated_bytes[0] == small


def test_memory_of_another_size_is_freed_where_it_is_needed(kept):
    if kept is None:
        pytest.skip("the emulated GPU has little memory on demand")
    encode(96, 64)
    kept.memory = kept_gpu().allocated_bytes[0] + 4096
    assert encode(80, 64) == encode(80, 64, device="cpu")


def test_two_encoders_at_once(kept):
    clips = round_trip.noise_clip(48, 32, 4, 5), round_trip.noise_clip(64, 48, 4, 6)
    expected = [stream(make(*size, device="cpu"), clip) for size, clip in zip(((48, 32), (64, 48)), clips)]
    encode(48, 32)
    one, two = make(48, 32), make(64, 48)
    assert gpu_of(one) is not gpu_of(two)
    packets = [[], []]
    for pair in zip(*clips):
        for encoder, planes, of_encoder in zip((one, two), pair, packets):
            of_encoder += encoder.encode(planes)
    for encoder, of_encoder, data in zip((one, two), packets, expected):
        of_encoder += encoder.flush()
        assert b"".join(packet.data for packet in of_encoder) == data
    second = gpu_of(two)
    one.close()
    two.close()
    assert kept_gpu() is second and len(set(kept_gpus())) == 2
    assert encode(48, 32) == expected[0]


def test_an_encoder_that_was_closed_in_the_middle_of_its_frames(kept):
    expected, clip = encode(48, 32, device="cpu"), round_trip.noise_clip(48, 32, 4, 5)
    with make(48, 32) as encoder:
        encoder.encode(clip[2])
        encoder.encode(clip[3])
        with pytest.raises(InputError):
            encoder.encode(clip[0][0])
    assert encode(48, 32) == expected
    with pytest.raises(ZeroDivisionError), make(48, 32) as encoder:
        encoder.encode(clip[1])
        raise ZeroDivisionError
    assert encode(48, 32) == expected


@pytest.mark.parametrize(("where", "name"), [(CudaLoop, "_issue"), (GpuCosts, "_batch")])
def test_what_an_exception_has_cut_is_not_kept(kept, monkeypatch, where, name):
    """The loop or the lookahead; the GPU's kernels are."""
    options = {"bframes": 2, "b_adapt": 1}
    expected, clip = encode(48, 32, device="cpu", **options), round_trip.noise_clip(48, 32, 4, 5)
    method = getattr(where, name)

    def cut(*arguments):
        method(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, name, cut)
        with pytest.raises(KeyboardInterrupt), make(48, 32, **options) as encoder:
            stream(encoder, clip)
    users = kept_gpus()
    assert len(users) == 1, "the other one"
    assert encode(48, 32, **options) == expected and len(kept_gpus()) == 2


def test_a_gpu_that_failed_is_not_kept(kept):
    if kept is None:
        pytest.skip("the emulated GPU fails on demand")
    expected = encode(48, 32)
    clip = round_trip.noise_clip(48, 32, 4, 5)
    with pytest.raises(DeviceLost), make(48, 32) as encoder:
        kept.fail_after = kept.launches + 2
        stream(encoder, clip)
    assert kept_gpu() is None
    kept.fail_after = None
    assert encode(48, 32) == expected


def test_a_gpu_that_is_lost_while_it_is_idle_is_replaced(kept):
    if kept is None:
        pytest.skip("a real context must not be abandoned: later tests use it")
    expected = encode(48, 32)
    device = kept_gpu()
    device.lost = "the context was destroyed"
    assert encode(48, 32) == expected and kept_gpu() not in (None, device)


def test_limits_and_processes(kept, monkeypatch):
    encode(48, 32)
    device = kept_gpu()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 0)  # as after a fork
        with pytest.raises(DeviceUnavailable, match="forked"):
            idle.take()
        assert idle.take_user("any", Device) is None
        assert kept_gpu() is None and allocations_of(device), "left alone"
    device.close()
    monkeypatch.setattr(idle, "MOST_GPU_MEMORY", 1000)
    encode(48, 32)
    assert kept_gpu() is None
    if kept is not None:
        assert sum(allocation.nbytes for allocation in kept.allocations) <= 256, "the sample of an unused GPU"


def test_a_user_that_keeps_host_arrays_gives_nothing_up(kept):
    encoder = make(48, 32)
    executor = executor_of(encoder)
    executor.close(keep_host=True)
    assert kept_gpu() is None and isinstance(executor.gpu, Device)
    encoder.close()


def test_a_pool_hands_out_in_order_what_it_made():
    pool, numbers = Pool(), iter(range(9))
    assert [pool.take(lambda: next(numbers)) for _ in range(3)] == [0, 1, 2]
    pool.reset()
    assert [pool.take(lambda: next(numbers)) for _ in range(4)] == [0, 1, 2, 3]
