"""Sharp frames end runs of B frames: material that was coded before gets its P frames again, from wherever it begins."""

from fractions import Fraction

import numpy as np
import pytest
from h264lite.encoder.decisions.adaptive_types import FAST, AdaptiveTypes
from h264lite.encoder.decisions.sharp_frames import last_sharp
from h264lite.scheduler.lookahead.host_costs import FrameCosts
from scipy.ndimage import gaussian_filter

from .test_adaptive_types import pan, rules

SEED = 62


def types(lumas, **changes):
    """A letter a frame, K for IDR."""
    decisions = AdaptiveTypes(rules(b_adapt=FAST, **changes), FrameCosts(lumas[0].shape[1], lumas[0].shape[0]))
    letters = [letter for luma in lumas for letter in decisions.add([luma])] + decisions.flush()
    return "".join(letters).replace("IDR", "K")


def coded_before(letters, x=2):
    """A pan whose B frames have lost detail, as an encode with these types leaves them."""
    frames = pan(0, len(letters), x)
    return [gaussian_filter(luma, 0.45) if letter == "B" else luma for letter, luma in zip(letters, frames)]


@pytest.mark.parametrize("run", ["BBBP", "BBP"])
@pytest.mark.parametrize("first", range(4))
def test_p_frames_of_an_earlier_encode_are_p_frames_again(run, first):
    letters = ("P" + 8 * run)[first:]
    got = types(coded_before(letters))
    assert got[0] == "K" and got[-1] == "P"
    assert got[5:-4] == letters[5:-4]


def test_runs_of_different_lengths_are_found():
    letters = "PBBBPBPBBPBBBPBBPBPBBBPBBBP"
    got = types(coded_before(letters))
    assert sum(a == b for a, b in zip(got[4:-4], letters[4:-4])) >= len(letters) - 10


def test_longer_runs_end_at_sharp_frames():
    letters = "P" + 10 * "BBBP"
    got = types(coded_before(letters), bframes=8)
    assert all(letters[n] == "P" for n, letter in enumerate(got[:-1]) if letter == "P" and n > 0)


def test_a_scene_says_nothing_of_the_next_one():
    """Frames before a cut are no trend: the types behind it are those of the scene alone."""
    letters = "P" + 5 * "BBBP"
    scene = coded_before(letters)
    dull = [gaussian_filter(luma, 3) for luma in pan(1, 30)]
    got = types([*dull, *scene], min_keyint=4)
    assert got[30] == "K" and got[30:] == types(scene, min_keyint=4)


def slow(values, count):
    """The definition of last_sharp in fractions."""
    following, before = values[-count:], values[:-count]
    trend = Fraction(sum(following) - sum(before), count * count) if len(before) == count else 0
    levels = [value - trend * k for k, value in enumerate([before[-1], *following])]
    mean = Fraction(sum(following), count) - trend * Fraction(count + 1, 2)
    mean_now = Fraction(sum(following), count)
    levels = [level - mean + mean_now for level in levels]
    highest = max(levels[1:])
    if count < 3 or highest <= mean_now * Fraction(65, 64):
        return 0
    for k in range(count, 0, -1):
        neighbours = [levels[k - 1], *levels[k + 1 : k + 2]]
        if levels[k] - mean_now >= Fraction(7, 10) * (highest - mean_now) and levels[k] > max(neighbours) * Fraction(41, 40):
            return k
    return 0


def test_last_sharp_by_its_definition():
    rng, seen = np.random.default_rng(SEED), set()
    for _ in range(3000):
        count, behind = int(rng.integers(1, 7)), int(rng.integers(0, 3))
        known = count if behind == 0 else min(behind, count)
        values = (1000 + rng.integers(-30, 31, known + count) + rng.integers(-20, 21) * np.arange(known + count)).tolist()
        assert last_sharp(values, count) == slow(values, count)
        seen.add(last_sharp(values, count))
    assert seen == set(range(7))


def test_what_is_sharp():
    assert last_sharp([100, 90, 95, 90, 100], 4) == 4
    assert last_sharp([100, 90, 100, 90, 99], 4) == 4
    assert last_sharp([100, 90, 100, 90, 95], 4) == 2
    assert last_sharp([100, 100, 100, 100, 101], 4) == 0  # no frame stands out
    assert last_sharp([100, 90, 100], 2) == 0  # too few to tell
    assert last_sharp([70, 75, 80, 85, 90, 95, 100, 105], 4) == 0  # focus changes
    assert last_sharp([0, 0, 0, 0, 0], 4) == 0
