"""Broken streams through what describes them: report, info, decode, and `h264lite.analyse`. No traceback, JSON that can be
read, exit code 0 or 1.
"""

import contextlib
import io
import json
import random
import tempfile
from pathlib import Path
from typing import NamedTuple

import h264lite
from h264lite.cli.cli import main
from h264lite.standard import bits

from . import decoder_cases, mutate
from .guard import GuardedNumpy
from .kinds import Result

WAYS = ("report", "report with pictures", "info", "info units", "decode", "decode resilient", "analyse", "analyse samples")


class Case(NamedTuple):
    """A stream, and what looks at it."""

    data: bytes
    way: str


material, modules, dump = decoder_cases.material, decoder_cases.modules, decoder_cases.dump


def warm(given: decoder_cases.Material) -> None:
    """Each way once, with a whole stream."""
    for way in WAYS:
        run(Case(mutate.stream_of(given.streams[0], random.Random(0)), way), GuardedNumpy("none"))


def build(given: decoder_cases.Material, rng: random.Random) -> Case:
    """A mutated stream, into which SEI messages of noise are put."""
    data = mutate.mutated(given.streams, rng)
    if rng.random() < 0.4:
        starts = [at for at in range(len(data) - 3) if data[at : at + 3] == b"\0\0\1"] or [0]
        for at in sorted(rng.sample(starts, min(3, len(starts))), reverse=True):
            data = data[:at] + bits.nal_unit(bits.NAL_SEI, 0, _messages(rng), True) + data[at:]
    return Case(data, rng.choice((*WAYS, "report", "info units", "analyse")))


def _messages(rng: random.Random) -> bytes:
    """7.3.2.3: SEI messages whose contents nobody expects."""
    payloads = b""
    for _ in range(rng.randint(1, 4)):
        kind, payload = rng.choice((0, 1, 4, 5, 6, 45, 137, 144, 254)), rng.randbytes(rng.choice((0, 1, 5, 16, 17, 40)))
        payloads += bytes((kind, len(payload))) + payload
    return payloads + b"\x80"


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Look at it."""
    if case.way.startswith("analyse"):
        return _analysed(case)
    said, out = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as name:
        path, page = Path(name) / "s.264", str(Path(name) / "o")
        path.write_bytes(case.data)
        words = {
            "report": ["report", str(path), "-o", page, "--pictures", "none"],
            "report with pictures": ["report", str(path), "-o", page],
            "info": ["info", "--nal", str(path)],
            "info units": ["info", "--json", "--nal", str(path)],
            "decode": ["decode", str(path), page],
            "decode resilient": ["decode", "--resilient", str(path), f"{page}.y4m"],
        }[case.way]
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
            code = main(words)
    text = said.getvalue()
    assert code in (0, 1) and "Traceback" not in text and "a fault of h264lite" not in text, (code, text)
    assert all(line.isprintable() for line in text.splitlines() + out.getvalue().splitlines()), (text, out.getvalue())
    if case.way == "info units":
        json.loads(out.getvalue())
    return Result(int(not code), text if code else "")


def _analysed(case: Case) -> Result:
    frames = 0
    try:
        for frame in h264lite.analyse(case.data, samples="samples" in case.way):
            frames += 1
            assert int(frame.macroblocks.bits.sum()) == frame.bits - frame.header_bits
    except h264lite.BitstreamError as error:
        return Result(frames, str(error))
    return Result(frames)
