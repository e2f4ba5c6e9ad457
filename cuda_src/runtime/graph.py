"""Kernels that follow one another on a stream as one graph: a launch of it takes the host as long as one kernel's.

Only kernels: events, copies and whatever other streams do between them stay calls of the driver, in their order.
"""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

FEWEST = 2  # kernels that are worth a graph
# CUDA_KERNEL_NODE_PARAMS: function, grid, block, shared memory, a gap, arguments, more of them, kernel, context
NODE = struct.Struct("Q7I4x4Q")
# CUgraphEdgeData (port it leaves, port it enters, type): programmatic, the next may start while this one ends; or in full
EARLY, WHOLE = bytes([1, 0, 1, 0, 0, 0, 0, 0]), bytes(8)


class Launch(NamedTuple):
    """A kernel as it is given to a stream."""

    function: int
    grid: Sequence[int]
    block: Sequence[int]
    shared: int
    stream: int
    pointers: int  # address of the addresses of its arguments
    early: bool  # it may be started while the one before it ends
    arguments: Any  # int64[n], where they are


class Graphs:
    """Makes graphs, and gives them back in the end; for the context that is current."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """AttributeError: the driver is older than CUDA 12.3."""
        self._create, self._destroy = library.cuGraphCreate, library.cuGraphDestroy
        self._add, self._connect = library.cuGraphAddKernelNode_v2, library.cuGraphAddDependencies_v2
        self._instantiate, self._give_back = library.cuGraphInstantiateWithFlags, library.cuGraphExecDestroy
        self.launch = ctypes.cast(library.cuGraphLaunch, ctypes.c_void_p).value or 0
        self._made: list[ctypes.c_void_p] = []

    def chain(self, launches: Sequence[Launch]) -> int | None:
        """CUgraphExec of kernels one behind the other; None if the driver does not make it."""
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
        """CUresult of the first call that failed."""
        before = None
        for one in launches:
            node = ctypes.c_void_p()
            sizes = (*one.grid, *one.block, one.shared)
            code = self._add(ctypes.byref(node), graph, None, ctypes.c_size_t(0),
                             NODE.pack(one.function, *sizes, one.pointers, 0, 0, 0))  # fmt: skip
            if not code and before is not None:
                edge = EARLY if one.early else WHOLE
                code = self._connect(graph, ctypes.byref(before), ctypes.byref(node), edge, ctypes.c_size_t(1))
            if code:
                return int(code)
            before = node
        return 0

    def close(self) -> None:
        """Nothing is launched any more."""
        for made in self._made:
            self._give_back(made)
        self._made.clear()
