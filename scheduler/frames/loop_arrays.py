"""The arrays of a loop in the memory of its device, as arguments of stages by name."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ...cpu_simd.decisions.search import SMALL_PARTITIONS
from ...standard.sample_format import SUB_WIDTH_C
from ..arrays import INTRA_FILL, SECOND_FILL
from ..bundles import A, MakeGroup, State
from ..coding_settings import CodingSettings
from ..compiled_frame import merged
from ..executor import deferred_call
from ..frame_spec import MOST_ENTRIES, FrameSpec
from ..stages import ENTROPY_STAGE
from .constants import constants
from .dpb import DecodedPictureBuffer
from .frame import AnyFrame, Frame, FrameArrays, References, Workspace
from .params import decision_params, list_numbers, list_state, reference_params
from .sized_slices import SizedSlices

A_co = TypeVar("A_co", covariant=True)


class ArrayMemory(Protocol[A]):
    """What arrays need of an executor, or of a worker of one: see Executor."""

    frames_on_device: int
    parallel_b_frames: int
    run_ahead: int
    tickets: bool

    def zeros(self, shape: Sequence[int], dtype: DTypeLike) -> A:
        """An array of zeros in the memory of the stages."""

    def constant(self, values: np.ndarray) -> A:
        """An array that is never written."""

    def put_constant(self, constant: A, values: np.ndarray) -> None:
        """Write one all the same, while no stage runs."""

    def interior(self, plane: A, border: int) -> A:
        """The output of `deblock` in a plane with a border."""

    def fill(self, array: A, value: int) -> None:
        """Set all elements, in order with the stages."""


class Slots(Protocol[A_co]):
    """The decoded picture buffer by slots, as References; of a recording some are placeholders (placeholders.py)."""

    @property
    def luma(self) -> A_co:
        """Of all slots."""

    @property
    def chroma(self) -> A_co:
        """Of all slots."""

    def planes(self, slot: int) -> tuple[A_co, A_co]:
        """Luma and chroma of a slot."""

    def motion(self, slot: int) -> dict[str, Any]:
        """Motion of the frame in a slot, by name."""


@dataclass(slots=True, eq=False)  # frozen is slower to make, for each frame
class PreviousFrame(Generic[A]):
    """Motion of a frame that search centres continue: list 0, with the distances of its entries (FrameSpec)."""

    ref_idx: A
    mv: A
    distances: tuple[int, ...]

    @classmethod
    def of(cls, frame: FrameArrays[A], distances: tuple[int, ...]) -> "PreviousFrame[A]":
        """distances: as in FrameSpec."""
        return cls(frame.ref_idx, frame.mv, _all_distances(distances))


@lru_cache(maxsize=256)
def _all_distances(distances: tuple[int, ...]) -> tuple[int, ...]:
    """Behind them, numbers that no block refers to, so that frames with fewer entries are alike."""
    last = distances[-1] if distances else 0
    return (*distances, *range(last + 1, last + 1 + MOST_ENTRIES - len(distances)))


@dataclass(frozen=True, eq=False, repr=False)
class Arrays(Generic[A]):
    """The arrays of one memory: reference frames, workspace, constants; as arguments of stages by name.

    Frames that run at once share all but the workspace; loops of one memory all but the executor.
    """

    settings: CodingSettings
    executor: ArrayMemory[A]
    slots: int  # of the decoded picture buffer, besides weighted copies, which follow
    references: Slots[A]
    workspace: Workspace[A]
    constants: State
    sized_slices: SizedSlices | None

    @classmethod
    def allocate(cls, settings: CodingSettings, executor: ArrayMemory[A]) -> "Arrays[A]":
        """The arrays of an encode."""
        # frames that are no references may still be read, or coded, while the next ones are coded
        extra = executor.parallel_b_frames + executor.run_ahead
        extra_slots = extra + (settings.has_b_frames and (executor.frames_on_device > 0 or executor.parallel_b_frames > 0))
        slots = settings.dpb_frames + 1 + extra_slots
        references = References.allocate(slots + settings.weighted_copies, settings.size, executor.zeros)
        workspace = Workspace(settings.size, settings.most_searches, executor.zeros)
        constant = constants(settings, executor.constant)
        put_first = partial(executor.put_constant, constant["slice_first_mb"])
        sized = SizedSlices(settings, put_first) if settings.slice_max_size else None
        return cls(settings, executor, slots, references, workspace, constant, sized)

    def for_executor(self, executor: ArrayMemory[A]) -> "Arrays[A]":
        """The same arrays, for another executor of the same memory."""
        return replace(self, executor=executor)

    def with_own_workspace(self) -> "Arrays[A]":
        """The same arrays with a workspace of their own, for a frame that runs while others do."""
        workspace = Workspace(self.settings.size, self.settings.most_searches, self.executor.zeros)
        return replace(self, workspace=workspace)

    def state(
        self,
        spec: FrameSpec,
        device_frame: FrameArrays[A],
        slot: int,
        list_slots: tuple[int, ...],
        previous: PreviousFrame[A] | None,
        block: A,
    ) -> State:
        """Arguments of the stages by name; `device_frame`: the frame's arrays in this memory; `slot`: of the decoded
        frame; list_slots: slots of both lists; block: `decision_params` in this memory.
        """
        return merged(self.argument_groups(spec, device_frame, slot, list_slots, previous, block))

    def argument_groups(
        self, spec: FrameSpec, device_frame: FrameArrays[A], slot: int, list_slots: tuple[int, ...],
        previous: PreviousFrame[A] | None, block: A,
    ) -> list[MakeGroup]:  # fmt: skip
        """The arguments of `state` in groups, by what their arrays depend on; in streams with B frames motion of references
        comes from the decoded picture buffer.
        """
        continued = previous or PreviousFrame.of(device_frame, ())
        motion = continued.mv
        frame_arrays, workspace, with_b = device_frame.arrays, self.workspace.arrays(), self.settings.has_b_frames
        n_ref, n_ref1 = len(spec.list0), len(spec.list1)
        groups: list[MakeGroup] = [
            (("constants",), lambda: self.constants),
            (("frame", id(frame_arrays)), lambda: frame_arrays),
            (("workspace", id(workspace)), lambda: workspace),
            (("decoded", slot), lambda: self.decoded_state(slot)),
            (("pools", n_ref, n_ref1, spec.duplicates), lambda: self._numbers(spec)),
            (("motion", id(motion)), lambda: {"previous_ref_idx": continued.ref_idx, "previous_mv": motion}),
            (("lists", id(frame_arrays), n_ref, n_ref1), lambda: list_state(block, n_ref, n_ref1)),
        ]
        if with_b:
            groups.append((("kept", slot), lambda: self.references.motion(slot)))
        if with_b and n_ref1:
            colocated = list_slots[n_ref]
            motion_of = self.references.motion
            groups.append((("colocated", colocated), lambda: {"colocated_still": motion_of(colocated)["kept_still"]}))
        return groups

    def _numbers(self, spec: FrameSpec) -> State:
        """Numbers of entries, and the pools that they refer to."""
        with_b = self.settings.has_b_frames
        numbers: State = {
            "n_ref": spec.n_ref, "n_ref1": spec.n_ref1 if with_b else None, "duplicates": spec.duplicates,
            "ref_luma": self.references.luma, "ref_chroma": self.references.chroma,
        }  # fmt: skip
        if with_b and spec.n_ref1:  # no part of a B macroblock is smaller than 8x8 (bipredict)
            numbers["partition_mask"] = self.constants["partition_mask"] & ~SMALL_PARTITIONS
        return numbers

    def list_numbers(self, spec: FrameSpec, list_slots: tuple[int, ...], previous: PreviousFrame[A] | None) -> bytes:
        """See params.list_numbers."""
        distances = previous.distances if previous else ()
        weighted = self._searched(spec, list_slots)
        n_ref, weights = len(spec.list0), spec.weights
        lists = spec.distances, n_ref, spec.is_weighted, distances, list_slots, weighted
        return list_numbers(weights, *lists, spec.refresh)

    def continued(self, spec: FrameSpec, list_slots: tuple[int, ...], dpb: DecodedPictureBuffer) -> PreviousFrame[A] | None:
        """The frame whose motion the search continues in streams with B frames: the first of list 1, else of list 0, whatever
        frames were coded since; else None.
        """
        if not self.settings.has_b_frames or not list_slots:
            return None
        slot = list_slots[spec.n_ref if spec.n_ref1 else 0]
        kept = self.references.motion(slot)
        return PreviousFrame(kept["kept_ref_idx"], kept["kept_mv"], dpb.distances[slot])

    def _searched(self, spec: FrameSpec, list_slots: tuple[int, ...]) -> tuple[int, ...]:
        """The slots of both lists as the search sees them: weighted copies follow the slots of frames."""
        if not spec.weights:
            return list_slots
        copies = {k: self.slots + n for n, k in enumerate(spec.luma_weighted)}
        return tuple([copies.get(k, slot) for k, slot in enumerate(list_slots)])

    def deferred_write(self, frame: Frame) -> Callable[[], None]:
        """The entropy stage as a function for a task; `frame` lies on the host, its planes are padded (`samples`)."""
        return deferred_call(ENTROPY_STAGE, merged(self.entropy_groups(frame)))

    def entropy_groups(self, frame: Frame) -> list[MakeGroup]:
        """The arguments of the entropy stage in groups, as `argument_groups`."""
        spec, frame_arrays = frame.spec, frame.arrays
        more = {
            "n_ref": spec.n_ref,
            "n_ref1": spec.n_ref1 if self.settings.has_b_frames else None,
            "frame_params": frame.frame_params,
            "slice_data": frame.slice_data,
        }
        groups: list[MakeGroup] = [
            (("constants",), lambda: self.constants),
            (("frame", id(frame_arrays)), lambda: frame_arrays),
            (("data", id(frame_arrays), spec.n_ref, spec.n_ref1), lambda: more),
        ]
        return groups if self.sized_slices is None else [*groups, (("slices",), self.sized_slices.state)]

    def decoded_state(self, slot: int) -> State:
        """The arguments for the decoded frame in `slot`."""
        (luma, chroma), pad = self.references.planes(slot), self.settings.pad
        y, cb, cr = luma[0], chroma[0], chroma[1]
        interior, pad_c = self.executor.interior, pad // SUB_WIDTH_C
        return {
            "pad": pad, "decoded_luma": luma, "decoded_half": luma[1:], "decoded_y": y, "decoded_u": cb, "decoded_v": cr,
            "out_y": interior(y, pad), "out_u": interior(cb, pad_c), "out_v": interior(cr, pad_c),
        }  # fmt: skip

    def reference_state(self, ref: int, spec: FrameSpec, list_slots: tuple[int, ...], block: A) -> State:
        """The arguments of the search in entry `ref` of both lists; list_slots: their slots; block: as in `state`."""
        return merged(self.reference_groups(ref, spec, list_slots, block))

    def reference_groups(
        self, ref: int, spec: FrameSpec, list_slots: tuple[int, ...], block: A, frame: FrameArrays[A] | None = None
    ) -> list[MakeGroup]:
        """The same in groups, as `argument_groups`; frame: whose `block` it is."""
        weighted, searched, workspace = ref in spec.luma_weighted, self._searched(spec, list_slots)[ref], self.workspace
        groups: list[MakeGroup] = [
            (("reference", searched), lambda: _reference(self.references.planes(searched)[0])),
            (("distance", frame and id(frame.arrays), ref, weighted), lambda: reference_params(block, ref, weighted)),
            (("search", id(workspace.arrays()), ref), lambda: workspace.of_reference(ref)),
        ]
        if weighted:
            slot = list_slots[ref]
            groups.append((("unweighted", slot), lambda: {"unweighted_luma": self.references.planes(slot)[0]}))
        return groups

    def fill(self, frame: Frame, device_frame: AnyFrame, qp: bool = True) -> None:
        """Initial values of all macroblocks; qp: whether to fill qp too (stages load_* fill it)."""
        fill = self.executor.fill
        if qp and frame.spec.mb_qp:
            device_frame.qp[:] = np.frombuffer(frame.spec.mb_qp, np.uint8)
        elif qp:
            fill(device_frame.qp, frame.spec.qp)
        if self.executor.tickets:
            fill(self.workspace.arrays()["progress"], 0)
            fill(self.workspace.arrays()["intra_progress"], 0)
        if not frame.spec.n_ref:
            for name, value in INTRA_FILL.items():
                fill(device_frame.results[name], value)
        if self.settings.has_b_frames and not frame.spec.n_ref1:
            for name, value in SECOND_FILL.items():
                fill(device_frame.results[name], value)


def _reference(luma: A) -> State:
    return {"reference_luma": luma, "reference_y": luma[0]}


class FrameBinding(NamedTuple):
    """Where the arrays of a frame lie in the memory of its device."""

    arrays: Arrays[Any]
    frame: AnyFrame  # its own arrays
    params: Any  # frame_params, an array of this memory
    slot: int  # of the decoded frame
    list_slots: tuple[int, ...]  # slots of both lists
    previous: PreviousFrame[Any] | None  # the frame whose motion is continued

    @property
    def key(self) -> Hashable:
        """Equal for frames of one memory whose arguments are the same arrays; what it names by identity has to be kept."""
        arrays, frame, _, slot, list_slots, previous = self
        return arrays, frame, slot, list_slots, id((previous or frame).mv)

    def state(self, spec: FrameSpec) -> State:
        """Arguments of the stages by name."""
        _, frame, params, slot, list_slots, previous = self
        state = self.arrays.state(spec, frame, slot, list_slots, previous, decision_params(params))
        return state | {"frame_params": params}

    def reference_states(self, spec: FrameSpec) -> list[State]:
        """The same of the search in each entry of both lists."""
        block = decision_params(self.params)
        return [self.arrays.reference_state(ref, spec, self.list_slots, block) for ref in range(len(self.list_slots))]

    def argument_groups(self, spec: FrameSpec) -> list[list[MakeGroup]]:
        """Both in groups: first those of `state`, then those of each entry."""
        arrays, frame, params, slot, list_slots, previous = self
        block, frame_arrays = decision_params(params), frame.arrays
        first = arrays.argument_groups(spec, frame, slot, list_slots, previous, block)
        of_entries = [arrays.reference_groups(ref, spec, list_slots, block, frame) for ref in range(len(list_slots))]
        return [[*first, (("params", id(frame_arrays)), lambda: {"frame_params": params})], *of_entries]
