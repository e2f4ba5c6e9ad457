"""The coding loop: the stages of a frame in the order of their data, and the state that is kept between frames."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ...scheduler.devices import CudaExecutor, OneDevice
from ...scheduler.executor import deferred_call
from ...scheduler.stages import ENTROPY_STAGE, picture_steps
from ...standard.macroblock import I_4x4
from ..decisions.quantiser import LAMBDA
from ..settings.config import Config
from .frame import Frame, HostFrame, References, Workspace, Zeros, nothing, split_planes, split_upload, upload_shape

BORDERS = ("extend_luma", "extend_cb", "extend_cr")
KIND_16x16, KIND_16x8, KIND_8x8, KIND_8x4, KIND_4x4 = 1, 2, 4, 8, 16  # partition sizes, down to the one named


class Arrays:
    """The arrays of one memory: reference frames, workspace, constants; as arguments of stages by name."""

    def __init__(self, config: Config, slice_rows: list[tuple[int, int]], side: Any) -> None:
        """side: an executor or worker: it has zeros, constant, interior, fill and tickets."""
        width, height = config.mb_width, config.mb_height
        self.config, self.side = config, side
        self.references = References.allocate(config.ref + 1, 16 * height, 16 * width, config.pad, side.zeros)
        self.workspace = Workspace(width, height, config.ref, side.zeros)
        self.constants = _constants(config)
        self.constants["slice_first_mb"] = side.constant(_slice_first_mb(config, slice_rows))
        rows = [*(row0 for row0, _ in slice_rows), height]
        self.constants |= {"slice_rows": side.constant(np.array(rows, np.int32)), "lambdas": side.constant(LAMBDA)}

    def on(self, side: Any) -> "Arrays":
        """The same arrays, for another executor of the same memory."""
        mine = copy(self)
        mine.side = side
        return mine

    def state(self, frame: Frame, there: Frame, slot: int, previous: Frame | None) -> dict[str, Any]:
        """Arguments of the stages by name; `there`: the frame's arrays in this memory; `slot`: of the decoded frame."""
        references, previous = self.references, previous or there
        return self.constants | there.arrays | self.workspace.arrays() | self.picture_state(slot) | {
            "n_ref": frame.n_ref,
            "ref_luma": references.luma,
            "ref_chroma": references.chroma,
            "ref_slots": self.side.constant(np.array(references.held or [0], np.int32)),
            "previous_ref_idx": previous.ref_idx,
            "previous_mv": previous.mv,
        }  # fmt: skip

    def deferred_write(self, frame: Frame) -> Callable[[], None]:
        """The entropy stage as a function for a task; `frame` lies on the host, its planes are padded (`samples`)."""
        own = {"n_ref": frame.n_ref, "frame_params": frame.frame_params, "slice_data": frame.slice_data}
        return deferred_call(ENTROPY_STAGE, self.constants | frame.arrays | own)

    def picture_state(self, slot: int) -> dict[str, Any]:
        """The arguments for the decoded frame in `slot`."""
        luma, chroma, pad = self.references.luma[slot], self.references.chroma[slot], self.config.pad
        y, cb, cr = luma[0], chroma[0], chroma[1]
        interior = self.side.interior
        return {
            "pad": pad, "decoded_luma": luma, "decoded_half": luma[1:], "decoded_y": y, "decoded_u": cb, "decoded_v": cr,
            "out_y": interior(y, pad), "out_u": interior(cb, pad // 2), "out_v": interior(cr, pad // 2),
        }  # fmt: skip

    def reference_state(self, ref: int) -> dict[str, Any]:
        """The arguments of the search in RefPicList0[ref]."""
        luma, work = self.references.luma[self.references.held[ref]], self.workspace
        return {
            "reference_luma": luma, "reference_y": luma[0], "distance": ref + 1, "centre": work.all_centre[ref],
            "predictor": work.all_predictor[ref], "search_cost": work.all_cost[ref], "search_mv": work.all_mv[ref],
        }  # fmt: skip

    def fill(self, frame: Frame, there: Frame, qp: bool = True) -> None:
        """Initial values of all macroblocks; qp: whether to fill qp too (stages load_* fill it)."""
        fill = self.side.fill
        if qp:
            fill(there.qp, frame.slice_qp)
        if frame.n_ref and self.side.tickets:
            fill(self.workspace.progress, 0)
        elif not frame.n_ref:
            fill(there.mb_type, I_4x4)
            fill(there.ref_idx, -1)
            fill(there.mv, 0)


class Loop:
    """Runs one frame at a time on one executor, from source to results and reference."""

    def __init__(
        self, config: Config, slice_rows: list[tuple[int, int]], executor: OneDevice, arrays: Arrays | None = None,
        frames_on_device: list[Frame] | None = None,
    ) -> None:  # fmt: skip
        """arrays, frames_on_device: shared with a loop that alternates with this one."""
        width, height = config.mb_width, config.mb_height
        self.config, self.slice_rows = config, slice_rows
        self.executor = executor
        self.arrays = Arrays(config, slice_rows, executor) if arrays is None else arrays
        self.references = self.arrays.references
        if frames_on_device is None:
            frames_on_device = [Frame(width, height, executor.zeros) for _ in range(executor.frames_on_device)]
        self.frames_on_device = frames_on_device
        self.given = [_given(config, executor.zeros) for _ in self.frames_on_device]
        self.for_download = tuple({ENTROPY_STAGE} - executor.deferred)  # the entropy stage, if this device runs it
        self.previous: Frame | None = None  # its vectors give search centres

    def run(self, frame: Frame) -> Callable[[], None]:
        """Run all stages of a loaded frame. Returns a function that blocks until `frame` holds the results."""
        if frame.is_idr:
            self.references.clear()
        slot = self.references.free_slot()
        frame.write_params()
        with self.executor.at_work():
            frame.levels_packed = False
            if self.frames_on_device:
                assert isinstance(frame, HostFrame)
                there = self._run_on_gpu(frame, slot)
            else:
                there = frame
                frame.samples()
                if isinstance(frame, HostFrame):
                    frame.mark_levels_dirty()
                self._stages(frame, there, slot)
                self.executor.take(frame.index, self._decoded(frame, slot), id(frame))
            ready = self.executor.home(id(frame))
        frame.write_slices = nothing if self.for_download else self.arrays.deferred_write(frame)
        self.references.push(slot, self.config.ref)
        self.previous = there
        return ready

    def _run_on_gpu(self, frame: HostFrame, slot: int) -> Frame:
        """Upload the source, run the stages on a GPU and download the results."""
        executor, k, picture = self.executor, frame.index % len(self.frames_on_device), frame.picture
        there, given = self.frames_on_device[k], self.given[k]
        assert isinstance(executor, CudaExecutor)
        params = {"frame_params": given["frame_params"]}
        if picture is not None:
            state = self.arrays.constants | there.arrays | picture.numbers | params
            pairs = [(frame.frame_params, given["frame_params"])]
            executor.import_device_frame(frame.index, picture.stage, picture.pointers, pairs, picture.producer, state)
        upload_fence = frame.pending_fence
        kind = (frame.n_ref, picture is None, frame.kept, upload_fence is None)
        own = [frame.upload_fence, *(frame.decoded or ())]
        mine = [frame.upload, frame.block, frame.slice_data, *(array for array in own if array is not None)]
        with executor.record_or_replay((k, slot, tuple(self.references.held), kind), id(frame), mine) as fresh:
            if fresh:
                if picture is None:
                    state, pairs = self.arrays.constants | there.arrays | given, [(frame.upload, given["upload"])]
                    executor.upload_frame(frame.index, pairs, (("load_i420",), {}), state, upload_fence)
                self._stages(frame, there, slot, params | {"slice_data": executor.across(frame.slice_data)})
                executor.take(frame.index, [(there.block, frame.block), *self._decoded(frame, slot)], id(frame))
        return there

    def _decoded(self, frame: Frame, slot: int) -> list[tuple[Any, np.ndarray]]:
        """(source, target) arrays for the copy of the decoded frame; empty if it is not needed on the host."""
        if frame.decoded is None or not frame.kept:
            return []
        luma, chroma = frame.decoded
        return [(self.references.luma[slot][0], luma), (self.references.chroma[slot], chroma)]

    def restore(self, frames: Sequence[Frame]) -> None:
        """Continue after another loop; `frames`: the references, with decoded planes, latest first."""
        for slot, frame in enumerate(frames):
            assert frame.decoded is not None
            self.references.luma[slot][0][...], self.references.chroma[slot][...] = frame.decoded
            state = self.arrays.constants | self.arrays.picture_state(slot)
            self.executor.run([(BORDERS, {}), (("interpolate",), {})], state, {})
        self.references.held[:] = range(len(frames))
        self.previous = frames[0] if frames else None

    def _stages(self, frame: Frame, there: Frame, slot: int, entropy_state: Mapping[str, Any] | None = None) -> None:
        """Run the stages from source to reference; `there`: the frame's arrays in the executor's memory.

        entropy_state: for the entropy stage, if it is not deferred: it runs as soon as the other results are complete.
        """
        self.arrays.fill(frame, there, there is frame)
        references = [self.arrays.reference_state(ref) for ref in range(frame.n_ref)]
        steps = [
            (names, references[ref] if ref >= 0 else entropy_state or {} if ENTROPY_STAGE in names else {})
            for names, ref in picture_steps(frame.n_ref, self.config.me, self.for_download, self.config.subme)
        ]
        self.executor.run(steps, self._state(frame, there, slot), frame.stage_seconds)

    def compile(self, frame: Frame, stages: Sequence[str]) -> None:
        """Run stages on an empty frame with one reference to compile their kernels."""
        frame.n_ref = 1
        self.references.push(0, 1)
        state = self._state(frame, frame, 1) | self.arrays.reference_state(0)
        for name in stages:
            self.executor.run([((name,), {})], state, {})

    def _state(self, frame: Frame, there: Frame, slot: int) -> dict[str, Any]:
        """Arguments of the stages by name."""
        return self.arrays.state(frame, there, slot, self.previous)


def _partition_kinds(partitions: frozenset[str], max_mvs_per_2mb: int) -> int:
    """The bit mask of subpel_refine.ALL_KINDS.

    Table A-1: 8x4 and 4x8 make at most 8 vectors a macroblock, 4x4 16; a limit of 16 for two macroblocks excludes 4x4.
    """
    unlimited = max_mvs_per_2mb in (0, 32)
    small = (KIND_8x4 | KIND_4x4) if unlimited else KIND_8x4
    return KIND_16x16 | ("p8x8" in partitions) * (KIND_16x8 | KIND_8x8) | ("p4x4" in partitions) * small


def _slice_first_mb(config: Config, slice_rows: list[tuple[int, int]]) -> np.ndarray:
    """int32[mb_height]: address of the first macroblock of the slice that holds the row."""
    return np.array([row0 * config.mb_width for row0, row1 in slice_rows for _ in range(row0, row1)], np.int32)


def _given(config: Config, zeros: Zeros) -> dict[str, Any]:
    """The upload target of a frame of display size on a GPU, with its parameters, planes and pitches by name."""
    upload = zeros(upload_shape(config.mb_height, config.display), np.uint8)
    params, source = split_upload(upload, config.mb_height)
    y, u, v = split_planes(source, config.display)
    pitches = {"pitch": config.width, "chroma_pitch": (config.width + 1) // 2}
    return {"upload": upload, "frame_params": params, "given_y": y, "given_u": u, "given_v": v, **pitches}


def _constants(config: Config) -> dict[str, Any]:
    """The arguments that are the same for all frames."""
    return {
        "pad": config.pad, "chroma_pad": config.pad // 2, "luma_unit": 16, "chroma_unit": 8,
        "width": config.width, "height": config.height,
        "chroma_width": (config.width + 1) // 2, "chroma_height": (config.height + 1) // 2,
        "merange": config.merange, "step_grid": config.step_grid, "max_mv_y": config.max_mv_y, "subme": config.subme,
        "mb_width": config.mb_width, "partition_mask": _partition_kinds(config.partitions, config.max_mvs_per_2mb),
        "chroma_qp_offset": config.chroma_qp_offset, "trellis": config.trellis,
        "alpha_offset": 2 * config.deblock_alpha, "beta_offset": 2 * config.deblock_beta,
        "disable_idc": config.disable_deblocking_idc,
    }  # fmt: skip
