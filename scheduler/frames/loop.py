"""The coding loop: the stages of a frame in the order of their data, and the state that is kept between frames."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ...cpu_simd.decisions.quantise import DEAD_ZONE_INTER, DEAD_ZONE_INTRA, ROUNDING
from ...cpu_simd.decisions.search import DIA, HEX, SMALL_PARTITIONS, UMH
from ...cpu_simd.layout import N_WEIGHTS
from ...cpu_simd.scaling import scaling_table
from ..arrays import INTRA_FILL, SECOND_FILL, Size
from ..compiled_frame import MakeGroup, merged
from ..cuda_executor import CudaExecutor
from ..executor import Executor, Step, deferred_call
from ..frame_spec import MOST_ENTRIES, FrameSpec
from ..stages import ENTROPY_STAGE
from ..threads.dependent_task import DependentTask
from .compiled_frames import CompiledFrames, steps_of
from .dpb import DecodedPictureBuffer
from .frame import Frame, HostFrame, References, Workspace
from .params import decision_params, list_numbers, list_state, reference_params

if TYPE_CHECKING:
    from ...encoder.settings.config import Config

OneDevice = Executor | CudaExecutor

PATTERNS = {"dia": DIA, "hex": HEX, "umh": UMH}  # by --me
BORDERS = ("extend_luma", "extend_cb", "extend_cr")
BY_DEFAULT = 21, 11  # deadzone_inter, deadzone_intra
MASK_16x16, MASK_16x8, MASK_8x8, MASK_8x4, MASK_4x4 = 1, 2, 4, 8, 16  # partition sizes, down to the one named


@dataclass(frozen=True, eq=False, repr=False)
class LoopSettings:
    """slices: macroblock rows [row0, row1) of each."""

    config: "Config"
    slices: tuple[tuple[int, int], ...]


class Arrays:
    """The arrays of one memory: reference frames, workspace, constants; as arguments of stages by name."""

    def __init__(self, settings: LoopSettings, executor: Any) -> None:
        """executor: or a worker of one: it has zeros, constant, interior, fill and tickets."""
        config = settings.config
        self.config, self.executor = config, executor
        size = Size(config.mb_width, config.mb_height, config.pad, config.has_b_frames)
        # frames that are no references may still be read, or coded, while the next ones are coded
        extra_slots = executor.parallel_b_frames + (
            config.has_b_frames and (executor.frames_on_device > 0 or executor.parallel_b_frames > 0)
        )
        self.slots = config.dpb_frames + 1 + extra_slots
        self.references = References.allocate(self.slots + config.weightp, size, executor.zeros)
        self.workspace = Workspace(size, config.most_searches, executor.zeros)
        self.constants = _constants(config)
        rows = [*(row0 for row0, _ in settings.slices), config.mb_height]
        self.constants["slice_first_mb"] = executor.constant(_slice_first_mb(settings))
        self.constants["slice_rows"] = executor.constant(np.array(rows, np.int32))
        self.constants["scaling"] = executor.constant(_scaling(config))

    def for_executor(self, executor: Any) -> "Arrays":
        """The same arrays, for another executor of the same memory."""
        other = copy(self)
        other.executor = executor
        return other

    def with_own_workspace(self) -> "Arrays":
        """The same arrays with a workspace of their own, for a frame that runs while others do."""
        other, config = copy(self), self.config
        size = Size(config.mb_width, config.mb_height, config.pad, config.has_b_frames)
        other.workspace = Workspace(size, config.most_searches, self.executor.zeros)
        return other

    def state(
        self, spec: FrameSpec, device_frame: Frame, slot: int, list_slots: tuple[int, ...], previous: "PreviousFrame | None",
        block: Any,
    ) -> dict[str, Any]:
        """Arguments of the stages by name; `device_frame`: the frame's arrays in this memory; `slot`: of the decoded
        frame; list_slots: slots of both lists; block: `decision_params` in this memory.
        """
        return merged(self.argument_groups(spec, device_frame, slot, list_slots, previous, block))

    def argument_groups(
        self, spec: FrameSpec, device_frame: Frame, slot: int, list_slots: tuple[int, ...], previous: "PreviousFrame | None",
        block: Any,
    ) -> list[MakeGroup]:  # fmt: skip
        """The arguments of `state` in groups, by what their arrays depend on; in streams with B frames motion of references
        comes from the decoded picture buffer.
        """
        previous = previous or PreviousFrame.of(device_frame, ())
        motion = {"previous_ref_idx": previous.ref_idx, "previous_mv": previous.mv}
        frame_arrays, workspace, with_b = device_frame.arrays, self.workspace.arrays(), self.config.has_b_frames
        numbers = {
            "n_ref": spec.n_ref, "n_ref1": spec.n_ref1 if with_b else None, "duplicates": spec.duplicates,
            "ref_luma": self.references.luma, "ref_chroma": self.references.chroma,
        }  # fmt: skip
        if with_b and spec.n_ref1:  # no part of a B macroblock is smaller than 8x8 (bipredict)
            numbers["partition_mask"] = self.constants["partition_mask"] & ~SMALL_PARTITIONS
        groups: list[MakeGroup] = [
            (("constants",), lambda: self.constants),
            (("frame", id(frame_arrays)), lambda: frame_arrays),
            (("workspace", id(workspace)), lambda: workspace),
            (("decoded", slot), lambda: self.decoded_state(slot)),
            (("pools", spec.n_ref, spec.n_ref1, spec.duplicates), lambda: numbers),
            (("motion", id(previous.mv)), lambda: motion),
            (("lists", id(frame_arrays), spec.n_ref, spec.n_ref1), lambda: list_state(block, spec.n_ref, spec.n_ref1)),
        ]  # fmt: skip
        if with_b:
            groups.append((("kept", slot), lambda: self.kept(slot)))
        if with_b and spec.n_ref1:
            colocated = list_slots[spec.n_ref]
            groups.append((("colocated", colocated), lambda: {"colocated_still": self.kept(colocated)["kept_still"]}))
        return groups

    def planes(self, slot: int) -> tuple[Any, Any]:
        """Luma and chroma of a slot."""
        return self.references.luma[slot], self.references.chroma[slot]

    def kept(self, slot: int) -> dict[str, Any]:
        """Motion of the frame in a slot, by name."""
        return self.references.kept[slot]

    def list_numbers(self, spec: FrameSpec, list_slots: tuple[int, ...], previous: "PreviousFrame | None") -> np.ndarray:
        """See params.list_numbers."""
        distances = previous.distances if previous else ()
        weighted = self._searched(spec, list_slots) if spec.weights else list_slots
        return list_numbers(spec.distances, len(spec.list0), spec.is_weighted, distances, list_slots, weighted)

    def continued(self, spec: FrameSpec, list_slots: tuple[int, ...], dpb: DecodedPictureBuffer) -> "PreviousFrame | None":
        """The frame whose motion the search continues in streams with B frames: the first of list 1, else of list 0, whatever
        frames were coded since; else None.
        """
        if not self.config.has_b_frames or not list_slots:
            return None
        slot = list_slots[spec.n_ref if spec.n_ref1 else 0]
        kept = self.kept(slot)
        return PreviousFrame(kept["kept_ref_idx"], kept["kept_mv"], dpb.distances[slot])

    def _searched(self, spec: FrameSpec, list_slots: tuple[int, ...]) -> tuple[int, ...]:
        """The slots of both lists as the search sees them: weighted copies follow the slots of frames."""
        copies = {k: self.slots + n for n, k in enumerate(spec.luma_weighted)}
        return tuple([copies.get(k, slot) for k, slot in enumerate(list_slots)]) if copies else list_slots

    def deferred_write(self, frame: Frame) -> Callable[[], None]:
        """The entropy stage as a function for a task; `frame` lies on the host, its planes are padded (`samples`)."""
        return deferred_call(ENTROPY_STAGE, merged(self.entropy_groups(frame)))

    def entropy_groups(self, frame: Frame) -> list[MakeGroup]:
        """The arguments of the entropy stage in groups, as `argument_groups`."""
        spec, frame_arrays = frame.spec, frame.arrays
        more = {
            "n_ref": spec.n_ref, "n_ref1": spec.n_ref1 if self.config.has_b_frames else None,
            "frame_params": frame.frame_params, "slice_data": frame.slice_data,
        }  # fmt: skip
        return [
            (("constants",), lambda: self.constants), (("frame", id(frame_arrays)), lambda: frame_arrays),
            (("data", id(frame_arrays), spec.n_ref, spec.n_ref1), lambda: more),
        ]  # fmt: skip

    def decoded_state(self, slot: int) -> dict[str, Any]:
        """The arguments for the decoded frame in `slot`."""
        (luma, chroma), pad = self.planes(slot), self.config.pad
        y, cb, cr = luma[0], chroma[0], chroma[1]
        interior = self.executor.interior
        return {
            "pad": pad, "decoded_luma": luma, "decoded_half": luma[1:], "decoded_y": y, "decoded_u": cb, "decoded_v": cr,
            "out_y": interior(y, pad), "out_u": interior(cb, pad // 2), "out_v": interior(cr, pad // 2),
        }  # fmt: skip

    def reference_state(self, ref: int, spec: FrameSpec, list_slots: tuple[int, ...], block: Any) -> dict[str, Any]:
        """The arguments of the search in entry `ref` of both lists; list_slots: their slots; block: as in `state`."""
        return merged(self.reference_groups(ref, spec, list_slots, block))

    def reference_groups(
        self, ref: int, spec: FrameSpec, list_slots: tuple[int, ...], block: Any, frame: Frame | None = None
    ) -> list[MakeGroup]:
        """The same in groups, as `argument_groups`; frame: whose `block` it is."""
        weighted, searched, workspace = ref in spec.luma_weighted, self._searched(spec, list_slots)[ref], self.workspace
        groups: list[MakeGroup] = [
            (("reference", searched), lambda: _reference(self.planes(searched)[0])),
            (("distance", frame and id(frame.arrays), ref, weighted), lambda: reference_params(block, ref, weighted)),
            (("search", id(workspace.arrays()), ref), lambda: workspace.of_reference(ref)),
        ]
        if weighted:
            groups.append((("unweighted", list_slots[ref]), lambda: {"unweighted_luma": self.planes(list_slots[ref])[0]}))
        return groups

    def fill(self, frame: Frame, device_frame: Frame, qp: bool = True) -> None:
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
        if self.config.has_b_frames and not frame.spec.n_ref1:
            for name, value in SECOND_FILL.items():
                fill(device_frame.results[name], value)


def _reference(luma: Any) -> dict[str, Any]:
    return {"reference_luma": luma, "reference_y": luma[0]}


class PreviousFrame(NamedTuple):
    """Motion of a frame that search centres continue: list 0, with the distances of its entries (FrameSpec)."""

    ref_idx: Any
    mv: Any
    distances: tuple[int, ...]

    @classmethod
    def of(cls, frame: Frame, distances: tuple[int, ...]) -> "PreviousFrame":
        """distances: as in FrameSpec. Numbers follow that no block refers to, so that frames with fewer entries are alike."""
        last = distances[-1] if distances else 0
        return cls(frame.ref_idx, frame.mv, (*distances, *range(last + 1, last + 1 + MOST_ENTRIES - len(distances))))


class FrameBinding(NamedTuple):
    """Where the arrays of a frame lie in the memory of its device."""

    arrays: Arrays
    frame: Frame  # its own arrays
    params: Any  # frame_params
    slot: int  # of the decoded frame
    list_slots: tuple[int, ...]  # slots of both lists
    previous: PreviousFrame | None  # the frame whose motion is continued

    def state(self, spec: FrameSpec) -> dict[str, Any]:
        """Arguments of the stages by name."""
        _, frame, params, slot, list_slots, previous = self
        state = self.arrays.state(spec, frame, slot, list_slots, previous, decision_params(params))
        return state | {"frame_params": params}

    def reference_states(self, spec: FrameSpec) -> list[dict[str, Any]]:
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


class FrameLoop(Protocol):
    """Runs the stages of frames, one frame at a time, from source to results and reference."""

    executor: Any

    def run(self, frame: Frame) -> Callable[[], None]:
        """Run all stages of a loaded frame. Returns a function that blocks until `frame` holds the results."""

    def rewind(self) -> None:
        """Be as before the last frame, which is finished; the same frame follows again."""


class Loop:
    """See FrameLoop: on the threads of one CPU executor."""

    def __init__(
        self, settings: LoopSettings, executor: OneDevice, arrays: Arrays | None = None,
        dpb: DecodedPictureBuffer | None = None,
    ) -> None:  # fmt: skip
        """arrays, dpb: shared with a loop that alternates with this one."""
        self.settings, self.config, self.executor = settings, settings.config, executor
        self.arrays = Arrays(settings, executor) if arrays is None else arrays
        self.references = self.arrays.references
        n_busy = 1 + executor.parallel_b_frames + executor.frames_on_device
        self.dpb = DecodedPictureBuffer(self.arrays.slots, n_busy) if dpb is None else dpb
        # On a CPU each B frame runs on one thread, in parallel with other frames: see Executor.parallel_b_frames
        self._frame_executor_b = (
            executor.single_threaded() if isinstance(executor, Executor) and executor.parallel_b_frames > 0 else None
        )
        self._idle_arrays: list[Arrays] = []  # for these, with workspaces
        self._tasks_by_slot: dict[int, DependentTask] = {}  # the last frames, by slot
        self._last: list[DependentTask] = []  # the last one that is no B frame
        self._compiled_frames = CompiledFrames(self.config)
        self.for_download = tuple({ENTROPY_STAGE} - executor.deferred)  # the entropy stage, if this device runs it
        self._before: PreviousFrame | None = None  # `previous` of the last frame
        self.previous: PreviousFrame | None = None  # the last frame; B frames may lie between a frame and what it continues

    def run(self, frame: Frame) -> Callable[[], None]:
        """See FrameLoop."""
        self._before = self.previous
        slot, list_slots = self.dpb.begin(frame.spec)
        previous = self._continued(frame.spec, list_slots)
        frame.write_params(self.arrays.list_numbers(frame.spec, list_slots, previous))
        ready: Callable[[], None]
        if self._frame_executor_b is not None:
            coded, ready = frame, self._start_task(self._frame_executor_b, frame, slot, list_slots, previous)
        else:
            with self.executor.at_work():
                coded = self._code(frame, slot, list_slots, previous)
                ready = self.executor.download_of(frame.ring_slot)
        self.previous = PreviousFrame.of(coded, frame.spec.distances)
        self.dpb.end(frame.spec, slot, list_slots)
        return ready

    def _start_task(
        self, executor_b: Executor, frame: Frame, slot: int, list_slots: tuple[int, ...], previous: PreviousFrame | None
    ) -> DependentTask:
        """A task for `_code`, which starts when the reference frames are coded.

        A B frame runs on one thread, beside others. All other frames, and with many threads B frames that are references,
        run in coding order, their steps shared by idle threads, and before B frames that wait.
        """
        assert isinstance(self.executor, Executor)
        awaited = [self._tasks_by_slot[k] for k in {*list_slots} if k in self._tasks_by_slot]
        if frame.spec.n_ref1 and not (frame.spec.is_reference and self.config.shares_references):
            code = partial(self._code_parallel, executor_b, frame, slot, list_slots, previous)
            ready = self.executor.after(code, awaited, urgent=False)
        else:
            shared = partial(self._code, frame, slot, list_slots, previous)
            ready = self.executor.after(shared, [*awaited, *self._last], urgent=True)
            self._last = [ready]
        self._tasks_by_slot[slot] = ready
        return ready

    def _code_parallel(
        self, executor_b: Executor, frame: Frame, slot: int, list_slots: tuple[int, ...], previous: PreviousFrame | None
    ) -> None:
        """`_code` in one thread, while later frames run in others, with a workspace of its own."""
        loop = copy(self)
        try:
            arrays = self._idle_arrays.pop()
        except IndexError:  # all are in use
            arrays = self.arrays.with_own_workspace().for_executor(executor_b)
        try:
            loop.executor, loop.arrays = executor_b, arrays
            loop._code(frame, slot, list_slots, previous)
        finally:
            self._idle_arrays.append(arrays)

    def rewind(self) -> None:
        """See FrameLoop. No array has to be restored: a frame never overwrites what it reads."""
        self.dpb.rewind()
        self.previous = self._before

    def _continued(self, spec: FrameSpec, list_slots: tuple[int, ...]) -> PreviousFrame | None:
        """The frame whose motion the search continues: the last one; in streams with B frames see Arrays.continued."""
        return self.arrays.continued(spec, list_slots, self.dpb) or self.previous

    def _code(self, frame: Frame, slot: int, list_slots: tuple[int, ...], previous: PreviousFrame | None) -> Frame:
        """Do, or start, all stages. Returns the frame's arrays in the executor's memory."""
        frame.levels_packed = False
        frame.samples()
        if isinstance(frame, HostFrame):
            frame.mark_levels_dirty()
        binding = FrameBinding(self.arrays, frame, frame.frame_params, slot, list_slots, previous)
        run = self._compiled_frames.bind(
            self.executor, frame, binding.argument_groups(frame.spec), self.arrays.entropy_groups(frame)
        )
        if run is None:
            self._stages(frame, binding)
            frame.write_slices = self.arrays.deferred_write(frame)
        else:
            self.arrays.fill(frame, frame)
            run()
        self.executor.download_results(frame.index, self._decoded(frame, binding), frame.ring_slot)
        return frame

    def _decoded(self, frame: Frame, binding: FrameBinding) -> list[tuple[Any, np.ndarray]]:
        """(source, target) arrays for the copy of the decoded frame; empty if it is not needed on the host."""
        if frame.decoded is None or not frame.keep_reconstruction:
            return []
        (luma, chroma), (to_luma, to_chroma) = binding.arrays.planes(binding.slot), frame.decoded
        return [(luma[0], to_luma), (chroma, to_chroma)]

    def restore(self, frames: Sequence[Frame], previous: Frame | None) -> None:
        """Continue after another loop. frames: the references, with decoded planes, latest first; previous: the last frame,
        which may be none of them.
        """
        self.dpb.restore([frame.spec for frame in frames])
        for slot, frame in enumerate(frames):
            assert frame.decoded is not None
            self.references.luma[slot][0][...], self.references.chroma[slot][...] = frame.decoded
            state = self.arrays.constants | self.arrays.decoded_state(slot)
            self.executor.run([(BORDERS, {}), (("interpolate",), {})], state, {})
            if self.config.has_b_frames:
                self.executor.run([(("keep_motion",), {})], state | frame.arrays | self.references.kept[slot], {})
        self.previous = None if previous is None else PreviousFrame.of(previous, previous.spec.distances)

    def _stages(self, frame: Frame, binding: FrameBinding, entropy_state: Mapping[str, Any] | None = None) -> None:
        """Run the stages from source to reference.

        entropy_state: for the entropy stage, if it is not deferred: it runs as soon as the other results are complete.
        """
        binding.arrays.fill(frame, binding.frame, binding.frame is frame)
        steps, state = self._steps(frame, binding, entropy_state)
        self.executor.run(steps, state, frame.stage_seconds)

    def _steps(
        self, frame: Frame, binding: FrameBinding, entropy_state: Mapping[str, Any] | None = None
    ) -> tuple[list[Step], dict[str, Any]]:
        """The steps of a frame and their arguments by name; entropy_state: see `_stages`."""
        spec = frame.spec
        state, references = binding.state(spec), binding.reference_states(spec)
        steps: list[Step] = [
            (names, references[ref] if ref >= 0 else entropy_state or {} if ENTROPY_STAGE in names else {})
            for names, ref in steps_of(self.config, spec, self.for_download)
        ]
        return steps, state

    def compile(self, frame: Frame, stages: Sequence[str]) -> None:
        """Run stages on an empty frame, whose spec has one reference, to compile their kernels."""
        binding = FrameBinding(self.arrays, frame, frame.frame_params, 1, (0,), self._continued(frame.spec, (0,)))
        state = binding.state(frame.spec) | binding.reference_states(frame.spec)[0]
        state |= {"unweighted_luma": self.references.luma[0], "reference_weights": state["weights"][:N_WEIGHTS]}
        for name in stages:
            self.executor.run([((name,), {})], state, {})


def _partition_mask(partitions: frozenset[str], max_mvs_per_2mb: int) -> int:
    """The bit mask of decisions.ALL_PARTITIONS.

    Table A-1: 8x4 and 4x8 make at most 8 vectors a macroblock, 4x4 16; a limit of 16 for two macroblocks excludes 4x4.
    """
    unlimited = max_mvs_per_2mb in (0, 32)
    small = (MASK_8x4 | MASK_4x4) if unlimited else MASK_8x4
    return MASK_16x16 | ("p8x8" in partitions) * (MASK_16x8 | MASK_8x8) | ("p4x4" in partitions) * small


def _slice_first_mb(settings: LoopSettings) -> np.ndarray:
    """int32[mb_height]: address of the first macroblock of the slice that holds the row."""
    mb_width = settings.config.mb_width
    return np.array([row0 * mb_width for row0, row1 in settings.slices for _ in range(row0, row1)], np.int32)


def _scaling(config: "Config") -> np.ndarray:
    """int16[SCALING_SIZE]: the table of the scaling lists."""
    lists = config.scaling_lists
    return scaling_table(np.array(lists[:6], np.int32), np.array(lists[6:], np.int32))


def _dead_zone(option: int, default: int, of_default: int) -> int:
    """The kernels' number for a dead zone in 1 / 64 of a step on both sides of 0; the default stands for a sixth, a third."""
    return of_default if option == default else ROUNDING * (32 - option) // 64


def _constants(config: "Config") -> dict[str, Any]:
    """The arguments that are the same for all frames."""
    beyond_baseline = config.cabac or config.transform_8x8_mode or config.has_b_frames
    return {
        "pad": config.pad, "chroma_pad": config.pad // 2, "luma_unit": 16, "chroma_unit": 8,
        "width": config.width, "height": config.height,
        "chroma_width": (config.width + 1) // 2, "chroma_height": (config.height + 1) // 2,
        "merange": config.merange, "pattern": (PATTERNS.get(config.me, DIA), config.merange), "step_grid": config.step_grid,
        "max_mv_y": config.max_mv_y, "subme": config.subme, "mb_width": config.mb_width,
        "partition_mask": _partition_mask(config.partitions, config.max_mvs_per_2mb),
        "chroma_qp_offset": config.chroma_qp_offset, "has_scaling_lists": 1 if config.has_scaling_lists else None,
        "trellis": config.trellis,
        "transform_8x8_mode": int(config.transform_8x8_mode) if beyond_baseline else None,
        "cabac": int(config.cabac) if beyond_baseline else None,
        "dead_zone_inter": _dead_zone(config.deadzone_inter, BY_DEFAULT[0], DEAD_ZONE_INTER),
        "dead_zone_intra": _dead_zone(config.deadzone_intra, BY_DEFAULT[1], DEAD_ZONE_INTRA),
        "intra_8x8": int("i8x8" in config.partitions), "psy_rd": round(256 * config.psy_rd),
        "alpha_offset": 2 * config.deblock_alpha, "beta_offset": 2 * config.deblock_beta,
        "disable_idc": config.disable_deblocking_idc,
    }  # fmt: skip
