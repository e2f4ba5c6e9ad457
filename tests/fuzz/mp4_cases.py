"""MP4 files: broken ones, which are frames or a BitstreamError within a time by their bytes; and the same samples in other
words, which are the same byte stream, times and keyframes, to FFmpeg too where PyAV is installed.
"""

import io
import random
import struct
import time
from typing import NamedTuple

import h264lite
from h264lite.mp4.avc import ParameterSets, to_sample
from h264lite.mp4.opening import pieces
from h264lite.mp4.reader import Mp4Reader
from h264lite.standard import bits

from . import decoder_cases, mp4_files, seeds
from .guard import GuardedNumpy
from .kinds import Result
from .mp4_files import Case, Movie, Sample

A_FILE, A_BYTE = 0.3, 25e-6  # seconds of the processor for a broken file: at most so many, and so many a byte
INSIDE = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"mvex", b"edts", b"dinf", b"udta")
HOSTILE = (0, 1, 2, 3, 0x7F, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
KINDS = (
    b"moov",
    b"trak",
    b"moof",
    b"traf",
    b"trun",
    b"stsz",
    b"stco",
    b"co64",
    b"avcC",
    b"avc1",
    b"free",
    b"mdat",
    b"\0\0\0\0",
)

BEHIND_ANOTHER = b"trun\1\0\x0f\0"  # a run without data_offset


class Material(NamedTuple):
    """Movies of which files are made."""

    movies: list[Movie]
    said: str


def material() -> Material:
    """Streams of the project's encoder, frame by frame."""
    movies = []
    for size, frames, options in (((48, 32), 6, {"keyint": 3}), ((32, 32), 9, {"keyint": 5, "bframes": 2}),
                                  ((16, 16), 3, {"slices": 1})):  # fmt: skip
        with h264lite.Encoder(*size, 25, device="cpu", threads=1, qp=34, **options) as encoder:
            packets = [packet for planes in seeds.clip(*size, frames) for packet in encoder.encode(tuple(planes))]
            packets += encoder.flush()
        samples_of_packets = [to_sample(packet.data) for packet in packets]
        samples = []
        for packet, (data, _) in zip(packets, samples_of_packets):
            units, at = [], 0
            while at < len(data):
                end = at + 4 + int.from_bytes(data[at : at + 4], "big")
                units.append(data[at + 4 : end])
                at = end
            samples.append(Sample(units, 1000, 1000 * (packet.pts - packet.dts), packet.is_keyframe))
        movies.append(Movie(ParameterSets(samples_of_packets[0][1]), samples))
    return Material(movies, f"{len(movies)} movies")


modules = decoder_cases.modules


def warm(given: Material) -> None:
    """Files as they are."""
    for n in range(8):
        run(build(given, random.Random(n)), GuardedNumpy("none"))


def build(given: Material, rng: random.Random) -> Case:
    """A legal file, or a broken one."""
    legal = mp4_files.legal(rng.choice(given.movies), rng)
    return legal if rng.random() < 0.3 else Case(_broken(legal.data, rng), None, [], 0)


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Read it as the commands do."""
    start = time.process_time()
    coder, frames, message = h264lite.Decoder(resilient=True), 0, ""
    try:
        stream, _ = pieces(io.BytesIO(case.data))
        for piece in stream:
            frames += len([*coder.decode(piece)])
        frames += len([*coder.flush()])
        if case.data[4:8] in (b"ftyp", b"moov", b"moof"):
            reader = Mp4Reader(io.BytesIO(case.data))
            reader.facts()
            reader.rate()
            assert reader.summary().isprintable()
    except h264lite.BitstreamError as error:
        message = str(error)
        assert message.isprintable(), message
    seconds, most = time.process_time() - start, A_FILE + A_BYTE * len(case.data)
    assert seconds < most, f"{seconds:.2f} s for {len(case.data)} bytes"
    if case.stream is not None:
        _check(case, frames, message)
    return Result(frames, message or "; ".join(coder.dropped[:1]))


def _check(case: Case, frames: int, message: str) -> None:
    """A legal file is what it is made of."""
    reader = Mp4Reader(io.BytesIO(case.data))
    assert not message and frames == len(case.times), (message, frames)
    assert b"".join(reader.byte_stream()) == case.stream
    assert [(s.dts, s.pts, s.duration, s.is_keyframe) for s in reader.samples()] == case.times
    try:
        import av
    except ImportError:
        return
    with av.open(io.BytesIO(case.data), format="mp4") as file:
        packets = [p for p in file.demux(next(s for s in file.streams.video if s.codec_context.name == "h264")) if p.size]
        times = [(packet.dts, packet.pts) for packet in packets]
        samples = [bytes(packet) for packet in packets]
    begin = times[0][0] - case.times[0][0]  # FFmpeg moves all times by the edit list
    assert [(dts - begin, pts - begin) for dts, pts in times] == [case_times[:2] for case_times in case.times]
    if BEHIND_ANOTHER in case.data:
        return  # 8.8.8: such a run follows the one before; FFmpeg begins it where the fragment begins
    sizes = [size for unit in _units(samples, case.length_size) for size in unit]
    assert sizes == [len(u.data) for u in bits.split_byte_stream(case.stream) if u.nal_unit_type not in (7, 8)]


def _units(samples: list[bytes], length_size: int) -> list[list[int]]:
    """Sizes of the NAL units in samples."""
    sizes_of_units = []
    for data in samples:
        sizes, at = [], 0
        while at < len(data):
            sizes.append(int.from_bytes(data[at : at + length_size], "big"))
            at += length_size + sizes[-1]
        sizes_of_units.append(sizes)
    return sizes_of_units


def dump(case: Case) -> bytes:
    """The file."""
    return case.data


# Broken files -----------------------------------------------------------------------------------------------------------

Tree = list[list]  # [kind, contents]: a Tree, or bytes


def _tree(data: bytes) -> Tree:
    """The boxes of a file, those inside others too."""
    boxes, at = [], 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        begin = at + 8
        if size == 1:
            (size,), begin = struct.unpack_from(">Q", data, begin), begin + 8
        boxes.append([kind, _tree(data[begin : at + size]) if kind in INSIDE else data[begin : at + size]])
        at += size
    return boxes


def _bytes(tree: Tree, rng: random.Random, rate: float) -> bytes:
    """The file of boxes, of which some lie about their size."""
    out = b""
    for kind, inside in tree:
        data = _bytes(inside, rng, rate) if isinstance(inside, list) else inside
        size = 8 + len(data)
        if rng.random() >= rate:
            out += struct.pack(">I4s", size, kind) + data
        elif rng.random() < 0.6:
            lie = rng.choice((0, 1, 7, 8, 9, size - 1, size + 1, 2 * size, 0x7FFFFFFF, 0xFFFFFFFF, rng.randrange(1 << 32)))
            out += struct.pack(">I4s", lie, kind) + data
        else:
            lie = rng.choice((size + 8, 0, 15, 16, 17, 1 << 32, 1 << 63, (1 << 64) - 1, (1 << 64) - rng.randrange(1, 999)))
            out += struct.pack(">I4sQ", 1, kind, lie) + data
    return out


def _places(tree: Tree) -> list[tuple[Tree, int]]:
    """All boxes but the media data: the list that each lies in, and its index."""
    places = []
    for n, (kind, inside) in enumerate(tree):
        if kind != b"mdat":
            places.append((tree, n))
        if isinstance(inside, list):
            places += _places(inside)
    return places


def _broken(data: bytes, rng: random.Random) -> bytes:
    """A file with one to six changes: numbers, boxes moved, doubled, missing, renamed, nested, cut."""
    tree = _tree(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        places = _places(tree)
        if places:
            _change(tree, *rng.choice(places), rng)
    out = bytearray(_bytes(tree, rng, rng.choice((0, 0, 0.02, 0.1))))
    if out and rng.random() < 0.15:
        del out[rng.randrange(len(out)) :]
    for _ in range(rng.choice((0, 0, 0, 1, 3)) if out else 0):
        out[rng.randrange(len(out))] = rng.choice((0, 255, rng.randrange(256)))
    return bytes(out)


def _change(tree: Tree, inside: Tree, n: int, rng: random.Random) -> None:
    """One change of the box `n` of a list."""
    kind, data = inside[n]
    way = rng.random()
    if way < 0.55 and isinstance(data, bytes) and len(data) >= 4:
        at = rng.randrange(len(data) - 3)
        at -= at % 4 if rng.random() < 0.8 else 0
        inside[n] = [kind, data[:at] + struct.pack(">I", rng.choice((*HOSTILE, rng.randrange(1 << 32)))) + data[at + 4 :]]
    elif way < 0.63 and isinstance(data, bytes):
        inside[n] = [kind, data[: rng.randrange(len(data) + 1)] + rng.randbytes(rng.choice((0, 0, 1, 99)))]
    elif way < 0.7:
        del inside[n]
    elif way < 0.78:
        inside.insert(rng.randrange(len(inside) + 1), [kind, data])
    elif way < 0.84:
        inside.insert(rng.randrange(len(inside)), inside.pop(n))
    elif way < 0.9:
        inside[n] = [rng.choice(KINDS), data]
    elif way < 0.95:
        tree.insert(rng.randrange(len(tree) + 1), [kind, data])
    else:
        for _ in range(rng.choice((1, 10, 200))):
            data = [[kind, data]]
        inside[n] = [kind, data]
