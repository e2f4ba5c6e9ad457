"""Frames copied by threads without the interpreter: every byte, by any number of helpers, late ones too."""

import gc
import threading
import time

import numpy as np
import pytest
from h264lite.scheduler.threads import job_ring, semaphore
from h264lite.scheduler.threads.copiers import Copiers, Target
from h264lite.scheduler.threads.copy_kernels import PENDING, READY


def picture(rng, height, width, pitch=0):
    """Three planes, rows `pitch` bytes apart."""
    shapes = ((height, width), *[(-(-height // 2), -(-width // 2))] * 2)
    return [rng.integers(0, 256, (h, w + pitch), np.uint8)[:, :w] for h, w in shapes]


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_every_byte_of_any_size(helpers):
    rng = np.random.default_rng(7)
    copiers = Copiers(helpers)
    for height, width, pitch in ((1, 1, 0), (144, 176, 0), (1080, 1920, 0), (719, 1281, 0), (720, 1280, 64), (2, 300_000, 5),
                                 (4320, 7680, 0)):  # fmt: skip
        source = picture(rng, height, width, pitch)
        target = [np.full(plane.shape, 1, np.uint8) for plane in source]
        copiers.copy(Target(target), source)
        assert all(np.array_equal(a, b) for a, b in zip(target, source)), (height, width, pitch)
    threads = copiers._threads
    assert len(threads) == helpers
    copiers.close()
    assert not any(thread.is_alive() for thread in threads)


def test_picture_after_picture_with_helpers_that_come_late():
    """More parts than places in all, so that places are used again while helpers still look."""
    rng = np.random.default_rng(8)
    copiers = Copiers(3)
    sources = [picture(rng, 360, 640) for _ in range(4)]
    targets = [[np.zeros_like(plane) for plane in sources[0]] for _ in range(3)]
    places = [Target(planes) for planes in targets]
    for n in range(3000):
        copiers.copy(places[n % 3], sources[n % 4])
        if n % 7 == 0:
            assert all(np.array_equal(a, b) for a, b in zip(targets[n % 3], sources[n % 4])), n
        if n % 500 == 0:
            time.sleep(0.002)  # helpers are asleep again
    ring = copiers._job_ring
    assert ring[job_ring.TAKEN] == ring[job_ring.POSTED] == ring[job_ring.DONE] > 20 * job_ring.MOST_JOBS
    copiers.close()


def test_what_is_not_rows_of_bytes_is_copied_as_well():
    source = np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)
    for given in (source[::-1], source[:, ::2], source.T, source[:, ::-1]):
        target = np.zeros(given.shape, np.uint8)
        Copiers(1).copy(Target([target]), [given])
        assert np.array_equal(target, given)
    wide = np.zeros((64, 80), np.uint8)  # a target whose rows do not follow one another
    Copiers(1).copy(Target([wide[:, :64]]), [source])
    assert np.array_equal(wide[:, :64], source) and not wide[:, 64:].any()


def test_helpers_copy_and_open_the_gate_by_themselves():
    """Of frame after frame; the one whose planes they cannot copy is complete at once."""
    rng = np.random.default_rng(11)
    copiers, upload_fences = Copiers(2), [np.full(1, READY, np.int64) for _ in range(3)]
    sources = [picture(rng, 360, 640) for _ in range(4)]
    targets = [[np.zeros_like(plane) for plane in sources[0]] for _ in upload_fences]
    places = [Target(planes) for planes in targets]
    assert copiers.helps
    for n in range(600):
        upload_fence, end = upload_fences[n % 3], time.monotonic() + 30
        copiers.begin(places[n % 3], sources[n % 4], upload_fence)
        while n % 2 and upload_fence[0] != READY:
            assert time.monotonic() < end
            time.sleep(0)
        copiers.end(upload_fence)
        assert upload_fence[0] == READY and all(np.array_equal(a, b) for a, b in zip(targets[n % 3], sources[n % 4])), n
    odd = [plane.T.copy().T for plane in sources[0]]
    copiers.begin(places[0], odd, upload_fences[0])
    assert upload_fences[0][0] == READY and all(np.array_equal(a, b) for a, b in zip(targets[0], odd))
    copiers.close()


def test_a_gate_is_shut_until_the_last_part_is_there():
    """No helper, so nothing is copied before the caller copies."""
    copiers, upload_fence = Copiers(0), np.full(1, READY, np.int64)
    source, target = [np.ones((64, 64), np.uint8)], [np.zeros((64, 64), np.uint8)]
    copiers.begin(Target(target), source, upload_fence)
    assert upload_fence[0] == PENDING and not target[0].any() and not copiers.helps
    copiers.end(upload_fence)
    assert upload_fence[0] == READY and target[0].all()


def refused(name):
    raise TypeError(name)


@pytest.mark.parametrize("library", [lambda name: object(), refused])
def test_without_semaphores_the_caller_copies_alone(monkeypatch, library):
    monkeypatch.setattr(semaphore.ctypes, "CDLL", library)
    rng = np.random.default_rng(9)
    source = picture(rng, 720, 1280)
    target = [np.zeros_like(plane) for plane in source]
    copiers = Copiers(3)
    copiers.copy(Target(target), source)
    assert all(np.array_equal(a, b) for a, b in zip(target, source)) and not copiers._threads and not copiers.helps
    copiers.close()


def test_threads_that_cannot_be_had_are_done_without(monkeypatch):
    """One starts, the next does not; or none."""
    start, source = threading.Thread.start, picture(np.random.default_rng(9), 720, 1280)
    for most in (1, 0):
        begun = []

        def limited(thread, begun=begun, most=most):
            if len(begun) == most:
                raise RuntimeError("can't start new thread")
            begun.append(thread)
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", limited)
        target, copiers = [np.zeros_like(plane) for plane in source], Copiers(3)
        copiers.copy(Target(target), source)
        assert all(np.array_equal(a, b) for a, b in zip(target, source))
        assert copiers._threads == begun and copiers.helps == bool(most)
        copiers.close()


def test_threads_end_with_the_copiers():
    rng = np.random.default_rng(10)
    source = picture(rng, 720, 1280)
    copiers = Copiers(2)
    assert not copiers._threads, "none before the first picture"
    copiers.copy(Target([np.zeros_like(plane) for plane in source]), source)
    threads = copiers._threads
    assert len(threads) == 2 and all(thread.is_alive() for thread in threads)
    del copiers
    gc.collect()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
