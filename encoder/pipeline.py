"""A frame's way: the loop of stages in the order of the data, and the bits beside the next frame's loop."""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..scheduler.executor import Executor, bands
from ..standard.macroblock import I_4x4
from .config import Config
from .first_run import compile_beside, will_compile
from .frame import Frame, References, Workspace
from .ratecontrol import LAMBDA
from .slice_writer import SliceWriter

KIND_16x16, KIND_16x8, KIND_8x8, KIND_4x4 = 1, 2, 4, 8  # partition sizes, down to the one named
Planes = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class EncodedFrame:
    """One access unit and what is known about it."""

    index: int
    frame_type: str  # "I" or "P"
    is_idr: bool
    qp: int
    avg_qp: float
    data: bytes  # Annex B
    mb_counts: np.ndarray  # int64[8], by mb_type
    ssd: tuple[int, int, int]  # squared error over the display area of Y, Cb, Cr
    bits: int
    stage_seconds: dict[str, float]
    reconstruction: Planes | None  # cropped, as a decoder returns it


class Pipeline:
    """Encodes pictures in order. One picture at a time is in the loop; entropy coding of earlier ones runs beside it."""

    def __init__(self, config: Config, keep_reconstruction: bool = False) -> None:
        self.config = config
        self.keep_reconstruction = keep_reconstruction
        width, height = config.mb_width, config.mb_height
        slice_rows = bands(height, config.slices)
        self.executor = Executor(config.threads, height, [(width * row0, width * row1) for row0, row1 in slice_rows])
        self.writer = SliceWriter(config, slice_rows)
        self.references = References.allocate(config.ref + 1, 16 * height, 16 * width, config.pad)
        self.workspace = Workspace(width, height, config.ref)
        self.in_flight = config.threads  # frames whose bits may be under way beside the loop
        self.ring = [Frame(width, height) for _ in range(self.in_flight + 2)]  # + the one in the loop, the one before
        self.pending: deque[Future[EncodedFrame]] = deque()
        self.count = self.since_idr = self.idr_count = 0
        self.constants = _constants(config, slice_rows)
        if will_compile():
            compile_beside()

    def headers(self) -> bytes:
        """Sequence and picture parameter sets as an Annex B byte stream."""
        return self.writer.parameter_sets

    def encode(self, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> list[EncodedFrame]:
        """Take one picture: uint8 planes of display size. Return what is finished, in order."""
        frame = self.ring[self.count % len(self.ring)]
        frame.load(y, u, v)
        self._choose_type(frame)
        slot = self.references.free_slot()
        self._loop(frame, slot)
        self.references.push(slot, self.config.ref)
        reconstruction = self._reconstruction(slot) if self.keep_reconstruction else None
        self.pending.append(self.executor.submit(self._write, frame, reconstruction))
        self.count += 1
        return self._finished(self.in_flight)

    def flush(self) -> list[EncodedFrame]:
        """What is still under way."""
        return self._finished(0)

    def close(self) -> None:
        """End the threads."""
        self.executor.close()

    def compile(self, stages: Sequence[str]) -> None:
        """Run stages on an empty picture with one reference: only so that their kernels are compiled."""
        frame = self.ring[0]
        frame.n_ref = 1
        self.references.push(0, 1)
        state = self._state(frame, 1) | self._reference_state(0)
        for name in stages:
            self.executor.run([name], state, {})

    def _choose_type(self, frame: Frame) -> None:
        """IDR every `keyint` pictures, P between; every picture is a reference, so frame_num counts them (7.4.3)."""
        if self.count == 0 or self.since_idr >= self.config.keyint:
            self.references.clear()
            self.since_idr = 0
            self.idr_count += 1
        frame.index = self.count
        frame.is_idr = self.since_idr == 0
        frame.idr_pic_id = self.idr_count % 2  # 7.4.3: two IDR pictures in a row differ
        frame.frame_num = self.since_idr
        frame.n_ref = len(self.references.held)
        frame.slice_qp = self.config.i_qp if frame.is_idr else self.config.qp
        frame.qp.fill(frame.slice_qp)
        if not frame.n_ref:
            frame.mb_type.fill(I_4x4)
            frame.ref_idx.fill(-1)
            frame.mv.fill(0)
        frame.stage_seconds = {}
        self.since_idr += 1

    def _loop(self, frame: Frame, slot: int) -> None:
        """The stages of one picture, from source to reference."""
        state = self._state(frame, slot)

        def run(*stages: str, **more: Any) -> None:
            self.executor.run(stages, state | more if more else state, frame.stage_seconds)

        if frame.n_ref:
            for ref in range(frame.n_ref):
                reference = self._reference_state(ref)
                run("subsample", **reference)
                run("search_centre", "full_search", "subpel_refine", **reference)
            run("intra_estimate")
            self.workspace.progress.fill(0)
            run("mode_decision")
            run("inter_residual")
        run("intra")
        if frame.n_ref:
            run("mark_skipped", "deblock")
        else:
            run("deblock")
        for plane in ("luma", "cb", "cr"):
            run(f"extend_{plane}")
        run("interpolate", "ssd_y", "ssd_u", "ssd_v")

    def _state(self, frame: Frame, slot: int) -> dict[str, Any]:
        """What the stages of this picture may ask for, by name."""
        pad, references = self.config.pad, self.references
        luma, (cb, cr) = references.luma[slot], references.chroma[slot]
        border, chroma_border = slice(pad, -pad), slice(pad // 2, -(pad // 2))
        previous = self.ring[(self.count - 1) % len(self.ring)]
        return self.constants | frame.arrays() | self.workspace.arrays() | {
            "lam": int(LAMBDA[frame.slice_qp]),
            "n_ref": frame.n_ref,
            "slice_qp": frame.slice_qp,
            "ref_luma": references.luma,
            "ref_chroma": references.chroma,
            "ref_slots": np.array(references.held, np.int32),
            "previous_ref_idx": previous.ref_idx,
            "previous_mv": previous.mv,
            "decoded_luma": luma, "decoded_y": luma[0], "decoded_u": cb, "decoded_v": cr,
            "out_y": luma[0][border, border],
            "out_u": cb[chroma_border, chroma_border], "out_v": cr[chroma_border, chroma_border],
        }  # fmt: skip

    def _reference_state(self, ref: int) -> dict[str, Any]:
        """What the search in RefPicList0[ref] reads and writes."""
        luma, work = self.references.luma[self.references.held[ref]], self.workspace
        return {
            "reference_luma": luma, "reference_y": luma[0], "distance": ref + 1, "centre": work.all_centre[ref],
            "predictor": work.all_predictor[ref], "search_cost": work.all_cost[ref], "search_mv": work.all_mv[ref],
        }  # fmt: skip

    def _write(self, frame: Frame, reconstruction: Planes | None) -> EncodedFrame:
        """The bits of a picture whose loop is done."""
        start = time.perf_counter()
        data = self.writer.access_unit(frame)
        frame.stage_seconds["entropy"] = time.perf_counter() - start
        return EncodedFrame(
            index=frame.index,
            frame_type="P" if frame.n_ref else "I",
            is_idr=frame.is_idr,
            qp=frame.slice_qp,
            avg_qp=float(frame.qp.mean()),
            data=data,
            mb_counts=np.bincount(frame.mb_type, minlength=8),
            ssd=(int(frame.ssd_y.sum()), int(frame.ssd_u.sum()), int(frame.ssd_v.sum())),
            bits=8 * len(data),
            stage_seconds=frame.stage_seconds,
            reconstruction=reconstruction,
        )

    def _finished(self, limit: int) -> list[EncodedFrame]:
        """Pictures whose bits are done, in order; waits until at most `limit` are under way."""
        done = []
        while self.pending and (len(self.pending) > limit or self.pending[0].done()):
            done.append(self.pending.popleft().result())
        return done

    def _reconstruction(self, slot: int) -> Planes:
        """A copy of the decoded picture in `slot`, cropped as the SPS says."""
        pad, config = self.config.pad, self.config
        width, height = config.output_width, config.output_height
        cb, cr = self.references.chroma[slot, :, pad // 2 :, pad // 2 :][:, : height // 2, : width // 2].copy()
        return self.references.luma[slot, 0, pad : pad + height, pad : pad + width].copy(), cb, cr


def _partition_kinds(partitions: frozenset[str]) -> int:
    """The bit mask of subpel_refine.ALL_KINDS."""
    return KIND_16x16 | ("p8x8" in partitions) * (KIND_16x8 | KIND_8x8) | ("p4x4" in partitions) * KIND_4x4


def _constants(config: Config, slice_rows: list[tuple[int, int]]) -> dict[str, Any]:
    """State that is the same for all pictures."""
    first_mb = [row0 * config.mb_width for row0, row1 in slice_rows for _ in range(row0, row1)]
    return {
        "pad": config.pad, "chroma_pad": config.pad // 2, "luma_unit": 16, "chroma_unit": 8,
        "width": config.width, "height": config.height,
        "chroma_width": (config.width + 1) // 2, "chroma_height": (config.height + 1) // 2,
        "merange": config.merange, "max_mv_y": config.max_mv_y, "subme": config.subme,
        "mb_width": config.mb_width, "partition_kinds": _partition_kinds(config.partitions),
        "chroma_qp_offset": config.chroma_qp_offset,
        "alpha_offset": 2 * config.deblock_alpha, "beta_offset": 2 * config.deblock_beta,
        "disable_idc": config.disable_deblocking_idc,
        "slice_first_mb": np.array(first_mb, np.int32),
    }  # fmt: skip
