"""The frames of a loop on a CPU as compiled calls: all stages of a frame in compiled code (scheduler/compiled_frame.py)."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..bundles import MakeGroup, State
from ..coding_settings import CodingSettings
from ..compiled_frame import ArgumentGroup, ArgumentGroups, CompiledFrame, MakeSteps, Steps
from ..executor import Executor
from ..frame_spec import FrameSpec
from ..stages import ENTROPY_STAGE, STAGES, frame_steps
from .frame import Frame, HostFrame
from .loop_arrays import FrameBinding

if TYPE_CHECKING:
    from ..cuda_executor import CudaExecutor

MOST_FRAME_KEYS = 64  # of frames: they differ by numbers of entries, weights, slices
MOST_BOUND = 64  # frames by their arrays: those of the ring, each with some slots; a small one takes 25 KB


class BoundFrame(NamedTuple):
    """The calls of a frame with certain arrays: of all stages but the entropy stage, and of that, each with its words."""

    stages: CompiledFrame
    words: np.ndarray
    entropy: CompiledFrame
    entropy_words: np.ndarray


class CompiledFrames:
    """The compiled frames of a loop, by key of the frames.

    Threads of the pool share them without a lock: each reads or writes a dict in one step, and those that miss a key at the
    same time make equal frames, of which the last one stays.
    """

    def __init__(self, settings: CodingSettings) -> None:
        self._settings = settings
        self._compiled_frames: dict[Hashable, CompiledFrame | None] = {}  # None: stages of the key cannot be called so
        self._groups = ArgumentGroups()
        self._bound: dict[Hashable, BoundFrame] = {}

    def run(self, executor: "Executor | CudaExecutor", frame: Frame, binding: FrameBinding) -> bool:
        """Run all stages of a frame but the entropy stage, which `write_slices` becomes. False if its stages are compared, or
        cannot be called without the interpreter: nothing is done then.
        """
        if not isinstance(executor, Executor) or executor.is_compared or isinstance(frame, HostFrame):
            return False
        spec = frame.spec
        traits = spec.duplicates, spec.luma_weighted, spec.is_reference, spec.qp_varies, bool(spec.refresh)
        frame_key = executor.threads, len(spec.list0), len(spec.list1), *traits
        bound_key = frame_key, binding.key
        bound = self._bound.get(bound_key)
        if bound is None:
            bound = self._bind(executor, frame, binding, frame_key)
            if bound is None:
                return False
            if len(self._bound) >= MOST_BOUND:
                self._bound.clear()
            self._bound[bound_key] = bound
        frame.write_slices = partial(bound.entropy.run, bound.entropy_words, None, True, None)
        executor.run_compiled(bound.stages, bound.words, frame.stage_seconds)
        return True

    def _bind(self, executor: Executor, frame: Frame, binding: FrameBinding, frame_key: Hashable) -> BoundFrame | None:
        spec, wanted = frame.spec, binding.argument_groups(frame.spec)
        groups, entropy_groups = (
            self._groups.of(some) for some in (chain.from_iterable(wanted), binding.arrays.entropy_groups(frame))
        )
        stages = self._of(frame_key, partial(self._make_steps, executor, frame, wanted), groups)
        entropy = self._of((spec.n_ref, spec.n_ref1), _entropy_steps, entropy_groups)
        if stages is None or entropy is None:
            return None
        return BoundFrame(stages, stages.words(groups), entropy, entropy.words(entropy_groups))

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
        state, of_entry = states_of(wanted, states)
        return [
            [
                [(STAGES[name], span, of_entry[ref] if ref >= 0 else state) for name, span in part]
                for part in executor.parts(names)
            ]
            for names, ref in steps_of(self._settings, frame.spec)
        ]


def states_of(wanted: Sequence[Sequence[MakeGroup]], states: Sequence[State]) -> tuple[State, list[State]]:
    """The arguments of a frame's stages, and of those of each entry, by the states of the groups of FrameBinding."""
    left = iter(states)
    state, *entry_states = [dict(chain.from_iterable(more.items() for more in islice(left, len(some)))) for some in wanted]
    return state, [state | more for more in entry_states]


def steps_of(
    settings: CodingSettings, spec: FrameSpec, for_download: tuple[str, ...] = ()
) -> list[tuple[tuple[str, ...], int]]:
    """See frame_steps."""
    options = settings.me, for_download, settings.subme, settings.cabac, spec.luma_weighted
    traits = spec.is_reference, settings.has_b_frames, spec.qp_varies, bool(spec.refresh)
    return frame_steps(spec.n_ref, *options, spec.n_ref1, *traits)


def _entropy_steps(states: Sequence[State]) -> Steps:
    """The entropy stage alone."""
    state: State = {}
    for more in states:
        state |= more
    return [[[(STAGES[ENTROPY_STAGE], (), state)]]]
