"""Seeded fuzzing of what surrounds the codec: headers of video files, options, the API's use; fuzz/seeded.py says how."""

import subprocess
import sys
import threading
from pathlib import Path

import h264lite
import numpy as np
import pytest

SEEDED = Path(__file__).resolve().parent.parent / "fuzz" / "seeded.py"


def campaign(kind, seed, cases):
    """What the cases of a seed came to, by a word each; a failing one is shown with how to run it again."""
    words = [sys.executable, str(SEEDED), kind, str(seed), str(cases)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


@pytest.mark.parametrize(("kind", "cases", "words"), [
    ("headers", 1000, ("0 frames", "2 frames", "InputError", "OptionError")), ("misuse", 100, ("refused", "taken")),
    ("options", 1000, ("refused", "taken", "command 1", "command 2")),
])  # fmt: skip
def test_what_is_wrong_is_refused_by_name_and_the_rest_is_right(kind, cases, words):
    output = campaign(kind, 1, cases)
    assert all(word in output for word in words), output


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize(("kind", "cases"), [("headers", 30000), ("options", 20000), ("misuse", 4000)])
def test_many_more(kind, cases, seed):
    campaign(kind, seed, cases)


class Failed(Exception):
    """Of the caller's generator."""


@pytest.mark.parametrize("options", ({}, {"gops": 2, "keyint": 2}), ids=str)
@pytest.mark.parametrize("count", (0, 1, 5))
def test_pictures_that_end_in_an_exception_end_the_encode_with_it(options, count):
    def frames():
        for n in range(count):
            yield np.full((48, 32), n, np.uint8)
        raise Failed

    before = threading.active_count()
    with pytest.raises(Failed):
        h264lite.encode(frames(), threads=1, format="i420", **options)
    assert threading.active_count() <= before
