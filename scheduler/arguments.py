"""Types of what stages take: arrays in the memory of a device, and all arguments by name."""

from collections.abc import Callable, Hashable
from typing import Any

Array = Any  # np.ndarray, or a DeviceArray of a GPU: the memory that it was asked for says which
State = dict[str, Any]  # arguments of stages by name: arrays, numbers, None
GroupKey = tuple[Hashable, ...]
MakeGroup = tuple[GroupKey, Callable[[], State]]  # what the arrays of a group of arguments depend on; makes the group
