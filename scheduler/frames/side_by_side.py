"""Frames side by side on a GPU: which stream a frame takes, and which earlier frames it waits for.

B frames that are no references go to streams of their own, in turn; all others share one. A frame reads slots of the decoded
picture buffer and writes one; it is ordered after every earlier frame that wrote what it reads, or used what it writes.
"""

from typing import NamedTuple

ANCHORS = 0  # the stream of all frames that are references or no B frames; the others follow


class Use(NamedTuple):
    """A frame that read or wrote a slot."""

    number: int
    stream: int
    wrote: bool


class Waits(NamedTuple):
    """The frames, by number, whose stages on their own stream have ended, and whose downloads have, before a frame starts."""

    coded: tuple[int, ...]
    downloaded: tuple[int, ...]


NOTHING = Waits((), ())


class SideBySide:
    """Frames in coding order. A frame starts when the frame `n_frames` before it has been downloaded, on any stream."""

    def __init__(self, n_streams: int, n_frames: int) -> None:
        """n_streams: for B frames that are no references; 0: all frames share one stream."""
        self._n_streams, self._n_frames = n_streams, n_frames
        self._alone = 0  # B frames on streams of their own so far
        self._uses: dict[int, list[Use]] = {}  # of each slot, from its last writer on

    def enter(self, number: int, slot: int, lists: tuple[int, ...], alone: bool) -> tuple[int, Waits]:
        """(stream, what the frame waits for there) of the next frame.

        slot, lists: of the decoded frame and of the references; alone: whether it is a B frame and no reference. B frames on
        their own streams wait, besides, for the last frame of ANCHORS.
        """
        if not self._n_streams:
            return ANCHORS, NOTHING
        stream = ANCHORS
        if alone:
            stream = 1 + self._alone % self._n_streams
            self._alone += 1
        before = [use for use in self._uses.get(slot, ()) if use.number > number - self._n_frames]
        # what is downloaded has ended on all streams
        downloaded = [use.number for use in before if use.wrote]
        coded = [use.number for use in before if not use.wrote and use.stream not in (stream, ANCHORS)]
        self._uses[slot] = [Use(number, stream, True)]
        for read in set(lists):
            self._uses.setdefault(read, []).append(Use(number, stream, False))
        return stream, Waits(tuple(coded), tuple(downloaded))
