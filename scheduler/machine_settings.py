"""What of the machine an encode uses: devices, threads, how much at once. No byte of a stream depends on it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from .coding_settings import CodingSettings

if TYPE_CHECKING:
    from .hybrid.tuning.tuning_file import Tuning

MB_A_THREAD = 130  # macroblocks of a frame for each thread: with fewer an encode gets slower,
_LEAST_USEFUL = 8  # but so many threads always find frames side by side
MOST_IN_TEAM = 16  # threads that share a frame
_BESIDE = 2  # threads beside them


class MachineSettings(NamedTuple):
    """Checked and complete, as CodingSettings."""

    device: str  # cpu, cuda or hybrid; the first of several
    devices: tuple[str, ...]  # "cpu", "cuda:0", ...: GOPs are distributed to them
    ordinal: int  # of the GPU, if the device has one
    device_reason: str
    may_change_device: bool  # the CPU replaces a lost GPU
    threads: int  # of the encode; at least 1
    threads_by_user: bool  # by the user; else the number of CPUs
    gops: int  # encoded at once; 0 = auto
    # each frame is finished before the next one enters: so that no packet comes later than it can, or since its size decides
    # about the next one
    waits_for_packets: bool
    tuning: "Tuning | None"  # measurements of this machine
    tuning_note: str  # why the user's tuning file is not used
    # settings of a GPU that override `tuning`: some of CHOSEN in scheduler/hybrid/tuning/tuning_file.py
    gpu_choices: Mapping[str, int] | None = None
    # device "hybrid" by option, not planned: rows of the CPU, and the device of stages that do not split (0: the CPU)
    split: tuple[int, int] | None = None

    @property
    def choices(self) -> Mapping[str, int]:
        """Settings of a GPU: given, or those of `tuning`."""
        if self.gpu_choices is not None:
            return self.gpu_choices
        return {} if self.tuning is None else self.tuning.choices

    def stage_threads(self, coding: CodingSettings) -> int:
        """Threads of an encode on the CPU: the requested number, or as many as do not delay each other; by themselves without
        B frames, which run side by side, those of one frame, and beside them entropy coding and decisions.
        """
        most = max(_LEAST_USEFUL, coding.n_mb // MB_A_THREAD)
        by_itself = not coding.has_b_frames and not self.threads_by_user
        return min(self.threads, self.team(coding) + _BESIDE if by_itself else most)

    def team(self, coding: CodingSettings) -> int:
        """Those of `stage_threads` that share the stages of one frame: with more, an encode gets slower."""
        return min(self.threads, MOST_IN_TEAM, max(2, coding.n_mb // MB_A_THREAD))
