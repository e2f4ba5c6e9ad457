"""benchmarks/cuda_kernels.py: every kernel of a P frame has its line, times are summed up, and nothing is changed by it."""

import types

import pytest
from h264lite.benchmarks import cuda_cabac, cuda_kernels
from h264lite.benchmarks.cuda_kernels import CABAC_KERNELS, MAIN, SIDE, TABLE, Bench, Timed
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.scheduler.stages import BY_BITS, D2H, H2D

from ..cuda_emulator.fixtures import device, gpu  # noqa: F401
from ..support import round_trip

WIDTH, HEIGHT = 34, 18


def pipeline_of(**options):
    return Pipeline(Config.from_options(width=WIDTH, height=HEIGHT, qp=24, **{"bframes": 0, "weightp": 0} | options))


OPTIONS = {}, {"ref": 2, "merange": 8, "subme": 1}, {"profile": "main", "trellis": 0}, {"profile": "high", "subme": 6}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_kernels_of_pictures(gpu, options):  # noqa: F811
    """Each has a line and its stream; frames that were timed between are those that come out, refined once."""
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 4, 5)
    wanted = pipeline_of(device="cpu", **options)
    expected = [frame for planes in clip for frame in wanted.encode(tuple(planes))] + wanted.flush()
    wanted.close()
    pipeline = pipeline_of(device="cuda", **options)
    bench = Bench(pipeline, batch=2, rounds=1, fill=gpu is None)
    pictures = [bench.picture(*planes) for planes in clip]
    pipeline.close()
    assert [frame.data for frame in bench.frames] == [frame.data for frame in expected] and len(expected) == len(clip)
    assert not pictures[0] and all(pictures[1:]), "P pictures only"
    by_cost = options.get("subme", BY_BITS) >= BY_BITS
    stages = [row.stage for row in TABLE if by_cost or row.stage not in ("neighbour_vectors", "rd_candidates")]
    lines = cuda_kernels.lines_of(pictures[1:])
    assert [line["stage"] for line in lines] == stages
    streams = {line["stage"]: line["stream"] for line in lines}
    assert (streams["load_i420"], streams["extend_luma"], streams["interpolate"]) == (H2D, MAIN, SIDE)
    assert (streams["write_slices"], streams["full_search"], streams["extend_chroma"]) == (D2H, MAIN, SIDE)
    last = [timed.kernel for timed in pictures[-1]]
    assert last.count("ssd") == 3 and last.count("extend_borders") == 3
    assert last.count("search_centre") == options.get("ref", 1), "a search of each reference"
    assert bench.timed == sum(1 + (timed.kernel in cuda_kernels.IN_PLACE) for picture in pictures for timed in picture)


def test_times_of_cabac(gpu):  # noqa: F811
    """benchmarks/cuda_cabac.py: a time of each kernel, of I frames too, and the frames come out as without."""
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 3, 5)
    wanted = pipeline_of(device="cpu", profile="main", trellis=0)
    expected = [frame.data for planes in clip for frame in wanted.encode(tuple(planes))]
    expected += [frame.data for frame in wanted.flush()]
    wanted.close()
    pipeline = pipeline_of(device="cuda", profile="main", trellis=0)
    bench = Bench(pipeline, batch=2, rounds=1, fill=gpu is None)
    assert [len(cuda_cabac.times_of(bench, planes)) for planes in clip] == [len(CABAC_KERNELS)] * 3
    pipeline.close()
    assert [frame.data for frame in bench.frames] == expected


def test_the_stream_of_a_kernel(device):  # noqa: F811
    """A script tells kernels with their streams, in order, and nothing else that was noted."""
    one, two = device.stream(), device.stream()
    planes = [device.zeros((16, 64), "u1") for _ in range(2)]
    with device.record_calls() as recording:
        planes[0].fill(7, one)
        for stream, plane in zip((two, None, one), (*planes, planes[0])):
            device.launch("inter/interpolate", "extend_borders", (1, 2), (64, 8), [plane, 64, 16, 4], stream)
        device.record(device.event(), one)
    launches = list(recording.launches())
    assert [(k, name) for k, name, _ in launches] == [(k, "extend_borders") for k in (1, 2, 3)]
    assert [stream for *_, stream in launches] == [two.handle, 0, one.handle]


def test_sums():
    """Of kernels of a stage, of those that occur several times; the same kernel on two streams is two stages."""
    picture = [
        Timed("new", MAIN, 1.0), Timed("deblock_tiles", MAIN, 20.0), Timed("deblock_strengths", MAIN, 5.0),
        Timed("extend_borders", MAIN, 3.0), Timed("extend_borders", SIDE, 2.0), Timed("extend_borders", SIDE, 1.5),
        Timed("refine_sad_satd", MAIN, 30.0),
    ]  # fmt: skip
    expected = {
        "subpel_refine": {"refine_sad_satd": 30.0}, "deblock": {"deblock_tiles": 20.0, "deblock_strengths": 5.0},
        "extend_luma": {"extend_borders": 3.0}, "extend_chroma": {"extend_borders": 3.5}, "new": {"new": 1.0},
    }  # fmt: skip
    by_stage = cuda_kernels.by_stage(picture)
    assert by_stage == expected and list(by_stage) == list(expected), "the order of the loop, then what has no line"


def test_medians_over_pictures(capsys):
    times = ((1, 30), (9, 20), (4, 21))
    pictures = [[Timed("deblock_strengths", MAIN, a), Timed("deblock_tiles", MAIN, b)] for a, b in times]
    (line,) = lines = cuda_kernels.lines_of(pictures)
    assert (line["median_us"], line["least_us"], line["most_us"]) == (29, 25, 31), "sums of pictures, not of medians"
    assert line["kernels"] == {"deblock_strengths": 4, "deblock_tiles": 21}
    assert (line["aim_us"], line["pictures"], line["stream"]) == (30, 3, MAIN)
    cuda_kernels.print_table(lines)
    said = capsys.readouterr().out.splitlines()
    assert said[1].split()[:6] == ["deblock", MAIN, "29.0", "25.0", "31.0", "30"]
    assert said[-1].split() == ["sum", MAIN, "29.0"]


def test_what_works_in_place_is_subtracted():
    """Refinement is timed after the search; both run once more before later stages."""
    given = []
    bench = Bench.__new__(Bench)
    stream = types.SimpleNamespace(handle=7)
    bench.executor = types.SimpleNamespace(streams={MAIN: stream})
    bench.gpu = types.SimpleNamespace(replay=lambda recording: given.append([command[0] for command in recording.commands]))
    bench._time = lambda recording, commands, on: given.append([c[0] for c in commands]) or {1: 70.0, 2: 105.0}[len(commands)]
    recording = cuda_kernels.Recording()
    for name in ("full_search_16", "refine_sad_satd"):
        recording.add(f"the kernel {name}", [], (), types.SimpleNamespace(stream=7))
        recording.add("an event", [])
    timed = list(bench._walk(recording))
    assert timed == [Timed("full_search_16", MAIN, 70.0), Timed("refine_sad_satd", MAIN, 35.0)]
    search, refine = "the kernel full_search_16", "the kernel refine_sad_satd"
    assert given == [[search], ["an event"], [search, refine], [search], [search, "an event", refine], ["an event"]]


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(cuda_kernels, "why_no_cuda", lambda: "there is no GPU")
    monkeypatch.setattr("sys.argv", ["cuda_kernels.py"])
    with pytest.raises(SystemExit, match="there is no GPU"):
        cuda_kernels.main()
