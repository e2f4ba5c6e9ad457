"""Sample entries of sound, written and read: AAC (ISO/IEC 14496-14), Opus and FLAC in ISO base media files."""

import struct

from ..sound import aac, flac, opus
from ..sound.stream import SoundFormat
from ..standard.bits import BitstreamError
from .boxes import box, full_box
from .parsing import Contents

SOUND = ("mp4a", "Opus", "fLaC")


class OtherSound(BitstreamError):
    """Sound that is not damaged, but cannot be copied."""


_LARGEST_RATE = 65535  # that an entry says
# ISO/IEC 14496-1, 7.2.2: tags of descriptors; 7.2.6.6: AAC of MPEG-4 and MPEG-2
_ES, _CONFIG, _SPECIFIC, _SYNC = 3, 4, 5, 6
_AAC_TYPES = (0x40, 0x66, 0x67, 0x68)


def codec_name(sound: SoundFormat) -> str:
    """RFC 6381, 3.3: as in the codecs of MIME types: the sample entry, and the object type of AAC."""
    names = {"opus": "Opus", "flac": "fLaC"}
    return names[sound.codec] if sound.codec in names else f"mp4a.40.{aac.object_type(sound.setup)}"


def sample_entry(sound: SoundFormat, skip: int) -> bytes:
    """12.2.3 of 14496-12: AudioSampleEntry with what the codec needs. skip: units that a decoder drops at the beginning."""
    rate = aac.read_config(sound.setup)[0] if sound.codec == "aac" else sound.rate
    halvings = 0  # FLAC in ISO base media files: a rate that does not fit is halved, if that is exact
    while rate >> halvings > _LARGEST_RATE and not rate >> halvings & 1:
        halvings += 1
    said = min(rate >> halvings, _LARGEST_RATE)
    head = struct.pack(">6xH8xHHI", 1, sound.channels, sound.bits if sound.codec == "flac" else 16, 0)
    head += struct.pack(">I", said << 16)
    if sound.codec == "aac":
        return box(b"mp4a", head, _elementary_stream(sound.setup))
    if sound.codec == "opus":
        return box(b"Opus", head, _opus_box(sound.setup, skip))
    return box(b"fLaC", head, full_box(b"dfLa", 0, 0, struct.pack(">I", 1 << 31 | len(sound.setup)), sound.setup))


def _elementary_stream(setup: bytes) -> bytes:
    """3.1.2 of 14496-14: esds: MPEG-4 audio with its AudioSpecificConfig; rates and buffer are not said."""
    config = struct.pack(">BB11x", _AAC_TYPES[0], 5 << 2 | 1) + _descriptor(_SPECIFIC, setup)
    descriptors = struct.pack(">HB", 0, 0) + _descriptor(_CONFIG, config) + _descriptor(_SYNC, b"\2")
    return full_box(b"esds", 0, 0, _descriptor(_ES, descriptors))


def _descriptor(tag: int, contents: bytes) -> bytes:
    """14496-1, 8.3.3: tag, size in four bytes of 7 bits, contents."""
    size = len(contents)
    return bytes((tag, 0x80 | size >> 21 & 127, 0x80 | size >> 14 & 127, 0x80 | size >> 7 & 127, size & 127)) + contents


def _opus_box(setup: bytes, skip: int) -> bytes:
    """Opus in ISO base media files, 4.3.2: dOps: the identification header, in other byte order. `skip` is the pre-skip,
    if the edit list says one.
    """
    _, channels, pre_skip, rate, gain, family = struct.unpack("<BBHIhB", setup[:11])
    return box(b"dOps", struct.pack(">BBHIhB", 0, channels, min(skip, 65535) or pre_skip, rate, gain, family), setup[11:])


def read_entry(entry: Contents, timescale: int) -> SoundFormat:
    """The format of a sample entry; BitstreamError. timescale: of the track."""
    if entry.name not in SOUND:
        raise OtherSound(f"the sound is {entry.name}")
    (version,), (channels,) = entry.at(8, "H"), entry.at(16, "H")
    entry.take(28 + (16 if version == 1 else 36 if version == 2 else 0))  # QuickTime has longer ones
    if entry.name == "mp4a":
        return _read_elementary_stream(_inside(entry, "esds"), timescale, channels)
    if entry.name == "fLaC":
        contents = entry.only("dfLa")
        contents.take(4)
        block_type, size = (word := contents.read("I")[0]) >> 24 & 127, word & 0xFFFFFF
        if block_type:
            raise BitstreamError("box dfLa does not begin with STREAMINFO")
        return _in_units(flac.format_of(contents.take(size)), timescale)
    contents = entry.only("dOps")
    _, channels, pre_skip, rate, gain, family = contents.read("BBHIhB")
    header = struct.pack("<BBHIhB", 1, channels, pre_skip, rate, gain, family) + contents.take(contents.left)
    return _in_units(opus.format_of(header)[0], timescale)


def _inside(entry: Contents, name: str) -> Contents:
    """A box of the entry, or of QuickTime's box `wave` in it."""
    wave = entry.first("wave")
    return (wave if wave is not None and entry.first(name) is None else entry).only(name)


def _in_units(sound: SoundFormat, timescale: int) -> SoundFormat:
    """OtherSound for times that are not in samples: durations could not be kept to the sample."""
    if timescale != sound.rate:
        raise OtherSound(f"the sound has {sound.rate} samples a second, and its times {timescale} units")
    return sound


def _read_elementary_stream(contents: Contents, timescale: int, channels: int) -> SoundFormat:
    contents.take(4)
    descriptors = _descriptors(contents.take(contents.left))
    stream = descriptors.get(_ES, b"")
    flags = stream[2] if len(stream) > 2 else 0
    begin = 3 + (2 if flags & 0x80 else 0)
    if flags & 0x40 and len(stream) > begin:
        begin += 1 + stream[begin]
    config = _descriptors(stream[begin + (2 if flags & 0x20 else 0) :]).get(_CONFIG, b"")
    if len(config) < 13:
        raise BitstreamError("box esds has no description of the decoder")
    if config[0] not in _AAC_TYPES:
        raise OtherSound(f"the sound is mp4a of type {config[0]:#x}, not AAC")
    return aac.format_of(_descriptors(config[13:]).get(_SPECIFIC, b""), timescale, channels)


def _descriptors(data: bytes) -> dict[int, bytes]:
    """14496-1, 8.3.3: contents by tag, the first of each; what is cut off ends them."""
    by_tag: dict[int, bytes] = {}
    at = 0
    while at + 2 <= len(data):
        tag, size, at = data[at], 0, at + 1
        for _ in range(4):
            if at >= len(data):
                return by_tag
            size, more, at = size << 7 | data[at] & 127, data[at] & 128, at + 1
            if not more:
                break
        by_tag.setdefault(tag, data[at : at + size])
        at += size
    return by_tag
