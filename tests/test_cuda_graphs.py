"""Launches of a script as graphs: what lies in them, before and behind; a driver that refuses leaves the script as it is."""

import ctypes
import types

import numpy as np
import pytest
from h264lite.cuda_src.graphs import EDGE, NODE, Graphs, Launch, runs
from h264lite.cuda_src.native import ARGUMENTS, Native, replay_rows
from h264lite.cuda_src.script import Script

MAIN, BESIDE = 11, 12


def launches(streams):
    """One character a call: m and b a launch on a stream, M one that waits by itself, . something else."""
    return [None if s == "." else Launch(100 + k, (1, 2, 3, 4, 5, 6, 7), BESIDE if s == "b" else MAIN, 200 + k, s == "M")
            for k, s in enumerate(streams)]  # fmt: skip


@pytest.mark.parametrize(("calls", "wanted"), (
    ("", []), (".", []), ("m", []), ("m.m", []), ("mm", [(0, 2)]), ("mmm.mmmmmmmmmm..bb.b", [(0, 3), (4, 14), (16, 18)]),
    ("mmbbm", [(0, 2), (2, 4)]), (".mm", [(1, 3)]), ("mbm", []),
))  # fmt: skip
def test_runs(calls, wanted):
    assert runs(launches(calls)) == wanted


class Library:
    """Notes the nodes of each graph and their edges; `refuses` is a function's name."""

    def __init__(self, refuses=""):
        self.refuses, self.graphs, self.made, self.left, self.given = refuses, {}, {}, set(), []
        self.cuGraphLaunch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(self.launch)

    def launch(self, graph, stream):
        self.given.append((self.made[graph], stream))
        return 0

    def cuGraphCreate(self, graph, flags):
        graph._obj.value = 1000 + len(self.graphs)
        self.graphs[graph._obj.value] = ([], [])
        self.left.add(graph._obj.value)
        return self.refuses == "cuGraphCreate"

    def cuGraphAddKernelNode_v2(self, node, graph, dependencies, count, what):
        nodes, _ = self.graphs[graph.value]
        read = np.frombuffer(ctypes.string_at(what.value, NODE.itemsize), NODE)[0]
        nodes.append((int(read["function"]), read["sizes"].tolist(), int(read["arguments"]), read["none"].tolist()))
        node._obj.value = len(nodes)
        return self.refuses == "cuGraphAddKernelNode_v2" and len(nodes) == 2

    def cuGraphAddDependencies_v2(self, graph, first, second, edge, count):
        read = np.frombuffer(ctypes.string_at(edge.value, EDGE.itemsize), EDGE)[0]
        self.graphs[graph.value][1].append((first._obj.value, second._obj.value, *read.tolist()[:3]))
        return self.refuses == "cuGraphAddDependencies_v2"

    def cuGraphInstantiateWithFlags(self, made, graph, flags):
        made._obj.value = 5000 + len(self.made)
        self.made[made._obj.value] = self.graphs[graph.value]
        return self.refuses == "cuGraphInstantiateWithFlags"

    def cuGraphDestroy(self, graph):
        self.left.remove(graph.value)
        return 0

    def cuGraphExecDestroy(self, made):
        del self.made[made.value]
        return 0


def script_of(calls):
    script = Script()
    for k, call in enumerate(calls):
        script.add(f"{call}{k}", None, [k] * (1 + ARGUMENTS), None)
    return script


def test_a_picture_in_graphs():
    library, calls = Library(), "mMM.mMm.b"
    graphs, script = Graphs(library), script_of(calls)
    graphs.combine(script, launches(calls))
    assert [what for what, *_ in script.acts] == ["m0 to M2", ".3", "m4 to m6", ".7", "b8"]
    rows = [row for _, _, row, _ in script.acts]
    assert replay_rows(np.array([rows[0], rows[2]], np.int64)) == -1
    (first, stream), (second, _) = library.given
    assert stream == MAIN and not library.left, "a graph is not needed once it is made ready"
    assert first[0] == [(100 + k, [1, 2, 3, 4, 5, 6, 7], 200 + k, [0, 0, 0]) for k in range(3)]
    assert first[1] == [(1, 2, 1, 0, 1), (2, 3, 1, 0, 1)]
    assert second[1] == [(1, 2, 1, 0, 1), (2, 3, 0, 0, 0)], "who does not wait by itself comes when the one before has ended"
    graphs.unload()
    assert not library.made


@pytest.mark.parametrize("function", (
    "cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphAddDependencies_v2", "cuGraphInstantiateWithFlags",
))  # fmt: skip
def test_a_driver_that_refuses(function):
    script = script_of("mm.")
    before = list(script.acts)
    Graphs(Library(function)).combine(script, launches("mm."))
    assert script.acts == before


def test_what_rows_launch():
    native = Native.__new__(Native)
    native._address = {"launch": 7, "launch_ex": 8, "wait": 9}
    stream = types.SimpleNamespace(handle=1 << 40)
    for waits in (False, True):
        row, held = native.launch_row(1 << 41, (1, 2, 3), (4, 5, 6), 70, stream, [3], waits)
        arguments = row[3] if waits else row[10]
        assert native.launch_of(row, held) == Launch(1 << 41, (1, 2, 3, 4, 5, 6, 70), 1 << 40, arguments, waits)
        assert ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))[0] == held[0 if waits else slice(None)].ctypes.data
    assert native.launch_of(native.row("wait", 1, 2, 0), None) is None and native.launch_of(None, None) is None
