"""AAC (ISO/IEC 14496-3): AudioSpecificConfig, and the frames of an ADTS stream."""

from collections.abc import Iterator

from ..standard.bits import BitstreamError
from .reading import Reader
from .stream import SoundFormat, SoundPacket, SoundStream

RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)  # 1.6.3.4
_CHANNELS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 8, 11: 7, 12: 8, 14: 8}  # 1.6.3.5
FRAME = 1024  # samples
_ADTS_HEAD = 7  # bytes
_TAG = 128  # bytes of an ID3v1 tag at the end of a file


def config_of(rate: int, channels: int, object_type: int = 2) -> bytes:
    """1.6.2.1: the AudioSpecificConfig of AAC LC, or another object type up to 30; ValueError."""
    code = next((code for code, number in _CHANNELS.items() if number == channels and code < 8), 0)
    if not code:
        raise ValueError(f"AAC of {channels} channels needs its AudioSpecificConfig")
    if rate in RATES:
        return (object_type << 11 | RATES.index(rate) << 7 | code << 3).to_bytes(2, "big")
    return (object_type << 35 | 15 << 31 | rate << 7 | code << 3).to_bytes(5, "big")


def read_config(config: bytes) -> tuple[int, int, int]:
    """1.6.2.1: (samples a second, channels or 0 if they are described elsewhere, samples of a frame); BitstreamError.

    With SBR the rate is that of the core, whose samples a frame counts.
    """
    bits, at = int.from_bytes(config, "big"), 0

    def take(width: int) -> int:
        nonlocal at
        at += width
        if at > 8 * len(config):
            raise BitstreamError(f"an AudioSpecificConfig of {len(config)} bytes is too short")
        return bits >> 8 * len(config) - at & (1 << width) - 1

    def rate() -> int:
        index = take(4)
        number = take(24) if index == 15 else RATES[index] if index < len(RATES) else 0
        if not number:
            raise BitstreamError(f"AAC of sampling frequency index {index}")
        return number

    object_type = take(5)
    object_type = 32 + take(6) if object_type == 31 else object_type
    samples, channels = rate(), _CHANNELS.get(take(4), 0)
    if object_type in (5, 29):  # SBR, PS: the object type of the core follows
        rate()
        object_type = take(5)
    short = object_type in (1, 2, 3, 4, 6, 7, 17, 19, 20, 22) and take(1)
    return samples, channels, 960 if short else FRAME


def object_type(config: bytes) -> int:
    """1.6.2.1: the audio object type, which is that of an extension where one is: 2 LC, 5 with SBR, 29 with PS."""
    first = config[0] >> 3
    return first if first < 31 else 32 + ((config[0] & 7) << 3 | config[1] >> 5)


def format_of(config: bytes, units: int = 0, channels: int = 0) -> SoundFormat:
    """What a configuration says; BitstreamError. units: a second, if not samples; channels: where it says none."""
    rate, said, _ = read_config(config)
    return SoundFormat("aac", units or rate, said or channels or 2, config)


def open_adts(reader: Reader) -> SoundStream:
    """1.A.3: an ADTS stream, from a header on; BitstreamError, at once or with a packet."""
    head = reader.peek(_ADTS_HEAD)
    if not is_adts(head):
        raise BitstreamError("no ADTS header")
    object_type, rate_index, channel_code = (head[2] >> 6) + 1, head[2] >> 2 & 15, (head[2] & 1) << 2 | head[3] >> 6
    if rate_index >= len(RATES):
        raise BitstreamError(f"ADTS of sampling frequency index {rate_index}")
    if not channel_code:
        raise BitstreamError("ADTS whose channels are described in the frames (channel configuration 0)")
    config = config_of(RATES[rate_index], _CHANNELS[channel_code], object_type)
    return SoundStream(format_of(config), _frames(reader, _fixed(head)))


def is_adts(head: bytes) -> bool:
    """1.A.3.2: whether a file begins with a header: syncword, layer 0."""
    return len(head) >= _ADTS_HEAD and head[0] == 0xFF and head[1] & 0xF6 == 0xF0


def _fixed(head: bytes) -> int:
    """1.A.2.2.1: what no header of a stream may change: profile, rate, channels."""
    return (head[2] << 8 | head[3]) & 0xFDC0


def _frames(reader: Reader, fixed: int) -> Iterator[SoundPacket]:
    number = 0
    while head := reader.peek(_ADTS_HEAD):
        at = reader.position
        if head[:3] == b"TAG" and len(reader.peek(_TAG + 1)) == _TAG:
            return
        if not is_adts(head):
            raise BitstreamError(f"no ADTS header at byte {at}, after frame {number}")
        size, blocks = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5, (head[6] & 3) + 1
        front = _ADTS_HEAD if head[1] & 1 else _ADTS_HEAD + 2  # and the check
        if size <= front:
            raise BitstreamError(f"ADTS frame {number} at byte {at} has {size} bytes")
        if blocks > 1:
            raise BitstreamError(f"ADTS frame {number} at byte {at} holds {blocks} blocks: only one is read")
        if _fixed(head) != fixed:
            raise BitstreamError(f"ADTS frame {number} at byte {at} changes profile, rate or channels")
        yield SoundPacket(reader.exactly(size, f"ADTS frame {number}")[front:], FRAME)
        number += 1
