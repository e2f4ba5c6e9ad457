"""What a picture gives the streams, noted, so that a picture of the same kind can be given the same, wherever it lies.

Pictures of a kind have the same arrays on the GPU, but places of their own in the host's memory: what of these stands in a
call is known by its place in the script's `HostBuffers`, and changed before the calls are given for another one.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

KERNEL = "the kernel "  # in messages, before its name


def handle(stream: Any) -> int:
    """Of a stream or an event; None is the default stream."""
    return 0 if stream is None else int(stream.handle)


def numbers(arguments: Sequence[Any]) -> list[int]:
    """Arguments of a copy or a fill as numbers: the host's arrays as address, and size where there is no other."""
    found: list[int] = []
    size = next((a.nbytes for a in arguments if isinstance(a, np.ndarray)), None)
    for argument in arguments[:-1]:
        found.append(int(argument.ctypes.data) if isinstance(argument, np.ndarray) else int(argument))
    return [*found, *([] if size is None else [size]), handle(arguments[-1])]


class HostBuffers:
    """What is a picture's own: arrays of the host, and events. Pictures of a kind have the same number of them."""

    def __init__(self, *things: Any) -> None:
        self.things = things
        self._which = {id(thing): k for k, thing in enumerate(things)}

    def find(self, thing: Any) -> int | None:
        """Which of the things it is, if it is one. ValueError for another array of the host, which nobody would change."""
        which = self._which.get(id(thing))
        if which is None and isinstance(thing, np.ndarray):
            raise ValueError(f"an array {thing.shape} {thing.dtype} of the host that is not the picture's")
        return which

    @cached_property
    def numbers(self) -> list[int]:
        """Addresses of arrays, handles of events."""
        return [self.number(which) for which in range(len(self.things))]

    def number(self, which: int) -> int:
        """The one of a thing."""
        thing = self.things[which]
        return int(thing.ctypes.data) if isinstance(thing, np.ndarray) else handle(thing)


NO_BUFFERS = HostBuffers()


class Command(NamedTuple):
    """One call that streams get."""

    what: str  # its name in messages
    do: Any  # what does it, called with
    given: Sequence[Any] = ()
    row: list[int] | None = None  # the same for native.replay_rows: a function, then what it is given
    launch: Any = None  # native.Launch of a kernel, whose arguments are `given`
    patches: Sequence[tuple[int, int]] = ()  # which of `given` are the place's, and which of it


class Recording:
    """What was given to the streams, in order, for a picture at a place."""

    def __init__(self, place: HostBuffers = NO_BUFFERS) -> None:
        self.acts: list[Command] = []
        self.uses = 0
        self._place = place
        self._parts: list[tuple[Any, list[str]]] | None = None
        self._spots: list[tuple[memoryview, int, int]] = []  # numbers in memory; which of them, and which of the place

    def add(
        self, what: str, do: Any, given: Sequence[Any] = (), row: list[int] | None = None, launch: Any = None,
        things: Iterable[tuple[int, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Note one call. things: which of `given` may be a place's, and what they are, if not all as they are."""
        found = [(k, self._place.find(thing)) for k, thing in (enumerate(given) if things is None else things)]
        self.acts.append(Command(what, do, given, row, launch, [(k, which) for k, which in found if which is not None]))

    def launches(self) -> Iterator[tuple[int, str, Any]]:
        """Kernels in order: where in `acts`, name, stream. What does it has got grid, block and stream already."""
        for k, act in enumerate(self.acts):
            if act.what.startswith(KERNEL):
                yield k, act.what.removeprefix(KERNEL), act.do.args[2]

    def rebind(self, place: HostBuffers) -> None:
        """From now on it is for what lies at `place`."""
        if place is self._place:
            return
        self._place = place
        for memory, at, which in self._spots:
            memory[at] = place.numbers[which]

    def some(self, acts: Iterable[Command]) -> "Recording":
        """Another script of acts of this one."""
        other = Recording(self._place)
        other.acts = list(acts)
        return other

    def parts(self) -> list[tuple[Any, list[str]]]:
        """Neighbouring rows as one array, other calls as they are; with the names of each."""
        if self._parts is None:
            self.set_commands(self.acts)
        return self._parts or []

    def set_commands(self, acts: Iterable[Command]) -> None:
        """These do the same as `acts`, in fewer calls."""
        self._parts, self._spots = [], []
        for is_row, neighbours in groupby(acts, lambda act: act.row is not None):
            some = list(neighbours)
            if is_row:
                self._parts.append((self._rows(some), [act.what for act in some]))
            else:
                self._parts += [(partial(self._call, act), [act.what]) for act in some if act.do is not None]

    def _rows(self, acts: Sequence[Command]) -> np.ndarray:
        """int64[n, m]: rows of acts, for the place where the script is."""
        rows = np.array([act.row for act in acts], np.int64)
        numbers = self._place.numbers if any(act.patches for act in acts) else []
        for row, act in zip(rows, acts):
            for k, which in act.patches:
                memory, at = (row.data, 1 + k) if act.launch is None else (act.launch.arguments.data, k)
                memory[at] = numbers[which]
                self._spots.append((memory, at, which))
        return rows

    def _call(self, act: Command) -> None:
        """One call, for the place where the script is then."""
        given, place = list(act.given), self._place
        for k, which in act.patches:
            given[k] = place.number(which) if isinstance(given[k], int) else place.things[which]
        act.do(*given)
