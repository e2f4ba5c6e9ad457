"""The rows of a CPU in frames of several devices as compiled calls: the groups of an issue order are the steps.

Called from Python, the threads of a CPU wait for the interpreter's lock at each stage of each band (parallel_steps.py).
"""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain

import numpy as np

from ..bundles import MakeGroup, State
from ..compiled_frame import ArgumentGroups, CompiledFrame, Steps
from ..frame_spec import FrameSpec
from ..frames.compiled_frames import states_of
from ..frames.loop_arrays import FrameBinding
from ..stages import STAGES
from .issue_order import Group, IssueOrder
from .recorded import host_address
from .workers import CpuWorker

MOST_ORDERS, MOST_BOUND = 64, 64  # orders whose calls are kept; of them by the arrays of a frame, whose words are kept


class CompiledGroups:
    """The compiled calls of a loop by worker and issue order, and their words by the arrays of a frame. For one thread."""

    def __init__(self) -> None:
        self._argument_groups = ArgumentGroups()
        # by worker and identity of the order, which is kept; None: they cannot be called so. Frames of an order have the same
        # numbers: its route depends on all of them (FrameTraits)
        self._compiled: dict[tuple[str, int], tuple[CompiledFrame | None, IssueOrder]] = {}
        self._bound: dict[Hashable, tuple[CompiledFrame, np.ndarray] | None] = {}  # of these, by arrays

    def of(
        self, worker: CpuWorker, order: IssueOrder, spec: FrameSpec, binding: FrameBinding
    ) -> tuple[CompiledFrame, np.ndarray] | None:
        """The groups of a worker as steps, and their words for a frame; None: in Python."""
        if not worker.is_compiled or not order.groups.get(worker.device):
            return None
        params = host_address(binding.params)  # a frame has those of the buffer that its source lies in
        bound_key = worker.device, id(order), params, binding.key
        try:
            return self._bound[bound_key]
        except KeyError:
            bound = self._bind(worker, order, spec, binding, params)
        if len(self._bound) >= MOST_BOUND:
            self._bound.clear()
        self._bound[bound_key] = bound
        return bound

    def _bind(
        self, worker: CpuWorker, order: IssueOrder, spec: FrameSpec, binding: FrameBinding, params: int
    ) -> tuple[CompiledFrame, np.ndarray] | None:
        wanted = [[((*key, params), make) for key, make in some] for some in binding.argument_groups(spec)]
        groups = self._argument_groups.of(chain.from_iterable(wanted))
        key = worker.device, id(order)
        if key not in self._compiled:
            if len(self._compiled) >= MOST_ORDERS:
                self._compiled.clear()
                self._bound.clear()
            compiled = None
            with suppress(ValueError):
                compiled = CompiledFrame(partial(_make_steps, worker, order.groups[worker.device], wanted), groups)
            self._compiled[key] = compiled, order
        compiled, _ = self._compiled[key]
        return None if compiled is None else (compiled, compiled.words(groups))


def _make_steps(
    worker: CpuWorker, of_worker: Sequence[Group], wanted: Sequence[Sequence[MakeGroup]], states: Sequence[State]
) -> Steps:
    """See CompiledFrame. states: of the argument groups `wanted`."""
    state, of_entry = states_of(wanted, states)
    return [
        [[(STAGES[name], span, of_entry[group.reference] if group.reference >= 0 else state) for name, span in part]
         for part in worker.steps_of(group)]
        for group in of_worker
    ]  # fmt: skip
