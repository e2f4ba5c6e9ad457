"""A stream of sound packets: what they are, how long each is heard, and where the sound begins in them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import NamedTuple

OPUS_RATE = 48000  # RFC 7845, 4: times of Opus, whatever the rate of the original was
_OPUS_LEAD = 3840  # RFC 7845, 4.6: 80 ms are decoded before the sound is right
_AAC_LEAD = 2  # packets: one overlaps the next; those with SBR also need the one before


class SoundPacket(NamedTuple):
    """One packet as a decoder takes it; duration: in units of the format's rate, of the last one what is heard of it.

    cut: the packet again with so many units alone, where that can be made.
    """

    data: bytes
    duration: int
    cut: Callable[[int], bytes] | None = None


@dataclass(frozen=True)
class SoundFormat:
    """What a decoder needs before the first packet.

    codec: aac, opus or flac. rate: units a second of times, which are samples as a rule. bits: of a sample. setup: for AAC
    the AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1), for Opus the identification header behind its magic (RFC 7845, 5.1),
    for FLAC the STREAMINFO (RFC 9639, 8.2).
    """

    codec: str
    rate: int
    channels: int
    setup: bytes
    bits: int = 16

    def lead(self, duration: int) -> int:
        """Units that must be decoded before what is heard; `duration`: of a packet."""
        return {"aac": _AAC_LEAD * duration, "opus": _OPUS_LEAD, "flac": 0}[self.codec]

    def roll(self, duration: int) -> int:
        """ISO/IEC 14496-12, 10.1: packets from where a decoder starts to where it is right; `duration`: of one."""
        return {"aac": 1, "opus": -(-_OPUS_LEAD // max(1, duration)), "flac": 0}[self.codec]


@dataclass
class SoundStream:
    """Packets in order. skip: units of the first ones that are decoded and not heard; delay: units before the first heard.

    drop: the packets without so many units at the beginning, where that can be made, before any is taken.
    """

    format: SoundFormat
    packets: Iterator[SoundPacket]
    skip: int = 0
    delay: int = 0
    drop: Callable[[int], Iterator[SoundPacket]] | None = None

    def from_time(self, begin: Fraction) -> "SoundStream":
        """The sound from second `begin` on, to the next unit. Packets before it stay where decoding needs them."""
        zero = round(begin * self.format.rate)
        if zero <= self.delay:
            return replace(self, delay=self.delay - zero)
        target, at = self.skip + zero - self.delay, 0
        if self.drop is not None:
            return SoundStream(self.format, self.drop(target))
        for packet in self.packets:
            if at + packet.duration > target - self.format.lead(packet.duration):
                return SoundStream(self.format, chain((packet,), self.packets), target - at)
            at += packet.duration
        return SoundStream(self.format, iter(()))
