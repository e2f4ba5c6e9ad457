"""The stages of a frame on a CPU as calls in compiled code (jit/address_calls.py), without the interpreter between them.

Frames with the same key have the same stages in the same order with the same numbers; only their arrays lie at other
addresses. So the calls of a key are made once. Arguments come in groups by what their arrays depend on: the frame, the slot
of the decoded picture buffer, the workspace; the words of each group are made once, and those of a frame are gathered
from its groups, once for frames with the same arrays (frames/compiled_frames.py).
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..jit.address_calls import MOST_WORDS, address_of, calls_of, run_calls, words_of
from ..jit.kernel import OneVersion
from .bundles import GroupKey, MakeGroup, State
from .stages import Stage
from .threads.parallel_steps import CompiledSteps
from .trace import HOST, Trace

Call = tuple[Stage, tuple[int, ...], State]  # a stage, its span, its arguments
Steps = Sequence[Sequence[Sequence[Call]]]  # each in parts, which may run concurrently
_run_calls = OneVersion(run_calls)
MakeSteps = Callable[[Sequence[State]], Steps]  # by the states of the groups of a frame


class ArgumentGroup(NamedTuple):
    """Arguments, and the words of those that are arrays."""

    state: State
    words: np.ndarray


class ArgumentGroups:
    """The groups that were made, by key. They keep their arrays.

    Threads share the dict without a lock: those that miss a key at once make equal groups, of which the last one stays.
    """

    def __init__(self) -> None:
        self._by_key: dict[GroupKey, ArgumentGroup] = {}

    def of(self, wanted: Iterable[MakeGroup]) -> list[ArgumentGroup]:
        """The groups of these keys."""
        return [self._by_key.get(key) or self._make(key, make) for key, make in wanted]

    def _make(self, key: GroupKey, make: Callable[[], State]) -> ArgumentGroup:
        state = make()
        words = [word for value in state.values() if isinstance(value, np.ndarray) for word in words_of(value)]
        group = self._by_key[key] = ArgumentGroup(state, np.array(words, np.int64))
        return group


def merged(makers: Iterable[MakeGroup]) -> State:
    """The arguments of all groups; where two have a name, those of the later one."""
    state: State = {}
    for _, make in makers:
        state |= make()
    return state


class CompiledFrame:
    """The calls of frames with one key: in steps, whose parts may run concurrently."""

    def __init__(self, make_steps: MakeSteps, groups: Sequence[ArgumentGroup]) -> None:
        """make_steps: the steps of a frame by the states of its `groups`. ValueError if it cannot be called so."""
        # views of their own: an array may be in several groups of this frame, and not of the next one
        views = [{name: value[...] if isinstance(value, np.ndarray) else value for name, value in group.state.items()}
                 for group in groups]  # fmt: skip
        self._arrays = [value for state in views for value in state.values() if isinstance(value, np.ndarray)]
        self._owners = {id(array.base) for array in self._arrays}
        self._word_indices: dict[int, Sequence[int]] = {}  # of arrays and tuples by their identity
        self._numbers: dict[int, Sequence[int]] = {}
        # arguments around the span, and addresses of the calls, by stage and identity of the state
        self._given: dict[tuple[str, int], tuple[list[object], list[object], list[int]]] = {}
        at = 0
        for array in self._arrays:
            self._word_indices[id(array)] = range(at, at + 5 + 2 * array.ndim)
            at += 5 + 2 * array.ndim
        self._first_constant, self._constants = at, [0]
        self._names: list[str] = []
        self._index: list[int] = []
        self._kept_values: list[object] = []  # what `_word_indices` knows by identity
        rows: list[tuple[int, int]] = []
        steps = [[self._add(part, rows) for part in parts] for parts in make_steps(views)]
        self._part_ends = np.array([0, *(end for parts in steps for _, end in parts)], np.int64)
        self._step_ends = np.cumsum([0, *map(len, steps)], dtype=np.int64)
        self._rows = np.array(rows, np.int64).reshape(-1, 2)
        self._step_of = np.repeat(np.arange(len(steps)), np.diff(self._part_ends[self._step_ends]))  # of each call
        self._stages = list(dict.fromkeys(self._names))
        self._stage_of = np.array([self._stages.index(name) for name in self._names], np.int64)
        self._gather = np.array(self._index + [self._first_constant] * MOST_WORDS, np.intp)
        self._constant = np.array(self._constants, np.int64)
        del self._arrays, self._owners, self._word_indices, self._numbers, self._given, self._index, self._constants

    def _add(self, part: Sequence[Call], rows: list[tuple[int, int]]) -> tuple[int, int]:
        """Add the calls of a part to `rows`, of which it has [first, end)."""
        first = len(rows)
        for stage, span, state in part:
            for address, arguments in self._calls(stage, span, state):
                begin = len(self._index)
                rows.append((address, begin))
                self._names.append(stage.name)
                for value in arguments:
                    self._index += self._indices_of(value)
                if len(self._index) - begin > MOST_WORDS:
                    raise ValueError(f"stage {stage.name} has too many arguments")
        return first, len(rows)

    def _calls(self, stage: Stage, span: tuple[int, ...], state: State) -> Iterable[tuple[int, tuple[object, ...]]]:
        """Addresses and arguments; the spans of a state have the same addresses."""
        key = stage.name, id(state)
        if key not in self._given:
            self._given[key] = *stage.around_span(state), []
        before, after, addresses = self._given[key]
        calls = calls_of(stage.cpu_function, [*before, *span, *after])
        if not addresses:
            addresses += [address_of(*call) for call in calls]
            if not all(addresses):
                raise ValueError(f"stage {stage.name} has no address")
        return zip(addresses, [arguments for _, arguments in calls], strict=True)

    def _indices_of(self, value: object) -> Sequence[int]:
        if type(value) is int:
            words_at = self._numbers.get(value)
            if words_at is None:
                words_at = self._numbers[value] = self._constant_indices(value)
            return words_at
        words_at = self._word_indices.get(id(value))
        if words_at is None:
            if isinstance(value, tuple):
                words_at = [index for member in value for index in self._indices_of(member)]
            else:
                words_at = self._constant_indices(value)
            self._kept_values.append(value)
            self._word_indices[id(value)] = words_at
        return words_at

    def _constant_indices(self, value: object) -> Sequence[int]:
        if isinstance(value, np.ndarray):
            assert value.base is None or id(value.base) not in self._owners, "a part of an array of the frame"
        words, at = words_of(value), self._first_constant + len(self._constants)
        self._constants += words
        return range(at, at + len(words))

    def words(self, groups: Sequence[ArgumentGroup]) -> np.ndarray:
        """int64: the arguments of all calls for a frame with these groups, whose arrays are kept. No call writes them."""
        return np.concatenate([*[group.words for group in groups], self._constant])[self._gather]

    def run(
        self, words: np.ndarray, seconds: dict[str, float] | None, at_once: bool, trace: Trace | None,
        share: Callable[[CompiledSteps], None] | None = None,
    ) -> None:  # fmt: skip
        """Run the stages of a frame with the `words` of its groups. seconds (out): the time of each stage;
        None: of no interest.

        at_once: without a return to the interpreter, which delays interrupts. share: runs steps by several threads; None:
        all run in this thread. MemoryError if a stage fails.
        """
        if share is not None:
            steps = self.steps(words)
            share(steps)
            times = steps.times
            self._add_to(trace, steps)
        else:
            times = np.empty((len(self._names), 2), np.int64)
            several = max(1, len(self._names)) if at_once else 1
            for first in range(0, len(self._names), several):
                self._call(words, times, trace, first, first + several)
        if seconds is not None:
            spent = np.bincount(self._stage_of, times[:, 1] - times[:, 0])
            seconds.update(zip(self._stages, (1e-9 * spent).tolist()))

    def steps(self, words: np.ndarray, gated: bool = False) -> CompiledSteps:
        """The steps of a frame, to be run; gated: see CompiledSteps."""
        return CompiledSteps(self._rows, words, self._part_ends, self._step_ends, gated)

    def seconds_by_step(self, steps: CompiledSteps, trace: Trace | None) -> list[dict[str, float]]:
        """Of steps that were run: the seconds of each by stage. Its wall time is divided among its stages by their times,
        summed over threads.
        """
        self._add_to(trace, steps)
        begin, end, _ = steps.times.T
        first, last = np.full(steps.n_steps, end.max()), np.zeros(steps.n_steps, np.int64)
        np.minimum.at(first, self._step_of, begin)
        np.maximum.at(last, self._step_of, end)
        size = steps.n_steps, len(self._stages)
        spent = np.bincount(self._step_of * size[1] + self._stage_of, end - begin, size[0] * size[1]).reshape(size)
        shared = 1e-9 * spent * ((last - first) / np.maximum(spent.sum(1), 1))[:, None]
        return [dict(zip(self._stages, of_step)) for of_step in shared.tolist()]

    def _add_to(self, trace: Trace | None, steps: CompiledSteps) -> None:
        if trace is not None:
            for name, (begin, done, thread) in zip(self._names, steps.times.tolist()):
                trace.add(HOST, steps.threads[thread], name, 1e-9 * begin, 1e-9 * (done - begin))

    def _call(self, words: np.ndarray, times: np.ndarray, trace: Trace | None, first: int, end: int) -> None:
        failed = _run_calls.call(self._rows, words, first, end, times)
        if failed >= 0:
            raise MemoryError(f"stage {self._names[failed]}")
        if trace is not None:
            for name, (begin, done) in zip(self._names[first:end], times[first:end].tolist()):
                trace.add(HOST, threading.current_thread().name, name, 1e-9 * begin, 1e-9 * (done - begin))
