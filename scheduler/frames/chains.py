"""Chains of the frames of a loop on a CPU: all stages of a frame in compiled code (scheduler/chain.py)."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from ..chain import Call, Chain, MakePart, Part, Parts, State
from ..executor import Executor
from ..frame_spec import FrameSpec
from ..stages import ENTROPY_STAGE, STAGES, frame_steps
from .frame import Frame, HostFrame

if TYPE_CHECKING:
    from ...encoder.settings.config import Config

MOST_KINDS = 64  # of frames: they differ by numbers of entries, weights, slices


class Chains:
    """The chains of a loop, by kind of frame."""

    def __init__(self, config: "Config") -> None:
        self._config = config
        self._chains: dict[Hashable, Chain | None] = {}  # None: stages of the kind cannot be called so
        self._parts = Parts()

    def bind(
        self, executor: Any, frame: Frame, wanted: Sequence[Sequence[MakePart]], entropy: Sequence[MakePart]
    ) -> Callable[[], None] | None:
        """A function that runs all stages of a frame but the entropy stage, which `write_slices` becomes. None if its stages
        are compared, or cannot be called without the interpreter.

        wanted: the arguments in parts, first those of all stages, then those of the search in each entry of both lists;
        entropy: those of the entropy stage.
        """
        if not isinstance(executor, Executor) or executor.is_compared or isinstance(frame, HostFrame):
            return None
        spec = frame.spec
        of_spec = spec.n_ref, spec.n_ref1, spec.duplicates, spec.luma_weighted, spec.is_reference, bool(spec.mb_qp)
        parts, entropy_parts = self._parts.of(chain.from_iterable(wanted)), self._parts.of(entropy)
        stages = self._of((executor.threads, of_spec), partial(self._make_steps, executor, frame, wanted), parts)
        bits = self._of((spec.n_ref, spec.n_ref1), _entropy_steps, entropy_parts)
        if stages is None or bits is None:
            return None
        frame.write_slices = partial(bits.run, entropy_parts, {}, True, None)
        return partial(executor.run_chain, stages, parts, frame.stage_seconds)

    def _of(self, kind: Hashable, make_steps: Callable[..., Any], parts: Sequence[Part]) -> Chain | None:
        if kind not in self._chains:
            if len(self._chains) >= MOST_KINDS:
                self._chains.clear()
            try:
                self._chains[kind] = Chain(make_steps, parts)
            except ValueError:
                self._chains[kind] = None
        return self._chains[kind]

    def _make_steps(
        self, executor: Executor, frame: Frame, wanted: Sequence[Sequence[MakePart]], states: Sequence[State]
    ) -> list[list[list[Call]]]:
        """See Chain. states: of the parts `wanted`."""
        left = iter(states)
        state, *own = [dict(chain.from_iterable(more.items() for more in islice(left, len(some)))) for some in wanted]
        of_entry = [state | more for more in own]
        return [
            [[(STAGES[name], span, of_entry[ref] if ref >= 0 else state) for name, span in part]
             for part in executor.parts(names)]
            for names, ref in steps_of(self._config, frame.spec)
        ]  # fmt: skip


def steps_of(config: "Config", spec: FrameSpec, for_download: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], int]]:
    """See frame_steps."""
    kind = config.me, for_download, config.subme, config.cabac, spec.luma_weighted
    return frame_steps(spec.n_ref, *kind, spec.n_ref1, spec.is_reference, config.lists == 2, bool(spec.mb_qp))


def _entropy_steps(states: Sequence[State]) -> list[list[list[Call]]]:
    """The entropy stage alone."""
    state: State = {}
    for more in states:
        state |= more
    return [[[(STAGES[ENTROPY_STAGE], (), state)]]]
