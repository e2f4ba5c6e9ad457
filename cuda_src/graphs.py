"""Launches of a script one behind the other as a CUDA graph: a stream is given all of them by one call.

A graph is made of the launches themselves, node by node, not captured from a stream: nobody else's work is in the way.
Events, waits and copies stay what they were, before and behind it, and so does the order of the stream.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .script import Script

MOST = 2048  # graphs of a card; scripts after that are left as they are
PROGRAMMATIC = 1  # as CUgraphDependencyType, and as the port of a kernel node
# CUDA_KERNEL_NODE_PARAMS: function, grid, block, shared memory, arguments, extra, kernel, context; CUgraphEdgeData
NODE = np.dtype(
    [("function", np.uint64), ("sizes", np.uint32, 7), ("gap", np.uint32), ("arguments", np.uint64), ("none", np.uint64, 3)]
)
EDGE = np.dtype([("from_port", np.uint8), ("to_port", np.uint8), ("type", np.uint8), ("none", np.uint8, 5)])


class Launch(NamedTuple):
    """sizes: grid, block, shared memory; arguments: address of their addresses; waits: by itself for the kernel before."""

    function: int
    sizes: tuple[int, ...]
    stream: int
    arguments: int
    waits: bool


def runs(launches: Sequence[Launch | None]) -> list[tuple[int, int]]:
    """[first, end) of two or more launches one behind the other on one stream; None: something else."""
    found: list[tuple[int, int]] = []
    first = 0
    for k in range(1, len(launches) + 1):
        before, here = launches[k - 1], launches[k] if k < len(launches) else None
        if before is None or here is None or here.stream != before.stream:
            if before is not None and k - first > 1:
                found.append((first, k))
            first = k
    return found


class Graphs:
    """Makes graphs by the driver's library, for the context that is current, and keeps them."""

    def __init__(self, library: Any) -> None:
        """AttributeError: the library is older than graphs of this kind (CUDA 12.3)."""
        self._library = library
        self._edge, self._node = library.cuGraphAddDependencies_v2, library.cuGraphAddKernelNode_v2
        self.launch = ctypes.cast(library.cuGraphLaunch, ctypes.c_void_p).value or 0
        self._made: list[ctypes.c_void_p] = []

    def combine(self, script: Script, launches: Sequence[Launch | None]) -> None:
        """What each call of the script launches; runs of them become one call where the driver makes a graph of them."""
        for first, end in reversed(runs(launches)):
            part = [launch for launch in launches[first:end] if launch is not None]
            graph = self._make(part)
            if graph is not None:
                script.put(first, end, [self.launch, graph, part[0].stream])

    def _make(self, launches: Sequence[Launch]) -> int | None:
        """The address of a graph that does them one after another."""
        library, graph, made = self._library, ctypes.c_void_p(), ctypes.c_void_p()
        if len(self._made) >= MOST or library.cuGraphCreate(ctypes.byref(graph), ctypes.c_uint(0)):
            return None
        try:
            if not self._fill(graph, launches):
                return None
            if library.cuGraphInstantiateWithFlags(ctypes.byref(made), graph, ctypes.c_ulonglong(0)):
                return None
        finally:
            library.cuGraphDestroy(graph)
        self._made.append(made)
        return made.value

    def _fill(self, graph: ctypes.c_void_p, launches: Sequence[Launch]) -> bool:
        before = None
        for launch in launches:
            node, what, edge = ctypes.c_void_p(), np.zeros(1, NODE), np.zeros(1, EDGE)
            what["function"], what["sizes"], what["arguments"] = launch.function, launch.sizes, launch.arguments
            if self._node(ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.c_void_p(what.ctypes.data)):
                return False
            edge["from_port"] = edge["type"] = PROGRAMMATIC * launch.waits
            data = ctypes.c_void_p(edge.ctypes.data)
            pair = ctypes.byref(before) if before else None, ctypes.byref(node)
            if before and self._edge(graph, *pair, data, ctypes.c_size_t(1)):
                return False
            before = node
        return True

    def unload(self) -> None:
        """Give them back; the context is current."""
        for graph in self._made:
            self._library.cuGraphExecDestroy(graph)
        self._made.clear()
