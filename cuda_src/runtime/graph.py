"""CUDA graphs of consecutive kernels of a stream: one graph launch costs the host as much as one kernel launch.

Only kernels: events, copies and calls for other streams between them stay driver calls, in order.
"""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

FEWEST = 2  # minimum kernels of a graph
# CUDA_KERNEL_NODE_PARAMS: function, grid, block, shared memory, a gap, arguments, more of them, kernel, context
NODE = struct.Struct("Q7I4x4Q")
# CUgraphEdgeData (from port, to port, type): EARLY is programmatic, the next may start while this ends
EARLY, AFTER_END = bytes([1, 0, 1, 0, 0, 0, 0, 0]), bytes(8)


class Launch(NamedTuple):
    """A kernel launch."""

    function: int
    grid: Sequence[int]
    block: Sequence[int]
    shared: int
    stream: int
    pointers: int  # address of the addresses of its arguments
    early: bool  # whether it may start while the kernel before it ends
    arguments: Any  # int64[n], the memory of the arguments


class Graphs:
    """Makes graphs, and frees them in `close`; in the current context."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """AttributeError if the driver is older than CUDA 12.3."""
        self._create, self._destroy = library.cuGraphCreate, library.cuGraphDestroy
        self._add, self._connect = library.cuGraphAddKernelNode_v2, library.cuGraphAddDependencies_v2
        self._instantiate, self._give_back = library.cuGraphInstantiateWithFlags, library.cuGraphExecDestroy
        self.launch = ctypes.cast(library.cuGraphLaunch, ctypes.c_void_p).value or 0
        self._made: list[ctypes.c_void_p] = []

    def chain(self, launches: Sequence[Launch]) -> int | None:
        """CUgraphExec of kernels in sequence; None if the driver cannot make it."""
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        if self._create(ctypes.byref(graph), ctypes.c_uint(0)):
            return None
        try:
            if self._fill(graph, launches) or self._instantiate(ctypes.byref(made), graph, ctypes.c_ulonglong(0)):
                return None
        finally:
            self._destroy(graph)
        self._made.append(made)
        return made.value

    def _fill(self, graph: ctypes.c_void_p, launches: Sequence[Launch]) -> int:
        """Add the kernels to a graph. Returns 0, or the CUresult of the first call that failed."""
        before = None
        for one in launches:
            node = ctypes.c_void_p()
            sizes = (*one.grid, *one.block, one.shared)
            code = self._add(ctypes.byref(node), graph, None, ctypes.c_size_t(0),
                             NODE.pack(one.function, *sizes, one.pointers, 0, 0, 0))  # fmt: skip
            if not code and before is not None:
                edge = EARLY if one.early else AFTER_END
                code = self._connect(graph, ctypes.byref(before), ctypes.byref(node), edge, ctypes.c_size_t(1))
            if code:
                return int(code)
            before = node
        return 0

    def close(self) -> None:
        """Free the graphs, which must not be launched any more."""
        for made in self._made:
            self._give_back(made)
        self._made.clear()
