"""Files of a first pass with hostile numbers, types and lines: refused by name, or the second pass makes a sound stream."""

import random
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import h264lite

from . import encoder_cases
from .guard import GuardedNumpy
from .kinds import Result

NUMBERS = (0, 1, -1, 2, 255, 256, 51 * 256, 52 * 256, -51 * 256, 2**31 - 1, 2**31, -(2**31), 10**11, 10**12 - 1,
           -(10**11) + 1, 10**12, 10**19, 10**400)  # fmt: skip
WORDS = ("", "x", "1.5", "1e9", "nan", "0x1", "--1", "+1", "\u0661", "1_0", "\0", "P P")
TYPES = ("IDR", "I", "P", "B", "b", "K", "0")
OPTIONS: tuple[dict[str, object], ...] = (
    {"bframes": 0}, {"bframes": 3, "rc_lookahead": 5}, {"bframes": 2, "no_mbtree": True, "aq_mode": 0},
    {"bframes": 5, "b_pyramid": "dyadic", "b_adapt": 2}, {"bframes": 3, "vbv_maxrate": 300, "vbv_bufsize": 100},
    {"bframes": 1, "keyint": 4, "scenecut": 0},
)  # fmt: skip
FRAMES = 10


class Case(NamedTuple):
    """An encode, and the text of its statistics."""

    encode: encoder_cases.Case
    text: str


def _encode(number: int, seed: int, bitrate: int) -> encoder_cases.Case:
    options = {"device": "cpu", "threads": 1, "preset": "ultrafast", "bitrate": bitrate, **OPTIONS[number]}
    content = ("moving", "noise", "flat")[seed % 3]
    return encoder_cases.Case(48, 35, FRAMES, content, seed, options, seed % 2 == 0)


def material() -> tuple[str, ...]:
    """Statistics as the first pass leaves them, for each of OPTIONS."""
    return tuple([_first_pass(_encode(number, 2, 100)) for number in range(len(OPTIONS))])


def _first_pass(case: encoder_cases.Case) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stats"
        options = {**case.options, "pass_": 1, "stats": path}
        with h264lite.Encoder(case.width, case.height, **options) as encoder:
            for planes in encoder_cases.clip(case):
                encoder.encode(planes)
            encoder.flush()
        return path.read_text()


def modules() -> tuple[ModuleType, ...]:
    """Those of the encoder."""
    return encoder_cases.modules()


def warm(given: tuple[str, ...]) -> None:
    """Every kernel once."""
    for number, text in enumerate(given):
        run(Case(_encode(number, 2, 100), text), GuardedNumpy("none"))


def build(given: tuple[str, ...], rng: random.Random) -> Case:
    """Most changes keep the form of the file, so that the numbers reach the second pass."""
    number = rng.randrange(len(OPTIONS))
    head, columns, *rows = given[number].splitlines()
    words = [row.split() for row in rows]
    for _ in range(rng.choice((0, 1, 1, 2, 5, 50))):
        _change(words, rng)
    if rng.random() < 0.9:
        head = re.sub(r"\bframes=\d+", f"frames={len(words)}", head)
    if rng.random() < 0.05:
        head = re.sub(r"\w+=\S+", lambda match: match[0] if rng.random() < 0.9 else match[0] + rng.choice(WORDS), head)
    if rng.random() < 0.03:
        columns = columns.replace(rng.choice(columns.split()), rng.choice(WORDS))
    text = "\n".join([head, columns, *map(" ".join, words)]) + "\n" * rng.choice((0, 1, 1, 1, 1, 1, 1, 2))
    if rng.random() < 0.03:
        text = text[: rng.randrange(len(text))]
    return Case(_encode(number, rng.getrandbits(32), rng.choice((1, 20, 100, 5000, 2000000))), text)


def _change(words: list[list[str]], rng: random.Random) -> None:
    """One change: a number, rarely a type, a word or a line."""
    if not words:
        return
    row, how = rng.choice(words), rng.random()
    if how < 0.8 and len(row) > 10:
        column = rng.choice((4, 5, 6, 7, 8, 9, 10))
        row[column] = str(rng.choice((*NUMBERS[:-3], rng.randrange(-(10**4), 10**6))))
    elif how < 0.84 and len(row) > 10:
        row[rng.choice((0, 1, 3))] = str(rng.choice(NUMBERS))
    elif how < 0.9 and len(row) > 2:
        row[2] = rng.choice(TYPES)
    elif how < 0.94:
        row[rng.randrange(len(row))] = rng.choice((*WORDS, *map(str, NUMBERS)))
    elif how < 0.96:
        words.remove(row)
    elif how < 0.98:
        words.insert(rng.randrange(len(words)), list(row))
    else:
        rng.shuffle(words)


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """The second pass, whose stream two decoders show as it is meant."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stats"
        path.write_text(case.text, encoding="utf-8")
        options = {**case.encode.options, "pass_": 2, "stats": path}
        try:
            done = encoder_cases.run(case.encode._replace(options=options), numpy)
        except h264lite.InputError as error:  # of more or fewer frames than come
            done = Result(0, str(error))
    said = done.refused
    assert not said or (str(path) in said and "\n" not in said and len(said) < 2000), said
    return done


def dump(case: Case) -> bytes:
    """The file."""
    return case.text.encode()
