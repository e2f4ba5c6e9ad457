"""The streams of frames on a GPU: which stream a frame takes, and which earlier frames it waits for.

B frames that are no references go to streams of their own, in turn; all others share one. A frame reads slots of the decoded
picture buffer and writes one; it is ordered after every earlier frame that wrote what it reads, or used what it writes.
"""

from typing import NamedTuple

MAIN_STREAM = 0  # the stream of all frames that are references or no B frames; the others follow


class SlotUse(NamedTuple):
    """A frame that read or wrote a slot."""

    number: int
    stream: int
    wrote: bool


class FrameWaits(NamedTuple):
    """What a frame waits for, frames by number: `coded` ones have left their stream, `downloaded` ones are on the host."""

    coded: tuple[int, ...]
    downloaded: tuple[int, ...]


NOTHING = FrameWaits((), ())


class StreamSchedule:
    """Frames in coding order. A frame starts when the frame `n_frames` before it has been downloaded, on any stream."""

    def __init__(self, n_streams: int, n_frames: int) -> None:
        """n_streams: for B frames that are no references; 0: all frames share one stream."""
        self._n_streams, self._n_frames = n_streams, n_frames
        self._n_disposable = 0  # B frames on streams of their own so far
        self._uses: dict[int, list[SlotUse]] = {}  # of each slot, from its last writer on

    def enter(self, number: int, slot: int, list_slots: tuple[int, ...], is_disposable: bool) -> tuple[int, FrameWaits]:
        """(stream, what the frame waits for there) of the next frame.

        slot, list_slots: of the decoded frame and of the references; is_disposable: whether it is a B frame and no reference.
        B frames on their own streams wait, besides, for the last frame of MAIN_STREAM.
        """
        if not self._n_streams:
            return MAIN_STREAM, NOTHING
        stream = MAIN_STREAM
        if is_disposable:
            stream = 1 + self._n_disposable % self._n_streams
            self._n_disposable += 1
        before = [use for use in self._uses.get(slot, ()) if use.number > number - self._n_frames]
        # what is downloaded has ended on all streams
        downloaded = [use.number for use in before if use.wrote]
        coded = [use.number for use in before if not use.wrote and use.stream not in (stream, MAIN_STREAM)]
        self._uses[slot] = [SlotUse(number, stream, True)]
        for read in set(list_slots):
            self._uses.setdefault(read, []).append(SlotUse(number, stream, False))
        return stream, FrameWaits(tuple(coded), tuple(downloaded))
