"""The same samples as MP4 files in many words: tables and fragments, chunks in any order, numbers of 32 or 64 bits."""

import random
import struct
from typing import NamedTuple

from h264lite.mp4.avc import ParameterSets
from h264lite.mp4.boxes import box, full_box

UPRIGHT = (65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
TIMESCALE = 25000
NOT_SYNC = 1 << 16  # 8.8.3.1
ABSENT = 5  # duration, size and flags of trex, which no sample has: runs say their own


class Sample(NamedTuple):
    """One access unit: NAL units without start codes, its duration, pts less dts, and whether it is a keyframe."""

    units: list[bytes]
    duration: int
    offset: int
    is_keyframe: bool


class Movie(NamedTuple):
    """Samples and their parameter sets."""

    sets: ParameterSets
    samples: list[Sample]


class Case(NamedTuple):
    """A file; of a legal one its byte stream and (dts, pts, duration, is_keyframe) of the samples."""

    data: bytes
    stream: bytes | None
    times: list[tuple[int, int, int, bool]]
    length_size: int


def legal(movie: Movie, rng: random.Random) -> Case:
    """One of the files."""
    largest = max(len(unit) for sample in movie.samples for unit in sample.units)
    file = _File(movie, rng.choice([size for size in (1, 2, 4) if largest < 1 << 8 * size]), rng.choice((1, 2, 77)))
    times, dts = [], 0
    for sample in movie.samples:
        times.append((dts, dts + sample.offset, sample.duration, sample.is_keyframe))
        dts += sample.duration
    sets = b"".join(b"\0\0\0\1" + unit for unit in (*movie.sets.sps_units, *movie.sets.pps_units))
    stream = sets + b"".join(b"\0\0\0\1" + unit for sample in movie.samples for unit in sample.units)
    count = len(movie.samples)
    split = rng.choice((count, count, 0, rng.randrange(count + 1)))  # samples behind it are in fragments
    data = file.tables(split, rng)
    return Case(data + file.fragments(split, len(data), rng), stream, times, file.length_size)


def _sized(kind: bytes, data: bytes, rng: random.Random) -> bytes:
    """A box with its size in 32 or 64 bits."""
    return struct.pack(">I4sQ", 1, kind, 16 + len(data)) + data if rng.random() < 0.2 else box(kind, data)


def _chunks(first: int, end: int, rng: random.Random) -> list[list[int]]:
    """Samples of each chunk."""
    chunks: list[list[int]] = []
    while first < end:
        chunks.append(list(range(first, min(end, first + rng.choice((1, 1, 2, 3, 99))))))
        first = chunks[-1][-1] + 1
    return chunks


def _runs(values: list[int], rng: random.Random) -> bytes:
    """8.6.1: runs of equal values, not always the longest, and empty ones."""
    rows: list[list[int]] = []
    for value in values:
        if rows and rows[-1][1] == value and rng.random() < 0.8:
            rows[-1][0] += 1
        else:
            rows += [[1, value]]
    return struct.pack(">I", len(rows)) + b"".join(struct.pack(">Ii", *row) for row in rows)


def _numbers(values: list[int], form: str = ">I") -> bytes:
    return b"".join(struct.pack(form, value) for value in values)


class _File:
    """Samples with lengths of `length_size` bytes, on track `number`."""

    def __init__(self, movie: Movie, length_size: int, number: int) -> None:
        self.length_size, self._samples, self._number = length_size, movie.samples, number
        self._data = [b"".join(len(u).to_bytes(length_size, "big") + u for u in sample.units) for sample in movie.samples]
        entry = movie.sets.sample_entry()
        at = entry.index(b"avcC") + 8
        self._entry = entry[:at] + bytes((entry[at] & 0xFC | length_size - 1,)) + entry[at + 1 :]

    def tables(self, split: int, rng: random.Random) -> bytes:
        """ftyp, moov and mdat with the samples up to `split`: chunks in any order, with gaps."""
        front = _sized(b"ftyp", b"isom" + bytes(4) + b"isomiso6avc1", rng)
        for _ in range(rng.randint(0, 2)):
            front += _sized(rng.choice((b"free", b"skip", b"uuid")), rng.randbytes(rng.randint(16, 40)), rng)
        chunks, media = _chunks(0, split, rng), b""
        places, mixed = [0] * len(chunks), rng.random() < 0.4
        for n in rng.sample(range(len(chunks)), len(chunks)) if mixed else range(len(chunks)):
            media += rng.randbytes(rng.choice((0, 0, 1, 9)))
            places[n] = len(media)
            media += b"".join(self._data[k] for k in chunks[n])
        mdat, in_front, state = _sized(b"mdat", media, rng), rng.random() < 0.5, rng.random()
        begin = len(front) + len(mdat) - len(media)
        size = len(self._movie(chunks, places, split, random.Random(state))) if in_front else 0
        moov = self._movie(chunks, [begin + size + place for place in places], split, random.Random(state))
        return front + moov + mdat if in_front else front + mdat + moov

    def _movie(self, chunks: list[list[int]], positions: list[int], split: int, rng: random.Random) -> bytes:
        """8.2.1: moov, perhaps with a sound track of no samples before or behind the video."""
        table = [full_box(b"stsd", 0, 0, struct.pack(">I", 1), self._entry), *self._tables(chunks, positions, split, rng)]
        video = _track(self._number, b"vide", rng.sample(table, len(table)), rng.randint(0, 1))
        none = [full_box(kind, 0, 0, bytes(4)) for kind in (b"stts", b"stsc", b"stco")] + [full_box(b"stsz", 0, 0, bytes(8))]
        sound = box(b"mp4a", bytes(6) + b"\0\1" + bytes(8) + b"\0\2\0\x10\0\0\0\0\xbb\x80\0\0")
        parts = [video]
        if rng.random() < 0.3:
            parts.append(_track(101, b"soun", [full_box(b"stsd", 0, 0, struct.pack(">I", 1), sound), *none], 0))
        if split < len(self._data):
            parts.append(box(b"mvex", full_box(b"trex", 0, 0, struct.pack(">5I", self._number, 1, *[ABSENT] * 3))))
        head = struct.pack(">IIIIIH10x9i24xI", 0, 0, TIMESCALE, 0, 1 << 16, 256, *UPRIGHT, 102)
        return box(b"moov", full_box(b"mvhd", 0, 0, head), *rng.sample(parts, len(parts)))

    def _tables(self, chunks: list[list[int]], positions: list[int], split: int, rng: random.Random) -> list[bytes]:
        """8.5.1: the boxes of stbl but stsd."""
        samples, sizes = self._samples[:split], [len(data) for data in self._data[:split]]
        runs: list[tuple[int, int, int]] = []
        for n, chunk in enumerate(chunks):
            if not runs or runs[-1][1] != len(chunk) or rng.random() < 0.2:
                runs.append((n + 1, len(chunk), 1))
        kind, form = (b"co64", ">Q") if rng.random() < 0.4 else (b"stco", ">I")
        one_size = len(set(sizes)) == 1 and rng.random() < 0.5
        rows = struct.pack(">II", sizes[0], len(sizes)) if one_size else struct.pack(">II", 0, len(sizes)) + _numbers(sizes)
        tables = [
            full_box(b"stts", 0, 0, _runs([sample.duration for sample in samples], rng)),
            full_box(b"stsc", 0, 0, struct.pack(">I", len(runs)), *(struct.pack(">III", *run) for run in runs)),
            full_box(b"stsz", 0, 0, rows),
            full_box(kind, 0, 0, struct.pack(">I", len(chunks)), _numbers(positions, form)),
        ]
        offsets = [sample.offset for sample in samples]
        if any(offsets) or rng.random() < 0.2:
            tables.append(full_box(b"ctts", 1 if min(offsets, default=0) < 0 else rng.randint(0, 1), 0, _runs(offsets, rng)))
        keys = [n + 1 for n, sample in enumerate(samples) if sample.is_keyframe]
        if len(keys) < len(samples):
            tables.append(full_box(b"stss", 0, 0, struct.pack(">I", len(keys)), _numbers(keys)))
        return tables + [box(b"free", rng.randbytes(5))] * rng.randint(0, 2)

    def fragments(self, split: int, begin: int, rng: random.Random) -> bytes:
        """moof and mdat for the samples from `split` on, in a file that is `begin` bytes long so far."""
        file, time = b"", sum(sample.duration for sample in self._samples[:split])
        for number, part in enumerate(_chunks(split, len(self._data), rng), 1):
            absolute, state = rng.random() < 0.4, rng.random()
            header, size = b"", 0
            for _ in range(2):  # its own length is in it
                header = self._fragment(part, time, size, begin + len(file) if absolute else -1, random.Random(state))
                size = len(header) + 8
            file += header.replace(b"mfhd\0\0\0\0\0\0\0\0", b"mfhd\0\0\0\0" + struct.pack(">I", number))
            file += box(b"mdat", *(self._data[n] for n in part))
            time += sum(self._samples[n].duration for n in part)
        return file

    def _fragment(self, part: list[int], time: int, size: int, begin: int, rng: random.Random) -> bytes:
        """8.8.4: moof of one traf with one or two runs. size: bytes of moof and the header of mdat; begin: of moof, or -1."""
        track = struct.pack(">IQ", self._number, begin) if begin >= 0 else struct.pack(">I", self._number)
        boxes = [full_box(b"tfhd", 0, 1 if begin >= 0 else 0x20000, track)]
        version = rng.randint(0, 1)
        boxes.append(full_box(b"tfdt", version, 0, struct.pack(">Q" if version else ">I", time)))
        cut = rng.randint(1, len(part))
        for n, run in enumerate((part[:cut], part[cut:])):
            if run:
                place = b"" if n and rng.random() < 0.5 else struct.pack(">i", size)  # else behind the run before
                rows = (self._row(k) for k in run)
                boxes.append(full_box(b"trun", 1, 0xF00 | bool(place), struct.pack(">I", len(run)), place, *rows))
                size += sum(len(self._data[k]) for k in run)
        return box(b"moof", full_box(b"mfhd", 0, 0, bytes(4)), box(b"traf", *boxes))

    def _row(self, n: int) -> bytes:
        sample = self._samples[n]
        return struct.pack(">IIIi", sample.duration, len(self._data[n]), 0 if sample.is_keyframe else NOT_SYNC, sample.offset)


def _track(number: int, handler: bytes, table: list[bytes], version: int) -> bytes:
    """8.3.1: trak; version: 1 has times of 64 bits."""
    media = struct.pack(">QQIQ" if version else ">IIII", 0, 0, TIMESCALE, 0) + struct.pack(">HH", 0x55C4, 0)
    head = struct.pack(">QQIIQ" if version else ">IIIII", 0, 0, number, 0, 0)
    head += struct.pack(">8xhhHH9iII", 0, 0, 0, 0, *UPRIGHT, 48 << 16, 32 << 16)
    special = full_box(b"vmhd", 0, 1, bytes(8)) if handler == b"vide" else full_box(b"smhd", 0, 0, bytes(4))
    reference = box(b"dinf", full_box(b"dref", 0, 0, struct.pack(">I", 1), full_box(b"url ", 0, 1)))
    inside = [
        full_box(b"hdlr", 0, 0, struct.pack(">I4s12x", 0, handler), b"x\0"),
        box(b"minf", special, reference, box(b"stbl", *table)),
    ]
    return box(b"trak", full_box(b"tkhd", version, 7, head), box(b"mdia", full_box(b"mdhd", version, 0, media), *inside))
