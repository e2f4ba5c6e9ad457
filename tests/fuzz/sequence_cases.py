"""Several streams through one decoder, whose caller catches errors and goes on: sizes change, memory runs out.

At the end comes a stream that is whole, and its frames must be right whatever has been before.
"""

import random
import re
from typing import NamedTuple

import h264lite
from h264lite.standard import bits, syntax_sps

from . import decoder_cases, mutate, seeds
from .guard import GuardedNumpy
from .kinds import Result

# In macroblocks: of the largest level, or nearly; small; and what a decoded picture buffer may hold only few of.
SIZES = (
    (1055, 1), (1, 1055), (42, 1055), (1055, 42), (42, 1055), (1055, 42), (256, 176), (132, 132), (5, 401), (401, 5),
    (3, 2), (2, 3), (11, 4), (4, 11),
)  # fmt: skip
DELIMITER = b"\0\0\1\x09\xf0"  # ends the NAL unit before it
FLUSH = b""


class Material(NamedTuple):
    """Streams as NAL units, those of odd shapes, and a whole one with its frames."""

    streams: list[list[mutate.Unit]]
    wide: list[list[mutate.Unit]]
    whole: bytes
    frames: list[bytes]
    said: str


class Case(NamedTuple):
    """What the caller gives to the decoder."""

    pieces: list[bytes]  # FLUSH: the end of a stream
    no_memory: dict[int, int]  # by piece: the allocation that fails while it is decoded
    resilient: bool
    macroblocks: bool
    whole: bytes
    frames: list[bytes]


def material() -> Material:
    """The seed streams, those of odd shapes, and one of two IDR pictures that is whole."""
    streams, said = seeds.all_streams()
    whole = seeds.own(64, 32, 6, qp=28, keyint=4, ref=2)
    coder = h264lite.Decoder()
    frames = [frame.to_bytes() for frame in (*coder.decode(whole), *coder.flush())]
    wide = [mutate.units_of(stream) for stream in seeds.wide_streams()]
    return Material([mutate.units_of(stream) for stream in streams], wide, whole, frames, said)


modules = decoder_cases.modules


def warm(given: Material) -> None:
    """Decode some streams as they are."""
    decoder_cases.warm(decoder_cases.Material(given.streams, given.said))


def build(given: Material, rng: random.Random) -> Case:
    """Two to eight streams: of odd shapes, mutated, or as they are."""
    pieces: list[bytes] = []
    for _ in range(rng.choice((2, 3, 5, 8))):
        way = rng.random()
        if way < 0.5:
            data = mutate.stream_of(_resized(list(rng.choice(given.wide)), rng), rng)
        elif way < 0.9:
            data = mutate.mutated(given.streams, rng)
        else:
            data = mutate.stream_of(rng.choice(given.streams), rng)
        pieces += _pieces(data, rng)
        if rng.random() < 0.2:
            pieces.append(FLUSH)
    begins = [at for at, piece in enumerate(pieces) if b"\1\x65" in piece]  # IDR slices, where a pool may be made
    failing = rng.sample(begins, min(len(begins), rng.choice((0, 0, 1, 2, 5))))
    no_memory = {at: rng.choice((0, 1, 2, 3, 5, 8, 13, 24)) for at in failing}
    return Case(pieces, no_memory, rng.random() < 0.5, rng.random() < 0.2, given.whole, given.frames)


def _pieces(data: bytes, rng: random.Random) -> list[bytes]:
    """Mostly a NAL unit each; else pieces of some size."""
    if rng.random() < 0.3:
        size = rng.choice((100, 4096, 1 << 20))
        return [data[at : at + size] for at in range(0, len(data), size)]
    starts = [match.start() for match in re.finditer(b"\0?\0\0\1", data)]
    return [data[a:b] + DELIMITER for a, b in zip(starts, [*starts[1:], len(data)])]


def _resized(units: list[mutate.Unit], rng: random.Random) -> list[mutate.Unit]:
    """Other sizes and buffers in the parameter sets of a stream; its pictures once more, or without their beginning."""
    for i, unit in enumerate(units):
        if unit.kind == bits.NAL_SPS and rng.random() < 0.6:
            sps = syntax_sps.parse_sps(unit.rbsp)
            width, height = rng.choice(SIZES)
            sps.pic_width_in_mbs_minus1, sps.pic_height_in_map_units_minus1 = width - 1, height - 1
            sps.max_num_ref_frames, sps.frame_cropping_flag = rng.choice((0, 1, 4, 16, 16)), 0
            sps.level_idc = rng.choice((sps.level_idc, 10, 51, 62))
            sps.seq_parameter_set_id = rng.choice((0, 0, 0, 1))
            if rng.random() < 0.5:
                sps.vui_parameters_present_flag = sps.vui.bitstream_restriction_flag = 1
                sps.vui.max_num_reorder_frames, sps.vui.max_dec_frame_buffering = 0, rng.choice((0, 1, 2, 16))
            units[i] = unit._replace(rbsp=syntax_sps.write_sps(sps))
    if rng.random() < 0.6:
        units += [unit for unit in units if unit.kind not in (bits.NAL_SPS, bits.NAL_PPS)]
    if rng.random() < 0.3:
        units = units[rng.randrange(len(units)) :]
    return units


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Decode them all; what raises is caught, and decoding goes on."""
    coder = h264lite.Decoder(resilient=case.resilient, macroblocks=case.macroblocks)
    frames, refused = 0, ""
    for at, piece in enumerate(case.pieces):
        numpy.fail_after = case.no_memory.get(at)
        try:
            for frame in coder.decode(piece) if piece else coder.flush():
                frames += len(frame.to_bytes()) > 0
        except h264lite.BitstreamError as error:
            assert not case.resilient, f"resilient, but: {error}"
            refused = refused or str(error)
        except MemoryError as error:
            if "of the fuzzer" not in str(error):
                raise
        finally:
            numpy.fail_after = None
    for _ in range(2):  # an error in what waits ends the first attempt
        try:
            frames += len([*coder.flush()])
        except h264lite.BitstreamError as error:
            refused = refused or str(error)
    last = [frame.to_bytes() for frame in coder.decode(case.whole)]
    last += [frame.to_bytes() for frame in coder.flush()]
    assert last[-len(case.frames) :] == case.frames, "a whole stream after the others is wrong"
    return Result(frames, refused or "; ".join(coder.dropped[:1]))


def dump(case: Case) -> bytes:
    """The streams in sequence; the point where memory runs out depends on the case alone."""
    return b"".join(case.pieces)
