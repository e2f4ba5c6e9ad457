"""MP4 files that ask for as much time and memory as a file of their size can."""

import struct
from collections.abc import Callable

from h264lite.mp4.boxes import box, full_box

SPS = bytes.fromhex("6742c00ad90404fe4f0110000003001000000303c0f14249")
PPS = b"\x68\xce\x38\x80"
FRONT = box(b"ftyp", b"isom", bytes(4), b"isom")
FIRST = len(FRONT) + 8  # byte of the first sample: mdat follows ftyp


def entry(sets: list[bytes], length_size: int = 1) -> bytes:
    """avc1 with an SPS and some PPS."""
    record = struct.pack(">4B", 1, 0x42, 0xC0, 10) + bytes((0xFC | (length_size - 1), 0xE1))
    record += struct.pack(">H", len(SPS)) + SPS + bytes((len(sets),))
    record += b"".join(struct.pack(">H", len(data)) + data for data in sets)
    head = bytes(6) + struct.pack(">H", 1) + bytes(16) + struct.pack(">HH", 64, 48) + bytes(50)
    return box(b"avc1", head, box(b"avcC", record))


def track(entries: list[bytes], *tables: bytes) -> bytes:
    """trak with a sample table of these boxes."""
    description = full_box(b"stsd", 0, 0, struct.pack(">I", len(entries)), *entries)
    media = box(
        b"mdia", full_box(b"mdhd", 0, 0, struct.pack(">IIIIHH", 0, 0, 1000, 1000, 0, 0)),
        full_box(b"hdlr", 0, 0, struct.pack(">I4s12x", 0, b"vide"), b"\0"), box(b"minf", box(b"stbl", description, *tables)),
    )  # fmt: skip
    matrix = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30)
    head = struct.pack(">IIIII", 0, 0, 1, 0, 0) + bytes(16) + matrix + struct.pack(">II", 64 << 16, 48 << 16)
    return box(b"trak", full_box(b"tkhd", 0, 7, head), media)


def movie(*boxes: bytes) -> bytes:
    """moov."""
    return box(b"moov", full_box(b"mvhd", 0, 0, bytes(96)), *boxes)


def table(kind: bytes, form: str, *rows: tuple[int, ...]) -> bytes:
    """A box of rows with their number."""
    data = b"".join(struct.pack(">" + form, *row) for row in rows)
    return full_box(kind, 0, 0, struct.pack(">I", len(rows)), data)


def of_one_chunk(entries: list[bytes], data: bytes, size: int, count: int, *more: bytes) -> bytes:
    """`count` samples of the same size, in chunks that all begin at the first byte of `data`."""
    chunk = max(1, len(data) // size)
    stsz = full_box(b"stsz", 0, 0, struct.pack(">II", size, count))
    chunks = table(b"stco", "I", *[(FIRST,)] * -(-count // chunk))
    stts, stsc = table(b"stts", "II", (count, 40)), table(b"stsc", "III", (1, chunk, 1))
    return FRONT + box(b"mdat", data) + movie(track(entries, stts, stsc, stsz, chunks, *more))


def alternating(size: int, same: bool) -> bytes:
    """Every sample changes the sample entry, whose parameter sets are large."""
    count, large = max(2, size // 80), size // 4
    sets = [b"\x68" + bytes((n,)) + b"\xff" * min(60000, large) for n in (0xFE, 0xFE if same else 0xFF)]
    stsc = table(b"stsc", "III", *[(n + 1, 1, 1 + n % 2) for n in range(count)])
    tables = table(b"stts", "II", (count, 40)), stsc, full_box(b"stsz", 0, 0, struct.pack(">II", 1, count))
    moov = movie(track([entry([data]) for data in sets], *tables, table(b"stco", "I", *[(FIRST,)] * count)))
    return FRONT + box(b"mdat", bytes(16)) + moov


def empty_samples(size: int) -> bytes:
    """A row of stsz a sample, and nothing else."""
    count = size // 4
    stsz = full_box(b"stsz", 0, 0, struct.pack(">II", 0, count), bytes(4 * count))
    tables = table(b"stts", "II", (count, 40)), table(b"stsc", "III", (1, count, 1)), stsz, table(b"stco", "I", (FIRST,))
    return FRONT + box(b"mdat", bytes(16)) + movie(track([entry([PPS])], *tables))


def rows_of_nothing(size: int) -> bytes:
    """Runs of no samples, before the one that there is."""
    rows = size // 40
    none = [table(kind, "II", *[(0, 1)] * rows, (1, 40)) for kind in (b"stts", b"ctts")]
    return of_one_chunk([entry([PPS])], b"\x01\x09", 2, 1, *none)


def fragments(size: int, each: bytes, flags: int, rows: bytes, count: int) -> bytes:
    """moof after moof of one trun each."""
    none = table(b"stts", "II"), table(b"stsc", "III"), full_box(b"stsz", 0, 0, bytes(8)), table(b"stco", "I")
    moov = movie(track([entry([PPS])], *none), box(b"mvex", full_box(b"trex", 0, 0, struct.pack(">5I", 1, 1, 40, 1, 0))))
    run = full_box(b"trun", 0, flags, struct.pack(">I", count), rows)
    moof = box(b"moof", box(b"traf", full_box(b"tfhd", 0, 1, struct.pack(">IQ", 1, FIRST)), run, each))
    return FRONT + box(b"mdat", bytes(1000)) + moov + moof * max(1, (size - len(moov)) // len(moof))


EMPTY = box(b"free")
KINDS: dict[str, Callable[[int], bytes]] = {
    "parameter sets that change with every sample": lambda n: alternating(n, False),
    "equal parameter sets of two entries": lambda n: alternating(n, True),
    "samples of a byte, shared": lambda n: of_one_chunk([entry([PPS])], bytes(n), 1, 15 * n),
    "samples of two bytes, a NAL unit each": lambda n: of_one_chunk([entry([PPS])], b"\x01\x09" * (n // 2), 2, 7 * n),
    "tiny NAL units, shared": lambda n: of_one_chunk([entry([PPS])], b"\x01\x80" * (n // 2), n, 15),
    "empty NAL units, shared": lambda n: of_one_chunk([entry([PPS])], bytes(n), n, 15),
    "empty samples": empty_samples,
    "runs of no samples": rows_of_nothing,
    "large samples, shared": lambda n: of_one_chunk([entry([PPS], 4)], struct.pack(">I", n - 4) + b"\x6c" * (n - 4), n, 15),
    "samples of a byte in fragments": lambda n: fragments(n, b"", 0, b"", 1000),
    "empty samples in fragments": lambda n: fragments(n, b"", 0x200, bytes(4000), 1000),
    "tiny fragments": lambda n: fragments(n, b"", 0, b"", 1),
    "empty boxes in fragments": lambda n: fragments(n, EMPTY * 1000, 0, b"", 1),
    "empty boxes in moov": lambda n: FRONT + movie(EMPTY * (n // 8), track([entry([PPS])])),
    "empty boxes in stbl": lambda n: of_one_chunk([entry([PPS])], b"\x01\x09", 2, 1, EMPTY * (n // 8)),
    "empty boxes in the file": lambda n: FRONT + EMPTY * (n // 8) + movie(track([entry([PPS])])),
    "empty boxes behind moov": lambda n: of_one_chunk([entry([PPS])], b"\x01\x09", 2, 1) + EMPTY * (n // 8),
    "tracks": lambda n: FRONT + movie(*[box(b"trak", box(b"mdia", box(b"hdlr", bytes(20))))] * (n // 44)),
}
