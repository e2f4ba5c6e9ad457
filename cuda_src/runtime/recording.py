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

    def __init__(self, *buffers: Any) -> None:
        self.buffers = buffers
        self._which = {id(buffer): k for k, buffer in enumerate(buffers)}

    def find(self, buffer: Any) -> int | None:
        """Index of an array or event, or None. ValueError for another host array, which `rebind` could not replace."""
        which = self._which.get(id(buffer))
        if which is None and isinstance(buffer, np.ndarray):
            raise ValueError(f"a host array {buffer.shape} {buffer.dtype} that is not one of the frame's")
        return which

    @cached_property
    def numbers(self) -> list[int]:
        """Addresses of the arrays and handles of the events."""
        return [self.number(which) for which in range(len(self.buffers))]

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
    patches: Sequence[tuple[int, int]] = ()  # (index in `arguments`, index in HostBuffers) of arguments to replace


class Recording:
    """The driver calls of a frame, in order, bound to host buffers."""

    def __init__(self, buffers: HostBuffers = NO_BUFFERS) -> None:
        self.commands: list[Command] = []
        self.uses = 0
        self._buffers = buffers
        self._parts: list[tuple[Any, list[str]]] | None = None
        self._patches: list[tuple[memoryview, int, int]] = []  # (argument memory, index in it, index in HostBuffers)

    def add(
        self, name: str, call: Any, arguments: Sequence[Any] = (), call_record: list[int] | None = None, launch: Any = None,
        host_arguments: Iterable[tuple[int, Any]] | None = None,
    ) -> None:  # fmt: skip
        """Note one call. host_arguments: (index in `arguments`, object) of arguments that may be host buffers; None: all."""
        found = [(k, self._buffers.find(a)) for k, a in (enumerate(arguments) if host_arguments is None else host_arguments)]
        patches = [(k, which) for k, which in found if which is not None]
        self.commands.append(Command(name, call, arguments, call_record, launch, patches))

    def launches(self) -> Iterator[tuple[int, str, Any]]:
        """Kernels in order: (index in `commands`, name, stream). Their callables have grid, block and stream bound."""
        for k, command in enumerate(self.commands):
            if command.name.startswith(KERNEL):
                yield k, command.name.removeprefix(KERNEL), command.call.args[2]

    def rebind(self, buffers: HostBuffers) -> None:
        """Bind the recording to other host buffers."""
        if buffers is self._buffers:
            return
        self._buffers = buffers
        for memory, at, which in self._patches:
            memory[at] = buffers.numbers[which]

    def subset(self, commands: Iterable[Command]) -> "Recording":
        """A recording of some of these commands."""
        other = Recording(self._buffers)
        other.commands = list(commands)
        return other

    def parts(self) -> list[tuple[Any, list[str]]]:
        """Runs of call records as one array each, other calls as callables; each with the names of its commands."""
        if self._parts is None:
            self.set_commands(self.commands)
        return self._parts or []

    def set_commands(self, commands: Iterable[Command]) -> None:
        """Set the commands that a replay does instead of `self.commands`: the same work in fewer calls."""
        self._parts, self._patches = [], []
        for is_record, neighbours in groupby(commands, lambda command: command.call_record is not None):
            subset = list(neighbours)
            if is_record:
                self._parts.append((self._rows(subset), [command.name for command in subset]))
            else:
                others = (command for command in subset if command.call is not None)
                self._parts += [(partial(self._call, command), [command.name]) for command in others]

    def _rows(self, commands: Sequence[Command]) -> np.ndarray:
        """int64[n, m]: call records of commands, bound to the current host buffers."""
        rows = np.array([command.call_record for command in commands], np.int64)
        numbers = self._buffers.numbers if any(command.patches for command in commands) else []
        for row, command in zip(rows, commands):
            for k, which in command.patches:
                memory, at = (row.data, 1 + k) if command.launch is None else (command.launch.arguments.data, k)
                memory[at] = numbers[which]
                self._patches.append((memory, at, which))
        return rows

    def _call(self, command: Command) -> None:
        """Do one call with the current host buffers."""
        arguments, buffers = list(command.arguments), self._buffers
        for k, which in command.patches:
            arguments[k] = buffers.number(which) if isinstance(arguments[k], int) else buffers.buffers[which]
        command.call(*arguments)
