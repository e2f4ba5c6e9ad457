"""Parts of the coding loop: the settings it is given, what it remembers of frames, arrays of frames that run at once."""

from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.executor import Executor
from h264lite.scheduler.frames import compiled_frames
from h264lite.scheduler.frames.compiled_frames import CompiledFrames
from h264lite.scheduler.frames.loop import ArraysPool, FrameHistory
from h264lite.scheduler.frames.loop_arrays import Arrays
from h264lite.scheduler.threads.dependent_task import DependentTask


def settings(**options):
    return Config.from_options(width=50, height=34, device="cpu", threads=3, **options).coding


@pytest.mark.parametrize(
    ("options", "searches", "back", "idc"),
    [({"qp": 26, "bframes": 0, "preset": "superfast"}, 1, 1, 0), ({"bframes": 3, "ref": 2, "no_deblock": True}, 3, 12, 1),
     ({"bframes": 0, "deblock_within_slices": True, "weightp": 2}, 2, 1, 2)],
)  # fmt: skip
def test_what_follows_from_settings(options, searches, back, idc):
    given = settings(**options)
    assert given.display == ((34, 50), (17, 25), (17, 25))
    assert (given.size.pad, given.size.n_mb, given.n_mb) == (given.pad, 12, 12)
    assert given.slice_ranges == ((0, 12),) and given.has_b_frames == (given.bframes > 0)
    assert (given.most_searches, given.frames_back, given.disable_deblocking_idc) == (searches, back, idc)


def test_arrays_of_frames_that_run_at_once():
    """Each has a workspace, which is used again; all else is shared."""
    given = settings(bframes=2)
    arrays = Arrays.allocate(given, Executor(1, 3, [(0, 12)]))
    pool = ArraysPool(arrays)
    with pool.borrowed() as one, pool.borrowed() as other:
        workspaces = {id(each.workspace) for each in (arrays, one, other)}
        assert len(workspaces) == 3 and one.references is other.references is arrays.references
    with pytest.raises(KeyError), pool.borrowed() as again:
        assert id(again.workspace) in workspaces
        raise KeyError
    assert len(pool._idle) == 2, "given back after an error too"
    assert arrays.for_executor(pool).executor is pool and arrays.executor is not pool


def test_what_is_remembered_of_frames():
    history = FrameHistory()
    first, second = (DependentTask(lambda: None, [], lambda: None, True) for _ in range(2))
    history.enter("first")
    history.add(first, 0, True)
    history.enter("second")
    history.add(second, 1, False)
    assert history.awaited((1,), False) == [second] and history.awaited((1,), True) == [second, first]
    assert history.awaited((2,), False) == [] and history.previous == "second"
    history.rewind()
    assert history.previous == "first"


def test_kinds_of_frames_that_another_thread_forgets(monkeypatch):
    """The least number of kinds: each one that is made takes the place of the one before."""
    monkeypatch.setattr(compiled_frames, "MOST_FRAME_KEYS", 1)
    frames, group = CompiledFrames(SimpleNamespace()), SimpleNamespace(state={"array": np.zeros(3)})
    compiled = [frames._of((kind,), lambda states: [], [group]) for kind in (0, 1, 0)]
    assert len({*map(id, compiled)}) == 3 and frames._of((0,), lambda states: [], [group]) is compiled[2]

    def failing(states):
        raise ValueError("no address")

    assert frames._of((2,), failing, [group]) is None and frames._of((2,), failing, [group]) is None
