"""Sound in HLS and DASH: in step with the video, whole, and as playlist and manifest say it."""

import io
import os
from fractions import Fraction
from math import ceil

import h264lite
import numpy as np
import pytest
from h264lite.cli.cli import main
from h264lite.encoder.errors import InputError, OutputError
from h264lite.mp4.dash import manifest as manifest_of
from h264lite.mp4.playlists import Presentation, Segments
from h264lite.mp4.sound_entry import codec_name
from h264lite.mp4.sound_reader import open_sound
from h264lite.sound.aac import config_of, format_of
from h264lite.sound.packets import AudioPackets

from ..support import sounds
from ..support.moving import boxes_of, moving
from .test_playlists import listed, manifest, segments_of

pytest.importorskip("av")
WIDTH, HEIGHT, FRAMES, RATE = 48, 34, 70, Fraction(30000, 1001)
LASTS = FRAMES / RATE
COUNT = 112112  # samples in the time of the frames
KINDS = {"flac": ("s.flac", "flac"), "aac": ("s.m4a", "aac"), "opus": ("s.ogg", "libopus"), "wav": ("s.wav", "pcm_s16le")}
CODECS = {"flac": "fLaC", "aac": "mp4a.40.2", "opus": "Opus", "wav": "fLaC"}
ORDERS = ({"bframes": 0}, {"bframes": 3, "b_adapt": 0, "b_pyramid": "normal"})
PCM = sounds.pcm(COUNT)


def written(path, audio, frames=None, fps=RATE, **options):
    frames = moving(FRAMES, WIDTH, HEIGHT) if frames is None else frames
    options = {"fragment": 0.5, "device": "cpu", "qp": 30, "threads": 1, **options}
    h264lite.write_video(path, frames, fps, audio=audio, **options)
    return path


def tracks(path):
    """What plays the video, and what plays the sound: of HLS the playlist, of DASH each adaptation set's files together."""
    if path.suffix == ".m3u8":
        return path, path
    root = manifest(path.read_text())
    files = [(first, *(file for _, file in segments)) for first, segments in (segments_of(root), segments_of(root, "audio"))]
    return [b"".join((path.parent / file).read_bytes() for file in names) for names in files]


def shown(file):
    """Times of the frames, and which of them are white."""
    with sounds.opened(file) as container:
        return [(f.pts * f.time_base, f.to_ndarray()[0, 0] > 200) for f in container.decode(video=0)]


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize("options", ORDERS, ids=("P", "B"))
@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_both_tracks_play_from_the_same_time(tmp_path, form, options, ending):
    """FFmpeg has all frames and all samples; packets are those of the source."""
    name, codec = KINDS[form]
    source = sounds.write(tmp_path / name, codec, PCM)
    video, sound = tracks(written(tmp_path / f"o.{ending}", source, **options))
    assert [time for time, _ in shown(video)] == [n / RATE for n in range(FRAMES)]
    begin, heard = sounds.decoded(sound)
    expected_begin, expected = sounds.decoded(source)
    assert begin == 0 == expected_begin
    count = min(heard.shape[1], expected.shape[1])
    assert count >= COUNT and np.array_equal(heard[:, :count], expected[:, :count])
    if CODECS[form] == "fLaC":
        assert heard.shape[1] == COUNT == expected.shape[1]
    if form != "wav":
        packets = sounds.packets(sound)
        assert packets == sounds.packets(source)[: len(packets)] and len(packets) > 20


@pytest.mark.parametrize("options", ORDERS, ids=("P", "B"))
@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_a_flash_and_its_click_are_together(tmp_path, options, ending):
    frames, samples = np.full((60, 32, 48, 3), 16, np.uint8), np.zeros((88200, 1), np.int16)
    for n in (0, 7, 31, 58):
        frames[n] = 255
        samples[-(-n * 44100 // RATE)] = 30000
    video, sound = tracks(written(tmp_path / f"o.{ending}", (samples, 44100), frames, **options))
    flashes = [time for time, is_white in shown(video) if is_white]
    begin, heard = sounds.decoded(sound)
    clicks = [Fraction(int(begin) + at, 44100) for at in np.flatnonzero(heard[0])]
    assert len(flashes) == 4 == len(clicks) and all(0 <= b - a <= Fraction(1, 44100) for a, b in zip(flashes, clicks))


@pytest.mark.parametrize("options", ORDERS, ids=("P", "B"))
def test_each_segment_of_hls_has_the_sound_of_its_time(tmp_path, options):
    """Two runs in one fragment; the sound begins within a packet of the video."""
    path = written(tmp_path / "o.m3u8", (PCM, 48000), **options)
    first, segments, _ = listed(path)
    assert {file.name for file in tmp_path.iterdir()} == {first, path.name, *(file for _, file in segments)}
    at = Fraction(0)
    for seconds, file in segments:
        (type_of_moof, moof), (type_of_data, _) = boxes_of((tmp_path / file).read_bytes())
        assert (type_of_moof, type_of_data) == (b"moof", b"mdat") and [name for name, _ in boxes_of(moof)].count(b"traf") == 2
        with sounds.opened((tmp_path / first).read_bytes() + (tmp_path / file).read_bytes()) as container:
            packets = [(p.stream.type, p.pts * p.time_base) for p in container.demux() if p.size]
        begins = [min(time for name, time in packets if name == track) for track in ("video", "audio")]
        assert abs(begins[0] - at) < Fraction(1, 10**6) * len(segments) and 0 <= begins[1] - begins[0] < Fraction(4096, 48000)
        at += seconds


@pytest.mark.parametrize("form", KINDS)
def test_the_manifest_says_what_is_written(tmp_path, form):
    """Codecs, rate, channels, bandwidths of whole files, and times of each segment as FFmpeg reads them."""
    name, codec = KINDS[form]
    path = written(tmp_path / "a <ü>$.mpd", sounds.write(tmp_path / name, codec, PCM))
    (tmp_path / name).unlink()
    root = manifest(path.read_text())
    names = [path.name]
    for content, mime in (("video", "video/mp4"), ("audio", "audio/mp4")):
        first, segments = segments_of(root, content)
        names += [first, *(file for _, file in segments)]
        (row,) = (row for row in root.iter() if row.attrib.get("mimeType") == mime)
        sizes = [os.path.getsize(tmp_path / file) for _, file in segments]
        assert int(row.attrib["bandwidth"]) == ceil(max(8 * size / seconds for (seconds, _), size in zip(segments, sizes)))
        assert sum(seconds for seconds, _ in segments) == LASTS
        at = Fraction(0)
        for seconds, file in segments:
            with sounds.opened((tmp_path / first).read_bytes() + (tmp_path / file).read_bytes()) as container:
                (track,) = container.streams
                assert track.type == content
                begin = max(Fraction(0), min(p.pts * p.time_base for p in container.demux() if p.size))
            assert begin == at or (content == "audio" and 0 < at - begin < Fraction(2, 48000))
            at += seconds
    assert row.attrib["codecs"] == CODECS[form] and row.attrib["audioSamplingRate"] == "48000"
    assert [e.attrib["value"] for e in row if e.tag.endswith("AudioChannelConfiguration")] == ["2"]
    assert sorted(names) == sorted(os.listdir(tmp_path))


def test_names_of_codecs():
    """RFC 6381: the object type of AAC is that of the configuration; SBR says neither rate nor more than it knows."""
    for object_type, name in ((2, "mp4a.40.2"), (1, "mp4a.40.1"), (5, "mp4a.40.5"), (29, "mp4a.40.29")):
        config = config_of(24000, 2, object_type) if object_type < 5 else bytes(((object_type << 3) | 3, 0x11, 0x88, 0))
        sound = format_of(config)
        assert codec_name(sound) == name
        clip = Segments("o", 25000, 0, [(25000, 1000)])
        sets = type("Sets", (), {"sps": type("Sps", (), {"width": 16, "height": 16}), "sample_aspect_ratio": (0, 0),
                                 "sps_units": [b"\x67\x64\x00\x0a"]})  # fmt: skip
        shown = Presentation(sets, 1.0, None, clip, Segments("s", 24000, 7, [(24000, 99)]), sound, True)
        text = manifest_of(shown, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
        assert segments_of(manifest(text), "audio") == ("s_init.mp4", [(1, "s_00001.m4s")]) and 't="7"' in text
        assert ("audioSamplingRate" in text) == (object_type < 5)
    assert codec_name(format_of(bytes((0xF8, 0x48 | 0x10, 0x40)))) == "mp4a.40.34"  # 31, then 32 + 2


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
@pytest.mark.parametrize("count", (30, 30000, COUNT, 3 * COUNT))
def test_sound_ends_with_the_video(tmp_path, ending, count):
    """Silence follows sound that is shorter: players wait for what a segment lacks. No sample changes before."""
    samples = np.resize(PCM, (count, 2))
    path = written(tmp_path / f"o.{ending}", (samples, 48000))
    video, sound = tracks(path)
    begin, heard = sounds.decoded(sound)
    assert len(shown(video)) == FRAMES and begin == 0 and heard.shape[1] == COUNT
    assert np.array_equal(heard[:, :count], samples.T[:, :COUNT]) and not heard[:, count:].any()
    if ending == "mpd":
        _, segments = segments_of(manifest(path.read_text()), "audio")
        assert sum(seconds for seconds, _ in segments) == LASTS and 'mediaPresentationDuration="PT2.336S"' in path.read_text()


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize("channels", (1, 2))
@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_silence_follows_a_short_file(tmp_path, form, channels, ending):
    """As long as the video, to two packets; those of the source are there, and nothing is heard behind them."""
    name, codec = KINDS[form]
    source = sounds.write(tmp_path / name, codec, sounds.pcm(40000, channels))
    _, sound = tracks(written(tmp_path / f"o.{ending}", source))
    _, heard = sounds.decoded(sound)
    _, expected = sounds.decoded(source)
    count = min(expected.shape[1], 39000)
    assert COUNT <= heard.shape[1] < COUNT + 2048 and np.array_equal(heard[:, :count], expected[:, :count])
    assert not heard[:, 40000 + 8000 :].any() and heard.any()
    if form != "wav":
        packets = sounds.packets(source)
        assert sounds.packets(sound)[: len(packets)] == packets


def test_formats_without_silence_end_as_they_do(tmp_path):
    """5.1 channels: the segments after the end have the video alone."""
    source = sounds.write(tmp_path / "s.m4a", "aac", sounds.pcm(40000, 6))
    for ending in ("m3u8", "mpd"):
        video, sound = tracks(written(tmp_path / f"o.{ending}", source))
        assert len(shown(video)) == FRAMES and 40000 <= sounds.decoded(sound)[1].shape[1] < 43000


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
@pytest.mark.parametrize("form", ("aac", "opus"))
def test_silence_leads_in_sound_that_begins_late(tmp_path, ending, form):
    """An edit list of the source delays it by a second; a player that waits for sound begins at 0 in both tracks."""
    import av

    name, codec = KINDS[form]
    source = tmp_path / "late.mp4"
    with av.open(str(sounds.write(tmp_path / name, codec, PCM))) as early, av.open(str(source), "w") as late:
        track = late.add_stream_from_template(early.streams.audio[0])
        for packet in early.demux(audio=0):
            if packet.size and packet.pts >= 0:
                packet.pts, packet.dts, packet.stream = packet.pts + 48480, packet.dts + 48480, track
                late.mux(packet)
    assert open_sound(io.BytesIO(source.read_bytes())).delay >= 48480
    video, sound = tracks(written(tmp_path / f"o.{ending}", source))
    begin, heard = sounds.decoded(sound)
    expected_begin, expected = sounds.decoded(source)
    assert begin == 0 == shown(video)[0][0] and not heard[:, :47000].any()
    late = 48480 if form == "aac" else int(expected_begin)
    assert np.allclose(heard[:, late + 20000 : late + 50000], expected[:, 20000:50000], atol=1e-4)


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_no_packets_are_no_sound(tmp_path, ending):
    """The files are those without."""
    path = written(tmp_path / f"o.{ending}", AudioPackets("aac", []))
    silent = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    written(path, None)
    assert silent == {file.name: file.read_bytes() for file in tmp_path.iterdir()}


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_it_grows_in_whole_segments(tmp_path, ending):
    """What is named is there, at any time, for both tracks; an abort leaves nothing."""
    counts = set()
    for ends in (True, False):
        path = tmp_path / f"live.{ending}"
        with h264lite.VideoWriter(path, 25, fragment=0.4, device="cpu", tune="zerolatency", audio=(PCM, 48000)) as writer:
            for frame in moving(45, WIDTH, HEIGHT):
                writer.write(frame)
                if path.exists():
                    first, segments, _ = listed(path)
                    names = [first, *(file for _, file in segments)]
                    if ending == "mpd":
                        first, heard = segments_of(manifest(path.read_text()), "audio")
                        names += [first, *(file for _, file in heard)]
                        assert sum(s for s, _ in heard) >= sum(s for s, _ in segments)
                    assert all((tmp_path / name).exists() for name in names)
                    counts.add(len(segments))
            if ends:
                writer.abort()
        assert bool(os.listdir(tmp_path)) != ends
    assert counts >= {1, 2, 3, 4}


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_sound_that_fails(tmp_path, ending):
    """The error comes out; the video before it and the sound before it play."""

    def chunks():
        for at in range(0, 60000, 6000):
            yield PCM[at : at + 6000]
        raise RuntimeError("the microphone is gone")

    path = tmp_path / f"o.{ending}"
    with pytest.raises(RuntimeError, match="the microphone is gone"):
        written(path, (chunks(), 48000))
    video, sound = tracks(path)
    assert len(shown(video)) >= 30 and sounds.decoded(sound)[1].shape[1] >= 48000
    assert listed(path)[2]


@pytest.mark.parametrize("ending", ("m3u8", "mpd"))
def test_by_the_command(tmp_path, ending, capsys):
    """--seek and --frames cut both; a file that is not copied is refused with a reason; nothing is overwritten."""
    y4m, out = tmp_path / "in.y4m", tmp_path / f"o.{ending}"
    y4m.write_bytes(b"YUV4MPEG2 W16 H16 F10:1 Ip C420\n" + (b"FRAME\n" + bytes(range(256))[:192] * 2) * 30)
    source = sounds.write(tmp_path / "s.wav", "pcm_s16le", PCM)
    words = ["--quiet", "--device", "cpu", "--fragment", "0.5"]
    assert main(["encode", str(y4m), str(out), "--audio", str(source), "--seek", "7", "--frames", "12", *words]) == 0
    video, sound = tracks(out)
    assert len(shown(video)) == 12 and np.array_equal(sounds.decoded(sound)[1], PCM[33600 : 33600 + 57600].T)
    other = sounds.write(tmp_path / "s.mp3", "libmp3lame", PCM)
    assert main(["encode", str(y4m), str(out), "--audio", str(other), *words]) == 1
    assert "other sound goes into" in capsys.readouterr().err
    if ending == "mpd":
        os.rename(source, tmp_path / "o_sound_init.mp4")
        assert main(["encode", str(y4m), str(out), "--audio", str(tmp_path / "o_sound_init.mp4"), *words]) == 2
        assert "the same" in capsys.readouterr().err


def test_the_files_of_another_writer(tmp_path):
    """Those of its sound are locked as well."""
    clip = moving(4, WIDTH, HEIGHT)
    with h264lite.VideoWriter(tmp_path / "o.mpd", 25, device="cpu", tune="zerolatency", audio=(PCM, 48000)) as writer:
        writer.write(clip)
        with pytest.raises(OutputError, match="another writer"):
            h264lite.write_video(tmp_path / "o_sound.mpd", clip, 25, device="cpu")
    with pytest.raises(InputError, match=r"none\.wav"):
        h264lite.write_video(tmp_path / "p.mpd", clip, 25, device="cpu", audio=str(tmp_path / "none.wav"))
    assert not list(tmp_path.glob("p*"))
