"""The slots of the decoded picture buffer (C.4): which slot holds which reference frame."""

from collections import deque
from collections.abc import Sequence

from ..frame_spec import FrameSpec


class DecodedPictureBuffer:
    """Slots of reference frames by coding index; the samples lie in References, of each memory at the same slot."""

    def __init__(self, n_slots: int, n_busy: int = 1) -> None:
        """n_slots: one more than the frames that are references at the same time; two more where a frame that is no reference
        may be downloaded while the next one is coded; n_busy: the last frames that may be in the loop or downloaded. With
        one and n_busy more than references no frame gets a slot that these use.
        """
        self._n_slots = n_slots
        self._slots: dict[int, int] = {}  # by coding index
        self.distances: dict[int, tuple[int, ...]] = {}  # by slot: FrameSpec.distances of the last frame in it
        self._busy: deque[tuple[int, ...]] = deque(maxlen=n_busy)  # slots that the last frames use
        self._before: tuple[dict[int, int], tuple[tuple[int, ...], ...]] = {}, ()  # _slots and _busy before the last frame

    def begin(self, spec: FrameSpec) -> tuple[int, tuple[int, ...]]:
        """(slot for a frame, slots of RefPicList0, then of RefPicList1)."""
        self._before = self._slots, tuple(self._busy)
        if spec.is_idr:
            self._slots = {}  # 8.2.5.1: an IDR picture marks all references unused
        return self._free_slot(spec.is_reference), tuple([self._slots[index] for index in (*spec.list0, *spec.list1)])

    def _free_slot(self, is_reference: bool) -> int:
        """A slot that no reference uses; that of one of the last frames, which may still be downloaded, only if there is no
        other: then of the first of these.

        References take the first one, others the last one: the fewer combinations of slots, the more frames are alike, for
        which a GPU replays a recording.
        """
        free = [slot for slot in range(self._n_slots) if slot not in self._slots.values()]
        busy = [slot for slots in self._busy for slot in slots]
        unread = [slot for slot in free if slot not in busy] or [slot for slot in busy if slot in free][:1]
        return unread[0 if is_reference else -1]

    def end(self, spec: FrameSpec, slot: int, lists: tuple[int, ...] = ()) -> None:
        """The frame in `slot` is coded: mark references as its spec says (8.2.5). lists: slots that it may still read."""
        self._busy.append((slot, *lists))
        self.distances[slot] = spec.distances
        held = self._slots | {spec.coding_index: slot}
        self._slots = {index: held[index] for index in spec.references_after}

    def rewind(self) -> None:
        """Be as before the last frame, which is coded again into the same slot."""
        self._slots = self._before[0]
        self._busy.clear()
        self._busy.extend(self._before[1])

    @property
    def held(self) -> tuple[int, ...]:
        """The references before the next frame by coding index, in the order of the last frame's references_after."""
        return tuple(self._slots)

    def restore(self, references: Sequence[FrameSpec]) -> None:
        """Only these frames are references, in slots 0, 1, ..."""
        self._slots = {spec.coding_index: slot for slot, spec in enumerate(references)}
        self.distances = {slot: spec.distances for slot, spec in enumerate(references)}
        self._busy.clear()
        self._busy.append((self._n_slots - 1,))
