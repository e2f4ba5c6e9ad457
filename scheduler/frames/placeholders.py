"""Placeholders for the arrays that differ between frames of a kind, with which a GPU's work is recorded (recording.py)."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from ...cuda_src.runtime.array import DeviceArray
from ...cuda_src.runtime.recording import placeholder_address
from ..arrays import KEPT, LEVELS, of_roles
from .frame import Frame, Workspace, Zeros
from .loop import Arrays, PreviousFrame

DECODED, FIRST_ENTRY = -1, -2  # slots of the decoded frame and, downwards, of the entries of both lists
Addresses = tuple[int, ...]


class Placeholders(Arrays):
    """Arrays of which the decoded frame, the entries of both lists, and the frame that is continued are stand-ins.

    Slots from DECODED downwards are those of stand-ins.
    """

    def __init__(
        self, arrays: Arrays, frames: Sequence[tuple[Frame, dict[str, Any]]], make_frame: Callable[[Zeros], Frame],
        make_input: Callable[[Zeros], dict[str, Any]],
    ) -> None:  # fmt: skip
        """frames: each frame's own arrays on the GPU, and its upload target; make_frame, make_input: make such."""
        vars(self).update(vars(arrays))
        self._n_made, references = 0, arrays.references
        self.frame, self.input = make_frame(self._next), make_input(self._next)
        own_arrays = _own_arrays(self.frame, self.input)
        assert [array.ptr for array in own_arrays] == [placeholder_address(k) for k in range(len(own_arrays))]
        self._of_frame = [tuple(array.ptr for array in _own_arrays(*frame)) for frame in frames]
        luma, chroma = references.luma[0], references.chroma[0]
        self._decoded = self._like(luma), self._like(chroma)
        names = of_roles(KEPT)
        self._kept = {name: self._like(references.kept[0][name]) for name in names}
        self._of_slot = [
            (references.luma[slot].ptr, references.chroma[slot].ptr, *(references.kept[slot][name].ptr for name in names))
            for slot in range(arrays.slots)
        ]
        frame = self.frame
        self.previous = PreviousFrame(self._like(frame.ref_idx), self._like(frame.mv), ())
        self._colocated = {"kept_still": self._like(references.kept[0]["kept_still"])}
        self._first_entry = self._n_made

    def with_workspace(self, workspace: Workspace) -> "Placeholders":
        """The same, with another workspace."""
        other = copy(self)
        other.workspace = workspace
        return other

    def _next(self, shape: Sequence[int], dtype: Any) -> DeviceArray:
        self._n_made += 1
        return DeviceArray(self.executor.gpu, placeholder_address(self._n_made - 1), shape, dtype)

    def _like(self, array: DeviceArray) -> DeviceArray:
        return self._next(array.shape, array.dtype)

    def planes(self, slot: int) -> tuple[Any, Any]:
        """See Arrays: of an entry only luma."""
        if slot > DECODED:
            return super().planes(slot)
        if slot == DECODED:
            return self._decoded
        luma = self._decoded[0]
        return DeviceArray(
            self.executor.gpu, placeholder_address(self._first_entry + FIRST_ENTRY - slot), luma.shape, luma.dtype
        ), None

    def kept(self, slot: int) -> dict[str, Any]:
        """See Arrays: of an entry, which is the first of list 1, only what direct prediction reads."""
        return self._kept if slot == DECODED else self._colocated

    def addresses(
        self, k: int, slot: int, list_slots: tuple[int, ...], previous: PreviousFrame | None, n_ref: int
    ) -> Addresses:
        """What the stand-ins are for in a frame, by number.

        k: index in `frames`; slot: of the decoded frame; list_slots: slots of both lists, of which the first has n_ref
        entries.
        """
        frame_addresses, of_slot = self._of_frame[k], self._of_slot
        colocated = of_slot[list_slots[n_ref] if n_ref < len(list_slots) else slot][-1]
        continued = (previous.ref_idx.ptr, previous.mv.ptr) if previous else frame_addresses[:2]
        return (*frame_addresses, *of_slot[slot], *continued, colocated, *[of_slot[entry][0] for entry in list_slots])


def _own_arrays(frame: Frame, upload_target: dict[str, Any]) -> list[Any]:
    """All memory of a frame on a GPU, in the order in which it is allocated."""
    return [*frame.planes, frame.block, *(frame.results[name] for name in of_roles(LEVELS)), upload_target["upload"]]
