"""Recordings of frames on a GPU: few kinds, whatever the types and however long the stream, and the bytes of the CPU."""

import h264lite
import numpy as np
import pytest
from h264lite.cuda_src.runtime import device
from h264lite.cuda_src.runtime.recording import HostBuffers, Recording, placeholder_address
from h264lite.encoder.settings.config import Config
from h264lite.scheduler import cuda_executor
from h264lite.scheduler.frames.stream_schedule import NOTHING, StreamSchedule

from ..cuda_emulator.fixtures import driver  # noqa: F401
from ..inside import recordings_of
from ..support import round_trip
from ..support.steady import steady

FAST = {"qp": 30, "subme": 1, "merange": 4, "partitions": "none", "threads": 1, "no_scenecut": True}


def of_changing_types(count, size=16):
    """Frames that stand still, move, change a little and at once, so that adaptive types differ."""
    rng = np.random.default_rng(7)
    frames, at = [], 0
    for n in range(count):
        if n % 45 == 0:
            coarse = rng.integers(0, 256, (size, size))
            scene = sum(np.roll(coarse, shift, (0, 1)) for shift in np.ndindex(4, 4)) // 16
        at += (0, 1, 0, 5, 2)[n // 6 % 5]
        plane = np.roll(scene, at, 1) + rng.integers(-1, 2, (size, size)) * (0, 3, 25)[n // 4 % 3]
        plane = np.clip(plane, 0, 255).astype(np.uint8)
        chroma = plane[::2, ::2]
        frames.append((np.ascontiguousarray(plane), np.ascontiguousarray(chroma), np.ascontiguousarray(chroma[::-1])))
    return frames


@pytest.mark.parametrize(
    ("options", "most", "fewest_types"),
    (({"bframes": 3, "b_adapt": 0}, 8, 1), ({"bframes": 2, "b_adapt": 0, "b_pyramid": "none", "ref": 1}, 5, 1),
     ({"bframes": 3, "b_adapt": 1, "ref": 3, "no_scenecut": False, "keyint": 60}, 30, 4)),
    ids=str,
)  # fmt: skip
def test_few_kinds_in_a_long_stream(driver, options, most, fewest_types):  # noqa: F811
    with h264lite.Encoder(16, 16, device="cuda", **steady({**FAST, **options})) as encoder:
        types = ""
        for frame in of_changing_types(110):
            types += "".join(packet.frame_type for packet in encoder.encode(frame))
        recordings = dict(recordings_of(encoder))
        lengths = {len(part) for part in types.replace("I", "P").split("P")}
    assert len(recordings) <= most, sorted(recordings)
    assert len(lengths) >= fewest_types, types


@pytest.mark.parametrize(
    "options", ({"ref": 2}, {"bframes": 3, "b_adapt": 1, "ref": 3}, {"weightp": 1, "slices": 2}), ids=str
)
def test_bytes_of_rows_and_graphs(driver, monkeypatch, options):  # noqa: F811
    """Arguments are replaced in rows of calls, in memory of launches and in graphs."""
    clip, options = of_changing_types(40, 32), {**FAST, "subme": 2, **options}
    expected, _ = round_trip.encode(clip, 32, 32, device="cpu", **options)
    monkeypatch.setattr(device, "OFTEN", 2)
    assert round_trip.encode(clip, 32, 32, device="cuda", **options)[0] == expected
    assert driver.graph_launches >= 40


@pytest.mark.parametrize("streams", (0, 1, 2, 3))
@pytest.mark.parametrize(
    "options",
    ({"bframes": 3, "ref": 2}, {"bframes": 2, "b_pyramid": "none"}, {"bframes": 7, "b_pyramid": "dyadic", "keyint": 13}),
    ids=str,
)  # fmt: skip
def test_bytes_with_any_number_of_streams(driver, monkeypatch, options, streams):  # noqa: F811
    """B frames on their own streams, recorded and replayed; many frames are in flight."""
    monkeypatch.setattr(cuda_executor, "B_FRAME_STREAMS", streams)
    monkeypatch.setattr(device, "OFTEN", 2)
    options = {**FAST, "b_adapt": 0, "subme": 2, "threads": 9, **options}
    clip = of_changing_types(26, 32)
    expected, _ = round_trip.encode(clip, 32, 32, device="cpu", **options)
    assert round_trip.encode(clip, 32, 32, device="cuda", **options)[0] == expected
    assert driver.graph_launches >= 26


def test_which_frames_wait_for_which():
    """One mini-GOP of three B frames, of which one is a reference; slots 0 and 1 are references."""
    side, p, reference, b = StreamSchedule(3, 5), (False, True), (True, True), (True, False)
    assert side.enter(0, 0, (), *p) == (0, NOTHING) and side.enter(1, 1, (0,), *p) == (0, NOTHING)
    assert side.enter(2, 2, (0, 1), *reference) == (1, NOTHING)
    assert side.enter(3, 3, (0, 2), *b) == (3, ((2,), ())), "it waits for the reference on another stream"
    assert side.enter(4, 4, (2, 1), *b) == (2, ((2,), ()))
    assert side.enter(5, 5, (1,), *p) == (0, NOTHING), "the next P frame waits for no B frame"
    assert side.enter(6, 2, (1, 5), *p) == (0, ((3, 4), (2,))), "it overwrites what they read, and what is downloaded"
    assert side.enter(7, 4, (5, 1), *b) == (3, ((), (4,))) and side.enter(8, 4, (5, 1), *b) == (2, ((), (7,)))
    assert side.enter(14, 1, (5,), *p) == (0, NOTHING), "frames that were downloaded long ago"
    assert StreamSchedule(0, 3).enter(1, 0, (), *b) == (0, NOTHING)
    assert {StreamSchedule(1, 3).enter(1, 0, (), True, is_reference)[0] for is_reference in (True, False)} == {1}


def test_stand_ins_are_replaced():
    """Numbers that are no stand-ins stay."""
    recording, given = Recording(HostBuffers(), (1000, 2000)), [placeholder_address(1) + 48, 7, placeholder_address(0), -5]
    recording.add("a copy", [1 << 40, *given], given)
    for addresses in ((1000, 2000), (5 << 40, 3)):
        recording.rebind(HostBuffers(), addresses)
        assert recording.rows.tolist() == [[1 << 40, addresses[1] + 48, 7, addresses[0], -5]]


def test_a_subset_is_bound_as_the_whole():
    """By a caller that keeps the numbers, too."""
    recording, given = Recording(HostBuffers(), (1000,)), [placeholder_address(0) + 8]
    recording.add("a copy", [1 << 40, *given], given)
    recording.bind(np.array([3000], np.int64))
    assert recording.rows.tolist() == recording.subset(recording.commands).rows.tolist() == [[1 << 40, 3008]]


def test_numbers_of_lists_have_places():
    """No settings have more entries than frame_params has places for."""
    for options in ({"bframes": 16, "ref": 16, "b_pyramid": "dyadic"}, {"ref": 16, "weightp": 1}, {"bframes": 3, "ref": 16}):
        config = Config.from_options(width=64, height=64, device="cpu", **steady(options))
        assert config.coding.most_searches <= 16
