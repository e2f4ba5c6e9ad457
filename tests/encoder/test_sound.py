"""`audio=` of write_video: files, arrays and packets into files, bytes, file objects and fragments, as PyAV reads them."""

import errno
import io
import itertools
from fractions import Fraction

import h264lite
import numpy as np
import pytest
from h264lite import AudioPackets, InputError, OptionError
from h264lite.encoder.files import sound_av
from h264lite.mp4.sound_reader import open_sound

from ..support import sounds

pytest.importorskip("av")
FRAMES = np.random.default_rng(1).integers(0, 255, (50, 32, 48, 3), np.uint8)  # two seconds
PCM = sounds.pcm()
SOURCES = sounds.FILES
TARGETS = ("file", "bytes", "object", "fragments", "fragments in a file")


@pytest.fixture(scope="module", params=SOURCES)
def source(request, tmp_path_factory):
    name, codec = SOURCES[request.param]
    return sounds.write(tmp_path_factory.mktemp("s") / name, codec, PCM)


@pytest.fixture(autouse=True)
def no_pyav(monkeypatch, request):
    """The sound goes nowhere near PyAV, but where a test says so."""
    if "through_pyav" not in request.fixturenames:
        monkeypatch.setattr(sound_av.AvSound, "__init__", lambda *_: pytest.fail("PyAV is asked"))


def written(target, tmp_path, audio, frames=FRAMES, fps=25, **options):
    """The bytes of a video with sound."""
    options = {"device": "cpu", "qp": 40, "keyint": 10, "threads": 1, **options}
    if "fragments" in target:
        options["fragment"] = 0.4
    if target == "bytes":
        return h264lite.write_video(None, frames, fps, audio=audio, **options)
    if "file" in target:
        h264lite.write_video(tmp_path / "o.mp4", frames, fps, audio=audio, **options)
        return (tmp_path / "o.mp4").read_bytes()
    out = io.BytesIO()
    h264lite.write_video(out, frames, fps, audio=audio, **options)
    return out.getvalue()


@pytest.mark.parametrize("target", TARGETS)
def test_files_into_every_target(source, target, tmp_path):
    """Packet for packet and sample for sample as the source plays, from its beginning to the end of the video."""
    data = written(target, tmp_path, source)
    assert (b"moof" in data) == ("fragments" in target)
    begin, heard = sounds.decoded(data)
    expected_begin, expected = sounds.decoded(source)
    assert begin == 0 == expected_begin
    count = min(heard.shape[1], expected.shape[1])
    assert count >= 95000 and np.array_equal(heard[:, :count], expected[:, :count])
    if source.suffix != ".wav":
        packets = sounds.packets(data)
        assert packets == sounds.packets(source)[: len(packets)] and len(packets) > 20
    assert 95222 <= sum(packet.duration for packet in open_sound(io.BytesIO(data)).packets) <= 96000 + 1024
    with sounds.opened(data) as container:
        assert container.streams.video[0].duration * container.streams.video[0].time_base == 2
        assert abs(container.duration - 2_000_000) <= (22_000 if "fragments" in target else 1)


@pytest.mark.parametrize("target", TARGETS)
def test_arrays_into_every_target(target, tmp_path):
    for samples, rate, bits in ((PCM, 48000, 16), (PCM[:, 0], 44100, 16), (PCM.astype(np.int32) << 16, 96000, 24)):
        data = written(target, tmp_path, (samples, rate))
        begin, heard = sounds.decoded(data)
        expected = samples.reshape(len(samples), -1).T[:, : 2 * rate]
        expected = expected if bits == 16 else expected >> 8 << 8
        assert begin == 0 and np.array_equal(heard, expected)
        with sounds.opened(data) as container:
            track = container.streams.audio[0]
            assert (track.codec_context.codec.canonical_name, track.codec_context.sample_rate) == ("flac", rate)
            assert track.duration * track.time_base == Fraction(expected.shape[1], rate)


def test_a_file_is_the_same_as_bytes(tmp_path):
    outs = {target: written(target, tmp_path, (PCM, 48000)) for target in TARGETS}
    assert outs["file"] == outs["bytes"] == outs["object"] and outs["fragments"] == outs["fragments in a file"]


def test_the_video_is_that_without_sound(tmp_path):
    """Frames and their times are those of the file without; that file has no byte of sound."""
    plain = h264lite.write_video(None, FRAMES, 25, device="cpu", qp=40, keyint=10, threads=1)
    data = written("bytes", tmp_path, (PCM, 48000))
    both = []
    for file in (plain, data):
        with sounds.opened(file) as container:
            both.append([(bytes(p), p.pts * p.time_base, p.dts * p.time_base) for p in container.demux(video=0) if p.size])
    assert both[0] == both[1] and b"soun" not in plain


@pytest.mark.parametrize(
    "options",
    ({"bframes": 0}, {"bframes": 3, "b_adapt": 0}, {"bframes": 7, "b_adapt": 0, "b_pyramid": "dyadic"}),
    ids=("P", "B", "dyadic"),
)
@pytest.mark.parametrize("target", ("bytes", "fragments"))
def test_a_flash_and_its_click_are_together(options, target, tmp_path):
    """To the sample: a white frame and a click at the same times, whatever the order of coding, the rate and the codec."""
    fps, rate = Fraction(30000, 1001), 44100
    frames = np.full((60, 32, 48, 3), 16, np.uint8)
    samples = np.zeros((rate * 2, 1), np.int16)
    for n in (0, 7, 31, 58):
        frames[n] = 255
        samples[-(-n * rate // fps)] = 30000
    data = written(target, tmp_path, (samples, rate), frames, fps, keyint=20, **options)
    with sounds.opened(data) as container:
        flashes = [f.pts * f.time_base for f in container.decode(video=0) if f.to_ndarray()[0, 0] > 200]
    begin, heard = sounds.decoded(data)
    clicks = [Fraction(int(begin) + at, rate) for at in np.flatnonzero(heard[0])]
    assert len(flashes) == 4 == len(clicks) and all(
        0 <= click - flash <= Fraction(1, rate) for flash, click in zip(flashes, clicks)
    )


def test_sound_ends_with_the_video_or_before(tmp_path):
    for count, lasts in ((48000 * 3, 96000), (96000, 96000), (95999, 95999), (5, 5), (2, 2)):
        data = written("bytes", tmp_path, (np.full(count, 0.25), 48000))
        _, heard = sounds.decoded(data)
        assert heard.shape[1] == lasts and (heard == 8192).all()
        with sounds.opened(data) as container:
            assert container.duration == 2_000_000


def test_sound_of_a_generator_is_asked_for_as_the_video_is_written(tmp_path):
    """Endless, and never more than a second ahead."""
    asked = []
    video = []

    def chunks():
        for n in itertools.count():
            asked.append((len(video), n))
            yield PCM[n % 90 * 480 : n % 90 * 480 + 480]

    def frames():
        for frame in FRAMES:
            video.append(1)
            yield frame

    data = written("fragments", tmp_path, (chunks(), 48000), frames(), bframes=0, tune="zerolatency")
    assert sounds.decoded(data)[1].shape[1] == 96000
    assert len(asked) <= 200 + 20 and asked[len(asked) // 2][0] < 45, "most of it before the last frame"


def test_packets_of_a_program_as_they_come(tmp_path):
    opus = sounds.write(tmp_path / "s.ogg", "libopus", PCM)
    packets = sounds.packets(opus)
    data = written("bytes", tmp_path, AudioPackets("opus", iter(packets)))
    assert sounds.packets(data) == packets[: len(sounds.packets(data))]
    assert np.array_equal(sounds.decoded(data)[1][:, :95000], sounds.decoded(opus)[1][:, :95000])
    with pytest.raises(InputError, match=r"audio: packet 3: not bytes"):
        written("bytes", tmp_path, AudioPackets("opus", [*packets[:3], "text"]))


@pytest.fixture
def through_pyav():
    """Asked for by tests of what PyAV writes."""


@pytest.mark.parametrize("ending", ("mkv", "mov"))
def test_arrays_into_other_containers(tmp_path, ending, through_pyav):
    h264lite.write_video(tmp_path / f"o.{ending}", FRAMES, 25, audio=(PCM, 48000), device="cpu", qp=40)
    begin, heard = sounds.decoded(tmp_path / f"o.{ending}")
    if ending == "mkv":
        assert begin == 0 and np.array_equal(heard[:, :95000], PCM.T[:, :95000])
    assert abs(heard.shape[1] - 96000) < 3000
    with pytest.raises(OptionError, match="audio packets are for MP4"):
        h264lite.write_video(tmp_path / f"o.{ending}", FRAMES, 25, audio=AudioPackets("opus", []), device="cpu")


def test_other_sound_goes_through_pyav_into_files(tmp_path, through_pyav):
    source = sounds.write(tmp_path / "s.mp2", "mp2", PCM)
    h264lite.write_video(tmp_path / "o.mp4", FRAMES, 25, audio=source, device="cpu", qp=40)
    with sounds.opened(tmp_path / "o.mp4") as container:
        assert container.streams.audio[0].codec_context.name == "aac"


WRONG = [
    (("no.wav",), InputError, "no.wav: no such file"),
    ((3,), OptionError, "audio 3: neither"),
    (((PCM,),), OptionError, "a tuple of 1"),
    (((PCM, "fast"),), OptionError, "audio rate"),
    (((PCM, 44100.5),), OptionError, "rate"),
    (((PCM, 5),), OptionError, "1000..655350"),
    (((np.zeros((9, 9)), 48000),), InputError, "audio: of shape"),
    (((None, 48000),), InputError, "no array"),
    (((np.full(9, np.nan), 48000),), InputError, "audio: floating-point samples up to nan"),
]


@pytest.mark.parametrize(("audio", "error", "words"), WRONG)
def test_wrong_sound_is_refused_before_anything_is_written(tmp_path, audio, error, words):
    (audio,) = audio
    audio = str(tmp_path / audio) if isinstance(audio, str) else audio
    with pytest.raises(error, match=words) as info:
        h264lite.write_video(tmp_path / "o.mp4", FRAMES, 25, audio=audio, device="cpu")
    assert "\n" not in str(info.value) and not (tmp_path / "o.mp4").exists()


def test_a_byte_stream_has_no_sound(tmp_path):
    """Which is said before the first frame."""
    with pytest.raises(OptionError, match=r"audio is for \.mp4, \.mkv, \.mov, \.m3u8 and \.mpd files, and not for .*o\.264"):
        h264lite.VideoWriter(tmp_path / "o.264", 25, audio=(PCM, 48000))


@pytest.mark.parametrize("name", ["same.mp4", "linked.mp4"])
def test_the_file_of_the_sound_is_no_target(tmp_path, name):
    """Else the video replaces it before its sound is read."""
    audio = sounds.write(tmp_path / "same.mp4", "aac", PCM)
    if name != "same.mp4":
        (tmp_path / name).hardlink_to(audio)
    before = (tmp_path / "same.mp4").read_bytes()
    with pytest.raises(OptionError, match=r"target and audio are the same: "):
        h264lite.write_video(tmp_path / name, FRAMES, fps=25, audio=str(audio), device="cpu")
    assert (tmp_path / "same.mp4").read_bytes() == before



def test_files_that_are_no_sound(tmp_path):
    path = tmp_path / "s.bin"
    for data, words in (
        (b"", "empty"),
        (b"RIFF\0\0\0\0WAVE", "ends in"),
        (b"fLaC", "ends in"),
        (b"OggS" + bytes(60), "damaged"),
        (h264lite.write_video(None, FRAMES[:2], 25, device="cpu", qp=40), "holds no sound"),
        (bytes(90), "no MP4, M4A, ADTS, Ogg Opus, FLAC or WAV file"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=words) as info:
            h264lite.write_video(None, FRAMES, 25, audio=path, device="cpu")
        assert str(path) in str(info.value) and "\n" not in str(info.value)


@pytest.mark.parametrize("target", ("file", "bytes", "fragments"))
def test_sound_that_breaks_off_leaves_a_file_that_plays(tmp_path, target):
    def chunks():
        yield PCM[:40000]
        yield np.full((9, 2), np.nan)

    out = tmp_path / "o.mp4" if target == "file" else io.BytesIO()
    fragment = {"fragment": 0.4} if target == "fragments" else {}
    with pytest.raises(InputError, match=r"^audio: float64 after int16"):
        h264lite.write_video(out, FRAMES, 25, audio=(chunks(), 48000), device="cpu", qp=40, keyint=10, **fragment)
    data = out.read_bytes() if target == "file" else out.getvalue()
    with sounds.opened(data) as container:
        assert sum(1 for _ in container.decode(video=0)) >= 9
    heard = sounds.decoded(data)[1]
    assert np.array_equal(heard, PCM.T[:, : heard.shape[1]]) and heard.shape[1] >= 36000


def test_a_full_disk_is_the_error_of_the_output(tmp_path):
    class Full(io.BytesIO):
        def write(self, data):
            if self.tell() > 20000:
                raise OSError(errno.ENOSPC, "full")
            return super().write(data)

    out = Full()
    with pytest.raises(h264lite.Error, match="the Full: full") as info:
        h264lite.write_video(out, FRAMES, 25, audio=(PCM, 48000), device="cpu", fragment=0.4, keyint=10, qp=40)
    assert not isinstance(info.value, InputError)
    assert len(sounds.decoded(out.getvalue())[1][0]) > 9000


def test_chunks_whose_last_frame_lasts_longer_than_was_known():
    """A chunk is out before the time of the next frame is known: sound and video stay in step to the sample."""
    times, rng = [0.0, 0.04, 0.08, 0.5, 0.54, 1.0, 1.04, 1.08, 1.3, 1.34], np.random.default_rng(4)
    pcm, target = rng.integers(-9000, 9000, (int(1.38 * sounds.RATE), 1)).astype(np.int16), io.BytesIO()
    options = {"device": "cpu", "tune": "zerolatency"}
    with h264lite.VideoWriter(target, fps=25, fragment="chunk", audio=(pcm, sounds.RATE), **options) as writer:
        for k in range(0, len(times), 2):
            writer.write(FRAMES[k : k + 2], timestamps=times[k : k + 2])
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(target.getvalue())) as container:
        shown = [float(packet.pts * packet.time_base) for packet in container.demux(video=0) if packet.size]
    with av.open(io.BytesIO(target.getvalue())) as container:
        heard = [frame.to_ndarray().reshape(-1, 1) for frame in container.decode(audio=0)]
    assert shown == pytest.approx(times)
    np.testing.assert_array_equal(np.concatenate(heard), pcm)
