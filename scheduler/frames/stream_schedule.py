"""The streams of frames on a GPU: which stream a frame takes, and which earlier frames it waits for.

One stream has the frames that are no B frames: each reads the one before, and none reads a B frame. Another one has the
B frames that are references; the rest takes turns on those that follow. A frame reads slots of the decoded picture buffer and
writes one; it is ordered after every earlier frame that wrote what it reads, or used what it writes.
"""

from typing import NamedTuple

MAIN_STREAM, B_REFERENCES = 0, 1  # streams of all frames that are no B frames, and of B frames that are references


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
        # of each slot, from its last writer on: number of the frame, its stream, whether it wrote
        self._uses: dict[int, list[tuple[int, int, bool]]] = {}

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
        coded: set[int] = set()
        downloaded = []
        for before, on, wrote in self._uses.get(slot, ()):
            if before > recent:
                if wrote:
                    downloaded.append(before)
                elif on not in (MAIN_STREAM, stream):
                    coded.add(before)
        self._uses[slot] = [(number, stream, True)]
        for read in set(list_slots):
            uses = self._uses.setdefault(read, [])
            if uses:
                before, on, wrote = uses[0]
                if wrote and before > recent and on not in (MAIN_STREAM, stream):
                    coded.add(before)
            uses.append((number, stream, False))
        return stream, FrameWaits(tuple(sorted(coded)), tuple(downloaded))

    def _stream(self, is_reference: bool) -> int:
        """That of the next B frame."""
        if is_reference or self._n_streams == 1:
            return B_REFERENCES
        self._n_disposable += 1
        return B_REFERENCES + 1 + self._n_disposable % (self._n_streams - 1)
