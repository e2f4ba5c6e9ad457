"""The frames of a loop on a CPU as compiled calls: all stages of a frame in compiled code (scheduler/compiled_frame.py)."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from ..bundles import MakeGroup, State
from ..coding_settings import CodingSettings
from ..compiled_frame import ArgumentGroup, ArgumentGroups, CompiledFrame, MakeSteps, Steps
from ..executor import Executor
from ..frame_spec import FrameSpec
from ..stages import ENTROPY_STAGE, STAGES, frame_steps
from .frame import Frame, HostFrame

if TYPE_CHECKING:
    from ..cuda_executor import CudaExecutor

MOST_FRAME_KEYS = 64  # of frames: they differ by numbers of entries, weights, slices


class CompiledFrames:
    """The compiled frames of a loop, by key of the frames.

    Threads of the pool share them without a lock: each reads or writes a dict in one step, and those that miss a key at the
    same time make equal frames, of which the last one stays.
    """

    def __init__(self, settings: CodingSettings) -> None:
        self._settings = settings
        self._compiled_frames: dict[Hashable, CompiledFrame | None] = {}  # None: stages of the key cannot be called so
        self._groups = ArgumentGroups()

    def bind(
        self, executor: "Executor | CudaExecutor", frame: Frame, wanted: Sequence[Sequence[MakeGroup]],
        entropy: Sequence[MakeGroup],
    ) -> Callable[[], None] | None:  # fmt: skip
        """A function that runs all stages of a frame but the entropy stage, which `write_slices` becomes. None if its stages
        are compared, or cannot be called without the interpreter.

        wanted: the arguments in groups, first those of all stages, then those of the search in each entry of both lists;
        entropy: those of the entropy stage.
        """
        if not isinstance(executor, Executor) or executor.is_compared or isinstance(frame, HostFrame):
            return None
        spec = frame.spec
        traits = spec.is_reference, bool(spec.mb_qp), bool(spec.refresh)
        of_spec = spec.n_ref, spec.n_ref1, spec.duplicates, spec.luma_weighted, *traits
        groups, entropy_groups = self._groups.of(chain.from_iterable(wanted)), self._groups.of(entropy)
        stages = self._of((executor.threads, of_spec), partial(self._make_steps, executor, frame, wanted), groups)
        bits = self._of((spec.n_ref, spec.n_ref1), _entropy_steps, entropy_groups)
        if stages is None or bits is None:
            return None
        frame.write_slices = partial(bits.run, entropy_groups, {}, True, None)
        return partial(executor.run_compiled, stages, groups, frame.stage_seconds)

    def _of(self, launch_key: Hashable, make_steps: MakeSteps, groups: Sequence[ArgumentGroup]) -> CompiledFrame | None:
        try:
            return self._compiled_frames[launch_key]
        except KeyError:
            pass
        compiled = None
        with suppress(ValueError):
            compiled = CompiledFrame(make_steps, groups)
        if len(self._compiled_frames) >= MOST_FRAME_KEYS:
            self._compiled_frames.clear()
        self._compiled_frames[launch_key] = compiled
        return compiled

    def _make_steps(
        self, executor: Executor, frame: Frame, wanted: Sequence[Sequence[MakeGroup]], states: Sequence[State]
    ) -> Steps:
        """See CompiledFrame. states: of the groups `wanted`."""
        left = iter(states)
        state, *entry_states = [
            dict(chain.from_iterable(more.items() for more in islice(left, len(some)))) for some in wanted
        ]
        of_entry = [state | more for more in entry_states]
        return [
            [
                [(STAGES[name], span, of_entry[ref] if ref >= 0 else state) for name, span in part]
                for part in executor.parts(names)
            ]
            for names, ref in steps_of(self._settings, frame.spec)
        ]


def steps_of(
    settings: CodingSettings, spec: FrameSpec, for_download: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], int]]:
    """See frame_steps."""
    options = settings.me, for_download, settings.subme, settings.cabac, spec.luma_weighted
    traits = spec.is_reference, settings.has_b_frames, bool(spec.mb_qp), bool(spec.refresh)
    return frame_steps(spec.n_ref, *options, spec.n_ref1, *traits)


def _entropy_steps(states: Sequence[State]) -> Steps:
    """The entropy stage alone."""
    state: State = {}
    for more in states:
        state |= more
    return [[[(STAGES[ENTROPY_STAGE], (), state)]]]
