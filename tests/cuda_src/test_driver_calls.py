"""The driver's functions by address: arguments arrive, the first failure ends the rows and is told."""

import ctypes
import re
import struct
import types

import numpy as np
import pytest
from h264lite.cuda_src.runtime import compiler
from h264lite.cuda_src.runtime.array import address_of
from h264lite.cuda_src.runtime.driver_calls import ARGUMENTS, DriverCalls, Memory, replay_rows
from h264lite.cuda_src.runtime.graph import Graphs
from h264lite.cuda_src.runtime.recording import KERNEL, HostBuffers, Recording
from h264lite.papers import kernels as papers

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)  # as cuLaunchKernel


def rows_of(function, *rows):
    address = ctypes.cast(function, ctypes.c_void_p).value
    return np.array([[address, *call_record, *[0] * (ARGUMENTS - len(call_record))] for call_record in rows], np.int64)


def test_arguments_arrive_in_order():
    seen = []

    @LAUNCH
    def launch(*arguments):
        seen.append(arguments)
        return 0

    call_record = [1 << 40, *range(1, 8), 2**47 - 1, 1 << 33, 5]
    assert replay_rows(rows_of(launch, call_record, call_record[::-1])) == -1
    assert seen[0] == tuple(call_record)
    assert seen[1][0] == 5 and seen[1][1] == (1 << 33) & 0xFFFFFFFF, "32-bit arguments take the low half"


def test_a_launch_that_may_start_early():
    """cuLaunchKernelEx gets the sizes, the stream, the attribute and the arguments."""
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)
    def launch_ex(config, function, arguments, extra):
        sizes = ctypes.cast(config, ctypes.POINTER(ctypes.c_uint))[:7]
        stream, attributes, count = ctypes.cast(config + 32, ctypes.POINTER(ctypes.c_uint64))[:3]
        attribute = ctypes.cast(attributes, ctypes.POINTER(ctypes.c_int))[:3]
        values = [ctypes.cast(arguments[k], ctypes.POINTER(ctypes.c_uint64))[0] for k in range(2)]
        seen.append((sizes, stream, count & 0xFFFFFFFF, attribute, function, values, extra))
        return 0

    calls = DriverCalls.__new__(DriverCalls)
    calls._memory = Memory()
    calls._address = {"launch_ex": ctypes.cast(launch_ex, ctypes.c_void_p).value}
    stream = types.SimpleNamespace(handle=1 << 40)
    rows = [calls.launch_record(1 << 41, (1, 2, 3), (4, 5, 6), 7, stream, [1 << 42, k], True) for k in range(-1, 1500)]
    assert len({id(held) for _, held in rows}) > 2, "several arrays hold the arguments"
    assert replay_rows(np.array([call_record for call_record, _ in rows], np.int64)) == -1
    for k, call in enumerate(seen):
        assert call == ([1, 2, 3, 4, 5, 6, 7], 1 << 40, 1, [6, 0, 1], 1 << 41, [1 << 42, (k - 1) & (2**64 - 1)], None)


WAIT = "wait_for_the_kernel_before();"


def before_the_wait(text, kernel):
    """(names of the pointers of a kernel, its code before the wait); kernel: from the parameters on."""
    parameters, _, body = kernel.replace("\\\n", "\n").partition("{")
    parameters = re.sub(r"__launch_bounds__\([^)]*\)", "", parameters)
    if WAIT not in body:  # a macro: its template has it
        called = re.search(r"^\s*(\w+)<[^>]*>\(", body, re.MULTILINE)
        definition = re.search(rf"DEVICE void {called[1]}\([^{{]*{{", text)
        body = text[definition.end() :]
    return re.findall(r"\*\s*(?:__restrict__\s+)?(\w+)", parameters), body[: body.index(WAIT)]


def test_kernels_that_may_start_early_wait_before_they_use_memory():
    """Only those, and only as code for 9.0 and later, where the wait is no empty function."""
    kernels, version = 0, 90

    def attribute(value, which, function):
        value._obj.value = {5: version}[which.value]
        return 0

    calls = DriverCalls.__new__(DriverCalls)
    calls.library, calls._versions = types.SimpleNamespace(cuFuncGetAttribute=attribute), {}
    for name in compiler.module_names():
        if not calls.waits(name, 1):
            continue
        text = re.sub("//.*", "", (compiler.HERE / f"{name}.cu").read_text())
        for part in text.split('extern "C" __global__')[1:]:
            pointers, before = before_the_wait(text, part)
            # qp is complete before the first kernel of MAIN
            before = re.sub(r"load_before_the_wait\((f\.)?qp \+ mb\)", "", before)
            assert pointers and len(before) < 2000, (name, part[:80])
            assert not re.findall(rf"\b(?:{'|'.join(pointers)})\b", before), (name, part[:80])
            kernels += 1
    assert kernels > 15 and not calls.waits(papers.MODULES[0], 1)
    version = 80
    assert not calls.waits("intra/intra", 2)


def test_the_first_failure_ends_it():
    seen = []

    @LAUNCH
    def launch(first, *_):
        seen.append(first)
        return 700 if first == 12 else 0

    failed = replay_rows(rows_of(launch, [10], [11], [12], [13]))
    assert (failed >> 32, failed & 0xFFFFFFFF) == (2, 700)
    assert seen == [10, 11, 12]


def first_argument(pointers):
    return ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)))[0][0]


class FakeGraphs:
    """The driver's graphs, noted: kernels of each as (function, sizes, arguments), and how each follows the one before."""

    def __init__(self, fails=""):
        self.fails, self.graphs, self.launched, self.gone, self.destroyed = fails, [], [], [], 0
        self.given = []  # (what was made, node, function, first argument)

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        def launch(graph, stream):
            self.launched.append((graph, stream))
            return 0

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        def set_parameters(graph, node, parameters):
            function, *rest = struct.unpack("Q7I4x4Q", ctypes.string_at(parameters, 72))
            self.given.append((graph, node, function, first_argument(rest[7])))
            return 0

        self.cuGraphLaunch, self.cuGraphExecKernelNodeSetParams_v2 = launch, set_parameters

    def cuGraphCreate(self, graph, flags):
        self.graphs.append(([], []))
        graph._obj.value = len(self.graphs)
        return 0

    def cuGraphDestroy(self, graph):
        self.destroyed += 1

    def cuGraphAddKernelNode_v2(self, node, graph, before, count, parameters):
        function, *rest = struct.unpack("Q7I4x4Q", parameters)
        kernels = self.graphs[graph.value - 1][0]
        kernels.append((function, rest[:7], first_argument(rest[7])))
        assert rest[8:] == [0, 0, 0] and count.value == 0 and before is None
        node._obj.value = len(kernels)
        return 1 if self.fails == "node" else 0

    def cuGraphAddDependencies_v2(self, graph, before, after, edge, count):
        assert after._obj.value == before._obj.value + 1 and count.value == 1
        self.graphs[graph.value - 1][1].append(edge)
        return 0

    def cuGraphInstantiateWithFlags(self, handle, graph, flags):
        handle._obj.value = 100 + graph.value
        return 1 if self.fails == "executable" else 0

    def cuGraphExecDestroy(self, graph):
        self.gone.append(graph.value)


def calls_with(library):
    calls = DriverCalls.__new__(DriverCalls)
    calls._memory, calls._address, calls._graphs = Memory(), {"launch": 1, "launch_ex": 2}, Graphs(library)
    calls._address |= {"launch_graph": calls._graphs.launch, "set_parameters": calls._graphs.set_parameters}
    return calls


def script_of(calls, *streams, early=True):
    """Kernels 1, 2, ... on these streams; None: an event."""
    recording = Recording()
    for k, stream in enumerate(streams, 1):
        if stream is None:
            recording.add("an event", calls.call_record("launch", k))
        else:
            on = types.SimpleNamespace(handle=stream)
            call_record, launch = calls.launch_record(k, (1, 2, 3), (4, 5, 6), 7, on, [1000 + k], early)
            recording.add(f"{KERNEL}{k}", call_record, [1000 + k], launch)
    return recording


@pytest.mark.parametrize("early", [True, False])
def test_kernels_that_follow_one_another_are_one_graph(early):
    library = FakeGraphs()
    calls = calls_with(library)
    recording = script_of(calls, 7, 7, 7, None, 7, 8, 8, None, None, 9, early=early)
    native_rows = recording.rows
    assert len(native_rows) == 10
    recording.set_commands(calls.joined(recording.commands))
    rows, names = recording.rows, recording.names
    assert names == [KERNEL + "1, 2, 3", "an event", KERNEL + "5", KERNEL + "6, 7", "an event", "an event", KERNEL + "10"]
    assert rows[[0, 3], :3].tolist() == [[calls._graphs.launch, 101, 7], [calls._graphs.launch, 102, 8]]
    assert rows[[1, 4, 5], 0].tolist() == [1, 1, 1] and rows[1, 1] == 4 and rows[2].tolist() == native_rows[4].tolist()
    assert replay_rows(rows[[0, 3]]) == -1 and library.launched == [(101, 7), (102, 8)]
    assert [[kernel[0] for kernel in kernels] for kernels, _ in library.graphs] == [[1, 2, 3], [6, 7]]
    assert all(kernel[1:] == ([1, 2, 3, 4, 5, 6, 7], 1000 + kernel[0]) for kernels, _ in library.graphs for kernel in kernels)
    edge = bytes([1, 0, 1, 0, 0, 0, 0, 0]) if early else bytes(8)  # may start early only if it waits by itself
    assert [edges for _, edges in library.graphs] == [[edge, edge], [edge]]
    calls._graphs.close()
    assert library.destroyed == 2 and library.gone == [101, 102]
    assert len(recording.commands) == 10, "what was noted stays"


@pytest.mark.parametrize("fails", ["node", "executable"])
def test_without_graphs_calls_stay_as_they_are(fails):
    library = FakeGraphs(fails)
    calls = calls_with(library)
    recording = script_of(calls, 7, 7, None)
    before = recording.rows.copy()
    recording.set_commands(calls.joined(recording.commands))
    assert recording.rows.tolist() == before.tolist() and library.destroyed == 1
    calls._graphs = None  # an older driver
    assert calls.joined(recording.commands) == recording.commands
    with pytest.raises(AttributeError):
        Graphs(types.SimpleNamespace(cuGraphCreate=None))


def test_a_script_is_given_for_another_place():
    """Addresses of the host's arrays and events, in rows and in arguments of kernels; nothing else.

    Kernels of a graph whose arguments change get them before it starts.
    """
    library = FakeGraphs()
    calls = calls_with(library)
    events = (types.SimpleNamespace(handle=handle) for handle in (5, 6))
    here, there = (HostBuffers(event, np.zeros(40, np.uint8), np.zeros(50, np.uint8)) for event in events)
    stream = types.SimpleNamespace(handle=7)
    done, source, target = here.buffers
    addresses = [array.ctypes.data for array in here.buffers[1:]]
    recording = Recording(here)
    recording.add("a copy", calls.call_record("launch", 12, addresses[0], 40, 7), (12, source))
    for value, thing in ((5, 5), (addresses[1], target), (6, 6)):  # 5 and 6: numbers that are no handles
        call_record, launch = calls.launch_record(3, (1, 1, 1), (1, 1, 1), 0, stream, [value, 5], True)
        recording.add(f"{KERNEL}{value}", call_record, [thing, 5], launch)
    recording.add("an event", calls.call_record("launch", 5, 7), (done,))
    for joined in (False, True):
        if joined:
            recording.set_commands(calls.joined(recording.commands))
        last = 3 if joined else 4  # a copy, kernels, or a call for one of them and their graph, and an event
        assert len(recording.names) == (last + 1 if joined else 0)
        for place in (there, here):
            recording.rebind(place)
            rows = recording.rows
            first, second = (array.ctypes.data for array in place.buffers[1:])
            assert rows[0, 1:4].tolist() == [12, first, 40] and rows[last, 1:3].tolist() == [place.buffers[0].handle, 7]
            assert [command.launch.arguments.tolist() for command in recording.commands[1:4]] == [[5, 5], [second, 5], [6, 5]]
            if joined:
                assert replay_rows(rows[1:3]) == -1
                assert library.given.pop() == (101, 2, 3, second) and library.launched.pop() == (101, 7)


def test_arrays_that_no_place_knows_are_refused():
    """They would be read and written for whichever frame comes later."""
    with pytest.raises(ValueError, match=r"a host array \(3,\) uint8"):
        Recording(HostBuffers()).add("a copy", [], (1, np.zeros(3, np.uint8)))


def test_addresses_of_arrays():
    """Of this NumPy, whose fields are read."""
    whole = np.zeros((5, 7), np.int16)
    fixed = np.frombuffer(b"samples", np.uint8)
    for array in (whole, whole[2:, 3:], whole.T, whole[::-1], whole.reshape(-1), fixed, np.zeros(1)[:0]):
        assert address_of(array) == array.__array_interface__["data"][0]
