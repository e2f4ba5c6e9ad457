"""Drop-in helpers: signatures of torchvision, diffusers and torchcodec, the same bytes as write_video, refusals by name."""

import inspect
import io
import os

import h264lite
import numpy as np
import pytest
from h264lite import compat
from h264lite.encoder.errors import InputError, OptionError

from ..support.foreign_arrays import stored, video

FRAMES = stored(video(4, 48, 34, 1), "uint8")


def expected(**options):
    return h264lite.write_video(None, FRAMES, 24, **options)


def names(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_signatures():
    assert names(compat.write_video) == [
        "filename", "video_array", "fps", "video_codec", "options", "audio_array", "audio_fps", "audio_codec",
        "audio_options",
    ]  # fmt: skip
    assert names(compat.export_to_video) == [
        "video_frames", "output_video_path", "fps", "quality", "bitrate", "macro_block_size",
    ]  # fmt: skip
    rest = ["codec", "pixel_format", "crf", "preset", "extra_options"]
    assert names(compat.VideoEncoder) == ["frames", "frame_rate"]
    assert names(compat.VideoEncoder.to_file) == ["dest", *rest]
    assert names(compat.VideoEncoder.to_tensor) == ["format", *rest]
    assert names(compat.VideoEncoder.to_file_like) == ["file_like", "format", *rest]


def test_torchvision(tmp_path):
    name = str(tmp_path / "out.mp4")
    for options, same in (
        ({"crf": "18", "preset": "fast", "g": "12"}, {"crf": 18, "preset": "fast", "keyint": 12}),
        ({"qp": "30", "bf": "2", "sc_threshold": "0"}, {"qp": 30, "bframes": 2, "scenecut": 0}),
        ({"x264-params": "crf=30:tune=film:no-deblock:no-cabac=0"},
         {"crf": 30, "tune": "film", "no_deblock": True, "no_cabac": False}),
    ):  # fmt: skip
        compat.write_video(name, FRAMES, 24, options=options)
        assert (tmp_path / "out.mp4").read_bytes() == expected(**same)
    for options, words in (
        ({"video_codec": "vp9"}, "video_codec vp9"), ({"options": {"tune": "vmaf"}}, "tune"),
        ({"audio_array": np.zeros(5), "audio_fps": 8000}, "audio_array"), ({"audio_codec": "mp3"}, "audio_codec"),
        ({"audio_array": np.zeros((1, 5)), "audio_fps": "fast"}, "audio_fps"),
        ({"audio_options": {"b": "1"}}, "audio_options"), ({"options": {"crf": "fine"}}, "crf fine: not a number"),
        ({"options": {"b": "fast"}}, "b fast: not a number of bits"), ({"options": {"x264opts": 3}}, "x264opts 3"),
        ({"options": {"nonsense": 1}}, "nonsense"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=words):
            compat.write_video(name, FRAMES, 24, **options)
    with pytest.raises(InputError, match="layout='THWC'"):
        compat.write_video(name, FRAMES.transpose(0, 3, 1, 2), 24)


def test_sound_of_torchvision(tmp_path):
    av = pytest.importorskip("av")
    name = str(tmp_path / "out.mp4")
    tone = np.sin(np.arange(4000) * 0.3)[None] * np.array([[0.5], [0.25]])
    for samples in (tone, (32767 * tone).astype(np.int16)):
        for codec in ("aac", "flac", None):
            compat.write_video(name, FRAMES, 24, audio_array=samples, audio_fps=24000, audio_codec=codec)
            with av.open(name) as container:
                sound = np.concatenate([frame.to_ndarray() for frame in container.decode(audio=0)], 1)
                coder, frames = container.streams.audio[0].codec_context, container.streams.video[0].frames
                assert (coder.name, coder.sample_rate, frames) == (codec or "flac", 24000, len(FRAMES))
            if codec == "aac":
                assert len(sound) == 2 and sound.shape[1] >= 3000 and 0.4 < abs(sound[0, 1000:3000]).max() < 0.6
                alike = {shift: sound[0, 500 + shift : 3000 + shift] @ tone[0, 500:3000] for shift in range(-9, 10)}
                assert max(alike, key=alike.get) == 0, "in time to the sample"
            else:
                exact = samples if samples.dtype == np.int16 else np.rint(samples * 32768)
                assert np.array_equal(sound.reshape(-1, 2).T, exact[:, : sound.size // 2]) and sound.size == 2 * 4000
    with pytest.raises(InputError, match="no such file"):
        h264lite.write_video(name, FRAMES, 24, audio=str(tmp_path / "none.wav"))


def test_diffusers(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for frames in (list(FRAMES), list(FRAMES / 255), [FRAMES]):
        name = compat.export_to_video(frames, fps=24)
        with open(name, "rb") as file:
            assert name.endswith(".mp4") and file.read() == expected(crf=25)
    assert compat.export_to_video(list(FRAMES), tmp_path / "out.mp4", 24, quality=10) == str(tmp_path / "out.mp4")
    assert (tmp_path / "out.mp4").read_bytes() == expected(crf=0)
    before = sorted(os.listdir(tmp_path))
    for options, words in (({"bitrate": "fast"}, "bitrate"), ({"quality": 11}, "quality 11")):
        with pytest.raises(OptionError, match=words):
            compat.export_to_video(list(FRAMES), **options)
    with pytest.raises(InputError):
        compat.export_to_video([np.zeros(3)])
    assert sorted(os.listdir(tmp_path)) == before


def test_torchcodec(tmp_path):
    encoder = compat.VideoEncoder(FRAMES.transpose(0, 3, 1, 2), frame_rate=24.0)
    encoder.to_file(tmp_path / "out.mp4", preset="fast", extra_options={"qp": "20", "no-deblock": "1"})
    assert (tmp_path / "out.mp4").read_bytes() == expected(preset="fast", qp=20, no_deblock=True)
    target = io.BytesIO()
    encoder.to_file_like(target, "mp4", crf=30)
    assert target.getvalue() == expected(crf=30)
    torch = pytest.importorskip("torch")
    data = encoder.to_tensor("mp4", codec="h264", pixel_format="yuv420p")
    assert data.dtype == torch.uint8 and bytes(data.numpy()) == expected()


def test_refusals_of_torchcodec(tmp_path):
    encoder = compat.VideoEncoder(FRAMES.transpose(0, 3, 1, 2), frame_rate=24)
    for options, words in (
        ({"codec": "hevc"}, "codec hevc"), ({"pixel_format": "yuv444p"}, "pixel_format"), ({"crf": 99}, "crf 99"),
        ({"preset": "p4"}, "preset p4"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=words):
            encoder.to_file(tmp_path / "out.mp4", **options)
    with pytest.raises(OptionError, match="format webm"):
        encoder.to_file_like(io.BytesIO(), "webm")
    with pytest.raises(OptionError, match="frames of shape"):
        compat.VideoEncoder(FRAMES[0], frame_rate=24)
    assert not os.listdir(tmp_path)
