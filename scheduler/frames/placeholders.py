"""Placeholders for arrays that differ between frames with the same key: a GPU's work is recorded with them (recording.py)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numpy.typing import DTypeLike

from ...cuda_src.runtime.array import DeviceArray
from ...cuda_src.runtime.device import Device
from ...cuda_src.runtime.recording import placeholder_address
from ..arrays import KEPT, LEVELS, of_roles
from ..bundles import State
from .device_frame import SourceHandles
from .frame import FrameArrays, References, Zeros
from .loop_arrays import PreviousFrame

DECODED, FIRST_ENTRY = -1, -2  # slots of the decoded frame and, downwards, of the entries of both lists
Addresses = tuple[int, ...]
GpuFrame = FrameArrays[DeviceArray]
NO_SOURCE = SourceHandles(0, 0, 0, 0, 0)  # of a frame whose source is in no buffer on the GPU


@dataclass(frozen=True, eq=False, repr=False)
class ReferencePlaceholders:
    """As References: slots from DECODED downwards are those of placeholders."""

    references: References[DeviceArray]
    decoded: tuple[DeviceArray, DeviceArray]  # luma and chroma
    kept: dict[str, DeviceArray]  # of the decoded frame
    colocated: dict[str, DeviceArray]  # of the first entry of list 1: what direct prediction reads
    entry: Callable[[int], DeviceArray]  # luma of an entry

    @property
    def luma(self) -> DeviceArray:
        """Of all slots."""
        return self.references.luma

    @property
    def chroma(self) -> DeviceArray:
        """Of all slots."""
        return self.references.chroma

    def planes(self, slot: int) -> tuple[DeviceArray, DeviceArray | None]:
        """See References: of an entry only luma."""
        if slot > DECODED:
            return self.references.planes(slot)
        return self.decoded if slot == DECODED else (self.entry(FIRST_ENTRY - slot), None)

    def motion(self, slot: int) -> dict[str, DeviceArray]:
        """See References: of the decoded frame, or of the first entry of list 1."""
        return self.kept if slot == DECODED else self.colocated


class Placeholders:
    """Stand-ins for a frame's own arrays, the decoded frame, the entries of both lists, the frame that is continued, and the
    buffer of a source on the GPU.
    """

    def __init__(
        self, gpu: Device, references: References[DeviceArray], frames: Sequence[tuple[GpuFrame, State]],
        make_frame: Callable[[Zeros[DeviceArray]], GpuFrame], make_input: Callable[[Zeros[DeviceArray]], State],
    ) -> None:  # fmt: skip
        """frames: each frame's own arrays on the GPU, and its upload target; make_frame, make_input: make such."""
        self._gpu, self._n_addresses = gpu, 0
        self.frame, self.input = make_frame(self._next), make_input(self._next)
        own_arrays = _own_arrays(self.frame, self.input)
        assert [array.ptr for array in own_arrays] == [placeholder_address(k) for k in range(len(own_arrays))]
        self._of_frame = [tuple(array.ptr for array in _own_arrays(*frame)) for frame in frames]
        (luma, chroma), motion = references.planes(0), references.motion(0)
        decoded = self._like(luma), self._like(chroma)
        names = of_roles(KEPT)
        kept = {name: self._like(motion[name]) for name in names}
        self._of_slot = [
            (*(plane.ptr for plane in references.planes(slot)), *(references.motion(slot)[name].ptr for name in names))
            for slot in range(len(references.kept))
        ]
        self.previous = PreviousFrame(self._like(self.frame.ref_idx), self._like(self.frame.mv), ())
        colocated = {"kept_still": self._like(motion["kept_still"])}
        self.handles = SourceHandles(*(placeholder_address(self._n_addresses + k) for k in range(len(NO_SOURCE))))
        first = self._n_addresses + len(NO_SOURCE)

        def entry(number: int) -> DeviceArray:
            return DeviceArray(gpu, placeholder_address(first + number), luma.shape, luma.dtype)

        self.references = ReferencePlaceholders(references, decoded, kept, colocated, entry)

    def _next(self, shape: Sequence[int], dtype: DTypeLike) -> DeviceArray:
        self._n_addresses += 1
        return DeviceArray(self._gpu, placeholder_address(self._n_addresses - 1), shape, dtype)

    def _like(self, array: DeviceArray) -> DeviceArray:
        return self._next(array.shape, array.dtype)

    def addresses(
        self, k: int, slot: int, list_slots: tuple[int, ...], previous: PreviousFrame | None, n_ref: int,
        handles: SourceHandles = NO_SOURCE,
    ) -> Addresses:  # fmt: skip
        """What the placeholders are for in a frame, by number.

        k: index in `frames`; slot: of the decoded frame; list_slots: slots of both lists, of which the first has n_ref
        entries; handles: the source.
        """
        frame_addresses, of_slot = self._of_frame[k], self._of_slot
        colocated = of_slot[list_slots[n_ref] if n_ref < len(list_slots) else slot][-1]
        continued = (previous.ref_idx.ptr, previous.mv.ptr) if previous else frame_addresses[:2]
        listed = [of_slot[entry][0] for entry in list_slots]
        return (*frame_addresses, *of_slot[slot], *continued, colocated, *handles, *listed)


def _own_arrays(frame: GpuFrame, upload_target: State) -> list[DeviceArray]:
    """All memory of a frame on a GPU, in the order in which it is allocated."""
    return [*frame.planes, frame.block, *(frame.results[name] for name in of_roles(LEVELS)), upload_target["upload"]]
