"""The streams of frames on a GPU: which stream a frame takes, and which earlier frames it waits for.

One stream has the frames that are no B frames: each reads the one before, and none reads a B frame. Another one has the
B frames that are references; the rest takes turns on those that follow. A frame reads slots of the decoded picture buffer and
writes one; it is ordered after every earlier frame that wrote what it reads, or used what it writes.
"""

from typing import NamedTuple

MAIN_STREAM, B_REFERENCES = 0, 1  # streams of all frames that are no B frames, and of B frames that are references


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
        """n_streams: for B frames; 0: all frames share one stream."""
        self._n_streams, self._n_frames = n_streams, n_frames
        self._n_disposable = 0  # B frames so far that are no references
        self._uses: dict[int, list[SlotUse]] = {}  # of each slot, from its last writer on

    def enter(
        self, number: int, slot: int, list_slots: tuple[int, ...], is_b: bool, is_reference: bool
    ) -> tuple[int, FrameWaits]:  # fmt: skip
        """(stream, what the frame waits for there) of the next frame.

        slot, list_slots: of the decoded frame and of the references. B frames wait, besides, for the last frame of
        MAIN_STREAM.
        """
        if not self._n_streams:
            return MAIN_STREAM, NOTHING
        stream = self._stream(is_reference) if is_b else MAIN_STREAM
        recent = number - self._n_frames  # what is downloaded has ended on all streams
        in_order = {MAIN_STREAM, stream}
        before = [use for use in self._uses.get(slot, ()) if use.number > recent]
        downloaded = [use.number for use in before if use.wrote]
        coded = {use.number for use in before if not use.wrote and use.stream not in in_order}
        self._uses[slot] = [SlotUse(number, stream, True)]
        for read in set(list_slots):
            uses = self._uses.setdefault(read, [])
            coded.update(use.number for use in uses[:1] if use.wrote and use.number > recent and use.stream not in in_order)
            uses.append(SlotUse(number, stream, False))
        return stream, FrameWaits(tuple(sorted(coded)), tuple(downloaded))

    def _stream(self, is_reference: bool) -> int:
        """That of the next B frame."""
        if is_reference or self._n_streams == 1:
            return B_REFERENCES
        self._n_disposable += 1
        return B_REFERENCES + 1 + self._n_disposable % (self._n_streams - 1)
