"""The stage table: name, function, arguments, split, stream and dependencies of each stage.

A stage has one name everywhere: `function` is folder/file.function in cpu_simd/ and, with the same arguments, in
cuda_src/.
Arguments have the names of the table of arrays (arrays.py), which checks them at import, or of bundles of these (bundles.py),
with their access before the name: `W:` written, `RW:` written in part or read before, so that its rows must be resident,
none: read. A bundle has one access for all members, or one for each: `R,RW:slice_order`. Two arguments select the part of the
frame that a call does: `row0 row1` (macroblock rows) for ROWS, `first_mb end_mb` for SLICES. No other module decides by
device which function runs a stage.

A deferred stage is no step of the loop on the CPU: a task calls it (executor.deferred_call) when the frame's other results
are on the host, concurrently with the loop of later frames. A GPU that has it runs it before the download.

On a GPU, MAIN runs the coding loop, SIDE the stages that the loop does not need at once, H2D and D2H the copies and the
stages next to them. `after` names stages on other streams, of this frame or the one before, whose event is waited for;
stages of one stream run in order. Frame n starts when frame n - 2 has been downloaded (CudaExecutor). Other streams wait for
extend_luma, the last stage of MAIN, although deblock would suffice: an event between two kernels of MAIN delays the second.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from ..cuda_src.runtime.array import Stream
from ..process import cached_property
from .bundles import Getter, State, getters, members
from .frame_spec import CHOSEN_QPS

Kernel = Callable[..., None]  # with the arguments of a stage

# EVEN: all rows take equally long. TICKETS: all threads call the stage with all rows, and take rows by ticket; SLICE_TICKETS:
# for each slice
ROWS, EVEN, SLICES, FRAME, TICKETS = "macroblock rows", "even rows", "slices", "whole frame", "rows by ticket"
SLICE_TICKETS = "slices, rows by ticket"
_OF_SLICES, _OF_ROWS = ("first_mb", "end_mb"), ("row0", "row1")
_SPAN = {SLICES: _OF_SLICES, SLICE_TICKETS: _OF_SLICES, FRAME: (), ROWS: _OF_ROWS, EVEN: _OF_ROWS, TICKETS: _OF_ROWS}
MAIN, SIDE, H2D, D2H = "main", "side", "upload", "download"  # streams of a GPU
CPU, CUDA = "cpu_simd", "cuda_src"
SEARCHES = {"fsbm": "full_search", "step": "step_search"}  # stages by --me; of others pattern_search
BY_QP = 10  # lowest subme with QPs of macroblocks by rate and distortion
BY_BITS = 6  # lowest subme with mode decision by bits: rd_candidates with CABAC, rd_decision with CAVLC


@dataclass(frozen=True, eq=False, repr=False)
class Stage:
    """A row of the table. contained: accesses of arrays that are parts of an argument of another name."""

    name: str
    function: str
    split: str
    clause: str
    arguments: str
    stream: str = MAIN
    after: str = ""
    contained: str = ""
    only: str = ""  # the only folder that has the stage; empty: both have it
    deferred: bool = False  # on the CPU it runs in a task, concurrently with the loop of later frames
    optional: bool = False  # options decide whether frames have it; so do tuning files
    unplanned: bool = False  # frames decide: plans and tuning files leave it out
    runs_as: str = "extend_luma"  # the stage whose devices and rows an unplanned one has

    @property
    def span(self) -> tuple[str, ...]:
        """Names of the arguments that select the part of the frame."""
        return _SPAN[self.split]

    @cached_property
    def passed(self) -> list[str]:
        """Names of all arguments in order, bundles by their own."""
        return [argument.rpartition(":")[2] for argument in self.arguments.split()]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all arguments in order, members in place of bundles."""
        return members(self.passed)

    @cached_property
    def access(self) -> dict[str, str]:
        """R, W or RW of each array and number, members in place of bundles, without the span."""
        accesses = dict[str, str]()
        for argument in f"{self.arguments} {self.contained}".split():
            access, _, name = argument.rpartition(":")
            each, of = (access or "R").split(","), members([name])
            if len(each) not in (1, len(of)) or not {"R", "W", "RW"}.issuperset(each):
                raise ValueError(f"stage {self.name}: {argument}: not R, W or RW, of all or of each of {' '.join(of)}")
            accesses |= dict(zip(of, each * len(of) if len(each) == 1 else each))
        return {name: access for name, access in accesses.items() if name not in self.span}

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the arrays that it writes, members in place of bundles."""
        return tuple(name for name, access in self.access.items() if access != "R")

    @property
    def reads(self) -> tuple[str, ...]:
        """Arrays and numbers that it reads and does not write, without the span."""
        return tuple(name for name, access in self.access.items() if access == "R")

    @cached_property
    def cpu_function(self) -> Kernel:
        """The CPU kernel, imported at the first use."""
        return self._import(CPU)

    @cached_property
    def cuda_function(self) -> Kernel:
        """The CUDA launcher, which also takes `stream`."""
        return self._import(CUDA)

    def _import(self, folder: str) -> Kernel:
        file, function = self.function.split(".")
        return getattr(import_module(f"..{folder}.{file.replace('/', '.')}", __package__), function)

    @cached_property
    def _getters_around_span(self) -> tuple[list[Getter], list[Getter]]:
        """Of the arguments before and after the span."""
        span, names = self.span, self.passed
        at = names.index(span[0]) if span else len(names)
        return getters(names[:at]), getters(names[at + len(span) :])

    def around_span(self, state: State) -> tuple[list[object], list[object]]:
        """The arguments before and after the span, from the state by their names."""
        first, last = self._getters_around_span
        return [get(state) for get in first], [get(state) for get in last]

    def bind(self, state: State) -> Kernel:
        """The CPU function with all arguments bound to the state of their names, except the span."""
        function, (before, after) = self.cpu_function, self.around_span(state)
        return lambda *span: function(*before, *span, *after)

    def launch(self, state: State, span: tuple[int, ...], stream: Stream) -> None:
        """Start the stage on the GPU for one span."""
        before, after = self.around_span(state)
        self.cuda_function(*before, *span, *after, stream=stream)


TABLE = (
    Stage(
        "weight_reference", "inter/weighting.weight_reference", EVEN, "encoder",
        "unweighted_luma reference_weights pad row0 row1 RW:reference_luma",
        after="interpolate", unplanned=True,
    ),
    Stage(
        "subsample", "search/search_centre.subsample", EVEN, "encoder",
        "source_y reference_y pad row0 row1 W:coarse",
    ),
    Stage(  # where frames of a list may be far apart
        "camera", "search/search_centre.camera", FRAME, "encoder",
        "coarse W:camera",
        optional=True,
    ),
    Stage(
        "search_centre", "search/search_centre.search_centre", ROWS, "encoder",
        "source_y reference_y pad coarse previous qp merange max_mv_y row0 row1 W:start",
    ),
    Stage(
        "full_search", "search/full_search.full_search", ROWS, "encoder",
        "source_y reference_y pad start qp merange row0 row1 W:search_result partition_mask subme",
    ),
    Stage(
        "pattern_search", "search/pattern_search.pattern_search", ROWS, "encoder",
        "source_y reference_y pad start qp pattern row0 row1 W:search_result partition_mask subme",
        optional=True,
    ),
    Stage(
        "step_search", "search/step_search.step_search", ROWS, "encoder",
        "source_y reference_y pad start qp merange step_grid row0 row1 W:search_result",
        only=CPU,
    ),
    Stage(
        "subpel_refine", "search/subpel_refine.subpel_refine", ROWS, "encoder",
        "source_y reference_luma pad predictor qp subme row0 row1 RW:search_result partition_mask",
        after="interpolate",
    ),
    Stage(
        "neighbour_vectors", "search/neighbour_vectors.neighbour_vectors", ROWS, "encoder",
        "source_y reference_luma pad qp max_mv_y row0 row1 RW:predictor W:whole_mv RW:search_result partition_mask",
        optional=True,
    ),
    Stage(
        "neighbour_vectors_again", "search/neighbour_vectors.neighbour_vectors_again", ROWS, "encoder",
        "source_y reference_luma pad qp max_mv_y row0 row1 RW:predictor whole_mv RW:search_result partition_mask",
        optional=True,
    ),
    Stage(
        "intra_estimate", "intra/intra_estimate.intra_estimate", ROWS, "encoder",
        "source_y qp all_cost n_ref slice_first_mb tools row0 row1 W:intra_cost W:intra_modes",
    ),
    Stage(
        "rd_candidates", "decide/rd_candidates.rd_candidates", ROWS, "encoder",
        "source references quantiser decision_settings tools row0 row1 RW,RW,R:searches RW,W:other_costs",
        optional=True,
    ),
    Stage(
        "mode_decision", "decide/mode_decision.mode_decision", TICKETS, "encoder",
        "source_y luma_references searches other_costs slice_first_mb qp decision_settings W:progress row0 row1 W:motion",
    ),
    Stage(
        "bipredict", "decide/bipredict.bipredict", ROWS, "encoder",
        "source_y luma_references searches qp decision_settings row0 row1 W:candidates",
        optional=True,
    ),
    Stage(
        "rd_candidates_b", "decide/rd_candidates_b.rd_candidates_b", ROWS, "encoder",
        "source references quantiser decision_settings tools row0 row1 R,R,RW,W,W:moved_candidates RW,W:other_costs",
        optional=True,
    ),
    Stage(
        "mode_decision_b", "decide/mode_decision_b.mode_decision_b", TICKETS, "encoder",
        "source references moved_candidates colocated_still other_costs slice_first_mb decision_settings_b W:progress row0 "
        "row1 W:motion",
        optional=True,
    ),
    Stage(
        "rd_decision", "decide/rd_decision.rd_decision", TICKETS, "encoder",
        "source references searches intra_cost slice_first_mb quantiser decision_settings W:progress row0 row1 W:motion "
        "W:residual",
        only=CPU,
    ),
    Stage(  # of frames with a bar of intra macroblocks
        "intra_refresh", "intra/intra_refresh.intra_refresh", ROWS, "encoder",
        "source_y qp slice_first_mb tools refresh_columns disable_idc row0 row1 RW,RW,RW,RW,R,R:motion RW:intra_modes",
        optional=True, unplanned=True,
    ),
    Stage(
        "inter_residual", "residual/inter_residual.inter_residual", ROWS, "8.4, 8.5",
        "source references RW,R,RW,RW,RW,RW:motion quantiser tools row0 row1 W:rec W:residual",
    ),
    Stage(  # in place of inter_residual, of frames whose macroblocks have QPs that it may change
        "inter_residual_qp", "residual/inter_residual_qp.inter_residual_qp", ROWS, "8.4, 8.5",
        "source references RW,R,RW,RW,RW,RW:motion RW,R,R,R:quantiser tools least_qp most_qp row0 row1 W:rec W:residual",
        optional=True, unplanned=True, runs_as="inter_residual",
    ),
    Stage(
        "explicit_motion", "inter/explicit_motion.explicit_motion", EVEN, "8.4.1.2.2",
        "RW,RW,R,R,R,R:motion colocated_still slice_first_mb mb_width row0 row1",
        optional=True,
    ),
    Stage(
        "intra", "intra/intra.intra", SLICE_TICKETS, "8.3, 8.5",
        "source R,RW:slice_order n_ref intra_modes first_mb end_mb RW:intra_choice quantiser intra_tools RW:rec RW:residual",
    ),
    Stage(  # of frames with a QP for each macroblock
        "decoded_qp", "quantiser/decoded_qp.decoded_qp", SLICES, "7.4.5",
        "mb_type cbp slice_first_mb frame_params mb_width first_mb end_mb RW:qp",
        optional=True, unplanned=True,
    ),
    Stage(
        "mark_skipped", "decide/mode_decision.mark_skipped", EVEN, "8.4.1.1",
        "slice_first_mb ref_idx mv cbp mb_width row0 row1 RW:mb_type",
        D2H, after="extend_luma",
    ),
    Stage(
        "deblock", "loopfilter/deblock.deblock", EVEN, "8.7",
        "rec strength_data quantiser deblocking slice_first_mb row0 row1 W:out",
    ),
    Stage(
        "keep_motion", "inter/colocated.keep_motion", EVEN, "8.4.1.2.2",
        "motion mb_width row0 row1 W:kept",
        optional=True,
    ),
    Stage("extend_luma", "inter/interpolate.extend_borders", FRAME, "8.4.2.2", "RW:decoded_y pad"),
    Stage(
        "extend_cb", "inter/interpolate.extend_borders", FRAME, "8.4.2.2",
        "RW:decoded_u chroma_pad",
        SIDE, after="extend_luma",
    ),
    Stage(
        "extend_cr", "inter/interpolate.extend_borders", FRAME, "8.4.2.2",
        "RW:decoded_v chroma_pad",
        SIDE, after="extend_luma",
    ),
    Stage(
        "interpolate", "inter/interpolate.interpolate", EVEN, "8.4.2.2.1",
        "decoded_luma pad row0 row1",
        SIDE, after="extend_luma", contained="W:decoded_half",
    ),
    Stage(  # as write_slices before them: the same wait serves, and their kernels are one graph
        "ssd_y", "source/ssd.ssd", EVEN, "encoder",
        "source_y decoded_y pad height width luma_unit row0 row1 W:ssd_y",
        D2H, after="extend_luma",
    ),
    Stage(
        "ssd_u", "source/ssd.ssd", EVEN, "encoder",
        "source_u decoded_u chroma_pad chroma_height chroma_width chroma_unit row0 row1 W:ssd_u",
        D2H,
    ),
    Stage(
        "ssd_v", "source/ssd.ssd", EVEN, "encoder",
        "source_v decoded_v chroma_pad chroma_height chroma_width chroma_unit row0 row1 W:ssd_v",
        D2H,
    ),
    # only on a GPU: input conversion, and results for the download
    Stage(
        "load_i420", "source/convert.load_i420", FRAME, "encoder",
        "input_planes width height load_qp W:source W:qp",
        H2D, only=CUDA,
    ),
    Stage(
        "load_rgb", "source/convert.load_rgb", FRAME, "encoder",
        "input_rgb width height load_qp W:source W:qp",
        H2D, only=CUDA,
    ),
    Stage(  # for the weights, of a frame that is on the GPU
        "source_sums", "inter/weighting.source_sums", FRAME, "encoder",
        "source width height W:block_sums",
        H2D, only=CUDA,
    ),
    Stage(
        "compact", "residual/compact.compact", FRAME, "encoder",
        "mb_type cbp total_coeff levels mb_width W:level_index W:level_blocks",
        D2H, after="extend_luma", only=CUDA,
    ),
    Stage(  # after the other results, on the host or for the download
        "write_slices", "entropy/entropy.write_slices", FRAME, "7.3.4, 9.2, 9.3",
        "slice_first_mb slice_starts frame_params entries mb_width source macroblocks tools W:slice_data "
        "W:slice_counts",
        D2H, after="extend_luma", deferred=True,
    ),
)  # fmt: skip

STAGES = {stage.name: stage for stage in TABLE}
MORE_KERNELS = {"entropy/entropy": ("entropy/cabac_bins", "entropy/cabac_states", "entropy/cabac")}  # by file of cuda_src
_B_STAGES = frozenset(
    {"decide/bipredict", "decide/rd_candidates_b", "decide/mode_decision_b", "inter/explicit_motion", "inter/colocated"}
)
# Files of kernels that only streams with B frames need
_B_KERNELS = {
    CPU: _B_STAGES,
    CUDA: _B_STAGES | {
        "residual/inter_residual_b", "entropy/cabac_bins_b", "entropy/entropy_b", "lookahead/half_size",
        "lookahead/lookahead",
    },
}  # fmt: skip
_RARE = {"residual/inter_residual_qp"}  # files of CUDA kernels that few streams need: loaded by their first launch
ENTROPY_STAGE = "write_slices"  # of each frame: writes its slice data


def files(folder: str, has_b_frames: bool = False) -> set[str]:
    """Names of the files in folder CPU or CUDA that hold stages, and on GPUs of other files with kernels that they launch.

    has_b_frames: with those that only streams with B frames need.
    """
    names = {stage.function.split(".")[0] for stage in TABLE if stage.only in ("", folder)}
    if folder == CUDA:
        names = names.union(*(MORE_KERNELS.get(name, ()) for name in names)) - _RARE
    return names | _B_KERNELS[folder] if has_b_frames else names - _B_KERNELS[folder]


def deferred_stages(folder: str) -> frozenset[str]:
    """Names of the stages that a device with the stages of `folder` leaves to a task of the host."""
    return frozenset(stage.name for stage in TABLE if stage.deferred and (folder == CPU or stage.only == CPU))


def load_launchers() -> None:
    """Import the CUDA launchers and make the deblocking schedules, so that the first frame does not wait for them."""
    for stage in TABLE:
        if stage.only != CPU:
            _ = stage.cuda_function
    deblock = import_module(f"..{CUDA}.loopfilter.deblock", __package__)
    for block in (16, 8):
        deblock.schedule(block)


def frame_steps(
    n_ref: int,
    me: str = "fsbm",
    for_download: tuple[str, ...] = (),
    subme: int = 0,
    cabac: bool = False,
    weighted: tuple[int, ...] = (),
    n_ref1: int = 0,
    is_reference: bool = True,
    b_stream: bool = False,
    qp_varies: int = 0,
    refreshes: bool = False,
) -> list[tuple[tuple[str, ...], int]]:
    """The steps of a frame, in order: (stages of a step, entry of both lists that they search or -1).

    n_ref, n_ref1: entries of RefPicList0, 0 for an I frame, and of RefPicList1, which follow these; for_download: GPU stages
    that prepare results for the download, after the stages that the loop waits for: ENTROPY_STAGE unless it is deferred;
    weighted: the entries with weights of luma; is_reference: whether another frame reads borders, half samples and, where
    b_stream says that there are B frames, motion; qp_varies: see FrameSpec; refreshes: whether a bar of macroblocks is intra.
    mark_skipped may run after deblock, which treats P_Skip as P_16x16. On a GPU the stages that the next frame needs are
    started first; consecutive stages of one stream need fewer driver calls.
    """
    borders, results = ("extend_luma", "extend_cb", "extend_cr"), (*for_download, "ssd_y", "ssd_u", "ssd_v")
    if n_ref:
        results = ("mark_skipped", *results)
    if is_reference:
        last = [(*borders, "interpolate"), results] if for_download else [(*borders, *results), ("interpolate",)]
    else:  # on a GPU, the other streams wait for extend_luma in any frame
        last = [("extend_luma",), results] if for_download else [results]
    steps: list[tuple[tuple[str, ...], int]] = []
    search = ("search_centre", SEARCHES.get(me, "pattern_search"), "subpel_refine")
    by_cost = subme >= BY_BITS and cabac
    residual = "inter_residual_qp" if subme >= BY_QP and qp_varies == CHOSEN_QPS else "inter_residual"
    for ref in range(n_ref + n_ref1):
        if ref in weighted:
            steps.append((("weight_reference",), ref))
        steps.append((("subsample",), ref))
        if b_stream:
            steps.append((("camera",), ref))
        if by_cost:  # rounds of their own, since each reads the vectors of the rows around
            steps += [(search, ref), (("neighbour_vectors",), ref)]
            search_end: tuple[str, ...] = ("neighbour_vectors_again",)
        else:
            search_end = search
        if ref == n_ref + n_ref1 - 1:
            search_end = (*search_end, "intra_estimate", *([] if n_ref1 or not by_cost else ["rd_candidates"]))
        steps.append((search_end, ref))
    if n_ref1:
        steps += [(("bipredict",), -1), *([(("rd_candidates_b",), -1)] if by_cost else [])]
        steps += [(("mode_decision_b",), -1), ((residual,), -1), (("explicit_motion",), -1)]
    elif n_ref:
        steps.append((("rd_decision" if subme >= BY_BITS and not cabac else "mode_decision",), -1))
        steps += [*([(("intra_refresh",), -1)] if refreshes else []), ((residual,), -1)]
    return [
        *steps,
        (("intra",), -1),
        *([(("decoded_qp",), -1)] if qp_varies else []),
        *([(("keep_motion",), -1)] if b_stream and is_reference else []),
        (("deblock",), -1),
        *((names, -1) for names in last),
    ]
