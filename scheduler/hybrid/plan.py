"""The plan: which device takes which rows of which stage. A value, without threads, clock or GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...process import cached_property
from ..stages import CPU, CUDA, EVEN, ROWS, STAGES, TABLE, frame_steps

HOST = "cpu"  # the memory of all devices except GPUs
# Stages that split by rows; those of every P frame
SPLITTING = tuple(stage.name for stage in TABLE if stage.split in (ROWS, EVEN) and not (stage.only or stage.unplanned))
SPLITS = tuple(name for name in SPLITTING if not STAGES[name].optional)
# Each memory whose device reads references extends the borders itself, so that borders are not copied. By stage: readers
EXTENDED = {
    "extend_luma": ("search_centre", "full_search", "pattern_search", "step_search", "subpel_refine",
                    "neighbour_vectors", "neighbour_vectors_again", "rd_candidates", "mode_decision", "bipredict",
                    "rd_candidates_b", "mode_decision_b", "rd_decision", "inter_residual", "interpolate"),
    "extend_cb": ("rd_candidates", "rd_candidates_b", "rd_decision", "inter_residual"),
    "extend_cr": ("rd_candidates", "rd_candidates_b", "rd_decision", "inter_residual"),
}  # fmt: skip
# Stages in decoding order, or on the CPU only: all rows on one device
UNSPLIT = tuple(
    stage.name
    for stage in TABLE
    if stage.name not in (*SPLITTING, *EXTENDED) and stage.only != CUDA and not (stage.deferred or stage.unplanned)
)

WHOLE = tuple(name for name in UNSPLIT if not STAGES[name].only)  # those of CPU and GPU


def is_gpu(device: str) -> bool:
    """Whether a device is a GPU, with its own memory."""
    return device.startswith("cuda")


def memory_of(device: str) -> str:
    """The memory in which a device works."""
    return device if is_gpu(device) else HOST


def stages_of(me: str, subme: int, cabac: bool, has_b_frames: bool) -> frozenset[str]:
    """Names of the stages of P frames with these options, and of B frames in streams that have them, see frame_steps."""
    frames = [frame_steps(1, me, (), subme, cabac, (), n_ref1, True, has_b_frames) for n_ref1 in range(1 + has_b_frames)]
    return frozenset(name for steps in frames for names, _ in steps for name in names)


def rows_of(
    stages: frozenset[str], devices: Sequence[str], mb_height: int, rows: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """The rows of these stages alone; all rows of those that exist on the CPU only, on the first CPU."""
    rows_by_stage = {stage: tuple(n) for stage, n in rows.items() if stage in stages}
    cpu = next((k for k, device in enumerate(devices) if not is_gpu(device)), 0)
    only = [stage for stage in stages if STAGES[stage].only == CPU]
    return rows_by_stage | dict.fromkeys(only, tuple(mb_height * (k == cpu) for k in range(len(devices))))


@dataclass(frozen=True)
class Plan:
    """Rows of each device in each stage; devices take rows from the top, in their order.

    rows: by stage, one number a device. The sum is mb_height, or the stage is repeated on several devices: then each
    number is mb_height or 0. seconds: predicted for the loop of a P frame, 0: unknown; stage_seconds: by (stage, device).
    """

    devices: tuple[str, ...]
    mb_height: int
    rows: Mapping[str, tuple[int, ...]]
    seconds: float = field(default=0.0, compare=False)
    stage_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for stage, rows in self.rows.items():
            repeated = all(n in (0, self.mb_height) for n in rows) and any(rows)
            if len(rows) != len(self.devices) or min(rows) < 0 or not (sum(rows) == self.mb_height or repeated):
                raise ValueError(f"{stage}: rows {rows} of {self.mb_height} for {len(self.devices)} devices")
            if not repeated and stage not in SPLITTING:
                raise ValueError(f"{stage}: rows {rows}, and it does not split")
            only = STAGES[stage].only if stage in STAGES else ""
            for device, n in zip(self.devices, rows):
                if n and only == (CPU if is_gpu(device) else CUDA):
                    raise ValueError(f"{stage}: does not exist for {device}")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.devices, self.mb_height, tuple(sorted(self.rows.items()))))

    @classmethod
    def complete(
        cls, devices: Sequence[str], mb_height: int, rows: Mapping[str, Sequence[int]], seconds: float = 0.0,
        stage_seconds: Mapping[tuple[str, str], float] | None = None,
    ) -> "Plan":  # fmt: skip
        """A plan with the border stages added: in each memory the first device that reads references runs them."""
        rows_by_stage = {stage: tuple(n) for stage, n in rows.items()}
        for stage, readers in EXTENDED.items():
            reading = [
                k
                for k in range(len(devices))
                if any(rows_by_stage[reader][k] for reader in readers if reader in rows_by_stage)
            ]
            first = {memory_of(devices[k]): k for k in reversed(reading)}
            rows_by_stage[stage] = tuple(mb_height if k in first.values() else 0 for k in range(len(devices)))
        return cls(tuple(devices), mb_height, rows_by_stage, seconds, stage_seconds or {})

    @classmethod
    def split(
        cls, devices: Sequence[str], mb_height: int, first: int, unsplit_device: int, me: str = "fsbm", subme: int = 0,
        cabac: bool = False, has_b_frames: bool = False,
    ) -> "Plan":  # fmt: skip
        """A forced plan: device 0 takes `first` rows of each stage that splits, device 1 the rest.

        unsplit_device: runs the stages that do not split. Only stages of frames with these options have rows; CPU-only
        stages run on the first CPU. has_b_frames: of the stream.
        """
        count = len(devices)
        rows = dict.fromkeys(SPLITTING, (first, mb_height - first, *[0] * (count - 2)) if count > 1 else (mb_height,))
        rows |= dict.fromkeys(WHOLE, tuple(mb_height * (k == unsplit_device) for k in range(count)))
        return cls.complete(devices, mb_height, rows_of(stages_of(me, subme, cabac, has_b_frames), devices, mb_height, rows))

    def span(self, stage: str, k: int) -> tuple[int, int]:
        """[row0, row1) of device k."""
        rows = self.rows[stage]
        if rows[k] == self.mb_height:
            return 0, self.mb_height
        row0 = sum(rows[:k])
        return row0, row0 + rows[k]

    def spans(self, stage: str) -> list[tuple[int, int, int]]:
        """(device, row0, row1) of all devices that take rows. An unplanned stage runs as another one."""
        if stage in STAGES and STAGES[stage].unplanned:
            stage = STAGES[stage].runs_as
        if stage not in self.rows:
            raise ValueError(f"{stage}: a step of frames that has no rows in this plan (docs/kernels.md, How to add a stage)")
        return [(k, *self.span(stage, k)) for k, rows in enumerate(self.rows[stage]) if rows]

    @cached_property
    def single(self) -> str | None:
        """The device that does all stages, or None."""
        used = {k for rows in self.rows.values() for k, n in enumerate(rows) if n}
        return self.devices[used.pop()] if len(used) == 1 else None
