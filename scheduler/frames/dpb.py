"""The slots of the decoded picture buffer (C.4): which slot holds which reference frame."""

from collections.abc import Sequence

from ..frame_spec import FrameSpec


class DecodedPictureBuffer:
    """Slots of reference frames by coding index; the samples lie in References, of each memory at the same slot."""

    def __init__(self, n_slots: int, n_busy: int = 1) -> None:
        """n_slots: one more than the frames that are references at the same time; more where others may be read, coded or
        downloaded while the next ones are coded; n_busy: the last frames that may be.
        """
        self._n_busy = n_busy
        self._slots: dict[int, int] = {}  # by coding index
        self.distances: dict[int, tuple[int, ...]] = {}  # by slot: FrameSpec.distances of the last frame in it
        self._used = [(0, False)] * n_slots  # the last frame that uses each, counted from 1, and whether it writes it
        self._count = 0
        self._before = self._slots, self._used, self._count  # before the last frame

    def begin(self, spec: FrameSpec) -> tuple[int, tuple[int, ...]]:
        """(slot for a frame, slots of RefPicList0, then of RefPicList1)."""
        self._before = self._slots, self._used.copy(), self._count
        if spec.is_idr:
            self._slots = {}  # 8.2.5.1: an IDR picture marks all references unused
        return self._free_slot(), tuple(map(self._slots.__getitem__, (*spec.list0, *spec.list1)))

    def _free_slot(self) -> int:
        """The first of those that neither a reference nor a busy frame uses, so that few are in use; if there is none, of
        those that no reference uses the one that has not been used for longest.
        """
        references, busy_from = self._slots.values(), self._count - self._n_busy + 1
        longest: int | None = None
        for slot, used in enumerate(self._used):
            if slot in references:
                continue
            if not used[0] or used[0] < busy_from:
                return slot
            if longest is None or used < self._used[longest]:
                longest = slot
        assert longest is not None
        return longest

    def end(self, spec: FrameSpec, slot: int, list_slots: tuple[int, ...] = ()) -> None:
        """The frame in `slot` is coded: mark references as its spec says (8.2.5). list_slots: slots that it reads."""
        self._count += 1
        for read in list_slots:
            self._used[read] = self._count, False
        self._used[slot] = self._count, True
        self.distances[slot] = spec.distances
        if spec.is_reference:  # else the references stay as they are
            slots = self._slots | {spec.coding_index: slot}
            self._slots = {index: slots[index] for index in spec.references_after}

    def emptied(self) -> "DecodedPictureBuffer":
        """A new one of as many slots."""
        return DecodedPictureBuffer(len(self._used), self._n_busy)

    def rewind(self) -> None:
        """Be as before the last frame, which is coded again into the same slot."""
        self._slots, self._used, self._count = self._before

    @property
    def references(self) -> tuple[int, ...]:
        """The references before the next frame by coding index, in the order of the last frame's references_after."""
        return tuple(self._slots)

    def restore(self, references: Sequence[FrameSpec]) -> None:
        """Only these frames are references, in slots 0, 1, ..."""
        self._slots = {spec.coding_index: slot for slot, spec in enumerate(references)}
        self.distances = {slot: spec.distances for slot, spec in enumerate(references)}
        self._used = [(0, False)] * len(self._used)
