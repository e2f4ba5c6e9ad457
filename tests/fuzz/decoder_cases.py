"""A broken stream through one decoder: frames, or one BitstreamError that names place and cause."""

import random
import re
from types import ModuleType
from typing import NamedTuple

import h264lite
from h264lite.decoder import picture, picture_decoding, reference_lists, scaling

from . import mutate, seeds
from .guard import GuardedNumpy
from .kinds import Result

PLACE = re.compile(r"(NAL unit \d+ at byte \d+|at the end of the stream, byte \d+|byte stream, byte \d+)(, bit \d+)?: \w+")
DROPPED = re.compile(r"\d+ (slices dropped up to .*|more messages?)$")


class Material(NamedTuple):
    """Streams as NAL units."""

    streams: list[list[mutate.Unit]]
    said: str  # which they are


class Case(NamedTuple):
    """A stream, and how it is decoded."""

    data: bytes
    resilient: bool
    macroblocks: bool
    piece: int  # bytes at a time


def material() -> Material:
    """The seed streams."""
    streams, said = seeds.all_streams()
    return Material([mutate.units_of(stream) for stream in streams], said)


def modules() -> tuple[ModuleType, ...]:
    """All that make arrays which kernels of the decoder get."""
    return picture, picture_decoding, reference_lists, scaling


def warm(given: Material) -> None:
    """Decode some streams as they are."""
    for units in given.streams:
        run(Case(mutate.stream_of(units, random.Random(0)), True, True, 1 << 20), GuardedNumpy("none"))


def build(given: Material, rng: random.Random) -> Case:
    """A mutated stream."""
    data = mutate.mutated(given.streams, rng)
    return Case(data, rng.random() < 0.5, rng.random() < 0.2, rng.choice((1 << 20, 1 << 20, 997, 50)))


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Decode it, piece by piece."""
    coder = h264lite.Decoder(resilient=case.resilient, macroblocks=case.macroblocks)
    frames, message = 0, ""
    try:
        for at in range(0, len(case.data), case.piece):
            for frame in coder.decode(case.data[at : at + case.piece]):
                frames += len(frame.to_bytes()) > 0
    except h264lite.BitstreamError as error:
        message = str(error)
    try:
        for frame in coder.flush():
            frames += len(frame.to_bytes()) > 0
    except h264lite.BitstreamError as error:
        assert not message, f"two errors: {message}; {error}"
        message = str(error)
    assert not (case.resilient and message), f"resilient, but: {message}"
    for line in (message, *coder.dropped):
        assert not line or PLACE.match(line) or DROPPED.match(line), f"no place, or no cause: {line}"
    return Result(frames, message or "; ".join(coder.dropped[:1]))


def dump(case: Case) -> bytes:
    """The stream."""
    return case.data
