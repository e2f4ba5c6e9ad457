"""Recordings of the driver calls of a frame, to be replayed for frames with the same key.

Frames with the same key have the same calls with other host buffers and other arrays on the GPU. Calls are recorded with host
arrays and events of `HostBuffers`, and with placeholders for arrays on the GPU: addresses that no array has. A recording
notes which arguments these are, and `rebind` replaces them before a replay.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import quick_kernel
from ...process import cached_property
from .array import Event, address_of, handle

KERNEL = "the kernel "  # in messages, before its name
PLACEHOLDER, OFFSET_BITS = 1 << 62, 44  # a placeholder: PLACEHOLDER + its number << OFFSET_BITS + an offset in its array


NO_PATCHES = np.zeros((0, 3), np.int64)


def placeholder_address(number: int) -> int:
    """The address of array `number` in a recording; a replay takes element `number` of `addresses` in its place."""
    return PLACEHOLDER + (number << OFFSET_BITS)


def _parted(argument: object) -> tuple[int, int] | None:
    """(number, offset) of a placeholder; None for another argument."""
    if type(argument) is not int or argument < PLACEHOLDER:
        return None
    return (argument - PLACEHOLDER) >> OFFSET_BITS, argument & ((1 << OFFSET_BITS) - 1)


@intrinsic
def _store(typingctx, address, value):  # type: ignore[no-untyped-def]
    """An int64 at an address."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@quick_kernel
def replace_numbers(patches, table):
    """patches int64[n, 3]: address of an int64, which element of `table` it becomes, what is added."""
    for k in range(patches.shape[0]):
        _store(patches[k, 0], table[patches[k, 1]] + patches[k, 2])


@cache
def replaced_numbers() -> Callable[[np.ndarray, np.ndarray], None]:
    """The function of `replace_numbers` for these arguments, chosen once."""
    chosen: Callable[[np.ndarray, np.ndarray], None] = replace_numbers.chosen(NO_PATCHES, np.zeros(1, np.int64))
    return chosen


class HostBuffers:
    """The host arrays and events of one frame. Frames with the same key have the same number of them."""

    def __init__(self, *buffers: np.ndarray | Event) -> None:
        self.buffers = list(buffers)

    @cached_property
    def _which(self) -> dict[int, int]:
        return {id(buffer): k for k, buffer in enumerate(self.buffers)}

    def find(self, buffer: object) -> int | None:
        """Index of an array or event, or None. ValueError for another host array, which `rebind` could not replace."""
        which = self._which.get(id(buffer))
        if which is None and isinstance(buffer, np.ndarray):
            raise ValueError(f"a host array {buffer.shape} {buffer.dtype} that is not one of the frame's")
        return which

    def exchanged(self, which: int, buffer: np.ndarray) -> "HostBuffers":
        """Itself, from now on with another array as number `which`."""
        if self.buffers[which] is not buffer:
            self.buffers[which] = buffer
            self.numbers[which] = address_of(buffer)
            vars(self).pop("_which", None)
        return self

    @cached_property
    def numbers(self) -> list[int]:
        """Addresses of the arrays and handles of the events."""
        return [self.number(which) for which in range(len(self.buffers))]

    def number(self, which: int) -> int:
        """Address or handle of one of them."""
        buffer = self.buffers[which]
        return address_of(buffer) if isinstance(buffer, np.ndarray) else handle(buffer)


NO_BUFFERS = HostBuffers()


class Launch(NamedTuple):
    """A kernel launch."""

    function: int
    grid: Sequence[int]
    block: Sequence[int]
    shared: int
    stream: int
    pointers: int  # address of the addresses of its arguments
    early: bool  # whether it may start while the kernel before it ends
    arguments: np.ndarray  # int64[n], the memory of the arguments


class Command(NamedTuple):
    """One driver call of a recording."""

    name: str  # its name in messages
    call_record: list[int]  # for driver_calls.replay_rows: address of the function, then its arguments
    launch: Launch | None = None  # of a kernel
    # (index of an argument to replace, what, offset). what: index in HostBuffers, or of a placeholder -1 - number
    patches: Sequence[tuple[int, int, int]] = ()


class Recording:
    """The driver calls of a frame, in order, bound to host buffers and to addresses of arrays on the GPU."""

    def __init__(self, buffers: HostBuffers = NO_BUFFERS, addresses: Sequence[int] = ()) -> None:
        self.commands: list[Command] = []
        self.replays = 0
        self._buffers, self._addresses = buffers, addresses
        self._rows: np.ndarray | None = None
        self.names: list[str] = []  # of the commands of `rows`
        self._patches = NO_PATCHES
        self._numbers: np.ndarray | None = None  # what it was bound to last

    def add(self, name: str, call_record: list[int], arguments: Sequence[object] = (), launch: Launch | None = None) -> None:
        """Note one call. arguments: the first ones, as given: host arrays, events, addresses of arrays on the GPU."""
        buffers = [(k, self._buffers.find(a)) for k, a in enumerate(arguments)]
        patches = [(k, which, 0) for k, which in buffers if which is not None]
        parted = [(k, _parted(a)) for k, a in enumerate(arguments)]
        patches += [(k, -1 - given[0], given[1]) for k, given in parted if given is not None]
        self.commands.append(Command(name, call_record, launch, patches))

    def launches(self) -> Iterator[tuple[int, str, int]]:
        """Kernels in order: (index in `commands`, name, handle of the stream)."""
        for k, command in enumerate(self.commands):
            if command.launch is not None:
                yield k, command.name.removeprefix(KERNEL), command.launch.stream

    def clear(self) -> None:
        """Drop all calls."""
        self.commands, self._rows, self._patches = [], None, NO_PATCHES

    def rebind(self, buffers: HostBuffers, addresses: Sequence[int] = ()) -> None:
        """Bind the recording to other host buffers and arrays."""
        self._buffers, self._addresses = buffers, addresses
        self.bind(self._bound())

    def bind(self, numbers: np.ndarray) -> None:
        """Replace all arguments that differ between frames: `rebind` for a caller who keeps the numbers.

        numbers: int64[n], those of the host buffers, then the addresses, the last one first; unchanged until the next replay.
        """
        self._numbers = numbers
        if len(self._patches):
            replaced_numbers()(self._patches, numbers)

    def _bound(self) -> np.ndarray:
        """The numbers of what it is bound to."""
        return np.array([*self._buffers.numbers, *self._addresses[::-1]], np.int64)

    def subset(self, commands: Iterable[Command]) -> "Recording":
        """A recording of some of these commands, bound as this one is."""
        other = Recording(self._buffers, self._addresses)
        other.commands, other._numbers = list(commands), self._numbers
        return other

    @property
    def rows(self) -> np.ndarray:
        """int64[n, 1 + ARGUMENTS]: the call records that a replay does."""
        if self._rows is None:
            self.set_commands(self.commands)
        assert self._rows is not None
        return self._rows

    def set_commands(self, commands: Sequence[Command]) -> None:
        """Set the commands that a replay does instead of `self.commands`: the same work in fewer calls."""
        rows = [command.call_record for command in commands]
        self._rows = np.array(rows, np.int64) if rows else np.zeros((0, 1), np.int64)
        self.names = [command.name for command in commands]
        patches = [patch for row, command in zip(self._rows, commands) for patch in _patches(row, command)]
        self._patches = np.array(patches, np.int64).reshape(-1, 3)
        if patches:
            self.bind(self._bound() if self._numbers is None else self._numbers)


def _patches(row: np.ndarray, command: Command) -> Iterator[tuple[int, int, int]]:
    """See replace_numbers: what is to be replaced in a call record, or in the arguments of a launch, which outlive it."""
    memory = row[1:] if command.launch is None else command.launch.arguments
    at = address_of(memory) if command.patches else 0
    for k, what, offset in command.patches:
        yield at + memory.itemsize * k, what, offset
