"""H264LITE_CHECK=1: with the twins beside its kernels an encode says the same bytes; a fault in one of two twins is found."""

import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.cpu_simd.layout import COARSE_PAD
from h264lite.encoder.errors import Error
from h264lite.scheduler.check import Twin, flat, macroblock_row
from h264lite.scheduler.stages import CUDA, ENTROPY_STAGE, SEARCHES, STAGES

from ..cuda_emulator.driver import Event, Stream
from ..cuda_emulator.fixtures import driver, gpu  # noqa: F401
from ..encoder.test_hybrid_streams import config, encode
from ..support import round_trip

WIDTH, HEIGHT = 48, 64
CPU_STAGES = [name for name, stage in STAGES.items() if stage.only != CUDA and not (stage.optional or stage.unplanned)]


OPTIONS = [
    {},
    {"threads": 3, "slices": 2, "ref": 2, "subme": 5},
    {"me": "step", "trellis": 0},
    {"subme": 6, "profile": "baseline"},
    {"subme": 6},
    {"me": "umh"},
]


def called(monkeypatch):
    """The names of the kernels that are compared from now on."""
    names, call = [], Twin.call

    def noted(self, where, name, *more):
        names.append(name)
        return call(self, where, name, *more)

    monkeypatch.setattr(Twin, "call", noted)
    return names


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_same_bytes_beside_the_twins(options, monkeypatch):
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 4, 5)
    plain, _ = round_trip.encode(clip, WIDTH, HEIGHT, qp=24, device="cpu", **options)
    monkeypatch.setenv("H264LITE_CHECK", "1")
    calls = called(monkeypatch)
    assert round_trip.encode(clip, WIDTH, HEIGHT, qp=24, device="cpu", **options)[0] == plain
    expected = {STAGES[name].function for name in CPU_STAGES}
    if options.get("profile") != "baseline":
        expected |= {STAGES["weight_reference"].function}  # frames of noise get weights
    expected -= {"search/full_search.full_search", "search/step_search.step_search"}
    expected |= {STAGES[SEARCHES.get(options.get("me", "fsbm"), "pattern_search")].function}
    by_cost, cavlc = options.get("subme", 6) == 6, options.get("profile") == "baseline"
    expected.remove("decide/mode_decision.mode_decision" if by_cost and cavlc else "decide/rd_decision.rd_decision")
    if by_cost and not cavlc:
        expected |= {STAGES[name].function for name in ("rd_candidates", "neighbour_vectors", "neighbour_vectors_again")}
    assert set(calls) == expected


def test_hybrid_frames_beside_the_twins(gpu, monkeypatch):  # noqa: F811
    """The CPU writes the bits of a frame whose rows are divided."""
    clip, half = round_trip.noise_clip(WIDTH, HEIGHT, 3, 5), ("half", 0)
    plain, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu"))
    monkeypatch.setenv("H264LITE_CHECK", "1")
    calls = called(monkeypatch)
    assert encode(clip, config(WIDTH, HEIGHT, half, device="hybrid"))[0] == plain
    assert calls.count(STAGES[ENTROPY_STAGE].function) >= len(clip) and STAGES["deblock"].function in calls


class LateDownloads:
    """Downloads of an emulated GPU that arrive when somebody waits for them, or beside a comparison."""

    def __init__(self, emulated, monkeypatch):
        self.late = []
        real, call, record = emulated.memcpy_dtoh_async, Twin.call, Event.record

        def download(host, source, stream=None):
            samples = np.empty_like(host)
            real(samples, source, stream)
            self.late.append((stream, host, samples))

        def beside(other, where, function, names, arguments, native, *more):
            def late():
                self.arrive(self.late)
                return native()

            return call(other, where, function, names, arguments, late, *more)

        def recorded(event, stream=None):
            event.after = [download for download in self.late if download[0] is stream]
            return record(event, stream)

        monkeypatch.setattr(emulated, "memcpy_dtoh_async", download)
        monkeypatch.setattr(Twin, "call", beside)
        monkeypatch.setattr(Event, "record", recorded)
        for name in ("synchronize", "query"):
            monkeypatch.setattr(Event, name, self.first(getattr(Event, name), lambda event: event.after))
        of_stream = self.first(Stream.synchronize, lambda stream: [late for late in self.late if late[0] is stream])
        monkeypatch.setattr(Stream, "synchronize", of_stream)

    def first(self, wait, downloads):
        """`wait`, before which these downloads arrive."""

        def waited(of):
            self.arrive(downloads(of))
            return wait(of)

        return waited

    def arrive(self, downloads):
        for download in list(downloads):
            if any(download is late for late in self.late):
                _, host, samples = download
                host[...] = samples
        self.late = [late for late in self.late if not any(late is download for download in downloads)]


@pytest.mark.parametrize(("bframes", "whole"), ((0, 0), (0, 1), (2, 0), (2, 1)))
def test_downloads_beside_the_twins(driver, monkeypatch, bframes, whole):  # noqa: F811
    """Rows that the GPU wrote may arrive at any time in arrays of which the CPU has other rows: they are no difference."""
    options = {"bframes": bframes, "b_adapt": 0, "no_scenecut": True, "threads": 1}
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 4 if bframes else 3, 5)
    plain, _ = encode(clip, config(WIDTH, HEIGHT, device="cpu", **options))
    monkeypatch.setenv("H264LITE_CHECK", "1")
    calls = called(monkeypatch)
    late = LateDownloads(driver, monkeypatch)
    assert encode(clip, config(WIDTH, HEIGHT, ("half", whole), device="hybrid", **options))[0] == plain
    expected = {"decide/bipredict.bipredict", "inter/explicit_motion.explicit_motion",
                "inter/colocated.keep_motion"} if bframes else set()  # fmt: skip
    assert {*expected, "loopfilter/deblock.deblock"} <= set(calls)
    assert not late.late


def spoil(monkeypatch, name, argument, index):
    """The kernel of a stage changes one element more than it should."""
    stage = STAGES[name]
    kernel, at = stage.cpu_function, stage.names.index(argument)

    def faulty(*args):
        kernel(*args)
        list(flat(args))[at][index] ^= 1

    monkeypatch.setitem(stage.__dict__, "cpu_function", faulty)
    monkeypatch.setenv("H264LITE_CHECK", "1")


FAULTS = [
    ("subsample", "coarse_source", (COARSE_PAD + 4 * 2 + 1, COARSE_PAD + 8), 2), ("search_centre", "centre", (4, 1), 1),
    ("full_search", "search_cost", (11, 40), 3), ("subpel_refine", "search_mv", (7, 3, 0), 2),
    ("intra_estimate", "intra_cost", (0,), 0), ("mode_decision", "mv", (9, 15, 1), 3),
    ("inter_residual", "levels", (3, 26, 15), 1), ("intra", "rec_u", (31, 23), 3), ("mark_skipped", "mb_type", (6,), 2),
    ("deblock", "out_y", (17, 47), 1), ("extend_luma", "decoded_y", (0, 0), 0), ("extend_cr", "decoded_v", (-1, 0), 3),
    ("interpolate", "decoded_luma", (2, 48 + 16, 50), 1), ("full_search", "source_y", (63, 0), 3),
    ("write_slices", "slice_sizes", (0,), 0), ("write_slices", "total_coeff", (5, 23), 1),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "array", "index", "row"), FAULTS, ids=lambda value: str(value))
def test_a_fault_is_found_where_it_is(stage, array, index, row, monkeypatch):
    spoil(monkeypatch, stage, array, index)
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 3, 6)
    where = rf"H264LITE_CHECK: frame [01]: stage {stage}, macroblock row {row}, array {array}\["
    with pytest.raises(Error, match=where) as caught:
        round_trip.encode(clip, WIDTH, HEIGHT, qp=24, device="cpu")
    assert caught.value.exit_code == 1


def test_the_command_line_fails_with_one_line(monkeypatch, tmp_path, capsys):
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 2, 7)
    source = tmp_path / f"in_{WIDTH}x{HEIGHT}.yuv"
    source.write_bytes(b"".join(plane.tobytes() for frame in clip for plane in frame))
    spoil(monkeypatch, "intra", "rec_y", (0, 0))
    assert main(["encode", str(source), str(tmp_path / "out.264"), "--device", "cpu", "--quiet"]) == 1
    assert "H264LITE_CHECK: frame 0: stage intra, macroblock row 0, array rec_y[0, 0]" in capsys.readouterr().err


def test_rows_of_arrays():
    size, pad = (5, 3), 48
    assert macroblock_row((7, 40), (15, 41), size, pad) == 1
    assert macroblock_row((0, 14, 2), (2, 15, 41), size, pad) == 2
    assert macroblock_row((17, 3), (48, 80), size, pad) == 1
    assert macroblock_row((8, 3), (24, 40), size, pad) == 1
    assert macroblock_row((3, 0, 9), (4, 48 + 96, 80 + 96), size, pad) == 0
    assert macroblock_row((3, 48 + 33, 9), (4, 48 + 96, 80 + 96), size, pad) == 2
    assert macroblock_row((1, 71, 9), (2, 24 + 48, 40 + 48), size, pad) == 2
    assert macroblock_row((2,), (3,), size, pad) == 2
    assert macroblock_row((2, 2), (7, 7), size, pad) is None
