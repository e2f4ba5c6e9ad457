"""Times of frames from Python (timestamps, pts): the demuxer's are those that were given; what cannot be is refused."""

import io
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite.encoder.errors import InputError, OptionError
from h264lite.encoder.given_times import GivenTimes

from ..support.moving import boxes_of, moving

WIDTH, HEIGHT, FRAMES = 48, 34, 40
STEPS = np.array([1, 2, 3, 7])[np.random.default_rng(1).integers(0, 4, FRAMES - 1)]
SIXTIETHS = [0, *np.cumsum(STEPS).tolist()]
WANTED = [Fraction(n, 60) for n in SIXTIETHS]
KINDS = ({"tune": "zerolatency"}, {}, {"preset": "ultrafast", "qp": 20})


def demuxed(source):
    """(pts of all frames in seconds, in display order; those of keyframes), by FFmpeg."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(source) if isinstance(source, bytes) else str(source)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        times = [packet.pts * packet.time_base for packet in packets]
        return sorted(times), [time for time, packet in zip(times, packets) if packet.is_keyframe]


def write(target=None, times=None, frames=FRAMES, **options):
    return h264lite.write_video(target, moving(frames, WIDTH, HEIGHT), 30, device="cpu", timestamps=times, **options)


@pytest.mark.parametrize("fragment", (None, 0.5, "chunk"))
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_the_demuxer_has_the_times(options, fragment):
    times, keyframes = demuxed(write(times=[n / 60 for n in SIXTIETHS], fragment=fragment, **options))
    assert times == WANTED and keyframes[0] == 0


def test_containers_of_pyav_keep_the_times(tmp_path):
    pytest.importorskip("av")
    for name, most in (("o.mov", 0), ("o.mkv", Fraction(1, 2000))):  # Matroska counts milliseconds
        write(tmp_path / name, np.array(SIXTIETHS) / 60)
        times, _ = demuxed(tmp_path / name)
        assert len(times) == FRAMES and max(abs(a - b) for a, b in zip(times, WANTED)) <= most


@pytest.mark.parametrize("rate", (24000 / 1001, 30, 59.94, Fraction(77, 3)))
def test_times_of_a_constant_rate_are_exact_from_any_first_one_on(rate):
    """Floats of k / rate, from 5.1 s on: each frame lasts exactly 1 / rate."""
    exact = h264lite.encoder.settings.option_types.read_fps(rate)
    times = [5.1 + float(k / exact) for k in range(12)]
    data = h264lite.write_video(None, moving(12, WIDTH, HEIGHT), rate, device="cpu", preset="ultrafast", timestamps=times)
    assert demuxed(data)[0] == [k / exact for k in range(12)]


def test_pts_count_the_time_base():
    pts, options = [100, 101, 150, 4000], {"preset": "ultrafast", "time_base": "1/1000"}
    data = h264lite.write_video(None, moving(4, WIDTH, HEIGHT), 30, device="cpu", pts=pts, **options)
    assert demuxed(data)[0] == [Fraction(n - 100, 1000) for n in pts]


def test_fragments_begin_with_keyframes_at_their_times():
    """At the first frame half a second after the last keyframe, less half a frame."""
    expected, last = [WANTED[0]], WANTED[0]
    for time in WANTED:
        if time - last >= Fraction(1, 2) - Fraction(1, 60):
            expected.append(last := time)
    pieces = []
    write(type("Pipe", (), {"write": lambda self, data: pieces.append(bytes(data))})(), iter(WANTED), fragment=0.5)
    assert demuxed(b"".join(pieces)) == (WANTED, expected)
    assert [boxes_of(piece)[0][0] for piece in pieces] == [b"ftyp", *[b"moof"] * len(expected)]
    for n in range(len(expected)):  # each one can be decoded behind the initialisation segment alone
        times, keyframes = demuxed(pieces[0] + pieces[1 + n])
        assert len(times) and len(keyframes) == 1


def test_seeking_to_fragments():
    av = pytest.importorskip("av")
    data = write(times=WANTED, fragment=0.5)
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        for time in demuxed(data)[1]:
            container.seek(int(time / stream.time_base), stream=stream)
            frame = next(container.decode(stream))
            assert frame.pts * frame.time_base == time and frame.key_frame


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([0.2], "frame 3: its time 0.2 follows 0.2 of the frame before: times must rise"),
        ([0.1], "times must rise"),
        ([0.2 + 1e-7], "by 1/90000 s at least"),
        ([float("nan")], "frame 3: the time nan is not seconds"),
        (["soon"], "is not seconds"),
        ([True], "is not seconds"),
        ([1e300], "too large"),
        ([1e6], "s after the frame before"),
        (None, "frame 3 has no time, and the frames before have one"),
        ([], "frame 3 has no time: there are fewer times than frames, give one for each frame"),
        (object(), "is not seconds"),
    ],
)
def test_times_that_cannot_be_are_refused_before_the_frame(times, said):
    clip = moving(5, WIDTH, HEIGHT)
    with h264lite.VideoWriter(None, 30, device="cpu", preset="ultrafast") as writer:
        writer.write(clip[:3], timestamps=[0, 0.1, 0.2])
        with pytest.raises(InputError, match=said.replace("(", r"\(")):
            writer.write(clip[3], timestamps=times)
        writer.write(clip[3], timestamps=0.25)
    assert demuxed(writer.getvalue())[0] == [0, Fraction(1, 10), Fraction(1, 5), Fraction(1, 4)]


def test_times_are_given_to_all_frames_or_none(tmp_path):
    clip = moving(5, WIDTH, HEIGHT)
    with h264lite.VideoWriter(None, 30, device="cpu", preset="ultrafast") as writer:
        writer.write(clip[0])
        with pytest.raises(InputError, match="from the first one on"):
            writer.write(clip[1], timestamps=1)
        with pytest.raises(InputError, match="give one of them"):
            writer.write(clip[1], timestamps=1, pts=1)
    for wrong, error, said in (
        ({"timestamps": [0, 1, 2, 3]}, InputError, "frame 4 has no time: there are fewer times than frames"),
        ({"timestamps": range(6)}, InputError, "a time is left over"),
        ({"timestamps": iter(range(4))}, InputError, "fewer times than frames"),
        ({"pts": range(5)}, InputError, "time_base"),
        ({"pts": range(5), "time_base": -1}, OptionError, "time_base"),
        ({"timestamps": range(5), "vbv_maxrate": 900, "vbv_bufsize": 900, "nal_hrd": "vbr"}, OptionError, "constant"),
    ):
        with pytest.raises(error, match=said):
            h264lite.write_video(None, clip, 30, device="cpu", preset="ultrafast", **wrong)
    with pytest.raises(OptionError, match="a byte stream has no times"):
        h264lite.write_video(tmp_path / "o.264", clip, 30, device="cpu", timestamps=range(5))
    assert not (tmp_path / "o.264").exists()


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_packets_have_the_pts(options):
    pts = [100 + 7 * n * n + n for n in range(FRAMES)]
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", **options) as encoder:
        packets = [p for frame, time in zip(moving(FRAMES, WIDTH, HEIGHT), pts) for p in encoder.encode(frame, pts=time)]
        packets += encoder.flush()
    assert sorted(packet.pts for packet in packets) == pts
    dts = [packet.dts for packet in packets]
    assert dts == sorted(set(dts)) and all(packet.dts <= packet.pts for packet in packets)
    with h264lite.Encoder(WIDTH, HEIGHT, 30, device="cpu", preset="ultrafast") as encoder:
        encoder.encode(moving(1, WIDTH, HEIGHT)[0], pts=5)
        for wrong in (5, 4, 1.5, "a", None):
            with pytest.raises(InputError):
                encoder.encode(moving(1, WIDTH, HEIGHT)[0], pts=wrong)


def test_the_stream_says_that_its_rate_is_not_fixed():
    """fixed_frame_rate_flag is the last bit of the timing in the VUI; the headers differ in nothing else."""
    both = []
    for times in (None, range(3)):
        with h264lite.VideoWriter(None, 30, device="cpu", preset="ultrafast", qp=30) as writer:
            writer.write(moving(3, WIDTH, HEIGHT), timestamps=times)
            both.append(np.unpackbits(np.frombuffer(writer.headers, np.uint8)))
    assert (both[0] != both[1]).sum() == 1


def test_frames_that_are_refused_take_no_time():
    times = GivenTimes(Fraction(30))
    times.give([0, 1, 2], None)
    for _ in range(2):
        times.enter()
    times.take_back()
    assert times.known(1) is None and times.known(0) == 0
