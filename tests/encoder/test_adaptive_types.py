"""Adaptive frame types: made clips get sensible types, the best division into runs is the best, memory is bounded."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from h264lite.encoder.decisions.adaptive_types import BEST, FAST, FIXED, AdaptiveTypes, TypeRules, cut_bias
from h264lite.scheduler.lookahead.costs import CostPending
from h264lite.scheduler.lookahead.host_costs import FrameCosts

from ..support.sequences import clip

SEED, WIDTH, HEIGHT = 43, 112, 96
LETTERS = {"IDR": "K"}
NOTHING = np.zeros((0, 0), np.uint8)  # for costs by chance


def rules(**changes):
    """The defaults of the options with three B frames, but for changes."""
    defaults = {"keyint": 250, "min_keyint": 25, "scenecut": 40, "bframes": 3, "b_adapt": FAST, "b_bias": 0,
                "rc_lookahead": 40, "pyramid": True}  # fmt: skip
    return TypeRules(**defaults | changes)


def types(lumas, **changes):
    """A letter a frame, K for IDR; what the decisions keep is bounded."""
    costs, kinds = FrameCosts(lumas[0].shape[1], lumas[0].shape[0]), []
    chosen = rules(**changes)
    decisions = AdaptiveTypes(chosen, costs)
    most = chosen.window + chosen.guard - 1
    for n, luma in enumerate(lumas):
        kinds += decisions.add([luma])
        assert n + 1 - len(kinds) <= most
        assert len(costs._frames) <= most + max(chosen.guard, 1) + 1
    kinds += decisions.flush()
    assert decisions.flush() == []
    return "".join(LETTERS.get(kind, kind) for kind in kinds)


@cache
def scene(number):
    """uint8 of a scene larger than a frame: noise whose spectrum falls as that of photographs does, and grain."""
    rng = np.random.default_rng([SEED, number])
    shape = HEIGHT + 160, WIDTH + 320
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.rfftfreq(shape[1]), indexing="ij"))
    frequency[0, 0] = 1
    smooth = np.fft.irfft2(np.fft.rfft2(rng.normal(0, 1, shape)) / frequency**1.2, shape)
    return np.clip(128 + 40 * smooth / smooth.std(), 0, 255).astype(np.uint8)


def pan(number, frames, x=2, y=1):
    """Frames of a scene, each (x, y) samples further."""
    return [scene(number)[n * y :, n * x :][:HEIGHT, :WIDTH] for n in range(frames)]


def noise(frames):
    rng = np.random.default_rng(SEED)
    return list(rng.integers(0, 256, (frames, HEIGHT, WIDTH)).astype(np.uint8))


def faded(lumas, first, length):
    """The frames from `first` on lose nine tenths of their brightness in `length` frames."""
    return [(luma * (1 - 0.9 * min(max(n - first, 0), length) / length)).astype(np.uint8) for n, luma in enumerate(lumas)]


@pytest.mark.parametrize("b_adapt", [FAST, BEST])
def test_what_does_not_move_gets_most_b_frames(b_adapt):
    still = [np.ascontiguousarray(scene(0)[:HEIGHT, :WIDTH])] * 17
    assert types(still, b_adapt=b_adapt) == "K" + 4 * "BBBP"
    assert types(still, b_adapt=b_adapt, bframes=7) == "K" + 2 * "BBBBBBBP"
    assert types(pan(0, 17), b_adapt=b_adapt).count("B") >= 10


def test_a_stream_ends_with_no_b_frame():
    still = [np.ascontiguousarray(scene(0)[:HEIGHT, :WIDTH])]
    for b_adapt in (FIXED, FAST, BEST):
        for n in range(1, 12):
            letters = types(n * still, b_adapt=b_adapt)
            assert len(letters) == n and letters[-1] != "B" and "BBBB" not in letters and letters[0] == "K"
    assert types(12 * still, b_adapt=FIXED) == "KBBBPBBBPBBP"
    assert types(3 * still, bframes=0) == "KPP"


@pytest.mark.parametrize("b_adapt", [FIXED, FAST, BEST])
@pytest.mark.parametrize("at", [1, 6, 25, 31])
def test_a_cut_is_found_at_its_frame(b_adapt, at):
    letters = types([*pan(0, at), *pan(1, 10)], b_adapt=b_adapt, keyint=60)
    assert [n for n, kind in enumerate(letters) if kind in "KI"] == [0, at]
    assert letters[at] == ("K" if at >= 25 else "I") and letters[at - 1] != "B"
    assert "I" not in types([*pan(0, at), *pan(1, 10)], b_adapt=b_adapt, scenecut=0)
    without_b = types([*pan(0, at), *pan(1, 10)], bframes=0, keyint=60, b_adapt=0)
    assert without_b == "K" + (at - 1) * "P" + letters[at] + 9 * "P"


@pytest.mark.parametrize(("b_adapt", "length"), [(FAST, 1), (BEST, 1), (BEST, 3)])
def test_flashes_are_no_cuts(b_adapt, length):
    lumas = pan(0, 40)
    other = pan(1, 40)
    for n in range(30, 30 + length):
        lumas[n] = other[n]
    assert types(lumas, b_adapt=b_adapt).strip("K").count("K") == 0
    lumas = pan(0, 40)
    lumas[30] = np.full_like(lumas[30], 255)
    assert not set(types(lumas, b_adapt=b_adapt)[1:]) & set("KI")


def under_noise(picture, sigma, frames=20):
    """A picture that does not move, with other noise in each frame."""
    rng = np.random.default_rng([SEED, int(sigma)])
    return [np.clip(np.rint(picture + rng.normal(0, sigma, picture.shape)), 0, 255).astype(np.uint8) for _ in range(frames)]


FLAT = np.full((HEIGHT, WIDTH), 100.4)
GRADED = 40.0 + 0.8 * np.arange(WIDTH) + np.zeros((HEIGHT, 1))
DARK = 16 + 34 * np.clip(1 - np.hypot(*np.meshgrid(np.linspace(-0.9, 0.9, WIDTH), np.linspace(-0.6, 0.6, HEIGHT))), 0, 1)


@pytest.mark.parametrize("picture", [FLAT, GRADED, DARK], ids=["flat", "graded", "dark"])
def test_noise_is_no_cut(picture):
    """Neither the frame before nor the samples around predict it; while the picture fades, too."""
    for sigma in (0.5, 1, 2, 12):
        lumas = under_noise(picture, sigma)
        for b_adapt in (FAST, BEST):
            assert not set(types(lumas, b_adapt=b_adapt)[1:]) & set("KI")
        if sigma >= 1:  # less noise than the steps of the samples is gone in the dark, and leaves their contours
            assert not set(types(faded(lumas, 4, 14))[1:]) & set("KI")


@pytest.mark.parametrize("picture", [FLAT, GRADED, DARK], ids=["flat", "graded", "dark"])
def test_cuts_between_noise_are_found(picture):
    """From one noisy picture to another one, and back."""
    for sigma in (1, 6):
        other = GRADED[:, ::-1] if picture is not GRADED else GRADED[:, ::-1] // 2
        for lumas in (
            [*under_noise(picture, sigma, 9), *pan(1, 9)],
            [*pan(1, 9), *under_noise(picture, sigma, 9)],
            [*under_noise(picture, sigma, 9), *under_noise(other, sigma, 9)],
        ):
            letters = types(lumas)
            assert [n for n, kind in enumerate(letters) if kind in "KI"] == [0, 9]


def test_fades_are_no_cuts():
    for lumas in (faded(pan(0, 40), 28, 8), faded(pan(0, 40), 28, 8)[::-1], faded(pan(0, 40), 20, 20)):
        for b_adapt in (FAST, BEST):
            assert not set(types(lumas, b_adapt=b_adapt)[1:]) & set("KI")


@pytest.mark.parametrize("b_adapt", [FAST, BEST])
def test_frames_without_anything_in_common_are_scenes_of_their_own(b_adapt):
    lumas = [pan(n, 1)[0] for n in range(12)]
    assert types(lumas, scenecut=100, b_adapt=b_adapt) == "K" + 11 * "I"
    assert types(lumas, scenecut=100, b_adapt=b_adapt, min_keyint=1) == 12 * "K"


def test_idr_frames_are_keyint_apart_at_most():
    letters = types(pan(0, 40), keyint=10, min_keyint=1)
    assert [n for n, kind in enumerate(letters) if kind == "K"] == [0, 10, 20, 30]
    assert all(letters[n - 1] != "B" for n in (10, 20, 30))
    letters = types([*pan(0, 15), *pan(1, 20)], keyint=10, min_keyint=1)
    assert [n for n, kind in enumerate(letters) if kind == "K"] == [0, 10, 15, 25]
    assert set(types(pan(0, 4), keyint=1)) == {"K"}


def test_samples_are_needed():
    with pytest.raises(TypeError, match="samples"):
        AdaptiveTypes(rules(), FrameCosts(WIDTH, HEIGHT)).add(None)


def test_bias_moves_the_number_of_b_frames():
    lumas = noise(6) + pan(0, 12, 9, 5)
    counts = [types(lumas, b_bias=bias, scenecut=0, b_adapt=BEST).count("B") for bias in (-100, 0, 100)]
    assert counts[0] < counts[1] <= counts[2] and counts[0] < counts[2]


def test_threshold_of_cuts():
    for keyint, least in ((250, 25), (250, 1), (30, 30), (1000, 24)):
        chosen = rules(keyint=keyint, min_keyint=least)
        high = Fraction(40, 100)
        low = high if keyint == least else high / 4
        for length in range(1, keyint):
            if length <= Fraction(least, 4):
                expected = low / 4
            elif length <= least:
                expected = low * length / least
            else:
                expected = low + (high - low) * (length - least) / (keyint - least)
            assert Fraction(*cut_bias(chosen, length)) == expected


class Table:
    """Costs of pairs and triples of frames by chance, as integers; asked only about frames that are there."""

    in_batches = False

    def __init__(self, seed):
        self._seed, self._count, self._first = seed, 0, 0

    def add(self, luma):
        self._count += 1

    def ahead(self, questions):
        for frames in questions:
            assert self._first <= min(frames) and max(frames) < self._count

    def forget(self, before):
        self._first = max(self._first, before)

    def _chance(self, least, most, *frames):
        assert self._first <= min(frames) and max(frames) < self._count
        return int(np.random.default_rng([self._seed, *frames]).integers(least, most))

    def intra(self, frame):
        return self._chance(1000, 2000, frame)

    def sharpness(self, frame):
        assert self._first <= frame < self._count
        return 1000

    def p(self, reference, frame):
        return self._chance(300, 900, reference, frame) + 150 * (frame - reference)

    def p_of_levels(self, reference, frame):
        return self.p(reference, frame)

    def brightness(self, frame):
        return self._chance(0, 4000, frame) * np.arange(9).reshape(3, 3) % 401

    def b(self, earlier, later, frame):
        assert earlier < frame < later
        return self._chance(200, 900, earlier, later, frame)


def path_cost(table, ends, pyramid, share):
    """Of runs that end at `ends`, the first of which begins there."""
    total = 0
    for start, to in zip(ends, ends[1:]):
        total += table.p(start, to)
        middle = (start + to) // 2
        for frame in range(start + 1, to):
            between = start, to
            if pyramid and to - start > 2 and frame != middle:
                between = (start, middle) if frame < middle else (middle, to)
            total += table.b(*between, frame) * 100 // share
    return total


@pytest.mark.parametrize("pyramid", [False, True])
@pytest.mark.parametrize("bframes", [1, 2, 4])
def test_the_best_division_into_runs(bframes, pyramid):
    for seed in range(12):
        frames = 9 + seed % 3
        table = Table(seed)
        decisions = AdaptiveTypes(rules(bframes=bframes, b_adapt=BEST, pyramid=pyramid, scenecut=0, b_bias=seed), table)
        decided = [kind for _ in range(frames) for kind in decisions.add(NOTHING)] + decisions.flush()
        table = Table(seed)
        table._count = frames
        best = None
        for kinds in product("BP", repeat=frames - 2):
            path = "K" + "".join(kinds) + "P"
            if (bframes + 1) * "B" in path:
                continue
            ends = [n for n, kind in enumerate(path) if kind != "B"]
            cost = path_cost(table, ends, pyramid, 120 + seed)
            if best is None or cost < best[0]:
                best = cost, path
        assert "".join(LETTERS.get(kind, kind) for kind in decided) == best[1]


@pytest.mark.parametrize("pyramid", [False, True])
def test_runs_of_the_least_cost_per_frame(pyramid):
    for seed in range(20):
        frames, bframes, table = 12, 5, Table(seed)
        decisions = AdaptiveTypes(rules(bframes=bframes, b_adapt=FAST, pyramid=pyramid, scenecut=0), table)
        kinds = [kind for _ in range(frames) for kind in decisions.add(NOTHING)] + decisions.flush()
        table, expected, at = Table(seed), "K", 0
        table._count = frames
        while at < frames - 1:
            means = [Fraction(path_cost(table, (at, to), pyramid, 120), to - at) for to in range(at + 1, min(at + 7, frames))]
            best = 0
            while better := [n for n in (best + 1, best + 2) if n < len(means) and means[n] <= means[best]]:
                best = better[0]
            expected += best * "B" + "P"
            at += best + 1
        assert "".join(LETTERS.get(kind, kind) for kind in kinds) == expected


def test_types_do_not_depend_on_what_is_known_beyond_the_window():
    """Types that are known before the end stay; frames beyond the lookahead have no say."""
    for b_adapt, scenecut in product((FIXED, FAST, BEST), (0, 90)):
        chosen = {"b_adapt": b_adapt, "scenecut": scenecut, "rc_lookahead": 8, "keyint": 50, "min_keyint": 5}
        whole = AdaptiveTypes(rules(**chosen), Table(5))
        kinds = [kind for _ in range(60) for kind in whole.add(NOTHING)] + whole.flush()
        assert len(kinds) == 60
        for length in (1, 7, 23, 51):
            part = AdaptiveTypes(rules(**chosen), Table(5))
            early = [kind for _ in range(length) for kind in part.add(NOTHING)]
            assert early == kinds[: len(early)] and len(early) >= length - 12
            assert len(early) + len(part.flush()) == length


class Late(Table):
    """Answers a question only some calls after it was asked first, or after a wait."""

    def __init__(self, seed, calls, in_batches):
        super().__init__(seed)
        self.in_batches = in_batches
        self._calls, self._asked, self._waited, self.waits = calls, {}, set(), 0

    def wait(self):
        self._waited |= set(self._asked)
        self.waits += 1

    def _chance(self, least, most, *frames):
        question = least, *frames
        self._asked[question] = self._asked.get(question, 0) + 1
        if self._asked[question] <= self._calls and question not in self._waited:
            raise CostPending
        return super()._chance(least, most, *frames)


def test_types_do_not_depend_on_when_costs_are_there():
    """Frames wait for late costs up to a limit; at the end all are waited for."""
    ways = (FIXED, FAST, BEST), (0, 90), (0, 4), (1, 3), (False, True)
    for b_adapt, scenecut, lag, calls, in_batches in product(*ways):
        chosen = rules(b_adapt=b_adapt, scenecut=scenecut, rc_lookahead=8, keyint=50, min_keyint=5, lag=lag)
        at_once, costs = AdaptiveTypes(chosen, Table(5)), Late(5, calls, in_batches)
        late, kinds, most = AdaptiveTypes(chosen, costs), [], chosen.due if lag and in_batches else chosen.most_waiting
        for n in range(40):
            kinds += late.add(NOTHING)
            assert n + 1 - len(kinds) <= most + lag
        kinds += late.flush()
        assert kinds == [kind for _ in range(40) for kind in at_once.add(NOTHING)] + at_once.flush()
        assert (costs.waits > 0) == (b_adapt != FIXED or scenecut > 0)


class FromAGpu(Table):
    """Answers what was asked together `late` frames later; batches: how often something was asked."""

    in_batches = True

    def __init__(self, seed, late):
        super().__init__(seed)
        self._late, self._asked, self.batches, self.waits = late, {}, 0, 0

    def ahead(self, questions):
        super().ahead(questions)
        pairs = [((q[0], q[2]), (q[1], q[2]), (q[0], q[1])) if len(q) == 3 else () for q in questions]
        new = [q for q in (*questions, *(pair for of_one in pairs for pair in of_one)) if q not in self._asked]
        self.batches += bool(new)
        self._asked |= dict.fromkeys(new, self._count + self._late)

    def wait(self):
        self.waits += 1
        self._asked = dict.fromkeys(self._asked, 0)

    def p(self, reference, frame):
        return self._answer(super().p, reference, frame)

    def p_of_levels(self, reference, frame):
        return super().p(reference, frame)

    def b(self, earlier, later, frame):
        return self._answer(super().b, earlier, later, frame)

    def _answer(self, cost, *question):
        self.ahead([question])
        if self._asked[question] > self._count:
            raise CostPending
        return cost(*question)


@pytest.mark.parametrize("changes", ({}, {"bframes": 0}, {"b_adapt": BEST}, {"b_adapt": FIXED}), ids=str)
def test_answers_that_come_some_frames_late_are_seldom_waited_for(changes):
    """Costs by chance, of which some runs are short; one batch serves several frames."""
    chosen, frames = rules(scenecut=90, lag=4, **changes), 120
    types_by_lateness = {}
    for late in range(3):
        costs = FromAGpu(5, late)
        decisions = AdaptiveTypes(chosen, costs)
        types_by_lateness[late] = [frame_type for _ in range(frames) for frame_type in decisions.add(NOTHING)]
        assert costs.waits <= frames / 20 and costs.batches <= frames / 2, (late, costs.waits, costs.batches)
        types_by_lateness[late] += decisions.flush()
    assert all(of_one == types_by_lateness[0] for of_one in types_by_lateness.values())


@pytest.mark.parametrize("name", ["foreman_352x288_30", "mobile_352x288_30", "BasketballPass_416x240_50"])
def test_real_clips_have_no_cuts_and_many_b_frames(name):
    source = clip(name)
    lumas = [np.ascontiguousarray(frame[: source.height]) for frame in source.pictures(30)]
    for b_adapt in (FAST, BEST):
        letters = types(lumas, b_adapt=b_adapt)
        assert letters[0] == "K" and not set(letters[1:]) & set("KI") and letters.count("B") >= 15
