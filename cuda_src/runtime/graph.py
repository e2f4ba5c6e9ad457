"""CUDA graphs of consecutive kernels of a stream: one graph launch costs the host as much as one kernel launch.

Only kernels: events, copies and calls for other streams between them stay driver calls, in order. A graph has a copy of the
arguments of its kernels; a call for each kernel replaces them, a tenth of the cost of a launch.
"""

import ctypes
import struct
from collections.abc import Sequence
from typing import NamedTuple

from .recording import Launch

FEWEST = 2  # minimum kernels of a graph
MOST_GRAPHS = 1024  # graphs at a time: an encode has some twenty
# CUDA_KERNEL_NODE_PARAMS: function, grid, block, shared memory, a gap, arguments, more of them, kernel, context
NODE = struct.Struct("Q7I4x4Q")
# CUgraphEdgeData (from port, to port, type): EARLY is programmatic, the next may start while this ends
EARLY, AFTER_END = bytes([1, 0, 1, 0, 0, 0, 0, 0]), bytes(8)


class Graph(NamedTuple):
    """executable: CUgraphExec; nodes: CUgraphNode of each kernel."""

    executable: int
    nodes: list[int]


def node_parameters(launch: Launch) -> bytes:
    """CUDA_KERNEL_NODE_PARAMS of a launch."""
    return NODE.pack(launch.function, *launch.grid, *launch.block, launch.shared, launch.pointers, 0, 0, 0)


class Graphs:
    """Makes graphs, and frees them in `close`; in the current context."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """AttributeError if the driver is older than CUDA 12.3."""
        self._create, self._destroy = library.cuGraphCreate, library.cuGraphDestroy
        self._add, self._connect = library.cuGraphAddKernelNode_v2, library.cuGraphAddDependencies_v2
        self._instantiate, self._give_back = library.cuGraphInstantiateWithFlags, library.cuGraphExecDestroy
        self.launch = ctypes.cast(library.cuGraphLaunch, ctypes.c_void_p).value or 0
        self.set_parameters = ctypes.cast(library.cuGraphExecKernelNodeSetParams_v2, ctypes.c_void_p).value or 0
        self._graphs: list[ctypes.c_void_p] = []
        self._executables: list[ctypes.c_void_p] = []

    def chain(self, launches: Sequence[Launch]) -> Graph | None:
        """The graph of kernels in sequence; None if the driver cannot make it, or there are many."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        if len(self._executables) >= MOST_GRAPHS or self._create(ctypes.byref(graph), ctypes.c_uint(0)):
            return None
        nodes = self._fill(graph, launches)
        if nodes is None or self._instantiate(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)):
            self._destroy(graph)
            return None
        self._graphs.append(graph)  # the driver finds kernels of what it has made by nodes of the graph
        self._executables.append(executable)
        return Graph(executable.value or 0, nodes)

    def _fill(self, graph: ctypes.c_void_p, launches: Sequence[Launch]) -> list[int] | None:
        """Add the kernels to a graph. Returns their nodes; None where a call fails."""
        nodes: list[int] = []
        before = ctypes.c_void_p()
        for one in launches:
            node = ctypes.c_void_p()
            if self._add(ctypes.byref(node), graph, None, ctypes.c_size_t(0), node_parameters(one)):
                return None
            edge = EARLY if one.early else AFTER_END
            if nodes and self._connect(graph, ctypes.byref(before), ctypes.byref(node), edge, ctypes.c_size_t(1)):
                return None
            nodes.append(node.value or 0)
            before = node
        return nodes

    def close(self) -> None:
        """Free the graphs, which must not be launched any more."""
        for handles in self._executables:
            self._give_back(handles)
        for graph in self._graphs:
            self._destroy(graph)
        self._executables.clear()
        self._graphs.clear()
