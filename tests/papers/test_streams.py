"""Paper 001: SADs of variable blocks by their definition in all scenarios, and the timeline that shows them."""

import numpy as np
import pytest
from h264lite.papers.kernels import streams
from h264lite.scheduler.trace import GPU, GpuClock, Trace

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support import naive_papers as naive
from ..support.cuda_cases import KINDS, SEED, plane


def moving(kind, height, width, pictures):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    scene = plane(rng, kind, height + 20, width + 20)
    places = rng.integers(0, 20, (pictures, 2))
    return [np.ascontiguousarray(scene[y : y + height, x : x + width]) for y, x in places]


def expected(current, reference, mode):
    """{(block row, column): (SAD, dx, dy)}; blocks begin at even places where they are 8 wide or high."""
    w, h = streams.MODES[mode]
    by_block = {}
    for by in range(0, current.shape[0] // 4 - h // 4 + 1, h // 4):
        for bx in range(0, current.shape[1] // 4 - w // 4 + 1, w // 4):
            xs, ys = range(-14, 18 - w + 1), range(-14, 18 - h + 1)
            tried = naive.sads(current, reference, 4 * bx, 4 * by, w, h, xs, ys)
            number = int(tried.argmin())
            by_block[by, bx] = int(tried.flat[number]), xs[number % len(xs)], ys[number // len(xs)]
    return by_block


def check(keys, vectors, sads, current, reference):
    for mode in range(4):
        wanted = expected(current, reference, mode)
        for place in np.ndindex(keys.shape[1:]):
            if place in wanted:
                assert (int(sads[(mode, *place)]), *vectors[(mode, *place)].tolist()) == wanted[place], (mode, place)
            else:
                assert keys[(mode, *place)] == 0xFFFFFFFF


@pytest.mark.parametrize("kind", KINDS)
def test_variable_sads(device, kind):  # noqa: F811
    pictures = moving(kind, 12, 20, 2)  # three blocks by five: the last ones have no neighbour
    work = streams.Scenarios(device, pictures)
    keys = work.run("scenario-1")
    check(keys[0], *(part[0] for part in work.vectors(keys)), *pictures[::-1])
    work.close()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_scenarios_agree(device, count):  # noqa: F811
    """Whatever the order of copies and kernels, and with textures: the same keys of every frame."""
    pictures = moving("smooth", 20, 24, 6)
    work = streams.Scenarios(device, pictures, count)
    one, separate, locked = (work.run(name).copy() for name in streams.SCENARIOS)
    np.testing.assert_array_equal(one, separate)
    np.testing.assert_array_equal(one, locked)
    alone = streams.Scenarios(device, pictures[3:5], 1)
    np.testing.assert_array_equal(alone.run("scenario-3")[0], one[3])


def test_timeline(device):  # noqa: F811
    pictures = moving("smooth", 8, 32, 4)
    trace = Trace()
    stream = device.stream()
    clock = GpuClock(device, trace, stream)
    work = streams.Scenarios(device, pictures, 2, clock)
    for scenario in streams.SCENARIOS:
        work.run(scenario)
        clock.resolve(clock.take())
        counts = {name: len(seconds) for name, seconds in trace.seconds(GPU).items()}
        assert counts == dict.fromkeys(("upload", "kernel", "download"), 3), scenario
        assert {span[1] for span in trace.spans} == ({"stream 0"} if scenario == "scenario-3" else {"stream 0", "stream 1"})
        trace.spans.clear()


def test_a_failure_of_a_sender_is_told(device):  # noqa: F811
    work = streams.Scenarios(device, moving("flat", 8, 8, 2))
    work._one_at_a_time = lambda n: (_ for _ in ()).throw(ValueError("told"))
    with pytest.raises(RuntimeError, match="ValueError: told"):
        work.run("scenario-3")
