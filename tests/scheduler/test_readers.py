"""Frames read by threads without the interpreter: every byte, short reads, what ends and what cannot be read."""

import os
import threading
import time

import numpy as np
import pytest
from h264lite.scheduler.threads import job_ring, semaphore
from h264lite.scheduler.threads.read_kernels import serve_reads
from h264lite.scheduler.threads.readers import Readers

SIZE = 100_000


@pytest.fixture
def file(tmp_path):
    """A descriptor and what is in the file."""
    content = np.random.default_rng(3).integers(0, 256, 40 * SIZE, np.uint8)
    path = tmp_path / "content"
    content.tofile(path)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor, content
    os.close(descriptor)


@pytest.mark.parametrize("threads", [1, 4])
def test_every_byte(file, threads):
    """More jobs than places in all."""
    descriptor, content = file
    rng, places = np.random.default_rng(4), [np.zeros(SIZE, np.uint8) for _ in range(8)]
    with Readers(threads) as readers:
        for _ in range(3 * job_ring.MOST_JOBS // len(places)):
            offsets = rng.integers(0, content.size - SIZE, len(places)).tolist()
            tickets = [readers.begin(descriptor, offset, place) for offset, place in zip(offsets, places)]
            for ticket, offset, place in zip(tickets, offsets, places):
                assert readers.wait(ticket) == SIZE
                assert np.array_equal(place, content[offset : offset + SIZE])
        ring = readers._job_ring
        assert ring[job_ring.POSTED] == ring[job_ring.TAKEN] == len(places) * (3 * job_ring.MOST_JOBS // 8)
        threads_begun = readers._threads
        assert len(threads_begun) == threads
    assert not any(thread.is_alive() for thread in threads_begun)


def test_the_end_of_a_file_and_no_file(file):
    descriptor, content = file
    place = np.zeros(SIZE, np.uint8)
    with Readers(2) as readers:
        assert readers.wait(readers.begin(descriptor, content.size - 7, place)) == 7
        assert np.array_equal(place[:7], content[-7:]) and not place[7:].any()
        assert readers.wait(readers.begin(descriptor, content.size, place)) == 0
        assert readers.wait(readers.begin(-1, 0, place)) == 0
        assert readers.wait(readers.begin(descriptor, -5, place)) == 0


def test_beyond_4_gib(tmp_path):
    """A file with a hole."""
    at = (5 << 30) + 3
    with open(tmp_path / "large", "wb+") as file, Readers(1) as readers:
        file.seek(at)
        file.write(b"there")
        file.flush()
        place = np.zeros(5, np.uint8)
        assert readers.wait(readers.begin(file.fileno(), at, place)) == 5 and bytes(place) == b"there"


def test_short_reads_go_on():
    """A pipe gives what it has; it is one that pread refuses, so a function of Python stands in."""
    import ctypes

    content, reads = bytes(range(200)), []

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64)
    def read(file, target, count, offset):
        part = content[offset : offset + min(count, 33)]
        ctypes.memmove(target, part, len(part))
        reads.append((file, count, offset))
        return len(part)

    sleeps = semaphore.Semaphore()
    ring, place = np.zeros(job_ring.RING_SIZE, np.int64), np.zeros(90, np.uint8)
    life = ring, ctypes.cast(read, ctypes.c_void_p).value, sleeps.wait, sleeps.memory
    thread = threading.Thread(target=serve_reads, args=life, daemon=True)
    thread.start()
    job = np.array([9, 5, semaphore.address_of(place), place.size], np.int64)
    ticket = job_ring.post_job(ring, job, sleeps.post, sleeps.memory)
    while (came := job_ring.result_of(ring, ticket)) == job_ring.NOT_DONE:
        time.sleep(0.001)
    ring[job_ring.STOP] = 1
    sleeps.wake(1)
    thread.join(20)
    assert came == 90 and bytes(place) == content[5:95] and reads == [(9, 90, 5), (9, 57, 38), (9, 24, 71)]


def test_nothing_is_read_once_they_are_closed(file):
    """Places may be given back then."""
    descriptor, content = file
    places = [np.zeros(SIZE, np.uint8) for _ in range(40)]
    readers = Readers(2)
    for k, place in enumerate(places):
        readers.begin(descriptor, k * SIZE, place)
    readers.close()
    after = [place.copy() for place in places]
    time.sleep(0.05)
    for k, (place, then) in enumerate(zip(places, after)):
        assert np.array_equal(place, then) and (not place.any() or np.array_equal(place, content[k * SIZE :][:SIZE]))


def test_without_semaphores_nobody_reads(monkeypatch):
    monkeypatch.setattr(semaphore.ctypes, "CDLL", lambda name: object())
    with Readers(3) as readers:
        assert readers.begin(0, 0, np.zeros(4, np.uint8)) is None and not readers._threads
