"""The table of arrays: what stages use is in it, rows lie as it says, and everything that is allocated follows from it."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Motion
from h264lite.scheduler.accesses import RefLists, accesses, storage
from h264lite.scheduler.arrays import (
    ALL_ROWS,
    ARRAYS,
    CONSTANTS,
    CURRENT,
    GPU_RESULT,
    INTRA_FILL,
    NEVER_COPIED,
    OF_B_STREAMS,
    POOLS,
    REFERENCE,
    RESULT,
    SECOND_LIST,
    VIEWS,
    ArrayRow,
    PerRow,
    Size,
    Undivided,
    byte_span,
    bytes_of,
    check_stages,
    of_roles,
    per_mb,
    pool_planes,
)
from h264lite.scheduler.bundles import BUNDLES, getters
from h264lite.scheduler.frames.frame import Frame, HostFrame, References, Workspace
from h264lite.scheduler.frames.gpu_sources import GpuSourcePool
from h264lite.scheduler.frames.sized_slices import SizedSlices
from h264lite.scheduler.stages import EVEN, STAGES, TABLE, Stage, frame_steps

HEIGHT = 7
SIZE = Size(5, HEIGHT, 48)
P_LISTS, B_LISTS = RefLists((0, 1)), RefLists((1, 2, 0), 1)


def stage(arguments):
    return Stage("new_stage", "file.function", EVEN, "encoder", arguments)


def test_arguments_are_checked_by_stage():
    check_stages([stage("mb_type pad row0 row1 W:cbp")])
    with pytest.raises(ValueError, match="stage new_stage: argument mb_typ "):
        check_stages([stage("mb_typ pad row0 row1 W:cbp")])
    with pytest.raises(ValueError, match="stage new_stage: argument first_mb "):  # the span of other stages
        check_stages([stage("mb_type first_mb row0 row1 W:cbp")])
    with pytest.raises(ValueError, match="stage new_stage: writes pad,"):
        check_stages([stage("mb_type W:pad row0 row1 cbp")])
    for wrong in ("w:cbp", "R,W:cbp", "R,W:motion", ":cbp,"):
        with pytest.raises(ValueError, match="stage new_stage: "):
            check_stages([stage(f"mb_type row0 row1 {wrong}")])


def test_accesses_are_of_arguments_and_of_members():
    row = stage("source_y RW,R,R,W,R,R:motion row0 row1 W:rec RW:cbp")
    assert row.passed == ["source_y", "motion", "row0", "row1", "rec", "cbp"]
    assert row.names[:3] == ("source_y", "mb_type", "sub_mb_type")
    assert row.reads == ("source_y", "sub_mb_type", "ref_idx", "ref_idx1", "mv1")
    assert row.written == ("mb_type", "mv", "rec_y", "rec_u", "rec_v", "cbp")
    assert (row.access["mb_type"], row.access["mv"], row.access["cbp"]) == ("RW", "W", "RW")


def test_every_name_is_in_one_table_and_used():
    assert not (ARRAYS.keys() & VIEWS.keys() or (ARRAYS.keys() | VIEWS.keys()) & CONSTANTS.keys())
    used = {name for row in TABLE for name in (*row.reads, *row.written)}
    assert VIEWS.keys() | CONSTANTS.keys() <= used
    behind = {name for view in VIEWS.values() for name, _ in view.of}
    assert behind <= ARRAYS.keys()
    assert not ARRAYS.keys() - used - behind


def test_bundles_have_a_member_for_each_field_and_are_used():
    arguments = {name for row in TABLE for name in row.passed}
    for name, bundle in BUNDLES.items():
        assert len(bundle.members.split()) == len(bundle.tuple_type._fields) and name in arguments, name
    (motion,) = getters(["motion"])
    members = motion({"mb_type": 1, "sub_mb_type": 2, "ref_idx": 3, "mv": 4, "qp": 5, "ref_idx1": 6, "mv1": 7})
    assert members == Motion(1, 2, 3, 4, 6, 7) and members.ref_idx == 3
    assert stage("source_y W:motion row0 row1 W:cbp").reads == ("source_y",)


def test_halos_are_of_stages_that_read_the_array():
    for row in (*ARRAYS.values(), *VIEWS.values()):
        for name, halo in row.halo.items():
            assert row.name in STAGES[name].reads or row.name in STAGES[name].written, (row.name, name)
            for lists in (P_LISTS, B_LISTS):
                keys = storage(row.name, 0, lists)
                wanted = getattr(row, "halo_of_b", {}).get(name, halo) if lists is B_LISTS else halo
                assert [use.halo_rows for use in accesses(name, 0, lists) if use.key in keys] == [wanted] * len(keys)


def test_accesses():
    uses = {use.key: use for use in accesses("deblock", -1, RefLists((0,)))}
    assert uses["mv", CURRENT].halo_rows == (1, 1) and not uses["mv", CURRENT].writes
    assert uses["luma", CURRENT].halo_rows is None and uses["luma", CURRENT].writes
    uses = {use.key: use for use in accesses("inter_residual", -1, P_LISTS)}
    assert uses["half", 1].halo_rows == ALL_ROWS and ("half", CURRENT) not in uses
    assert uses["mv", CURRENT].writes and uses["mv", CURRENT].halo_rows == (0, 0)  # changed in part
    uses = {use.key: use for use in accesses("subpel_refine", 1, P_LISTS)}
    assert ("luma", 1) in uses and ("luma", 0) not in uses and uses["search_mv", 1].writes


def test_accesses_of_b_frames():
    """References have the numbers of those that are held, searches those of the entries; motion continues that of list 1."""
    uses = {use.key: use for use in accesses("subpel_refine", 2, B_LISTS)}
    assert ("luma", 0) in uses and ("luma", 2) not in uses and uses["search_mv", 2].writes
    assert {key for key in (use.key for use in accesses("search_centre", 0, B_LISTS)) if key[0].startswith("kept")} == {
        ("kept_ref_idx", 0), ("kept_mv", 0)}  # fmt: skip
    uses = {use.key: use for use in accesses("inter_residual", -1, B_LISTS)}
    assert uses["mv1", CURRENT].writes and uses["mv1", CURRENT].halo_rows == (0, 0)
    in_p_frames = RefLists((1, 2), 0)
    motion = [use.key for use in accesses("search_centre", 0, in_p_frames) if use.key[0] in ("mv", "kept_mv")]
    assert motion == [("kept_mv", 1)]
    assert ("mv1", CURRENT) not in [use.key for use in accesses("keep_motion", -1, in_p_frames)]


def allocated():
    """The arrays of one frame, one slot and one reference, by their names in the table."""
    size = SIZE.mb_width, HEIGHT
    host = HostFrame(*size, np.zeros, ((16 * HEIGHT, 80), (8 * HEIGHT, 40), (8 * HEIGHT, 40)), True)
    work, references = Workspace(SIZE, 2, np.zeros), References.allocate(2, SIZE, np.zeros)
    arrays = {**host.arrays, **work.arrays(), **work.of_reference(1), **references.kept[1]}
    arrays |= {name: getattr(host, name) for name in ("slice_data", "level_blocks")}
    memory = SimpleNamespace(host_zeros=np.zeros, zeros=np.zeros, streams={}, gpu=MagicMock(pinned=np.zeros))
    settings = SimpleNamespace(size=SIZE, width=80, height=16 * HEIGHT, weighted_copies=1, aq_mode=1)
    arrays["mb_ends"] = SizedSlices(SimpleNamespace(n_mb=SIZE.n_mb), print).state()["mb_ends"]
    arrays["block_sums"] = GpuSourcePool(memory, settings)._make().sums
    for name in of_roles(REFERENCE):
        pool, planes = pool_planes(name)
        whole = getattr(references, pool)[1]
        arrays[name] = whole[planes[0]] if len(planes) == 1 else whole[planes[0] : planes[-1] + 1]
    return {name: array for name, array in arrays.items() if name in ARRAYS}


def test_everything_is_allocated_as_the_table_says():
    arrays = allocated()
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        assert array.shape == ARRAYS[name].shape(SIZE) and array.dtype == ARRAYS[name].dtype, name
    references = References.allocate(3, SIZE, np.zeros)
    assert references.luma.shape == (3, 4, 16 * HEIGHT + 96, 176) and references.chroma.shape == (3, 2, 8 * HEIGHT + 48, 88)
    assert {name for names in POOLS.values() for name in names} == set(of_roles(REFERENCE))


def test_results_share_one_block():
    frame = Frame(SIZE.mb_width, HEIGHT)
    address = {name: array.__array_interface__["data"][0] for name, array in frame.results.items()}
    start = frame.block.__array_interface__["data"][0]
    inside = {name for name in frame.results if start <= address[name] < start + frame.block.size}
    inside -= set(of_roles(SECOND_LIST))
    assert inside == set(of_roles(RESULT, GPU_RESULT)) and not any((address[name] - start) % 256 for name in inside)
    for n, name in enumerate(inside):
        frame.results[name].fill(n + 1)
    assert all((frame.results[name] == n + 1).all() for n, name in enumerate(inside))


def test_rows_cover_an_array_once():
    """They begin where the kernels' rows begin; an array that does not divide is copied whole."""
    for name, array in allocated().items():
        layout = ARRAYS[name].layout
        if not array.size:
            assert ARRAYS[name].role in (*NEVER_COPIED, *OF_B_STREAMS)
            continue
        spans = [byte_span(name, row, row + 1, SIZE) for row in range(HEIGHT)]
        of_plane = array.nbytes // ARRAYS[name].planes
        if isinstance(layout, Undivided):
            assert spans == [(0, of_plane)] * HEIGHT
            continue
        assert [spans[0][0], *(end for _, end in spans)] == [*(begin for begin, _ in spans), of_plane], name
        assert bytes_of(name, 0, HEIGHT, SIZE) == array.nbytes
    assert byte_span("mv", 2, 3, SIZE) == (2 * 5 * 64, 3 * 5 * 64) and byte_span("ssd_u", 2, 3, SIZE) == (16, 24)
    y0, _ = byte_span("luma", 2, 3, SIZE)
    assert y0 == (SIZE.pad + 32) * (16 * SIZE.mb_width + 2 * SIZE.pad)


def test_only_arrays_of_one_device_have_no_storage():
    for name, array in ARRAYS.items():
        assert (storage(name, 0, B_LISTS) == ()) == (array.role in NEVER_COPIED)
        assert (storage(name, 0, P_LISTS) == ()) == (array.role in (*NEVER_COPIED, *OF_B_STREAMS))
    assert not storage("n_ref", 0, P_LISTS) and storage("all_mv", 0, P_LISTS) == (("search_mv", 0), ("search_mv", 1))


def test_a_new_array_is_one_row(monkeypatch):
    """A row is all that an array of results or of the workspace needs to be allocated, downloaded and given to stages."""
    monkeypatch.setitem(ARRAYS, "activity", ArrayRow("activity", RESULT, per_mb(2), np.int32, "of the source"))
    monkeypatch.setitem(ARRAYS, "row_sums", ArrayRow("row_sums", "workspace", PerRow(), np.int64, "of activity"))
    frame = Frame(SIZE.mb_width, HEIGHT)
    assert frame.activity.shape == (35, 2) and frame.arrays["activity"] is frame.activity
    assert np.may_share_memory(frame.activity, frame.block)
    assert Workspace(SIZE, 1, np.zeros).arrays()["row_sums"].shape == (HEIGHT,)
    check_stages([stage("source_y row0 row1 W:activity W:row_sums")])
    assert byte_span("activity", 1, 2, SIZE) == (40, 80)


def test_no_result_of_an_i_frame_is_of_the_frame_before():
    """A frame's arrays are reused: a stage that I frames lack leaves the sums of the frame that had them before."""
    of_i_frames = {name for names, _ in frame_steps(0) for name in names}
    written = {name for stage in of_i_frames for name in STAGES[stage].written}
    unread = {"sub_mb_type"}  # of P_8x8 and B_8x8 only
    left = set(of_roles(RESULT)) - written - INTRA_FILL.keys() - {"qp"} - unread
    assert not left, f"{left}: a stage of I frames writes them, or INTRA_FILL of scheduler/arrays.py has a value"
