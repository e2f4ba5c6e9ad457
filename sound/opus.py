"""Opus (RFC 6716, 7845): its identification header, durations of packets, and the packets of an Ogg file (RFC 3533)."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..standard.bits import BitstreamError
from .crc import CRC_32
from .reading import Reader
from .stream import OPUS_RATE, SoundFormat, SoundPacket, SoundStream

MAGIC = b"OpusHead"
PAGE = b"OggS"
_PAGE_HEAD = 27  # bytes
_LARGEST_PACKET = 1 << 20  # bytes
_LONGEST = 5760  # samples of a packet: 120 ms
# RFC 6716, 3.1: samples of a frame by config: SILK, hybrid, CELT
_FRAME = (480, 960, 1920, 2880) * 3 + (480, 960) * 2 + (120, 240, 480, 960) * 4


def packet_duration(data: bytes) -> int:
    """RFC 6716, 3.1, 3.2: samples of a packet at 48 kHz; BitstreamError."""
    if not data:
        raise BitstreamError("an Opus packet without bytes")
    code = data[0] & 3
    if code == 3 and len(data) < 2:
        raise BitstreamError("an Opus packet of one byte says that more follow")
    duration = _FRAME[data[0] >> 3] * ((1, 2, 2)[code] if code < 3 else data[1] & 63)
    if not 0 < duration <= _LONGEST:
        raise BitstreamError(f"an Opus packet of {duration} samples: 1 to {_LONGEST} are possible")
    return duration


def header_of(channels: int, pre_skip: int) -> bytes:
    """RFC 7845, 5.1: an identification header without its magic, for one or two channels; ValueError."""
    if channels not in (1, 2):
        raise ValueError(f"Opus of {channels} channels needs its identification header")
    return bytes((1, channels)) + pre_skip.to_bytes(2, "little") + OPUS_RATE.to_bytes(4, "little") + bytes(3)


def format_of(header: bytes) -> tuple[SoundFormat, int]:
    """RFC 7845, 5.1: (format, pre-skip) of an identification header without its magic; BitstreamError."""
    if len(header) < 11 or header[0] >> 4 or not header[1]:
        raise BitstreamError(f"an Opus identification header of {len(header)} bytes is wrong")
    channels, family = header[1], header[10]
    size = 11 + (2 + channels if family else 0)
    if len(header) < size or (not family and channels > 2):
        raise BitstreamError(f"an Opus identification header of {channels} channels, {len(header)} bytes, is wrong")
    return SoundFormat("opus", OPUS_RATE, channels, header[:size]), int.from_bytes(header[2:4], "little")


@dataclass
class _Page:
    """RFC 3533, 6: packets: complete or not; open: the last one goes on; goes_on: the first one does."""

    flags: int
    granule: int
    serial: int
    packets: list[bytes]
    open: bool

    @property
    def goes_on(self) -> bool:
        return bool(self.flags & 1)


def open_ogg(reader: Reader) -> SoundStream | None:
    """The first Opus stream of an Ogg file; None without one. BitstreamError, at once or with a packet."""
    pages = _pages(reader)
    for page in pages:
        if not page.flags & 2:  # the beginnings of all streams come first
            return None
        if page.packets and page.packets[0].startswith(MAGIC):
            sound_format, pre_skip = format_of(page.packets[0][len(MAGIC) :])
            return SoundStream(sound_format, _opus_packets(pages, page.serial), pre_skip)
    return None


def _pages(reader: Reader) -> Iterator[_Page]:
    """RFC 3533, 6: the pages of a file."""
    while reader.peek(1):
        at = reader.position
        head = reader.exactly(_PAGE_HEAD, "an Ogg page")
        if head[:4] != PAGE or head[4]:
            raise BitstreamError(f"no Ogg page at byte {at}")
        sizes = reader.exactly(head[26], f"the Ogg page at byte {at}")
        body = reader.exactly(sum(sizes), f"the Ogg page at byte {at}")
        if CRC_32(head[:22] + bytes(4) + head[26:] + sizes + body) != int.from_bytes(head[22:26], "little"):
            raise BitstreamError(f"the Ogg page at byte {at} is damaged: its check is wrong")
        packets, begin, end = [], 0, 0
        for size in sizes:
            end += size
            if size < 255:
                packets.append(body[begin:end])
                begin = end
        is_open = bool(sizes) and sizes[-1] == 255
        if is_open:
            packets.append(body[begin:])
        granule = int.from_bytes(head[6:14], "little", signed=True)
        yield _Page(head[5], granule, int.from_bytes(head[14:18], "little"), packets, is_open)


def _opus_packets(pages: Iterator[_Page], serial: int) -> Iterator[SoundPacket]:
    """RFC 7845, 4: packets after the headers; the last page's granule position says how much is heard of the last ones."""
    unfinished, headers, time = b"", 1, 0
    first = True  # no page with sound has ended
    for page in pages:
        if page.flags & 2 and page.packets and page.packets[0].startswith(MAGIC):
            raise BitstreamError("a second Opus stream follows the first: only one is read")
        if page.serial != serial:
            continue
        whole = []
        for number, data in enumerate(page.packets):
            data = unfinished + data if page.goes_on and not number else data
            unfinished = data if page.open and number == len(page.packets) - 1 else b""
            if len(unfinished) > _LARGEST_PACKET:
                raise BitstreamError(f"an Opus packet of more than {_LARGEST_PACKET >> 20} MiB")
            if not unfinished and headers:
                headers -= 1  # of comments
            elif not unfinished:
                whole.append(SoundPacket(data, packet_duration(data)))
        lasts = sum(packet.duration for packet in whole)
        if first and whole and not page.flags & 4:
            time, first = page.granule - lasts, False  # not 0 for a recording of a broadcast
        time += lasts
        if page.flags & 4:
            yield from _without_end(whole, max(0, time - page.granule))
            return
        yield from whole


def _without_end(packets: list[SoundPacket], padding: int) -> Iterator[SoundPacket]:
    """Packets whose last `padding` samples are not heard: those without any other are left out."""
    rest = sum(packet.duration for packet in packets) - padding
    for packet in packets:
        if rest <= 0:
            return
        yield SoundPacket(packet.data, min(packet.duration, rest))
        rest -= packet.duration
