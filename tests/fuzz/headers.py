"""Y4M headers, headers of frames, names with sizes: read as they are meant, or refused by one InputError or OptionError."""

import random
from pathlib import Path
from typing import NamedTuple

from h264lite.cli.encode import make_config
from h264lite.encoder.errors import Error
from h264lite.encoder.files.opening import open_source
from h264lite.encoder.files.video import frame_bytes

GOOD = (b"F25:1", b"F30000:1001", b"F0:0", b"Ip", b"I?", b"A1:1", b"A0:0", b"A12:11", b"C420", b"C420jpeg", b"C420mpeg2",
        b"C420paldv", b"XYSCSS=420JPEG", b"XCOLORRANGE=FULL", b"XCOLORRANGE=LIMITED", b"X", b"XA=B")  # fmt: skip
BAD = (b"W0", b"W-5", b"W+5", b"W16.0", b"W1e3", b"W999999999", b"H999999999", b"W9999999999", "W١٦".encode(), b"W", b"H",
       b"F1:9999999999", b"F9999999999:1", b"F:", b"F25", b"F99999999999:1", b"F1e9:1", b"F-1:1", b"It", b"Im", b"I", b"Ib",
       b"A99999:1", b"A9999999999:9999999999", b"A1", b"C420p10", b"C422", b"Cmono", b"C444alpha", b"Q1", b"\xff\xfe",
       b"X" + b"a" * 4100, b"W" + b"9" * 4000, b"F" + b"9" * 3000 + b":1", b"\r", b"\x1b[2J", b"W16W16", b"H16\x0c", b"\0")
FRAMES = (b"FRAME Ip\n", b"FRAME X\n", b"FRAME Ip XA\n", b"FRAME It\n", b"FRAMEX\n", b"FRAME", b"FRAM\n", b"frame\n", b"\n",
          b"FRAME " + b"x" * 5000 + b"\n", b"", b"FRAME I\n", b"FRAME\r\n", b"FRAME\0\n", b"\0" * 6)  # fmt: skip
NAMES = ("x.y4m", "x_16x16.yuv", "noending", "x_0x0.yuv", "x_99999x99999.yuv", "x_16x16_32x32.yuv", "16x16.raw", "x_1x1.i420",
         "x_16x16.Y4M", "x_123456x16.yuv", "x_²x².yuv", "a\nb_16x16.yuv", "x_١٦x١٦.yuv", "x_16X16.yuv", "-_16x16.yuv",
         "x" * 200 + "_2x2.yuv")  # fmt: skip


class Case(NamedTuple):
    """A file, how it is opened, and (width, height, frames, bytes left over) if they are certain."""

    name: str
    data: bytes
    size: tuple[int, int] | None
    demuxer: str
    seek: int
    count: int
    expected: tuple[int, int, int, int] | None


def build(rng: random.Random) -> Case:
    """A sound file, or one that is broken in one or more places."""
    return _sound(rng) if rng.random() < 0.2 else _broken(rng)


def _sound(rng: random.Random) -> Case:
    width, height, frames = rng.randint(1, 40), rng.randint(1, 40), rng.randint(0, 4)
    size, left = frame_bytes(width, height), rng.choice((0, 0, 1, 5))
    if rng.random() < 0.5:
        left = min(left, size - 1) if frames else 0
        data = rng.randbytes(frames * size + left) or b"x" * (left := min(1, size - 1))
        given = rng.random() < 0.5
        name = "x.yuv" if given else f"x_{width}x{height}.yuv"
        return Case(name, data, (width, height) if given else None, rng.choice(("auto", "raw")), 0, 0,
                    (width, height, len(data) // size, left))  # fmt: skip
    letters = {word[:1]: word for word in rng.sample(GOOD, rng.randint(0, 5))}
    words = [b"W%d" % width, b"H%d" % height, *letters.values()]
    rng.shuffle(words)
    data = b"YUV4MPEG2 " + b" ".join(words) + b"\n"
    for _ in range(frames):
        data += rng.choice((b"FRAME\n", b"FRAME Ip\n", b"FRAME XA=B\n")) + rng.randbytes(size)
    return Case(rng.choice(("x.y4m", "noending")), data + b"FRAME\n"[:left], None, rng.choice(("auto", "y4m")), 0, 0,
                (width, height, frames, left))  # fmt: skip


def _broken(rng: random.Random) -> Case:
    words = [b"W16", b"H16"] * (rng.random() < 0.6) + [rng.choice(GOOD + BAD) for _ in range(rng.randint(0, 6))]
    rng.shuffle(words)
    data = rng.choice((b"YUV4MPEG2",) * 8 + (b"YUV4MPEG", b"YUV4MPEG2X", b"yuv4mpeg2", b""))
    data += rng.choice((b" ",) * 8 + (b"", b"\t", b"  ")) + rng.choice((b" ",) * 6 + (b"  ", b"\t", b"\n")).join(words)
    data += rng.choice((b"\n",) * 8 + (b"", b"\r\n", b"\0"))
    for _ in range(rng.randint(0, 4)):
        data += rng.choice((b"FRAME\n",) * 9 + FRAMES) + bytes(rng.choice((384, 384, 384, 383, 385, 0, 10)))
    if data and rng.random() < 0.3:
        flipped = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        data = bytes(flipped)
    size = rng.choice((None, None, (16, 16), (1, 1), (2**31 - 1, 2**31 - 1), (17, 5)))
    return Case(rng.choice(NAMES), data, size, rng.choice(("auto", "auto", "y4m", "raw")), rng.choice((0, 0, 1, 5, 10**9)),
                rng.choice((0, 0, 2, 10**9)), None)  # fmt: skip


def run(case: Case, folder: Path) -> str:
    """Open it as the command does, and read all frames."""
    path = folder / case.name
    path.write_bytes(case.data)
    try:
        answer = read(str(path), case)
    except Error as error:
        assert case.expected is None or not case.data, f"refused: {error}"
        assert 0 < len(str(error)) < 5000 + len(case.name)
        return type(error).__name__
    finally:
        path.unlink()
    assert case.expected in (None, answer), answer
    return f"{min(answer[2], 2)} frames"


def read(name: str, case: Case) -> tuple[int, int, int, int]:
    """(width, height, frames, bytes left over)."""
    source, frames = open_source(name, case.size, case.demuxer), 0
    try:
        video = source.format
        make_config(name, video, case.size, {"device": "cpu"})
        for planes in source.frames(case.seek, case.count):
            frames += 1
            assert [plane.shape for plane in planes] == [(video.height, video.width), *2 * [((video.height + 1) // 2,
                                                                                            (video.width + 1) // 2)]]
        return video.width, video.height, frames, source.left_over
    finally:
        source.close()
