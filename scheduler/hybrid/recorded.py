"""The driver calls of a frame's GPU operations, recorded once for frames with the same key, then done without Python.

The calls between two results of the CPU are a sweep: what can be issued then depends on the issue order alone, where one
worker of the CPU brings results. Frames with the same key differ by where their arrays lie. A recording is made with the
arrays of one frame; each address in it that lies in one of these becomes that of another frame's array before a replay.
Pools of slots are placeholders, since they begin where their first slot does.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ...cuda_src.runtime.array import Event, address_of
from ...cuda_src.runtime.device import Device
from ...cuda_src.runtime.recording import NO_PATCHES, HostBuffers, Recording, replaced_numbers
from ..bundles import AnyArray
from .issue_order import IssueOrder
from .workers import Timed

MOST = 128  # keys whose frames are recorded


def ranges_of(arrays: Iterable[AnyArray]) -> np.ndarray:
    """int64[n, 2]: address and bytes of C-contiguous arrays, in host memory or on a GPU."""
    rows = [(host_address(a) if isinstance(a, np.ndarray) else a.ptr, a.nbytes) for a in arrays]
    return np.array(rows, np.int64).reshape(-1, 2)


def host_address(array: np.ndarray) -> int:
    """Where a C-contiguous array of the host begins."""
    assert array.flags.c_contiguous
    return address_of(array)


BEGIN, END = -1, -2  # the sweeps before the first and after the last operation; the others: groups of the CPU that have ended


class Sweep(NamedTuple):
    """What is issued at once, and the state of the frame behind it: see InFlightFrame."""

    recording: Recording
    events: dict[int, Event]
    at: tuple[int, ...]
    refs_copied: Event | None


class _Kept(HostBuffers):
    """No buffers that `Recording.rebind` would replace."""

    def find(self, buffer: object) -> None:
        """None of them."""


KEPT = _Kept()


class RecordedFrame:
    """The sweeps of frames with one key."""

    def __init__(self, sweeps: dict[int, Sweep], ranges: np.ndarray, order: IssueOrder, timed: Timed) -> None:
        """ranges: of the frame that was recorded, see `Work.ranges`; order: kept, since keys name it by identity; timed: its
        operations that are measured, whose events are recorded again in each replay.
        """
        self.sweeps, self.order, self.timed = sweeps, order, timed
        patches = [patch for sweep in sweeps.values() for patch in _patches(sweep.recording, ranges)]
        self._patches = np.array(patches, np.int64) if patches else NO_PATCHES

    def bind(self, ranges: np.ndarray) -> None:
        """Let the sweeps be those of another frame, by its ranges."""
        replaced_numbers()(self._patches, np.ascontiguousarray(ranges[:, 0]))

    def replay(self, number: int, gpu: Device) -> Sweep:
        """Do one sweep, and return it."""
        gpu.replay(self.sweeps[number].recording, with_graphs=False)
        return self.sweeps[number]


def _patches(recording: Recording, ranges: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """(address of a number, index of its range, offset in the range) of each number of the calls that lies in one."""
    order = np.argsort(ranges[:, 0], kind="stable")  # of equal ranges the first: the key says which are equal
    begins = ranges[order, 0]
    for row, command in zip(recording.rows, recording.commands):
        numbers = row[1:] if command.launch is None else command.launch.arguments
        fixed = [k for k, _, _ in command.patches]
        at = np.searchsorted(begins, numbers, "right") - 1
        which = order[np.searchsorted(begins, begins[at], "left")]
        offsets = numbers - ranges[which, 0]
        for k in np.flatnonzero((at >= 0) & (offsets < ranges[which, 1])).tolist():
            if k not in fixed:
                yield address_of(numbers) + numbers.itemsize * k, int(which[k]), int(offsets[k])


class RecordedFrames:
    """The recorded frames by issue order and key."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[int, Hashable], RecordedFrame] = {}

    def find(self, order: IssueOrder, key: Hashable) -> RecordedFrame | None:
        """That of a key; None: there is none."""
        return self._by_key.get((id(order), key))

    def add(self, order: IssueOrder, key: Hashable, frame: RecordedFrame) -> None:
        """Keep a frame."""
        if len(self._by_key) >= MOST:
            self.clear()
        self._by_key[id(order), key] = frame

    def clear(self) -> None:
        """Drop all."""
        self._by_key.clear()
