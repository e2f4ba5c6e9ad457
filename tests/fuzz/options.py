"""Values of options, strings and Python objects, one or several, and whole command lines: taken, or refused by name."""

import contextlib
import io
import itertools
import random
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from h264lite.cli import cli
from h264lite.encoder.errors import Error, OptionError
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.options import ALIASES, BY_NAME, OPTIONS
from h264lite.encoder.settings.user_options import read_options


class Evil:
    """Raises in whatever is asked of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattribute__(self, name: str) -> object:
        if name == "__class__":
            return object.__getattribute__(self, name)
        raise ValueError("no")

    def _raise(self, *_: object) -> object:
        raise ValueError("no")

    __index__ = __int__ = __float__ = __iter__ = __eq__ = __hash__ = __bool__ = __len__ = __fspath__ = _raise
    __repr__ = __str__ = _raise  # type: ignore[assignment]


WORDS = ("", " ", "0", "1", "-1", "51", "52", "1e9", "1e99999999", "1e-99999999", "1E+9999999", "9" * 4000, "9" * 100000,
         "1" + "_0" * 50, "0x10", "١٦", "²", "1.5", "-0", "+5", "inf", "nan", "-inf", "1/0", "1/3", "30000/1001", "1e400",
         "1/" + "9" * 90, "all", "none", "auto", "infinite", "352x288", "9" * 4000 + "x1", "x", "1:1", "6:-6", "1:2:3", "0:0",
         "65535:65535", ":", ",", "p8x8,i4x4", "p8x8," * 3000, "cpu", "cuda:0", "cuda:9999", "cpu,cpu", "cuda:١", "medium",
         "baseline", "6.2", "tv", "bt709", "\0", "a\nb", "\x1b[2J", "\udcff", "a" * 100000, "True", "None", "/dev/zero",
         "/nowhere", "step", "13")  # fmt: skip
OBJECTS = (None, True, False, 0, 1, -1, 2**31, 10**400, 10**5000, -(10**5000), 1.5, -0.0, float("nan"), float("inf"), 1e308,
           Fraction(1, 3), Fraction(10**5000, 3), Decimal("25"), Decimal("1e99999999"), Decimal("nan"), Decimal("sNaN"), b"1",
           (), [], {}, {1}, (1,), (1, 2), (1, 2, 3), ("cpu",), [None], object(), int, np.int64(7), np.float64(29.97),
           np.float32(25), np.arange(2), np.zeros(0), 1j, Path("/nowhere"), Path("/dev/zero"))  # fmt: skip
NAMES = (*(row.name for row in OPTIONS), "bitrate", "frame_rate", "mernge", "x" * 5000, "", "a b", "\0")


class Case(NamedTuple):
    """way: of WAYS; given: name -> value."""

    way: str
    given: dict[str, object]


WAYS = ("row", "rows", "config", "command")


def _value(rng: random.Random) -> object:
    kind = rng.randrange(8)
    if kind < 4:
        return rng.choice(WORDS)
    if kind < 6:
        return rng.choice(OBJECTS)
    if kind == 6:
        return "".join(rng.choice("0123456789.,:/xXeE+-_ \n\0aé") for _ in range(rng.choice((1, 3, 9, 200))))
    return rng.choice((lambda: Evil("x"), lambda: itertools.repeat("p8x8"), lambda: itertools.count(), lambda: iter("ab")))()


def warm() -> None:
    """Load LLVM before the limit of memory: values of `tuning` need it, and it takes hundreds of MiB of addresses."""
    import_module("h264lite.scheduler.hybrid.tuning.tuning_file")


def build(rng: random.Random) -> Case:
    """Some names with some values."""
    way, names = rng.choice(WAYS), [row.name for row in OPTIONS] if rng.random() < 0.8 else NAMES
    picked = rng.sample(names, 1 if way == "row" else rng.randint(1, 4))
    if way == "row":
        picked = [name for name in picked if name in BY_NAME] or ["qp"]
    values = [rng.choice(WORDS) if way == "command" else _value(rng) for _ in picked]
    return Case(way, dict(zip(picked, values)))


def run(case: Case, folder: Path) -> str:
    """Give them to one row, to the table, to Config, or to the command line."""
    if case.way == "command":
        return _command(case, folder)
    try:
        if case.way == "row":
            [(name, value)] = case.given.items()
            BY_NAME[name].value(value)
        elif case.way == "rows":
            read_options(case.given)
        else:
            Config.from_options(**({"width": 64, "height": 48, "device": "cpu"} | case.given))
    except Error as error:
        text = str(error)
        assert case.way == "config" or isinstance(error, OptionError), type(error)
        assert len(text) < (5000 if {"tuning", "cqm", "qpfile"} & set(case.given) else 600), text  # a name is shown whole
        names = [ALIASES.get(name, name[:40]).rstrip("_") for name in case.given]
        assert any(name in text or name.replace("_", "-") in text for name in (*names, "size", "unknown option")), text
        return "refused"
    return "taken"


def _command(case: Case, folder: Path) -> str:
    """An encode of no file, so that nothing is encoded if all is taken; `decode` and `info` as well."""
    words = []
    for name, value in case.given.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if name in BY_NAME and BY_NAME[name].is_switch:
            words.append(flag)
        else:
            words += [f"{flag}={value}"] if len(words) % 2 else [flag, str(value)]
    said, out = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
        code = cli.main(["encode", str(folder / "missing_16x16.yuv"), str(folder / "o.264"), *words])
    assert code in (1, 2, 3), code
    lines = [line for line in said.getvalue().splitlines() if "[warning]: " not in line]  # options that act as another value
    assert len(lines) == 1 and "error: " in lines[0] and not out.getvalue(), said.getvalue()[:2000]
    assert not list(folder.iterdir())
    return f"command {code}"
