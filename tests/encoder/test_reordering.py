"""Frames that are coded in another order than they are shown: what comes out, in which order, and what waits."""

import io
import struct
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.decision_queue import DecisionQueue
from h264lite.encoder.gops.queue import GopQueue
from h264lite.encoder.pipeline import Pipeline
from h264lite.encoder.settings.config import Config
from h264lite.encoder.statistics import ssim
from h264lite.mp4.reader import Mp4Reader

from ..cuda_emulator.fixtures import driver, launches_by_frame  # noqa: F401
from ..inside import n_waiting
from ..support import reordered, round_trip
from ..support.steady import steady_words

WIDTH, HEIGHT, FRAMES = 50, 34, 9
OPTIONS = {"qp": 28, "bframes": 0, "ref": 2, "device": "cpu"}


@pytest.fixture(autouse=True)
def _reordered(monkeypatch):
    reordered.install(monkeypatch)


@pytest.fixture(scope="module")
def clip():
    return round_trip.noise_clip(WIDTH, HEIGHT, FRAMES, 7)


def packets_of(clip, **options):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, **{**OPTIONS, **options}) as encoder:
        return round_trip.packets_of(encoder, clip)


def check(packets, frames, keyint=250):
    """Times are right, and decoders give the reconstruction in display order."""
    assert sorted(packet.pts for packet in packets) == list(range(frames))
    assert [packet.dts for packet in packets] == list(range(-1, frames - 1))
    assert all(packet.dts <= packet.pts for packet in packets)
    assert [packet.pts for packet in packets if packet.is_keyframe] == list(range(0, frames, keyint))
    stream = b"".join(packet.data for packet in packets)
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), round_trip.shown(packets), "FFmpeg")
    round_trip.assert_same(round_trip.own_frames(stream), round_trip.shown(packets), "own decoder")


@pytest.mark.parametrize("frames, order", ((1, [0]), (2, [0, 1]), (3, [0, 2, 1]), (6, [0, 2, 1, 4, 3, 5])))
def test_coding_order(clip, frames, order):
    packets = packets_of(clip[:frames], threads=1)
    assert [packet.pts for packet in packets] == order
    check(packets, frames)


@pytest.mark.parametrize("keyint", (3, 4, 250))
@pytest.mark.parametrize("options", ({"threads": 3}, {"threads": 2, "gops": 2}), ids=str)
def test_same_bytes(clip, keyint, options):
    """Whatever the threads and lanes; the decisions saw the luma of each frame, in display order."""
    expected = packets_of(clip, threads=1, keyint=keyint)
    check(expected, FRAMES, keyint)
    packets = packets_of(clip, keyint=keyint, **options)
    assert [(p.data, p.pts, p.dts) for p in packets] == [(p.data, p.pts, p.dts) for p in expected]
    for types in reordered.Pairs.instances:
        assert all(np.array_equal(luma, planes[0]) for luma, planes in zip(types.lumas, clip, strict=True))


def test_frames_are_copied(clip):
    """The caller's arrays may change as soon as the call returns."""
    expected, planes = packets_of(clip), [plane.copy() for plane in clip[0]]
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        packets = []
        for frame in clip:
            for plane, samples in zip(planes, frame):
                plane[...] = samples
            packets += encoder.encode(tuple(planes))
        packets += encoder.flush()
    assert b"".join(p.data for p in packets) == b"".join(p.data for p in expected)


def test_rgb(clip):
    rgb = [np.repeat(planes[0][:, :, None], 3, 2) for planes in clip]
    check(packets_of([]) + _encoded(rgb), FRAMES)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        encoder.encode(tuple(clip[0]))
        with pytest.raises(h264lite.InputError, match="RGB after other frames"):
            encoder.encode(rgb[0])
        with pytest.raises(h264lite.InputError, match="far outside"):
            encoder.encode(rgb[0].astype(np.float32))


def _encoded(frames):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, **OPTIONS) as encoder:
        return round_trip.packets_of(encoder, frames)


@pytest.mark.parametrize("gops", (1, 3))
@pytest.mark.parametrize("form", ("raw", "y4m"))
def test_the_command(clip, tmp_path, gops, form):
    """Rows come in coding order with both numbers; the reconstruction is what a decoder gives."""
    source = round_trip.write_raw(clip, tmp_path)
    if form == "y4m":
        frames = b"".join(b"FRAME\n" + b"".join(plane.tobytes() for plane in frame) for frame in clip)
        source = tmp_path / "in.y4m"
        source.write_bytes(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F30:1 C420\n".encode() + frames)
    out, rows, dump = (tmp_path / name for name in ("out.264", "rows.csv", "dump.yuv"))
    words = [f"--{name}={value}" for name, value in OPTIONS.items()] + ["--quiet", "--fps=30", "--keyint=4", f"--gops={gops}"]
    assert main(steady_words(["encode", source, out, *words, "--csv", rows, "--dump-yuv", dump])) == 0
    expected = packets_of(clip, keyint=4)
    assert out.read_bytes() == b"".join(packet.data for packet in expected)
    assert dump.read_bytes() == b"".join(plane.tobytes() for frame in round_trip.shown(expected) for plane in frame)
    names, *lines = [line.split(",") for line in rows.read_text().splitlines()]
    table = [dict(zip(names, line)) for line in lines]
    assert [int(row["frame"]) for row in table] == [packet.pts for packet in expected]
    assert [int(row["coded"]) for row in table] == list(range(FRAMES))


@pytest.mark.parametrize("by_samples", (False, True))
def test_decisions_by_samples(clip, tmp_path, monkeypatch, by_samples):
    """Lanes read a file themselves only where nothing is decided by its samples."""
    monkeypatch.setattr(Config, "decides_by_samples", property(lambda self: by_samples))
    source, out = round_trip.write_raw(clip, tmp_path), tmp_path / "out.264"
    words = [f"--{name}={value}" for name, value in OPTIONS.items()] + ["--quiet", "--fps=30", "--keyint=4", "--gops=3"]
    assert main(steady_words(["encode", source, out, *words])) == 0
    seen = reordered.Pairs.instances[-1].lumas
    assert len(seen) == FRAMES and all((luma is not None) == by_samples for luma in seen)
    if by_samples:
        assert all(np.array_equal(luma, planes[0]) for luma, planes in zip(seen, clip))
    assert out.read_bytes() == b"".join(packet.data for packet in packets_of(clip, keyint=4))


@pytest.mark.parametrize("gops", (1, 2))
def test_each_frame_is_compared_with_its_source(clip, gops):
    still = [[plane.copy() for plane in planes] for planes in clip]
    still[3][0][:] = 200
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, ssim=True, keyint=5, gops=gops, **OPTIONS) as encoder:
        pairs = round_trip.finished(encoder, still)
    assert len(pairs) == FRAMES
    for frame, row in pairs:
        source, decoded = still[frame.index], frame.reconstruction
        assert row.ssim == ssim(source[0], decoded[0][:HEIGHT, :WIDTH])
        difference = source[0].astype(int) - decoded[0][:HEIGHT, :WIDTH]
        assert frame.ssd[0] == int((difference**2).sum())


def test_flush_without_frames():
    assert packets_of([]) == []


@pytest.mark.parametrize("gops", (1, 2))
def test_close_without_flush(clip, gops):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, gops=gops, **OPTIONS) as encoder:
        assert len([p for planes in clip[:4] for p in encoder.encode(tuple(planes))]) <= 3


def test_flush_twice(clip):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        count = sum(len(encoder.encode(tuple(planes))) for planes in clip[:4])
        assert count + len(encoder.flush()) == 4 and encoder.flush() == []
    assert reordered.Pairs.instances[-1].flushed == 1


def test_memory_is_bounded(clip):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        for _ in range(3):
            for planes in clip:
                encoder.encode(tuple(planes))
                assert sum(n_waiting(encoder)) <= 2
        encoder.flush()
        assert n_waiting(encoder)[0] == 0


class Interrupt(BaseException):
    pass


def interrupted(monkeypatch, at, after=False):
    """The pipeline is interrupted in the frame that it codes as number `at`, or right after it."""
    encode, count = Pipeline.encode, []

    def broken(self, *arguments):
        count.append(0)
        if len(count) == at + 1 and not after:
            raise Interrupt
        done = encode(self, *arguments)
        if len(count) == at + 1:
            raise Interrupt
        return done

    monkeypatch.setattr(Pipeline, "encode", broken)


@pytest.mark.parametrize("after", (False, True))
@pytest.mark.parametrize("at", (1, 2))
def test_an_interrupt_while_frames_wait(clip, monkeypatch, at, after):
    """The frames that were coded before come out, once; none follows."""
    expected = packets_of(clip)
    interrupted(monkeypatch, at, after)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, threads=2, **OPTIONS) as encoder:
        packets = encoder.encode(tuple(clip[0])) + encoder.encode(tuple(clip[1]))
        with pytest.raises(Interrupt):
            encoder.encode(tuple(clip[2]))
        with pytest.raises(h264lite.Error, match="no frame can follow"):
            encoder.encode(tuple(clip[3]))
        packets += encoder.flush()
    assert [p.data for p in packets] == [p.data for p in expected[: at + after]]


def test_an_interrupt_while_a_frame_is_copied(clip, monkeypatch):
    """No frame is incomplete: those that wait are coded."""
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        packets = [p for planes in clip[:4] for p in encoder.encode(tuple(planes))]
        with monkeypatch.context() as patch, pytest.raises(Interrupt):
            patch.setattr("h264lite.encoder.reordering.np.copyto", lambda *_: (_ for _ in ()).throw(Interrupt))
            encoder.encode(tuple(clip[4]))
        packets += encoder.flush()
    assert [p.pts for p in packets] == [0, 2, 1, 3]


def test_an_interrupt_in_flush(clip, monkeypatch):
    """It is said that the stream ends: a second flush returns what is coded, and frames are refused."""
    interrupted(monkeypatch, 3)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, **OPTIONS) as encoder:
        packets = [p for planes in clip[:4] for p in encoder.encode(tuple(planes))]
        with pytest.raises(Interrupt):
            encoder.flush()
        packets += encoder.flush()
        with pytest.raises(h264lite.Error, match="the encoder failed"):
            encoder.encode(tuple(clip[4]))
    assert [p.pts for p in packets] == [0, 2, 1]


# GPUs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ({"device": "cuda"}, {"device": "hybrid"}, {"device": "cuda", "gops": 2}), ids=str)
def test_other_devices(driver, clip, options):  # noqa: F811
    expected = packets_of(clip, keyint=5)
    packets = packets_of(clip, keyint=5, threads=2, **options)
    assert [(p.data, p.pts, p.dts) for p in packets] == [(p.data, p.pts, p.dts) for p in expected]
    round_trip.assert_same(round_trip.shown(packets), round_trip.shown(expected), options)


@pytest.mark.parametrize("options", ({"threads": 1}, {"threads": 3, "ref": 3, "keyint": 17}), ids=str)
def test_a_lost_gpu(driver, options):  # noqa: F811
    """References lie further back in coding order than frames without these between them: the ring holds them."""
    clip = round_trip.noise_clip(WIDTH, HEIGHT, 25, 7)
    expected = packets_of(clip, **options)
    counts = launches_by_frame(driver, clip, lambda: h264lite.Encoder(
        WIDTH, HEIGHT, 30, **{**OPTIONS, **options, "device": "cuda"}))  # fmt: skip
    for frame in (0, 3, 10, 18, 23):
        driver.launches, driver.fail_after = counts[0], counts[frame] + 4
        with pytest.warns(RuntimeWarning, match="continuing on the CPU"):
            packets = packets_of(clip, **{**options, "device": "auto"})
        driver.fail_after = None
        assert [p.data for p in packets] == [p.data for p in expected], frame


@pytest.mark.parametrize("taken, more", ((1, 0), (2, 1), (3, 0), (4, 1), (5, 0)))
def test_cut_leaves_no_gap(taken, more):
    """Of I0 P2 P1 P4 P3 those are still taken that are displayed before one in flight; no other is begun."""
    config = Config.from_options(width=WIDTH, height=HEIGHT, keyint=5, **OPTIONS)
    queue, held = GopQueue(1, 99, 6), DecisionQueue(config)
    for _ in range(7):
        for spec, source in held.add(np.zeros(6, np.uint8)):
            queue.enter(spec, source)
    gop = queue.next_gop()
    for _ in range(taken):
        queue.take(gop, 1)
    queue.end(cut=True)
    frames = []
    while not queue.is_over(gop):
        frames += queue.take(gop, 1)
    assert len(frames) == more and queue.take(gop, 1) == [] and queue.next_gop() is None


def test_a_writer_that_is_left_by_an_exception(clip, tmp_path):
    """The file has all frames that were given before."""
    av = pytest.importorskip("av")
    with pytest.raises(KeyError), h264lite.VideoWriter(tmp_path / "o.mp4", 30, **OPTIONS) as writer:
        for planes in clip[:4]:
            writer.write(tuple(planes))
        raise KeyError
    with av.open(str(tmp_path / "o.mp4")) as container:
        assert [frame.pts * frame.time_base * 30 for frame in container.decode(video=0)] == [0, 1, 2, 3]


# Containers ----------------------------------------------------------------------------------------------------------

RATES = Fraction(25), Fraction(30000, 1001)


def written(clip, rate, target, fragment=None, **options):
    with h264lite.VideoWriter(target, rate, fragment=fragment, **{**OPTIONS, **options}) as writer:
        writer.write_all([tuple(planes) for planes in clip])


@pytest.mark.parametrize("frames", (1, 2, 3, 7))
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("kind", ("movie", "fragments", "bytes", "mov", "mkv"))
def test_times_in_containers(clip, tmp_path, kind, rate, frames):
    """Frame 0 is shown at 0, each for 1 / rate, and decoding begins a frame earlier."""
    av = pytest.importorskip("av")
    path = tmp_path / f"o.{kind if kind in ('mov', 'mkv') else 'mp4'}"
    written(clip[:frames], rate, io.BytesIO() if kind == "bytes" else path, 0.1 if kind == "fragments" else None, keyint=4)
    if kind == "bytes":
        path.write_bytes(h264lite.write_video(None, [tuple(planes) for planes in clip[:frames]], rate, keyint=4, **OPTIONS))
    order = [packet.pts for packet in packets_of(clip[:frames], keyint=4)]
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        packets = [packet for packet in container.demux(stream) if packet.size]
        base = stream.time_base
        if kind != "mkv":  # which counts in milliseconds
            assert (stream.start_time, stream.duration * base) == (0, frames / rate)
            assert [packet.pts * base for packet in packets] == [number / rate for number in order]
            assert [packet.dts * base for packet in packets] == [(n - 1) / rate for n in range(frames)]
            assert all(packet.duration * base == 1 / rate for packet in packets)
    with av.open(str(path)) as container:
        times = [frame.pts * base for frame in container.decode(video=0)]
    assert [round(time * rate) for time in times] == list(range(frames)) and times[0] == 0
    assert all(abs(time - n / rate) <= base for n, time in enumerate(times))


@pytest.mark.parametrize("fragment", (None, 0.1))
def test_own_reader(clip, fragment):
    """Signed offsets are not needed; the edit list begins where frame 0 is shown and has the length of the video."""
    target = io.BytesIO()
    written(clip, RATES[1], target, fragment, keyint=4)
    reader = Mp4Reader(io.BytesIO(target.getvalue()))
    order = [packet.pts for packet in packets_of(clip, keyint=4)]
    assert [(s.dts, s.pts, s.duration) for s in reader.samples()] == [
        (1001 * n, 1001 * (shown_as + 1), 1001) for n, shown_as in enumerate(order)
    ]
    data = target.getvalue()
    at = data.index(b"elst") + 4
    lasts, start = struct.unpack(">Ii", data[at + 8 : at + 16])
    assert (lasts, start) == (0 if fragment else FRAMES * 1001, 1001)


@pytest.mark.parametrize("frames", (7, 8))  # the last frame shown is coded before another one, or last
@pytest.mark.parametrize("ending", ("mp4", "mkv", "mov"))
def test_times_of_the_input(tmp_path, ending, frames):
    """A variable frame rate stays; in the MP4 the last frame lasts as long as it did."""
    pytest.importorskip("av")
    from ..cli.test_input_metadata import VARIABLE, make, times_of

    times = VARIABLE[:frames]
    source, out = make(tmp_path / "in.mkv", times), tmp_path / f"o.{ending}"
    assert main(steady_words(["encode", source, out, "--device=cpu", "--ref=2", "--quiet", "--threads=1"])) == 0
    written_times = times_of(out)
    assert written_times != sorted(written_times) and sorted(written_times) == pytest.approx(times, abs=1)
    if ending == "mp4":
        data = out.read_bytes()
        timescale, duration = struct.unpack(">II", data[(at := data.index(b"mvhd") + 16) : at + 8])
        assert duration / timescale == pytest.approx((times[-1] + 40) / 1000, abs=0.001)
