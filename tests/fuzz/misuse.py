"""One encoder that is used as it should not be: each call gives the right packets or raises an h264lite.Error that says why.

What was taken is right if another encoder makes the same bytes of the same pictures. What the `__array__` of a caller's
object raises, or NumPy because of it, may come through as it is.
"""

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h264lite
import numpy as np

OPTIONS = ({}, {"keyint": 2}, {"keyint": 2, "gops": 2}, {"ref": 2, "qp": 40}, {"ssim": True}, {"me": "step"},
           {"slices": 2, "preset": "ultrafast"}, {"no_deblock": True, "keep_reconstruction": True})  # fmt: skip
SIZES = ((32, 32), (33, 47), (16, 64))
CALLS = ("good", "good", "good", "good", "other", "other", "bad", "bad", "bad", "headers", "flush", "close", "poke")


class Boom(Exception):
    """The caller's own."""


class Case(NamedTuple):
    """An encoder and what is asked of it; seed: of the pictures and of what is wrong with them."""

    size: tuple[int, int]
    options: dict[str, Any]
    calls: tuple[str, ...]
    seed: int


class Array:
    """What has `__array__`, and gives whatever it is told to."""

    def __init__(self, give: Callable[[], object]) -> None:
        self.give = give

    def __array__(self, dtype: object = None, copy: object = None) -> object:
        return self.give()


def build(rng: random.Random) -> Case:
    """Up to a dozen calls, on most encoders with a flush somewhere and a close at the end."""
    calls = [rng.choice(CALLS) for _ in range(rng.randint(1, 12))]
    return Case(rng.choice(SIZES), rng.choice(OPTIONS), tuple(calls), rng.randrange(1 << 30))


def picture(size: tuple[int, int], rng: random.Random) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Planes of noise."""
    width, height = size
    shapes = (height, width), *2 * [((height + 1) // 2, (width + 1) // 2)]
    y, u, v = (np.frombuffer(rng.randbytes(h * w), np.uint8).reshape(h, w).copy() for h, w in shapes)
    return y, u, v


def other_form(planes: tuple[np.ndarray, ...], rng: random.Random) -> Any:
    """The same samples in another form that is taken."""
    y, u, v = planes
    forms: list[Callable[[], Any]] = [
        lambda: [y, u, v], lambda: tuple(map(np.asfortranarray, planes)), lambda: (y[::-1].copy()[::-1], u, v),
        lambda: (y, u[:, ::-1].copy()[:, ::-1], v), lambda: tuple(map(read_only, planes)),
        lambda: tuple(np.repeat(np.repeat(p, 2, 0), 3, 1)[::2, ::3] for p in planes),
        lambda: (Array(lambda: y), u, Array(lambda: v)), lambda: (y, np.ma.masked_array(u, u > 300), v),
    ]
    if not (y.shape[0] | y.shape[1]) & 1:
        packed = np.concatenate([plane.reshape(-1) for plane in planes]).reshape(-1, y.shape[1])
        forms += [lambda: packed, lambda: np.asfortranarray(packed), lambda: np.pad(packed, 3)[3:-3, 3:-3],
                  lambda: Array(lambda: packed)]
    return rng.choice(forms)()


def read_only(plane: np.ndarray) -> np.ndarray:
    """A copy that may not be written."""
    copy = plane.copy()
    copy.setflags(write=False)
    return copy


def raises(error: BaseException) -> Callable[[], object]:
    """A function that does."""

    def fails() -> object:
        raise error

    return fails


def bad_frame(planes: tuple[np.ndarray, ...], rng: random.Random) -> Any:
    """What is no picture of this size."""
    y, u, v = planes
    h, w = y.shape
    frames: list[Callable[[], Any]] = [
        lambda: None, lambda: "frame", lambda: 7, lambda: b"x" * 99, lambda: (), lambda: (y,), lambda: (y, u),
        lambda: (y, u, v, v), lambda: (y, u, None), lambda: (y[:-1], u, v), lambda: (y, u[:, 1:], v), lambda: (y, u, v[None]),
        lambda: (y.T[..., None], u, v), lambda: (y.astype(np.uint16), u, v), lambda: (y, u.astype(np.int8), v),
        lambda: tuple(p.astype(float) for p in planes), lambda: (y, u, v.astype(object)), lambda: (y > 9, u, v),
        lambda: np.zeros((2, h, w), np.uint8), lambda: np.zeros((h, w, 2), np.uint8), lambda: np.zeros(0, np.uint8),
        lambda: y[:0], lambda: np.zeros((2,) * 20, np.uint8), lambda: np.array([[1, "a"]], dtype=object), lambda: np.uint8(3),
        lambda: np.zeros((h, w), "V1"), lambda: np.zeros((h, w), [("a", "u1")]), lambda: Array(lambda: 7),
        lambda: Array(lambda: None), lambda: Array(lambda: [y, u, v]), lambda: Array(lambda: y.astype(np.float32)),
        lambda: Array(raises(Boom())), lambda: (y, Array(raises(Boom())), v), lambda: iter(planes), lambda: {"y": y},
        lambda: memoryview(y), lambda: np.broadcast_to(np.uint8(1), (999, 999)),
    ]  # fmt: skip
    return rng.choice(frames)()


def pokes(encoder: h264lite.Encoder, rng: random.Random) -> None:
    """Other things that callers do between frames: none of them changes what is encoded."""
    rng.choice((lambda: encoder.stats.summary(), lambda: encoder.config, lambda: repr(encoder), lambda: hash(encoder)))()


def run(case: Case, folder: Path) -> str:
    """All calls; a model of one that is open, flushed or closed says which of them must be refused."""
    before = threading.active_count()
    state, taken, packets, refused = "open", [], [], 0
    rng = random.Random(case.seed)
    encoder = h264lite.Encoder(*case.size, threads=1, device="cpu", **case.options)
    try:
        for call in (*case.calls, "flush"):
            planes = picture(case.size, rng)
            act, legal, caused = _call(encoder, call, planes, rng)
            try:
                got = act()
            except (h264lite.Error, *caused) as error:
                assert call == "bad" or state not in legal, f"{call} while {state}: {error!r}"
                assert "\n" not in str(error) and len(str(error)) < 500, str(error)
                refused += 1
                continue
            assert call != "bad" and state in legal, f"{call} while {state} was taken"
            packets += got or []
            taken += [planes] if call in ("good", "other") else []
            state = {"flush": "flushed" if state == "open" else state, "close": "closed"}.get(call, state)
    finally:
        encoder.close()
    assert threading.active_count() <= before, threading.enumerate()
    _check(case, taken, packets, state)
    return "refused" if refused else "taken"


def _call(
    encoder: h264lite.Encoder, call: str, planes: tuple[np.ndarray, ...], rng: random.Random
) -> tuple[Callable[[], Any], tuple[str, ...], tuple[type[Exception], ...]]:
    """What is done, in which states it may be, and what besides an Error it may raise."""
    if call == "flush":
        return encoder.flush, ("open", "flushed"), ()
    if call == "headers":
        return lambda: encoder.headers[:0], ("open", "flushed"), ()
    if call == "close":
        return encoder.close, ("open", "flushed", "closed"), ()
    if call == "poke":
        return lambda: pokes(encoder, rng), ("open", "flushed", "closed"), ()
    frame = planes if call == "good" else other_form(planes, rng) if call == "other" else bad_frame(planes, rng)
    parts = frame if isinstance(frame, tuple) else (frame,)
    caused = (Boom, ValueError, TypeError) if call == "bad" and any(isinstance(part, Array) for part in parts) else ()
    return lambda: encoder.encode(frame), ("open",), caused


def _check(case: Case, taken: list[Any], packets: list[Any], state: str) -> None:
    """Packets are those of an encoder to which nothing wrong was given; all of them, unless it was closed early."""
    options = {name: value for name, value in case.options.items() if name != "gops"}
    with h264lite.Encoder(*case.size, threads=1, device="cpu", **options) as plain:
        expected = [packet for planes in taken for packet in plain.encode(planes)] + plain.flush()
    assert [p.pts for p in packets] == [p.pts for p in expected][: len(packets)]
    assert sorted(p.pts for p in expected) == list(range(len(expected)))
    assert [p.data for p in packets] == [p.data for p in expected][: len(packets)]
    assert state == "closed" or len(packets) == len(expected)


def warm() -> None:
    """Compile what the cases need, and start what stays."""
    for size in SIZES:
        for options in OPTIONS:
            run(Case(size, options, ("good", "good", "good"), 1), Path())
