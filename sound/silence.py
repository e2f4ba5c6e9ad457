"""Packets of silence, for where a track of sound has to go on and has no packets: AAC LC, Opus and FLAC."""

import numpy as np

from . import aac, flac
from .flac_encoder import BITS, FlacEncoder
from .stream import SoundFormat, SoundPacket

_LC = 2  # audio object type
_OPUS = {1: b"\xf8\xff\xfe", 2: b"\xfc\xff\xfe"}  # RFC 6716, 3.1, 4.3: CELT of 20 ms, whose first symbol says silence
_OPUS_UNITS = 960


def silence(sound: SoundFormat, before: SoundPacket | None = None) -> SoundPacket | None:
    """A packet of silence, of a usual length; None for formats in which none is known. before: the packet before it."""
    if sound.codec == "aac":
        return _of_aac(sound)
    if sound.codec == "opus":
        is_simple = sound.setup[10] == 0 and sound.channels in _OPUS  # RFC 7845, 5.1.1: channel mapping family
        return SoundPacket(_OPUS[sound.channels], _OPUS_UNITS) if is_simple else None
    return _of_flac(sound, before)


def _of_aac(sound: SoundFormat) -> SoundPacket | None:
    """ISO/IEC 14496-3, 4.4.2: a raw_data_block without scale factor bands: a long window, nothing in it."""
    rate, channels, samples = aac.read_config(sound.setup)
    if aac.object_type(sound.setup) != _LC or channels not in (1, 2) or (rate, channels) != (sound.rate, sound.channels):
        return None
    gain, tools, info = "0" * 8, "000", "0" * 11  # global_gain; no pulses, TNS, gain control; ics_info with max_sfb 0
    if channels == 1:
        element = "000" + "0000" + gain + info + tools  # single_channel_element
    else:
        element = "001" + "0000" + "1" + info + "00" + 2 * (gain + tools)  # channel_pair_element, common_window
    bits = element + "111"  # ID_END
    size = -(-len(bits) // 8)
    return SoundPacket(int(bits.ljust(8 * size, "0"), 2).to_bytes(size, "big"), samples)


def _of_flac(sound: SoundFormat, before: SoundPacket | None) -> SoundPacket | None:
    """RFC 9639, 9: the next frame of a stream whose blocks have one size."""
    least, most = (int.from_bytes(sound.setup[at : at + 2], "big") for at in (0, 2))
    header = flac.frame_header(before.data[: flac.LONGEST_HEADER]) if before is not None else None
    if least != most or header is None or sound.bits not in BITS:
        return None
    encoder, number = FlacEncoder(sound.rate, sound.channels, sound.bits), header.number + 1

    def frame(count: int) -> bytes:
        return encoder.frame(np.zeros((count, sound.channels), np.int32), number)

    return SoundPacket(frame(most), most, frame)
