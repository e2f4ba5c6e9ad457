"""Recordings of the driver calls of a frame, to be replayed for frames of the same kind.

Frames of a kind have the same calls with other host buffers and other arrays on the GPU. Calls are recorded with host arrays
and events of `HostBuffers`, and with stand-ins for arrays on the GPU: addresses that no array has. A recording notes which
arguments these are, and `rebind` replaces them before a replay.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ...forks import cached_property
from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import quick_kernel
from .array import Event, Stream

KERNEL = "the kernel "  # in messages, before its name
STAND_IN, OFFSET_BITS = 1 << 62, 44  # a stand-in: STAND_IN + its number << OFFSET_BITS + an offset in its array


NO_PATCHES = np.zeros((0, 3), np.int64)


def placeholder_address(number: int) -> int:
    """The address of array `number` in a recording; a replay takes element `number` of `addresses` in its place."""
    return STAND_IN + (number << OFFSET_BITS)


def _parted(argument: object) -> tuple[int, int] | None:
    """(number, offset) of a stand-in; None for another argument."""
    if type(argument) is not int or argument < STAND_IN:
        return None
    return (argument - STAND_IN) >> OFFSET_BITS, argument & ((1 << OFFSET_BITS) - 1)


def handle(stream: Stream | Event | None) -> int:
    """The driver handle of a stream or an event; None: the default stream."""
    return 0 if stream is None else int(stream.handle)


def numbers(arguments: Sequence[Any]) -> list[int]:
    """Arguments of a copy or a fill as numbers: a host array becomes its address, and its size is added before the stream."""
    numbers_found: list[int] = []
    size = next((a.nbytes for a in arguments if isinstance(a, np.ndarray)), None)
    for argument in arguments[:-1]:
        numbers_found.append(int(argument.ctypes.data) if isinstance(argument, np.ndarray) else int(argument))
    return [*numbers_found, *([] if size is None else [size]), handle(arguments[-1])]


@intrinsic
def _store(typingctx, address, value):  # type: ignore[no-untyped-def]
    """An int64 at an address."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@quick_kernel
def replace_numbers(patches, table):
    """patches int64[n, 3]: address of an int64, which element of `table` it becomes, negative from the end, what is added."""
    for k in range(patches.shape[0]):
        _store(patches[k, 0], table[patches[k, 1]] + patches[k, 2])


@cache
def _replace_numbers() -> Callable[[np.ndarray, np.ndarray], None]:
    """The kernel's function for these arguments, chosen once."""
    chosen: Callable[[np.ndarray, np.ndarray], None] = replace_numbers.chosen(NO_PATCHES, np.zeros(1, np.int64))
    return chosen


class HostBuffers:
    """The host arrays and events of one frame. Frames of a kind have the same number of them."""

    def __init__(self, *buffers: np.ndarray | Event) -> None:
        self.buffers = buffers

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
        """The same with another array as number `which`; itself if that is there."""
        if self.buffers[which] is buffer:
            return self
        exchanged = HostBuffers(*self.buffers[:which], buffer, *self.buffers[which + 1 :])
        if "numbers" in vars(self):  # they have been asked for, and will be
            exchanged.numbers = self.numbers.copy()
            exchanged.numbers[which] = buffer.__array_interface__["data"][0]
        return exchanged

    @cached_property
    def numbers(self) -> np.ndarray:
        """int64[n]: addresses of the arrays and handles of the events."""
        return np.array([self.number(which) for which in range(len(self.buffers))], np.int64)

    def number(self, which: int) -> int:
        """Address or handle of one of them."""
        buffer = self.buffers[which]
        return int(buffer.ctypes.data) if isinstance(buffer, np.ndarray) else handle(buffer)


NO_BUFFERS = HostBuffers()


class Command(NamedTuple):
    """One driver call of a recording."""

    name: str  # its name in messages
    call: Any  # the callable, called with `arguments`
    arguments: Sequence[Any] = ()
    call_record: list[int] | None = None  # for driver_calls.replay_rows: address of the function, then its arguments
    launch: Any = None  # graph.Launch of a kernel, with the same arguments
    # (index in `arguments`, what, offset) of arguments to replace. what: index in HostBuffers, or of a stand-in -1 - number
    patches: Sequence[tuple[int, int, int]] = ()


class Recording:
    """The driver calls of a frame, in order, bound to host buffers and to addresses of arrays on the GPU."""

    def __init__(self, buffers: HostBuffers = NO_BUFFERS, addresses: Sequence[int] = ()) -> None:
        self.commands: list[Command] = []
        self.replays = 0
        self._buffers, self._addresses = buffers, addresses
        self._parts: list[tuple[Any, list[str]]] | None = None
        self._patches = NO_PATCHES

    def add(
        self, name: str, call: Any, arguments: Sequence[Any] = (), call_record: list[int] | None = None, launch: Any = None,
        host_arguments: Iterable[tuple[int, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Note one call. host_arguments: (index in `arguments`, object) of arguments that may be host buffers; None: all."""
        places = [(k, self._buffers.find(a)) for k, a in (enumerate(arguments) if host_arguments is None else host_arguments)]
        patches = [(k, which, 0) for k, which in places if which is not None]
        parted = [(k, _parted(a)) for k, a in enumerate(arguments)]
        patches += [(k, -1 - given[0], given[1]) for k, given in parted if given is not None]
        self.commands.append(Command(name, call, arguments, call_record, launch, patches))

    def launches(self) -> Iterator[tuple[int, str, Any]]:
        """Kernels in order: (index in `commands`, name, stream). Their callables have grid, block and stream bound."""
        for k, command in enumerate(self.commands):
            if command.name.startswith(KERNEL):
                yield k, command.name.removeprefix(KERNEL), command.call.args[2]

    def clear(self) -> None:
        """Drop all calls. They refer to streams, which end with their last reference, and parts to the recording itself."""
        self.commands, self._parts, self._patches = [], None, NO_PATCHES

    def rebind(self, buffers: HostBuffers, addresses: Sequence[int] = ()) -> None:
        """Bind the recording to other host buffers and arrays."""
        if buffers is not self._buffers or addresses != self._addresses:
            self._buffers, self._addresses = buffers, addresses
            self._bind()

    def _bind(self) -> None:
        """Replace all arguments that differ between frames."""
        if len(self._patches):
            table = self._buffers.numbers
            if self._addresses:
                table = np.concatenate((table, np.array(self._addresses[::-1], np.int64)))
            _replace_numbers()(self._patches, table)

    def subset(self, commands: Iterable[Command]) -> "Recording":
        """A recording of some of these commands."""
        other = Recording(self._buffers, self._addresses)
        other.commands = list(commands)
        return other

    def parts(self) -> list[tuple[Any, list[str]]]:
        """Runs of call records as one array each, other calls as callables; each with the names of its commands."""
        if self._parts is None:
            self.set_commands(self.commands)
        return self._parts or []

    def set_commands(self, commands: Iterable[Command]) -> None:
        """Set the commands that a replay does instead of `self.commands`: the same work in fewer calls."""
        self._parts, patches = [], []
        for is_record, neighbours in groupby(commands, lambda command: command.call_record is not None):
            subset = list(neighbours)
            if is_record:
                rows = np.array([command.call_record for command in subset], np.int64)
                self._parts.append((rows, [command.name for command in subset]))
                patches += [patch for row, command in zip(rows, subset) for patch in _patches(row, command)]
            else:
                others = (command for command in subset if command.call is not None)
                self._parts += [(partial(self._call, command), [command.name]) for command in others]
        self._patches = np.array(patches, np.int64).reshape(-1, 3)
        self._bind()

    def _call(self, command: Command) -> None:
        """Do one call with the current host buffers and arrays."""
        arguments, buffers = list(command.arguments), self._buffers
        for k, what, offset in command.patches:
            if what < 0:
                arguments[k] = self._addresses[-1 - what] + offset
            else:
                arguments[k] = buffers.number(what) if isinstance(arguments[k], int) else buffers.buffers[what]
        command.call(*arguments)


def _patches(row: np.ndarray, command: Command) -> Iterator[tuple[int, int, int]]:
    """See replace_numbers: what is to be replaced in a call record, or in the arguments of a launch, which outlive it."""
    memory = row[1:] if command.launch is None else command.launch.arguments
    for k, what, offset in command.patches:
        yield memory.ctypes.data + memory.itemsize * k, what, offset
