"""What a later user of a GPU takes over from an earlier one: streams, events, memory."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")


class Pool(Generic[Item]):
    """Objects that are made once and taken by one user after another."""

    def __init__(self) -> None:
        self._all: list[Item] = []
        self._free: list[Item] = []

    def take(self, make: Callable[[], Item]) -> Item:
        """A free object, or what `make` returns."""
        if self._free:
            return self._free.pop()
        new = make()
        self._all.append(new)
        return new

    def reset(self) -> None:
        """The user has ended: all objects are free."""
        self._free = self._all[::-1]  # taken in the order in which they were made

    def clear(self) -> None:
        """Drop the objects."""
        self._all.clear()
        self._free.clear()


class Allocation(Protocol):
    """Memory of the driver in use."""

    def free(self) -> None:
        """Give it back to the driver."""

    def __int__(self) -> int: ...


def allocation_bytes(nbytes: int) -> int:
    """Bytes that an array of `nbytes` takes in a MemoryPool."""
    return max(256, -(-nbytes // 256) * 256)


class MemoryPool:
    """Allocations of GPU memory; an array takes over a free one of its size. Not safe for threads."""

    def __init__(self) -> None:
        self._allocations: list[tuple[int, Allocation]] = []  # (bytes, allocation)
        self._free: dict[int, list[Allocation | int]] = {}

    def take(self, nbytes: int, make: Callable[[], Allocation]) -> Allocation | int:
        """A free allocation of this size (of `allocation_bytes`), or what `make` returns."""
        free = self._free.get(nbytes)
        if free:
            return free.pop()
        allocation = make()
        self._allocations.append((nbytes, allocation))
        return allocation

    def give(self, nbytes: int, pointer: int) -> None:
        """The array of `nbytes` at `pointer` is free."""
        self._free.setdefault(allocation_bytes(nbytes), []).append(pointer)

    def free_unused(self) -> bool:
        """Free the memory that no array uses; whether there was any."""
        unused = {int(pointer) for some in self._free.values() for pointer in some}
        self._free.clear()
        blocks, self._allocations = self._allocations, []
        for nbytes, allocation in blocks:
            if int(allocation) in unused:
                allocation.free()
            else:
                self._allocations.append((nbytes, allocation))
        return bool(unused)

    def free_all(self) -> None:
        """Free all allocations."""
        for _, allocation in self._allocations:
            allocation.free()
        self.clear()

    def clear(self) -> None:
        """Forget the allocations without a call of the driver."""
        self._allocations.clear()
        self._free.clear()

    @property
    def nbytes(self) -> int:
        """Bytes that are allocated, in use or not."""
        return sum(nbytes for nbytes, _ in self._allocations)

    def sample(self) -> list[int]:
        """The address of one allocation; empty without any."""
        return [int(allocation) for _, allocation in self._allocations[:1]]
