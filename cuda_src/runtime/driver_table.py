"""The driver functions that the encoder uses: what a package that leads to the driver must give.

Two packages do: PyCUDA (pycuda_driver.py) and NVIDIA's cuda-bindings (bindings.py). They find GPUs and make contexts, streams
and memory. Kernels, copies, events and graphs are calls of the driver's library for both (driver_calls.py): recordings need
addresses of functions and handles of kernels and events, which PyCUDA does not give.
"""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ...process import cached_property
from .array import DType, Stream
from .compiler import load_codes
from .driver_calls import DriverCalls
from .library import LIBRARY
from .pool import Allocation


class GpuProperties(NamedTuple):
    """Properties of one GPU."""

    name: str
    capability: tuple[int, int]
    memory: int  # bytes
    multiprocessors: int
    shared_limit: int  # maximum bytes of shared memory of a block

    @property
    def label(self) -> str:
        """Name and compute capability."""
        return f"{self.name}, sm_{self.capability[0]}{self.capability[1]}"


class Context(Protocol):
    """The primary context of a GPU, retained."""

    def push(self) -> None:
        """Make it current to the calling thread."""

    def pop(self) -> None:
        """Make current what was before."""

    def stream(self) -> Stream:
        """A new stream. It must be current."""

    def urgent_stream(self) -> Stream | None:
        """A new stream of the highest priority; None if the package can make none. It must be current."""

    def free(self) -> None:
        """Free its streams, to which there are no references any more. It must be current."""

    def detach(self) -> None:
        """Release it, and leave the same context current as before. Error if it was released or abandoned before."""

    def abandon(self) -> None:
        """Forget the context of a lost GPU, for which no driver call succeeds, without a call that frees anything of it."""


class Driver(ABC):
    """A way to the driver. Functions without `ordinal` are of the current context; they raise Error, or MemoryError for want
    of memory.
    """

    Error: type[Exception]
    MemoryError: type[Exception]

    @abstractmethod
    def count(self) -> int:
        """Number of GPUs."""

    @abstractmethod
    def properties(self, ordinal: int) -> GpuProperties:
        """Of a GPU; needs no context."""

    @abstractmethod
    def retain(self, ordinal: int) -> Context:
        """The primary context of a GPU, which is not current yet."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Allocation:
        """New memory of the GPU."""

    @abstractmethod
    def memory_left(self) -> tuple[int, int]:
        """(free bytes, all bytes) of the GPU."""

    @abstractmethod
    def page_locked(self, shape: Sequence[int], dtype: DType) -> np.ndarray:
        """Page-locked host memory with undefined contents; a method `free` of its `base` frees it, if there is one."""

    @cached_property
    def library(self) -> ctypes.CDLL:
        """The driver's library."""
        return ctypes.CDLL(LIBRARY)

    def calls(self) -> DriverCalls:
        """Calls of the library, for the user of a context. AttributeError if the driver is too old."""
        return DriverCalls(self.library, ctypes.PyDLL(LIBRARY), self.Error, self.MemoryError)

    def kernel_code(self, modules: Sequence[str], capability: tuple[int, int]) -> list[bytes]:
        """Compiled kernel files for a GPU of this compute capability; see compiler.py."""
        return load_codes(modules, capability)
