"""THE stage table: what each stage is called, which function runs it where, what it reads and writes, how it splits.

Arguments carry the names of the frame's state (encoder/frame.py and encoder/pipeline.py); the two that say which part of
the picture a call does are ROWS's `row0 row1` (macroblock rows) or SLICES's `first_mb end_mb`. Nothing else in the
project asks which device runs a stage.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

# TICKETS: all threads call it with the whole picture's rows and share them out among themselves
ROWS, SLICES, FRAME, TICKETS = "macroblock rows", "slices", "whole frame", "rows by ticket"
_SPAN = {ROWS: ("row0", "row1"), SLICES: ("first_mb", "end_mb"), FRAME: (), TICKETS: ("row0", "row1")}


@dataclass(frozen=True)
class Stage:
    """A row of the table: `cpu` is file.function in cpu_simd; `writes` are those of its arguments that it changes."""

    name: str
    cpu: str
    split: str
    clause: str
    arguments: str
    writes: str

    @property
    def reads(self) -> tuple[str, ...]:
        """The state it depends on."""
        without = (*self.writes.split(), *_SPAN[self.split])
        return tuple(name for name in self.arguments.split() if name not in without)

    @cached_property
    def cpu_function(self) -> Callable[..., Any]:
        """The kernel, imported when the stage first runs."""
        file, function = self.cpu.split(".")
        return getattr(import_module(f"..cpu_simd.{file}", __package__), function)

    def bind(self, state: Mapping[str, Any]) -> Callable[..., Any]:
        """The stage as a function of its span alone; every other argument is the state of that name."""
        function, span, names = self.cpu_function, _SPAN[self.split], self.arguments.split()
        values = [None if name in span else state[name] for name in names]
        at = names.index(span[0]) if span else len(names)
        before, after = values[:at], values[at + len(span) :]
        return lambda *part: function(*before, *part, *after)


TABLE = (
    Stage(
        "subsample", "search_centre.subsample", ROWS, "encoder",
        "source_y reference_y pad row0 row1 coarse_source coarse_reference",
        "coarse_source coarse_reference",
    ),
    Stage(
        "search_centre", "search_centre.search_centre", ROWS, "encoder",
        "source_y reference_y pad coarse_source coarse_reference previous_ref_idx previous_mv distance lam merange "
        "max_mv_y row0 row1 centre predictor",
        "centre predictor",
    ),
    Stage(
        "full_search", "full_search.full_search", ROWS, "encoder",
        "source_y reference_y pad centre predictor lam merange row0 row1 search_cost search_mv",
        "search_cost search_mv",
    ),
    Stage(
        "subpel_refine", "subpel_refine.subpel_refine", ROWS, "encoder",
        "source_y reference_luma pad predictor lam subme row0 row1 search_cost search_mv partition_kinds",
        "search_cost search_mv",
    ),
    Stage(
        "intra_estimate", "intra_estimate.intra_estimate", ROWS, "encoder",
        "source_y lam row0 row1 intra_cost",
        "intra_cost",
    ),
    Stage(
        "mode_decision", "mode_decision.mode_decision", TICKETS, "encoder",
        "source_y ref_luma ref_slots pad all_cost all_mv all_predictor intra_cost slice_first_mb lam slice_qp subme "
        "max_mv_y n_ref partition_kinds progress row0 row1 mb_type sub_mb_type ref_idx mv",
        "progress mb_type sub_mb_type ref_idx mv",
    ),
    Stage(
        "inter_residual", "inter_residual.inter_residual", ROWS, "8.4, 8.5",
        "source_y source_u source_v ref_luma ref_chroma ref_slots pad mb_type sub_mb_type ref_idx mv qp "
        "chroma_qp_offset row0 row1 rec_y rec_u rec_v levels total_coeff cbp",
        "mb_type ref_idx mv rec_y rec_u rec_v levels total_coeff cbp",
    ),
    Stage(
        "intra", "intra.intra", SLICES, "8.3, 8.5",
        "source_y source_u source_v slice_first_mb lam chroma_qp_offset first_mb end_mb mb_type intra4x4_mode "
        "intra16x16_mode intra_chroma_mode qp rec_y rec_u rec_v levels total_coeff cbp",
        "mb_type intra4x4_mode intra16x16_mode intra_chroma_mode rec_y rec_u rec_v levels total_coeff cbp",
    ),
    Stage(
        "mark_skipped", "mode_decision.mark_skipped", ROWS, "8.4.1.1",
        "slice_first_mb ref_idx mv cbp mb_width row0 row1 mb_type",
        "mb_type",
    ),
    Stage(
        "deblock", "deblock.deblock", ROWS, "8.7",
        "rec_y rec_u rec_v mb_type ref_idx mv total_coeff qp chroma_qp_offset alpha_offset beta_offset disable_idc "
        "slice_first_mb row0 row1 out_y out_u out_v",
        "out_y out_u out_v",
    ),
    Stage("extend_luma", "interpolate.extend_borders", FRAME, "8.4.2.2", "decoded_y pad", "decoded_y"),
    Stage("extend_cb", "interpolate.extend_borders", FRAME, "8.4.2.2", "decoded_u chroma_pad", "decoded_u"),
    Stage("extend_cr", "interpolate.extend_borders", FRAME, "8.4.2.2", "decoded_v chroma_pad", "decoded_v"),
    Stage("interpolate", "interpolate.interpolate", ROWS, "8.4.2.2.1", "decoded_luma pad row0 row1", "decoded_luma"),
    Stage("ssd_y", "ssd.ssd", ROWS, "encoder", "source_y decoded_y pad height width luma_unit row0 row1 ssd_y", "ssd_y"),
    Stage(
        "ssd_u", "ssd.ssd", ROWS, "encoder",
        "source_u decoded_u chroma_pad chroma_height chroma_width chroma_unit row0 row1 ssd_u", "ssd_u",
    ),
    Stage(
        "ssd_v", "ssd.ssd", ROWS, "encoder",
        "source_v decoded_v chroma_pad chroma_height chroma_width chroma_unit row0 row1 ssd_v", "ssd_v",
    ),
)  # fmt: skip

STAGES = {stage.name: stage for stage in TABLE}
