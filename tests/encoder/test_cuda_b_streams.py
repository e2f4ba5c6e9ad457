"""Streams with B frames on the GPU: the bytes of the CPU, whatever the tools, also if the GPU is lost on the way."""

import warnings

import h264lite
import pytest
from h264lite.cuda_src.runtime.device import Device
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.frames.dpb import DecodedPictureBuffer
from h264lite.scheduler.stages import CPU, CUDA, STAGES, files, frame_steps

from ..cuda_emulator.fixtures import driver, gpu, launches_by_frame, on_gpus  # noqa: F401
from ..fuzz.encoder_cases import Case
from ..fuzz.encoder_cases import clip as synthetic_clip
from ..inside import recordings_of
from ..support import round_trip
from .test_cuda_streams import compare
from .test_frame_order import specs_of

FIXED = {"qp": 27, "b_adapt": 0, "no_scenecut": True, "threads": 1}
TOOLS = (
    (4, {"bframes": 1, "subme": 5, "no_weightb": True}),
    (6, {"bframes": 3, "subme": 6, "ref": 2}),
    (6, {"bframes": 3, "subme": 7, "psy_rd": 1, "b_pyramid": "none", "no_deblock": True}),
    (9, {"bframes": 8, "b_pyramid": "dyadic", "ref": 3, "subme": 2}),
    (5, {"bframes": 2, "no_cabac": True, "slices": 2, "subme": 5, "no_8x8dct": True}),
    (5, {"bframes": 2, "subme": 6, "slices": 2, "cqm": "jvt", "profile": "high", "qp": 20}),
    (6, {"bframes": 2, "weightp": 1, "subme": 2, "trellis": 0}),
    (5, {"bframes": 3, "preset": "faster"}),
    (4, {"bframes": 2, "qp": 1, "subme": 2}),  # I_PCM
    (5, {"bframes": 3, "subme": 9, "ref": 2, "psy_rd": 1}),
    (5, {"bframes": 3, "subme": 10, "aq_mode": 1, "threads": 3}),
    (7, {"bframes": 3, "b_adapt": 1, "no_scenecut": False, "scenecut": 90, "min_keyint": 2}),
)


@pytest.mark.parametrize(("frames", "tools"), TOOLS, ids=str)
def test_tools(gpu, frames, tools):  # noqa: F811
    compare(round_trip.noise_clip(34, 34, frames, 5), 34, 34, **{**FIXED, **tools})


def test_derived_motion_beside_i_pcm(gpu):  # noqa: F811
    """Clips of which macroblocks become I_PCM after the mode decision (tests/encoder/test_b_frames.py)."""
    clip = synthetic_clip(Case(52, 42, 6, "checkers", 2944697576, {}, True))
    compare(clip, 52, 42, **{**FIXED, "qp": 10, "pbratio": 0.25, "bframes": 5, "subme": 4})
    clip = synthetic_clip(Case(37, 38, 4, "checkers", 2812015535, {}, True))
    compare(clip, 37, 38, qp=1, ipratio=0.25, merange=60, profile="main")


@pytest.mark.parametrize("frames", (1, 2, 3))
def test_short_clips(gpu, frames):  # noqa: F811
    compare(round_trip.noise_clip(33, 17, frames, 5), 33, 17, bframes=3)


def test_gops_at_once(gpu):  # noqa: F811
    clip = round_trip.noise_clip(34, 18, 9, 6)
    compare(clip, 34, 18, **{**FIXED, "keyint": 4, "bframes": 2, "threads": 2, "gops": 2})


def test_frames_that_are_started_as_others_were(gpu):  # noqa: F811
    """Of a regular stream most frames are recordings replayed; of another one, those that are alike."""
    clip = round_trip.noise_clip(18, 18, 5, 4)
    frames = [clip[n % 5] for n in range(40)]
    for options in ({"bframes": 1}, {"bframes": 3, "b_adapt": 1}):
        compare(frames, 18, 18, **{**FIXED, "subme": 2, "partitions": "none", "merange": 4, **options})


def test_few_kinds_of_frames_are_noted(driver):  # noqa: F811
    (frame,) = round_trip.noise_clip(16, 16, 1, 3)
    with h264lite.Encoder(16, 16, device="cuda", **{**FIXED, "bframes": 1, "subme": 1}) as encoder:
        for _ in range(60):
            encoder.encode(frame)
        assert len(recordings_of(encoder)) < 12


def test_bits_by_kind(gpu):  # noqa: F811
    """Counted on the host, from the motion of both lists."""
    clip, options = round_trip.noise_clip(34, 18, 5, 4), {**FIXED, "bframes": 2, "bits_by_kind": True}
    cpu, cuda = (round_trip.rows(clip, 34, 18, device=device, **options) for device in ("cpu", "cuda"))
    assert [row.bits_by_kind for _, row in cpu] == [row.bits_by_kind for _, row in cuda]


@on_gpus
@pytest.mark.parametrize(
    ("options", "frames", "lost"),
    (({"bframes": 1, "ref": 2}, 11, (0, 3, 9)), ({"bframes": 3, "threads": 3}, 11, (2, 7, 10)),
     ({"bframes": 3, "keyint": 5, "b_pyramid": "none"}, 11, (4, 8)), ({"bframes": 1, "merange": 4}, 33, (18, 28))),
    ids=str,
)  # fmt: skip
def test_auto_goes_on_with_the_same_bytes(driver, options, frames, lost):  # noqa: F811
    """From references that were downloaded, with their motion, or that are coded again: some stay on the GPU."""
    width, height = (34, 18) if frames < 20 else (18, 18)
    options = {**FIXED, "subme": 2, **options}
    clip = round_trip.noise_clip(width, height, frames, 5)
    expected, _ = round_trip.encode(clip, width, height, device="cpu", **options)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder(width, height, 30, device="cuda", **options))
    counts.append(driver.launches)  # frames wait until the end
    for frame in lost:
        at = (counts[frame] + counts[frame + 1]) // 2
        driver.launches, driver.fail_after = counts[0], at
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with h264lite.Encoder(width, height, 30, **options) as encoder:
                packets = round_trip.packets_of(encoder, clip)
        driver.fail_after = None
        assert [str(w.message) for w in said if "continuing on the CPU from frame" in str(w.message)], frame
        assert b"".join(packet.data for packet in packets) == expected, frame


@pytest.mark.parametrize("options", ({"bframes": 2, "b_pyramid": "none"}, {"bframes": 3}, {"bframes": 15, "ref": 4}), ids=str)
def test_a_frame_takes_no_slot_that_a_gpu_still_reads(options):
    """Nor one of a reference, nor that of the frame before, which is downloaded while this one is coded."""
    config, last, held = Config.from_options(width=64, height=64, device="cpu", qp=26, **options), -1, {}
    buffer = DecodedPictureBuffer(config.coding.dpb_frames + 2)
    alone = 0
    for spec in specs_of(60, b_adapt=0, scenecut=0, **options):
        slot, lists = buffer.begin(spec)
        held = {} if spec.is_idr else held
        assert lists == tuple(held[index] for index in (*spec.list0, *spec.list1))
        assert slot != last and slot not in held.values()
        alone += len(held) == config.coding.dpb_frames and last not in held.values()
        buffer.end(spec, slot)
        held, last = {index: slot if index == spec.coding_index else held[index] for index in spec.references_after}, slot
    assert alone, "one slot less would have been too few"


def test_nobody_interpolates_frames_that_are_no_references():
    for n_ref1, written in ((0, ()), (1, ("write_slices",))):
        steps = [frame_steps(1, for_download=written, n_ref1=n_ref1, is_reference=needed) for needed in (True, False)]
        with_them, without = ([name for names, _ in of_frame for name in names] for of_frame in steps)
        gone = [name for name in with_them if name not in without]
        assert gone == [*(() if written else ("extend_luma",)), "extend_cb", "extend_cr", "interpolate"]
        assert "deblock" in without and "ssd_y" in without


def test_kernels_of_b_frames_are_loaded_for_them_alone(driver, monkeypatch):  # noqa: F811
    """Compiled when an encoder is made, and loaded for the first launch."""
    loaded, load, load_emulated = [], Device.load, driver.load_emulated
    monkeypatch.setattr(Device, "load", lambda own, names: load(own, [loaded.append(name) or name for name in names]))
    driver.load_emulated = lambda name: loaded.append(name) or load_emulated(name)
    clip = round_trip.noise_clip(16, 16, 3, 3)
    round_trip.encode(clip, 16, 16, device="cuda")
    of_b = files(CUDA, True) - files(CUDA)
    assert not of_b & set(loaded) and {"decide/bipredict", "decide/mode_decision_b", "entropy/entropy_b"} <= of_b
    with h264lite.Encoder(16, 16, device="cuda", bframes=1):
        assert of_b <= set(loaded)
    of_p, of_both = (frame_steps(1, subme=6, cabac=True, n_ref1=lists - 1, b_stream=lists == 2) for lists in (1, 2))
    added = {name for names, _ in of_both for name in names} - {name for names, _ in of_p for name in names}
    assert {STAGES[name].function.split(".")[0] for name in added} - files(CPU) == files(CPU, True) - files(CPU)
