"""The coding loop: the stages of a frame in the order of their data, and the state that is kept between frames."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ...cpu_simd.decisions import DEAD_ZONE_INTER, DEAD_ZONE_INTRA, DIA, HEX, ROUNDING, SMALL_PARTITIONS, UMH
from ...cpu_simd.layout import N_WEIGHTS
from ...cpu_simd.scaling import scaling_table
from ..arrays import INTRA_FILL, SECOND_FILL, Size
from ..chain import MakePart, merged
from ..cuda_executor import CudaExecutor
from ..executor import Executor, Step, deferred_call
from ..frame_spec import MOST_ENTRIES, FrameSpec
from ..stages import ENTROPY_STAGE
from ..threads.after import After
from .chains import Chains, steps_of
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
        size = Size(config.mb_width, config.mb_height, config.pad, config.lists)
        # frames that are no references may still be read, or coded, while the next ones are coded
        beside = executor.b_streams + (config.lists == 2 and (executor.frames_on_device > 0 or executor.b_streams > 0))
        self.slots = config.dpb_frames + 1 + beside
        self.references = References.allocate(self.slots + config.weightp, size, executor.zeros)
        self.workspace = Workspace(size, config.most_searches, executor.zeros)
        self.constants = _constants(config)
        rows = [*(row0 for row0, _ in settings.slices), config.mb_height]
        self.constants["slice_first_mb"] = executor.constant(_slice_first_mb(settings))
        self.constants["slice_rows"] = executor.constant(np.array(rows, np.int32))
        self.constants["scaling"] = executor.constant(_scaling(config))

    def on(self, executor: Any) -> "Arrays":
        """The same arrays, for another executor of the same memory."""
        other = copy(self)
        other.executor = executor
        return other

    def beside(self) -> "Arrays":
        """The same arrays, with a workspace of their own, for frames beside others."""
        other, config = copy(self), self.config
        size = Size(config.mb_width, config.mb_height, config.pad, config.lists)
        other.workspace = Workspace(size, config.most_searches, self.executor.zeros)
        return other

    def state(
        self, spec: FrameSpec, device_frame: Frame, slot: int, lists: tuple[int, ...], previous: "PreviousFrame | None",
        block: Any,
    ) -> dict[str, Any]:
        """Arguments of the stages by name; `device_frame`: the frame's arrays in this memory; `slot`: of the decoded
        frame; lists: slots of both lists; block: `decision_params` in this memory.
        """
        return merged(self.parts(spec, device_frame, slot, lists, previous, block))

    def parts(
        self, spec: FrameSpec, device_frame: Frame, slot: int, lists: tuple[int, ...], previous: "PreviousFrame | None",
        block: Any,
    ) -> list[MakePart]:  # fmt: skip
        """The arguments of `state` in parts, by what their arrays depend on; in streams with B frames motion of references
        comes from the decoded picture buffer.
        """
        previous = previous or PreviousFrame.of(device_frame, ())
        motion = {"previous_ref_idx": previous.ref_idx, "previous_mv": previous.mv}
        own, workspace, with_b = device_frame.arrays, self.workspace.arrays(), self.config.lists == 2
        numbers = {
            "n_ref": spec.n_ref, "n_ref1": spec.n_ref1 if with_b else None, "duplicates": spec.duplicates,
            "ref_luma": self.references.luma, "ref_chroma": self.references.chroma,
        }  # fmt: skip
        if with_b and spec.n_ref1:  # no part of a B macroblock is smaller than 8x8 (bipredict)
            numbers["partition_mask"] = self.constants["partition_mask"] & ~SMALL_PARTITIONS
        found: list[MakePart] = [
            (("constants",), lambda: self.constants),
            (("frame", id(own)), lambda: own),
            (("workspace", id(workspace)), lambda: workspace),
            (("decoded", slot), lambda: self.decoded_state(slot)),
            (("pools", spec.n_ref, spec.n_ref1, spec.duplicates), lambda: numbers),
            (("motion", id(previous.mv)), lambda: motion),
            (("lists", id(own), spec.n_ref, spec.n_ref1), lambda: list_state(block, spec.n_ref, spec.n_ref1)),
        ]  # fmt: skip
        if with_b:
            found.append((("kept", slot), lambda: self.kept(slot)))
        if with_b and spec.n_ref1:
            colocated = lists[spec.n_ref]
            found.append((("colocated", colocated), lambda: {"colocated_still": self.kept(colocated)["kept_still"]}))
        return found

    def planes(self, slot: int) -> tuple[Any, Any]:
        """Luma and chroma of a slot."""
        return self.references.luma[slot], self.references.chroma[slot]

    def kept(self, slot: int) -> dict[str, Any]:
        """Motion of the frame in a slot, by name."""
        return self.references.kept[slot]

    def list_numbers(self, spec: FrameSpec, lists: tuple[int, ...], previous: "PreviousFrame | None") -> np.ndarray:
        """See params.list_numbers."""
        distances = previous.distances if previous else ()
        weighted = self._searched(spec, lists) if spec.weights else lists
        return list_numbers(spec.distances, len(spec.list0), spec.is_weighted, distances, lists, weighted)

    def continued(self, spec: FrameSpec, lists: tuple[int, ...], dpb: DecodedPictureBuffer) -> "PreviousFrame | None":
        """The frame whose motion the search continues in streams with B frames: the first of list 1, else of list 0, whatever
        frames were coded since; else None.
        """
        if self.config.lists == 1 or not lists:
            return None
        slot = lists[spec.n_ref if spec.n_ref1 else 0]
        kept = self.kept(slot)
        return PreviousFrame(kept["kept_ref_idx"], kept["kept_mv"], dpb.distances[slot])

    def _searched(self, spec: FrameSpec, lists: tuple[int, ...]) -> tuple[int, ...]:
        """The slots of both lists as the search sees them: weighted copies follow the slots of frames."""
        copies = {k: self.slots + n for n, k in enumerate(spec.luma_weighted)}
        return tuple([copies.get(k, slot) for k, slot in enumerate(lists)]) if copies else lists

    def deferred_write(self, frame: Frame) -> Callable[[], None]:
        """The entropy stage as a function for a task; `frame` lies on the host, its planes are padded (`samples`)."""
        return deferred_call(ENTROPY_STAGE, merged(self.entropy_parts(frame)))

    def entropy_parts(self, frame: Frame) -> list[MakePart]:
        """The arguments of the entropy stage in parts, as `parts`."""
        spec, own = frame.spec, frame.arrays
        more = {
            "n_ref": spec.n_ref, "n_ref1": spec.n_ref1 if self.config.lists == 2 else None,
            "frame_params": frame.frame_params, "slice_data": frame.slice_data,
        }  # fmt: skip
        return [
            (("constants",), lambda: self.constants), (("frame", id(own)), lambda: own),
            (("data", id(own), spec.n_ref, spec.n_ref1), lambda: more),
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

    def reference_state(self, ref: int, spec: FrameSpec, lists: tuple[int, ...], block: Any) -> dict[str, Any]:
        """The arguments of the search in entry `ref` of both lists; lists: their slots; block: as in `state`."""
        return merged(self.reference_parts(ref, spec, lists, block))

    def reference_parts(
        self, ref: int, spec: FrameSpec, lists: tuple[int, ...], block: Any, frame: Frame | None = None
    ) -> list[MakePart]:
        """The same in parts, as `parts`; frame: whose `block` it is."""
        weighted, searched, workspace = ref in spec.luma_weighted, self._searched(spec, lists)[ref], self.workspace
        found: list[MakePart] = [
            (("reference", searched), lambda: _reference(self.planes(searched)[0])),
            (("distance", frame and id(frame.arrays), ref, weighted), lambda: reference_params(block, ref, weighted)),
            (("search", id(workspace.arrays()), ref), lambda: workspace.of_reference(ref)),
        ]
        if weighted:
            found.append((("unweighted", lists[ref]), lambda: {"unweighted_luma": self.planes(lists[ref])[0]}))
        return found

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
        if self.config.lists == 2 and not frame.spec.n_ref1:
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


class Places(NamedTuple):
    """Where the arrays of a frame lie in the memory of its device."""

    arrays: Arrays
    frame: Frame  # its own arrays
    params: Any  # frame_params
    slot: int  # of the decoded frame
    lists: tuple[int, ...]  # slots of both lists
    previous: PreviousFrame | None  # the frame whose motion is continued

    def state(self, spec: FrameSpec) -> dict[str, Any]:
        """Arguments of the stages by name."""
        _, frame, params, slot, lists, previous = self
        state = self.arrays.state(spec, frame, slot, lists, previous, decision_params(params))
        return state | {"frame_params": params}

    def reference_states(self, spec: FrameSpec) -> list[dict[str, Any]]:
        """The same of the search in each entry of both lists."""
        block = decision_params(self.params)
        return [self.arrays.reference_state(ref, spec, self.lists, block) for ref in range(len(self.lists))]

    def parts(self, spec: FrameSpec) -> list[list[MakePart]]:
        """Both in parts: first those of `state`, then those of each entry."""
        arrays, frame, params, slot, lists, previous = self
        block, own = decision_params(params), frame.arrays
        first = arrays.parts(spec, frame, slot, lists, previous, block)
        found = [arrays.reference_parts(ref, spec, lists, block, frame) for ref in range(len(lists))]
        return [[*first, (("params", id(own)), lambda: {"frame_params": params})], *found]


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
        n_busy = 1 + executor.b_streams + executor.frames_on_device
        self.dpb = DecodedPictureBuffer(self.arrays.slots, n_busy) if dpb is None else dpb
        # of one thread, for B frames beside others on a CPU, see Executor.b_streams
        self._alone = executor.alone() if isinstance(executor, Executor) and executor.b_streams > 0 else None
        self._idle: list[Arrays] = []  # for these, with workspaces
        self._beside: dict[int, After] = {}  # the last frames, by slot
        self._last: list[After] = []  # the last one that is no B frame
        self._chains = Chains(self.config)
        self.for_download = tuple({ENTROPY_STAGE} - executor.deferred)  # the entropy stage, if this device runs it
        self._before: PreviousFrame | None = None  # `previous` of the last frame
        self.previous: PreviousFrame | None = None  # the last frame; B frames may lie between a frame and what it continues

    def run(self, frame: Frame) -> Callable[[], None]:
        """See FrameLoop."""
        self._before = self.previous
        slot, lists = self.dpb.begin(frame.spec)
        previous = self._continued(frame.spec, lists)
        frame.write_params(self.arrays.list_numbers(frame.spec, lists, previous))
        ready: Callable[[], None]
        if self._alone is not None:
            coded, ready = frame, self._later(self._alone, frame, slot, lists, previous)
        else:
            with self.executor.at_work():
                coded = self._code(frame, slot, lists, previous)
                ready = self.executor.download_of(frame.ring_slot)
        self.previous = PreviousFrame.of(coded, frame.spec.distances)
        self.dpb.end(frame.spec, slot, lists)
        return ready

    def _later(
        self, alone: Executor, frame: Frame, slot: int, lists: tuple[int, ...], previous: PreviousFrame | None
    ) -> After:
        """A task for `_code`, after that of the references: of one thread for B frames; others, and with many threads
        references too, run one after another, each in steps for free threads, before those that wait for them.
        """
        assert isinstance(self.executor, Executor)
        awaited = [self._beside[k] for k in {*lists} if k in self._beside]
        if frame.spec.n_ref1 and not (frame.spec.is_reference and self.config.shares_references):
            code = partial(self._code_beside, alone, frame, slot, lists, previous)
            ready = self.executor.after(code, awaited, urgent=False)
        else:
            shared = partial(self._code, frame, slot, lists, previous)
            ready = self.executor.after(shared, [*awaited, *self._last], urgent=True)
            self._last = [ready]
        self._beside[slot] = ready
        return ready

    def _code_beside(
        self, alone: Executor, frame: Frame, slot: int, lists: tuple[int, ...], previous: PreviousFrame | None
    ) -> None:
        """`_code` in one thread, beside the frames that follow, with a workspace of its own."""
        loop = copy(self)
        try:
            arrays = self._idle.pop()
        except IndexError:  # all are in use
            arrays = self.arrays.beside().on(alone)
        try:
            loop.executor, loop.arrays = alone, arrays
            loop._code(frame, slot, lists, previous)
        finally:
            self._idle.append(arrays)

    def rewind(self) -> None:
        """See FrameLoop. Arrays need no care: the frame writes none that earlier frames have written and it reads."""
        self.dpb.rewind()
        self.previous = self._before

    def _continued(self, spec: FrameSpec, lists: tuple[int, ...]) -> PreviousFrame | None:
        """The frame whose motion the search continues: the last one; in streams with B frames see Arrays.continued."""
        return self.arrays.continued(spec, lists, self.dpb) or self.previous

    def _code(self, frame: Frame, slot: int, lists: tuple[int, ...], previous: PreviousFrame | None) -> Frame:
        """Do, or start, all stages. Returns the frame's arrays in the executor's memory."""
        frame.levels_packed = False
        frame.samples()
        if isinstance(frame, HostFrame):
            frame.mark_levels_dirty()
        places = Places(self.arrays, frame, frame.frame_params, slot, lists, previous)
        run = self._chains.bind(self.executor, frame, places.parts(frame.spec), self.arrays.entropy_parts(frame))
        if run is None:
            self._stages(frame, places)
            frame.write_slices = self.arrays.deferred_write(frame)
        else:
            self.arrays.fill(frame, frame)
            run()
        self.executor.download_results(frame.index, self._decoded(frame, places), frame.ring_slot)
        return frame

    def _decoded(self, frame: Frame, places: Places) -> list[tuple[Any, np.ndarray]]:
        """(source, target) arrays for the copy of the decoded frame; empty if it is not needed on the host."""
        if frame.decoded is None or not frame.keep_reconstruction:
            return []
        (luma, chroma), (to_luma, to_chroma) = places.arrays.planes(places.slot), frame.decoded
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
            if self.config.lists == 2:
                self.executor.run([(("keep_motion",), {})], state | frame.arrays | self.references.kept[slot], {})
        self.previous = None if previous is None else PreviousFrame.of(previous, previous.spec.distances)

    def _stages(self, frame: Frame, places: Places, entropy_state: Mapping[str, Any] | None = None) -> None:
        """Run the stages from source to reference.

        entropy_state: for the entropy stage, if it is not deferred: it runs as soon as the other results are complete.
        """
        places.arrays.fill(frame, places.frame, places.frame is frame)
        steps, state = self._steps(frame, places, entropy_state)
        self.executor.run(steps, state, frame.stage_seconds)

    def _steps(
        self, frame: Frame, places: Places, entropy_state: Mapping[str, Any] | None = None
    ) -> tuple[list[Step], dict[str, Any]]:
        """The steps of a frame and their arguments by name; entropy_state: see `_stages`."""
        spec = frame.spec
        state, references = places.state(spec), places.reference_states(spec)
        steps: list[Step] = [
            (names, references[ref] if ref >= 0 else entropy_state or {} if ENTROPY_STAGE in names else {})
            for names, ref in steps_of(self.config, spec, self.for_download)
        ]
        return steps, state

    def compile(self, frame: Frame, stages: Sequence[str]) -> None:
        """Run stages on an empty frame, whose spec has one reference, to compile their kernels."""
        places = Places(self.arrays, frame, frame.frame_params, 1, (0,), self._continued(frame.spec, (0,)))
        state = places.state(frame.spec) | places.reference_states(frame.spec)[0]
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
    beyond_baseline = config.cabac or config.transform_8x8_mode or config.lists == 2
    return {
        "pad": config.pad, "chroma_pad": config.pad // 2, "luma_unit": 16, "chroma_unit": 8,
        "width": config.width, "height": config.height,
        "chroma_width": (config.width + 1) // 2, "chroma_height": (config.height + 1) // 2,
        "merange": config.merange, "pattern": (PATTERNS.get(config.me, DIA), config.merange), "step_grid": config.step_grid,
        "max_mv_y": config.max_mv_y, "subme": config.subme, "mb_width": config.mb_width,
        "partition_mask": _partition_mask(config.partitions, config.max_mvs_per_2mb),
        "chroma_qp_offset": config.chroma_qp_offset, "has_lists": 1 if config.has_lists else None, "trellis": config.trellis,
        "transform_8x8_mode": int(config.transform_8x8_mode) if beyond_baseline else None,
        "cabac": int(config.cabac) if beyond_baseline else None,
        "dead_zone_inter": _dead_zone(config.deadzone_inter, BY_DEFAULT[0], DEAD_ZONE_INTER),
        "dead_zone_intra": _dead_zone(config.deadzone_intra, BY_DEFAULT[1], DEAD_ZONE_INTRA),
        "intra_8x8": int("i8x8" in config.partitions), "psy_rd": round(256 * config.psy_rd),
        "alpha_offset": 2 * config.deblock_alpha, "beta_offset": 2 * config.deblock_beta,
        "disable_idc": config.disable_deblocking_idc,
    }  # fmt: skip
