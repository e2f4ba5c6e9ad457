"""Pictures that are read ahead: each where it belongs, and what is wrong told at the picture it is wrong with."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from h264lite.encoder.errors import InputError
from h264lite.encoder.read_ahead import AHEAD, TOGETHER, ReadAhead
from h264lite.encoder.video import open_source

SIZE = 48 * 32 * 3 // 2
PICTURES = 3 * TOGETHER + 1


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in_48x32.yuv"
    path.write_bytes(b"".join(bytes([n]) * SIZE for n in range(PICTURES)))
    source = open_source(str(path), None)
    source.path = path
    yield source
    source.close()


def values(source, numbers, calls=None):
    """The pictures in order, each read ahead as far as there is room; `calls`: gets how many each call was to read."""
    ring, waiting = deque(np.zeros(SIZE, np.uint8) for _ in range(AHEAD + 2)), list(numbers)

    def noted(number):
        def read(places):
            if calls is not None:
                calls.append((number, len(places)))
            return source.later(number)(places)

        return read

    with ThreadPoolExecutor(2) as readers:
        ahead = ReadAhead(readers)
        while waiting or ahead:
            while ahead.room and waiting:
                reads = [noted(number) for number in waiting[: ahead.room]]
                del waiting[: len(reads)]
                ahead.begin(reads, ring.__getitem__)
                assert len(ahead) <= AHEAD + 1
            place = ahead.next()
            assert place is ring[0] and (place == place[0]).all()
            ring.rotate(-1)
            yield int(place[0])


def test_each_where_it_belongs(source):
    calls = []
    assert list(values(source, range(PICTURES), calls)) == list(range(PICTURES))
    assert sorted(calls) == [(0, TOGETHER), (TOGETHER, TOGETHER), (2 * TOGETHER, TOGETHER), (3 * TOGETHER, 1)]


@pytest.mark.parametrize("whole", range(2 * TOGETHER))
def test_what_is_there_comes_before_the_error(source, whole):
    """A file that has become shorter, somewhere in what one call reads."""
    with source.path.open("r+b") as file:
        file.truncate(whole * SIZE + 5)
    found = []
    with pytest.raises(InputError, match=f"has become shorter; frame {whole} is not there"):
        for value in values(source, range(PICTURES)):
            found.append(value)
    assert found == list(range(whole))


def test_short_reads_go_on(source, monkeypatch):
    """preadv may give less than it was asked for."""
    import os

    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, views, at: preadv(fd, [views[0][: max(1, len(views[0]) * 2 // 3)]], at))
    assert list(values(source, range(PICTURES))) == list(range(PICTURES))
