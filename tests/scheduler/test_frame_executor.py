"""Frames in flight whose wait is cut: each is coded once."""

import threading

import h264lite
import pytest

from ..inside import executor_of, frame_executor_of, on_each_b_frame
from ..support import round_trip
from ..support.waiting import wait_for

WIDTH, HEIGHT, LIMIT = 34, 18, 60
OPTIONS = {"device": "cpu", "threads": 2, "bframes": 2, "b_adapt": 0, "scenecut": 0, "qp": 28}
LATE = 1  # a B frame, in display order: of I B B P the first one


def test_a_frame_whose_wait_is_cut_is_not_coded_twice(monkeypatch):
    """A signal handler raises in the thread that waits for a task that has begun: no other task does the same."""
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 4, 3)
    expected = round_trip.encode(clip, WIDTH, HEIGHT, **OPTIONS)[0]
    begun, may_end, runs = threading.Event(), threading.Event(), []

    def hold(frame):
        runs.append(frame.spec.display_index)
        if frame.spec.display_index == LATE:
            begun.set()
            assert may_end.wait(LIMIT)

    on_each_b_frame(monkeypatch.setattr, hold)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        executor, in_flight = executor_of(encoder), frame_executor_of(encoder).in_flight
        result, cut = executor.result, []

        def cut_once(task):
            if not cut and [handle.frame.spec.display_index for handle in in_flight if handle.task is task] == [LATE]:
                assert begun.wait(LIMIT) and not task.done()
                cut.append(task)
                raise TimeoutError("of a signal handler")
            return result(task)

        monkeypatch.setattr(executor, "result", cut_once)
        packets = [packet for planes in clip for packet in encoder.encode(tuple(planes))]
        try:
            with pytest.raises(TimeoutError, match="of a signal handler"):
                encoder.flush()
            last = executor.submit(lambda: None, lambda: None)  # the one free thread would come to a second task before it
            wait_for(lambda: last.done() or runs.count(LATE) > 1, LIMIT)
            assert runs.count(LATE) == 1
        finally:
            may_end.set()
        packets += encoder.flush()
    assert b"".join(packet.data for packet in packets) == expected
    assert sorted(runs) == [1, 2]
