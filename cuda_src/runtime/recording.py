"""Recordings of the driver calls of a frame, to be replayed for frames of the same kind.

Frames of a kind use the same arrays on the GPU, but different host buffers. Arguments of a command that refer to host
buffers are noted as indices into `HostBuffers`, and are replaced before a replay with other buffers.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

KERNEL = "the kernel "  # in messages, before its name


def handle(stream: Any) -> int:
    """The driver handle of a stream or an event; None: the default stream."""
    return 0 if stream is None else int(stream.handle)


def numbers(arguments: Sequence[Any]) -> list[int]:
    """Arguments of a copy or a fill as numbers: a host array becomes its address, and its size is added before the stream."""
    found: list[int] = []
    size = next((a.nbytes for a in arguments if isinstance(a, np.ndarray)), None)
    for argument in arguments[:-1]:
        found.append(int(argument.ctypes.data) if isinstance(argument, np.ndarray) else int(argument))
    return [*found, *([] if size is None else [size]), handle(arguments[-1])]


class HostBuffers:
    """The host arrays and events of one frame. Frames of a kind have the same number of them."""

    def __init__(self, *things: Any) -> None:
        self.things = things
        self._which = {id(thing): k for k, thing in enumerate(things)}

    def find(self, thing: Any) -> int | None:
        """Index of a thing, or None. ValueError for another host array, which `rebind` could not replace."""
        which = self._which.get(id(thing))
        if which is None and isinstance(thing, np.ndarray):
            raise ValueError(f"an array {thing.shape} {thing.dtype} of the host that is not the picture's")
        return which

    @cached_property
    def numbers(self) -> list[int]:
        """Addresses of the arrays and handles of the events."""
        return [self.number(which) for which in range(len(self.things))]

    def number(self, which: int) -> int:
        """Address or handle of one thing."""
        thing = self.things[which]
        return int(thing.ctypes.data) if isinstance(thing, np.ndarray) else handle(thing)


NO_BUFFERS = HostBuffers()


class Command(NamedTuple):
    """One driver call of a recording."""

    what: str  # its name in messages
    do: Any  # the callable, called with `given`
    given: Sequence[Any] = ()
    row: list[int] | None = None  # the same call for driver_calls.replay_rows: address of the function, then its arguments
    launch: Any = None  # graph.Launch of a kernel, whose arguments are `given`
    patches: Sequence[tuple[int, int]] = ()  # (index in `given`, index in HostBuffers) of arguments to replace


class Recording:
    """The driver calls of a frame, in order, bound to host buffers."""

    def __init__(self, place: HostBuffers = NO_BUFFERS) -> None:
        self.acts: list[Command] = []
        self.uses = 0
        self._place = place
        self._parts: list[tuple[Any, list[str]]] | None = None
        self._spots: list[tuple[memoryview, int, int]] = []  # (argument memory, index in it, index in HostBuffers)

    def add(
        self, what: str, do: Any, given: Sequence[Any] = (), row: list[int] | None = None, launch: Any = None,
        things: Iterable[tuple[int, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Note one call. things: (index in `given`, object) of arguments that may be host buffers; None: all of `given`."""
        found = [(k, self._place.find(thing)) for k, thing in (enumerate(given) if things is None else things)]
        self.acts.append(Command(what, do, given, row, launch, [(k, which) for k, which in found if which is not None]))

    def launches(self) -> Iterator[tuple[int, str, Any]]:
        """Kernels in order: (index in `acts`, name, stream). Their callables have grid, block and stream bound."""
        for k, act in enumerate(self.acts):
            if act.what.startswith(KERNEL):
                yield k, act.what.removeprefix(KERNEL), act.do.args[2]

    def rebind(self, place: HostBuffers) -> None:
        """Bind the recording to the host buffers `place`."""
        if place is self._place:
            return
        self._place = place
        for memory, at, which in self._spots:
            memory[at] = place.numbers[which]

    def some(self, acts: Iterable[Command]) -> "Recording":
        """A recording of some of these commands."""
        other = Recording(self._place)
        other.acts = list(acts)
        return other

    def parts(self) -> list[tuple[Any, list[str]]]:
        """Runs of rows as one array each, other calls as callables; each with the names of its commands."""
        if self._parts is None:
            self.set_commands(self.acts)
        return self._parts or []

    def set_commands(self, acts: Iterable[Command]) -> None:
        """Set the commands that a replay does instead of `self.acts`: the same work in fewer calls."""
        self._parts, self._spots = [], []
        for is_row, neighbours in groupby(acts, lambda act: act.row is not None):
            some = list(neighbours)
            if is_row:
                self._parts.append((self._rows(some), [act.what for act in some]))
            else:
                self._parts += [(partial(self._call, act), [act.what]) for act in some if act.do is not None]

    def _rows(self, acts: Sequence[Command]) -> np.ndarray:
        """int64[n, m]: rows of commands, bound to the current host buffers."""
        rows = np.array([act.row for act in acts], np.int64)
        numbers = self._place.numbers if any(act.patches for act in acts) else []
        for row, act in zip(rows, acts):
            for k, which in act.patches:
                memory, at = (row.data, 1 + k) if act.launch is None else (act.launch.arguments.data, k)
                memory[at] = numbers[which]
                self._spots.append((memory, at, which))
        return rows

    def _call(self, act: Command) -> None:
        """Do one call with the current host buffers."""
        given, place = list(act.given), self._place
        for k, which in act.patches:
            given[k] = place.number(which) if isinstance(given[k], int) else place.things[which]
        act.do(*given)
