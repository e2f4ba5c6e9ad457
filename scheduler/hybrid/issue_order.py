"""Issue order of a route: groups of stages for CPU devices, queues for the engines of a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from ..arrays import PREVIOUS_FRAME_ARRAYS, REFERENCE_ARRAYS
from ..stages import FRAME, STAGES
from .plan import HOST, is_gpu
from .route import COMPACT, Copy, Op, Run

_READ_LATER = (*PREVIOUS_FRAME_ARRAYS, *REFERENCE_ARRAYS)  # arrays that later frames read


def _least(needs: Sequence[int], before: Sequence[int], ended: int) -> list[int]:
    """Those of the needs that imply all. before: see IssueOrder.of; ended: bit mask of operations that have ended."""
    least = []
    for need in sorted(needs, reverse=True):
        if not ended >> need & 1:
            least.append(need)
            ended |= before[need] | 1 << need
    return least


@dataclass(frozen=True)
class Group:
    """Runs of one CPU device that are done together in one step."""

    runs: tuple[int, ...]
    stages: tuple[str, ...]
    row0: int
    row1: int
    reference: int
    needs: tuple[int, ...]


@dataclass
class IssueOrder:
    """Groups of each CPU device, queues of each engine of a GPU, and operations that others wait for.

    An operation is not waited for where another wait, or the order of its queue, implies that it has ended.
    """

    ops: tuple[Op, ...]
    groups: dict[str, list[Group]] = field(default_factory=dict)
    queues: list[list[int]] = field(default_factory=list)
    waits: dict[int, list[int]] = field(default_factory=dict)  # by operation of a GPU: those of others that it waits for
    waited_for: frozenset[int] = frozenset()
    refs_copied: int = -1  # index of the last download that the host reads in the next frame
    compacts: bool = False
    levels: tuple[tuple[int, int], ...] = ()  # [row0, row1) of levels that CPU devices write

    @classmethod
    def of(cls, ops: tuple[Op, ...]) -> "IssueOrder":
        """The issue order of a route. Made once per route."""
        order, queues = cls(ops), dict[tuple[str, ...], list[int]]()
        before: list[int] = []  # by operation: bit mask of all operations that must have ended before it
        last: dict[str, int] = {}
        runs = 0  # bit mask of the runs of CPU devices so far
        for k, op in enumerate(ops):
            bits = 0
            for need in op.needs:
                bits |= before[need] | 1 << need
            if isinstance(op, Run) and not is_gpu(op.device):
                order._add(k, op, before, runs)
                bits |= before[last[op.device]] | 1 << last[op.device] if op.device in last else 0
                last[op.device] = k
                runs |= 1 << k
            else:
                queue = queues.setdefault((op.device,) if isinstance(op, Run) else (op.source, op.target), [])
                in_order = before[queue[-1]] | 1 << queue[-1] if queue else 0
                order.waits[k] = [need for need in _least(op.needs, before, in_order) if not runs >> need & 1]
                bits |= in_order
                queue.append(k)
            before.append(bits)
            if isinstance(op, Copy) and op.target == HOST and op.array[0] in _READ_LATER:
                order.refs_copied = k
        order.queues = list(queues.values())
        for groups in order.groups.values():
            ended = 0
            for k, group in enumerate(groups):
                groups[k] = replace(group, needs=tuple(_least(group.needs, before, ended)))
                ended |= before[group.runs[-1]] | 1 << group.runs[-1]
        needs_of_groups = (group.needs for groups in order.groups.values() for group in groups)
        order.waited_for = frozenset(chain(*order.waits.values(), *needs_of_groups))
        order.compacts = any(isinstance(op, Run) and op.stage == COMPACT for op in ops)
        order.levels = tuple((op.row0, op.row1) for op in ops if isinstance(op, Run) and not is_gpu(op.device)
                            and "levels" in STAGES[op.stage].written)  # fmt: skip
        return order

    def _add(self, k: int, op: Run, before: Sequence[int], runs: int) -> None:
        """Add a run to the last group of its device, or to a new one if that group could deadlock with another device."""
        groups = self.groups.setdefault(op.device, [])
        if groups:
            group = groups[-1]
            first = self.ops[group.runs[0]]
            same = (op.row0, op.row1) == (group.row0, group.row1) or STAGES[op.stage].split == FRAME
            same = same or all(STAGES[name].split == FRAME for name in group.stages)
            known = before[group.runs[0]]
            free = all(known >> need & 1 or not (before[need] | 1 << need) & runs for need in op.needs)
            if op.step == first.step and same and free:
                rows = (group.row0, group.row1) if STAGES[op.stage].split == FRAME else (op.row0, op.row1)
                groups[-1] = Group(
                    (*group.runs, k), (*group.stages, op.stage), *rows, op.reference, tuple(sorted({*group.needs, *op.needs}))
                )
                return
        groups.append(Group((k,), (op.stage,), op.row0, op.row1, op.reference, op.needs))
