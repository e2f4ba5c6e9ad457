"""Files that no command wants, of all kinds that commands read: video, streams, MP4, pictures, JSON, CSV, TOML, lists."""

import json
import random
import struct
from collections.abc import Iterator

from h264lite.mp4.boxes import box
from h264lite.standard import bits

from ..fuzz import seeds
from ..mp4 import hostile_files


def streams() -> Iterator[tuple[str, bytes]]:
    """H.264 streams: whole, cut, of odd parameter sets."""
    stream = seeds.own(48, 32, 4, qp=34, keyint=2)
    units = [bits.nal_unit(u.nal_unit_type, u.nal_ref_idc, u.rbsp()) for u in bits.split_byte_stream(stream)]
    yield "whole.264", stream
    yield "cut.264", stream[: len(stream) // 2]
    yield "sets.264", b"".join(units[:2])
    yield "no_sets.264", b"".join(units[2:])
    yield "backwards.264", b"".join(reversed(units))
    yield "twice.264", b"".join(unit * 2 for unit in units)
    yield "ends.264", b"\0\0\1\x0a\0\0\1\x0b" + stream + b"\0\0\1\x0b"
    yield "flipped.264", bytes(byte ^ (n % 97 == 50) * 4 for n, byte in enumerate(stream))
    yield "tiny_units.264", b"\0\0\1\x80" * 300
    yield "two_sizes.264", stream + seeds.own(32, 48, 2, qp=34)
    yield "start_code.264", b"\0\0\1"
    for profile in (0x42, 0x58, 0x64, 0x6E, 0x7A, 0xF4):
        yield (
            f"profile_{profile}.264",
            bits.nal_unit(7, 3, bytes((profile, 0, 10)) + random.Random(profile).randbytes(20)) + stream,
        )


def movies() -> Iterator[tuple[str, bytes]]:
    """MP4 files: without samples, of other codecs, cut, of lies."""
    front, entry = hostile_files.FRONT, hostile_files.entry([hostile_files.PPS])
    table = hostile_files.table
    none = table(b"stts", "II"), table(b"stsc", "III"), hostile_files.full_box(b"stsz", 0, 0, bytes(8)), table(b"stco", "I")
    init = front + hostile_files.movie(hostile_files.track([entry], *none))
    yield "ftyp.mp4", front
    yield "init.mp4", init
    for kind in (b"encv", b"mp4v", b"hvc1", b"av01", b"\xff\0\n\x1b"):
        yield f"{kind[:2].hex()}.mp4", init.replace(b"avc1", kind)
    yield "no_track.mp4", front + hostile_files.movie()
    yield "sound.mp4", init.replace(b"vide", b"soun")
    yield "no_sets.mp4", init.replace(b"avcC", b"free")
    yield "cut.mp4", init[:-70]
    yield "whole_moov_cut.mp4", init + struct.pack(">I4s", 1 << 30, b"mdat")
    yield "moof.mp4", init + box(b"moof", box(b"traf", hostile_files.full_box(b"tfhd", 0, 0, bytes(4))))
    yield "size_0.mp4", struct.pack(">I4s", 0, b"moov") + init
    yield "size_1.mp4", struct.pack(">I4sQ", 1, b"ftyp", 3) + init
    yield "timescale.mp4", init.replace(struct.pack(">II", 1000, 1000), bytes(8))
    for kind in ("empty samples", "tiny NAL units, shared", "samples of a byte in fragments", "empty boxes in moov"):
        yield f"{kind.replace(' ', '_')}.mp4", hostile_files.KINDS[kind](2000)


def texts() -> Iterator[tuple[str, bytes]]:
    """JSON, CSV, TOML and lists of numbers, with numbers and depths that readers do not expect."""
    large = "1" + "0" * 400
    encode = {"preset": "medium", "kbps": 100, "all": {"ssim_mean_y": 0.9, "psnr_mean": {"y": 30}, "psnr_global": {"y": 30}}}
    for name, value in (
        ("large", "1e999"),
        ("whole", large),
        ("nan", "NaN"),
        ("null", "null"),
        ("text", '"x"'),
        ("list", "[]"),
        ("long", "1" * 5000),
        ("negative", "-1"),
    ):
        yield f"{name}.json", json.dumps(encode).replace("100", value)
        yield f"{name}_quality.json", json.dumps(encode).replace("30", value).replace("0.9", value)
        yield f"{name}_rows.json", f'{{"a": [[{value}], [{value}]]}}'
        yield f"{name}.toml", f"version = {value}\nmodels = [{value}]\n[pins]\ndevice = {value}\nthreads = {value}\n"
        yield (
            f"{name}.csv",
            (
                f"label,kbps,psnr,frame,coded,type,bytes,qp,qp_least,qp_most\na,{value},{value},{value},{value},P,"
                f"{value},{value},{value},{value}\n" * 2
            ),
        )
        yield f"{name}.txt", f"{value} I {value}\n{value},{value}\n"
    yield "header.csv", "label,kbps,psnr,frame,coded,type,bytes,qp,qp_least,qp_most\n"
    yield "formula.json", json.dumps({**encode, "preset": "$\\frac$"})
    yield "formula_rows.json", '{"$\\\\frac$": [[1], [1]]}'
    yield "deep.json", "[" * 100_000
    yield "deep_objects.json", '{"all":' * 100_000
    yield "deep.toml", "a = " + "[" * 100_000
    yield "deep_tables.toml", "[" + "a." * 50_000 + "a]\n"
    yield "long_field.csv", "label,kbps,psnr\n" + "x" * 200_000 + ",1,2\n"
    yield "quote.csv", 'label,kbps,psnr\n"' + "x,1,2\n" * 10
    yield "columns.csv", "label,label,kbps,psnr\n" + "," * 100
    yield "surrogate.json", '{"preset": "\\ud800", "kbps": 1, "all": {"psnr_mean": {"y": 3}}}'
    yield "mark.json", "\ufeff{}"
    yield "lists.cfg", "INTRA4X4_LUMA =\n" + "99999999999," * 16 + "\nINTER8X8_LUMA = " + "0," * 64


def others() -> Iterator[tuple[str, bytes]]:
    """Neither: nothing, noise, beginnings of other formats."""
    noise = random.Random(7).randbytes(5000)
    yield "empty.yuv", b""
    yield "empty.264", b""
    yield "empty.mp4", b""
    yield "byte.264", b"\0"
    yield "noise.264", noise
    yield "noise.bin", noise
    yield "noise_16x16.yuv", noise
    yield "zeros.264", bytes(5000)
    yield "ones.mp4", b"\xff" * 5000
    yield "nul.json", b"\0" * 50
    yield "utf16.csv", "label,kbps,psnr\n".encode("utf-16")
    yield "head.png", b"\x89PNG\r\n\x1a\n" + noise
    yield "head.jpg", b"\xff\xd8\xff\xe1\0\x10Exif\0\0" + noise
    yield "head.mkv", b"\x1aE\xdf\xa3" + noise
    yield "head.wav", b"RIFF\xff\xff\xff\xffWAVEfmt " + noise
    yield "head.gif", b"GIF89a\xff\xff\xff\xff" + noise
    yield "program.264", b"\x7fELF" + noise
    yield "head.y4m", b"YUV4MPEG2 W16 H16 F25:1\n"
    yield "frames.y4m", b"YUV4MPEG2 W16 H16 F0:0 Ip\nFRAME\n" + noise[:300]
    yield "large.y4m", b"YUV4MPEG2 W99999999 H99999999 F1:1\nFRAME\n"
    yield "long.y4m", b"YUV4MPEG2 " + b"X" * 5000


def all_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents."""
    for part in (streams, movies, others):
        yield from part()
    for name, text in texts():
        yield name, text.encode("utf-8", "surrogatepass")
