"""Movie fragments: moof, which says the samples of the mdat that follows (ISO/IEC 14496-12, 8.8)."""

import struct
from typing import TYPE_CHECKING

from .boxes import box, full_box, mdat_header
from .samples import Sample

if TYPE_CHECKING:
    from .sound_track import SoundTrack

# 8.8.3.1: sample flags: a keyframe depends on no other sample; others do, and are no random access points.
_KEYFRAME, _OTHER = 2 << 24, 1 << 24 | 1 << 16
# 8.8.7.1, 8.8.8.1: flags of tfhd and trun
_DEFAULT_DURATION, _DEFAULT_FLAGS, _BASE_IS_MOOF = 0x8, 0x20, 0x20000
_DATA_OFFSET, _FIRST_FLAGS, _DURATIONS, _SIZES, _FLAGS, _OFFSETS = 0x1, 0x4, 0x100, 0x200, 0x400, 0x800


def fragment_header(number: int, time: int, samples: list[Sample], sound: "SoundTrack | None" = None) -> bytes:
    """moof, and the header of mdat. number: from 1; time: the decoding time of the first sample, in the track's units.
    sound: its run follows in the same mdat.
    """
    video = sum(sample.size for sample in samples)
    data = mdat_header(video + (sum(sample.size for sample in sound.run[0]) if sound is not None else 0))

    def fragment(offset: int) -> bytes:
        return _fragment(number, time, samples, offset, sound.fragment_boxes(offset + video) if sound is not None else b"")

    return fragment(len(fragment(0)) + len(data)) + data


def sound_header(number: int, sound: "SoundTrack") -> bytes:
    """moof, and the header of mdat, of the run of the sound in a file of its own. number: from 1."""
    data = mdat_header(sum(sample.size for sample in sound.run[0]))

    def fragment(offset: int) -> bytes:
        return box(b"moof", _fragment_number(number), sound.fragment_boxes(offset))

    return fragment(len(fragment(0)) + len(data)) + data


def _fragment_number(number: int) -> bytes:
    """8.8.5: mfhd."""
    return full_box(b"mfhd", 0, 0, struct.pack(">I", number))


def _fragment(number: int, time: int, samples: list[Sample], data_offset: int, sound: bytes) -> bytes:
    """8.8.4: moof with a fragment of the video; data_offset: from its beginning to the first sample. sound: another traf."""
    same_duration = all(sample.duration == samples[0].duration for sample in samples)
    head = struct.pack(">II", 1, samples[0].duration) if same_duration else struct.pack(">I", 1)
    flags = _BASE_IS_MOOF | _DEFAULT_FLAGS | (_DEFAULT_DURATION if same_duration else 0)
    track = full_box(b"tfhd", 0, flags, head, struct.pack(">I", _OTHER))
    decode_time = full_box(b"tfdt", 1, 0, struct.pack(">Q", time))
    return box(
        b"moof",
        _fragment_number(number),
        box(b"traf", track, decode_time, _run(samples, same_duration, data_offset)),
        sound,
    )


def _run(samples: list[Sample], same_duration: bool, data_offset: int) -> bytes:
    """8.8.8: trun, version 1: composition offsets are signed."""
    later_keyframe = any(sample.is_keyframe for sample in samples[1:])
    fields = [(_DURATIONS, "I", [sample.duration for sample in samples])] if not same_duration else []
    fields.append((_SIZES, "I", [sample.size for sample in samples]))
    if later_keyframe:
        fields.append((_FLAGS, "I", [_KEYFRAME if sample.is_keyframe else _OTHER for sample in samples]))
    if any(sample.offset for sample in samples):
        fields.append((_OFFSETS, "i", [sample.offset for sample in samples]))
    flags, head = _DATA_OFFSET, struct.pack(">Ii", len(samples), data_offset)
    if samples[0].is_keyframe and not later_keyframe:
        flags, head = flags | _FIRST_FLAGS, head + struct.pack(">I", _KEYFRAME)
    row = ">" + "".join(code for _, code, _ in fields)
    rows = (struct.pack(row, *values) for values in zip(*(values for _, _, values in fields)))
    return full_box(b"trun", 1, flags | sum(flag for flag, _, _ in fields), head, *rows)
