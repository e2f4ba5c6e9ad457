"""Video writers with the signatures of torchvision, diffusers and torchcodec.

Frames, sizes and rates are kept exactly: nothing is rescaled to multiples of 16, and no rate is rounded. A `crf` is the
encoder's rate factor: frames wait for later ones. Options without a meaning here are refused by name.
"""

import io
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from .encoder.errors import OptionError
from .encoder.settings.option_types import show
from .encoder.settings.options import BY_NAME
from .encoder.writer import write_video as _write_video

__all__ = ["VideoEncoder", "export_to_video", "write_video"]

CODECS = (None, "h264", "libx264", "libopenh264", "h264_nvenc")
_RENAMED = {  # FFmpeg's names
    "g": "keyint", "keyint_min": "min_keyint", "refs": "ref", "bf": "bframes", "sc_threshold": "scenecut", "qmin": "qpmin",
    "qmax": "qpmax", "passlogfile": "stats",
}  # fmt: skip
_RATES = {"b": "bitrate", "b:v": "bitrate", "maxrate": "vbv_maxrate", "bufsize": "vbv_bufsize"}  # in bits there, not kbit
_LISTS = ("x264_params", "x264opts")  # name=value:name=value, by x264's names
_UNITS = {"": 1, "k": 1000, "K": 1000, "M": 1000_000, "G": 1000_000_000}


def write_video(
    filename: str | os.PathLike[str],
    video_array: Any,
    fps: Any,
    video_codec: str = "libx264",
    options: Mapping[str, Any] | None = None,
    audio_array: Any = None,
    audio_fps: Any = None,
    audio_codec: str | None = None,
    audio_options: Mapping[str, Any] | None = None,
) -> None:
    """As torchvision.io.write_video (removed in 0.28): uint8[T, H, W, C] to a file.

    options: `crf`, `preset` and options of docs/options.md, also as strings. audio_array: [channels, samples] in -1..1, or
    int16; audio_fps: its samples a second. audio_codec: flac, which loses nothing (default), or aac, through PyAV.
    audio_options: refused.
    """
    _check_codec(video_codec, "video_codec")
    if audio_options:
        raise OptionError(f"{dict(audio_options)}: there are none here", "audio_options")
    if audio_codec not in (None, "aac", "flac"):
        raise OptionError(f"{show(audio_codec)}: only aac and flac", "audio_codec")
    sound: Any = None
    if audio_array is not None:
        samples, rate = _sound(audio_array, audio_fps)
        sound = samples, rate
        if audio_codec == "aac":
            from .encoder.files.sound_av import aac_packets

            sound = aac_packets(samples, rate)
    _write_video(filename, video_array, fps, layout="THWC", audio=sound, **_options(options))


def export_to_video(
    video_frames: Any,
    output_video_path: str | os.PathLike[str] | None = None,
    fps: Any = 10,
    quality: float | None = 5.0,
    bitrate: int | None = None,
    macro_block_size: int | None = 16,
) -> str:
    """As diffusers.utils.export_to_video: images of PIL, or arrays in 0..1 or uint8, to a file; its name is returned.

    output_video_path: None for a new temporary file. quality: 0..10, as imageio's for libx264: crf int((1 - quality / 10) *
    51). bitrate: bits a second, in place of quality. macro_block_size: has no effect, because every size is kept.
    """
    options: dict[str, Any] = {}
    if bitrate is not None:
        options["bitrate"] = _kilobits(bitrate, "bitrate")
    elif quality is not None:
        if isinstance(quality, bool) or not isinstance(quality, int | float) or not 0 <= quality <= 10:
            raise OptionError(f"{show(quality)}: not in 0..10", "quality")
        options["crf"] = int((1 - quality / 10) * 51)
    path = os.fspath(output_video_path) if output_video_path is not None else _temporary_name()
    try:
        _write_video(path, video_frames, fps, **options)
    except BaseException:
        if output_video_path is None:
            os.unlink(path)
        raise
    return path


def _sound(samples: Any, rate: Any) -> tuple[np.ndarray, int]:
    """int16[samples, channels] of [channels, samples], and samples a second; OptionError."""
    samples = np.asarray(samples)
    if samples.ndim != 2 or not 1 <= len(samples) <= 8 or (samples.dtype != np.int16 and samples.dtype.kind != "f"):
        raise OptionError(f"of {samples.dtype}{samples.shape}: not [channels, samples] of floats, int16", "audio_array")
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 1000 <= rate <= 384000:
        raise OptionError(f"{show(rate)}: not a number of samples a second", "audio_fps")
    if samples.dtype != np.int16:
        samples = np.clip(np.rint(np.nan_to_num(samples) * 32768), -32768, 32767).astype(np.int16)
    return samples.T, int(rate)


def _temporary_name() -> str:
    with tempfile.NamedTemporaryFile(suffix=".mp4", delete=False) as file:
        return file.name


class VideoEncoder:
    """As torchcodec.encoders.VideoEncoder: frames [N, C, H, W], on the host or a GPU, to a file, a tensor or a file object.

    codec: one of CODECS, all of which mean this encoder; pixel_format: yuv420p; preset: one of
    docs/options.md; extra_options: other options, also as strings.
    """

    def __init__(self, frames: Any, *, frame_rate: Any) -> None:
        shape = tuple(getattr(frames, "shape", ()))
        if len(shape) != 4:
            raise OptionError(f"of shape {shape}: a tensor (N, C, H, W) is needed", "frames")
        self._frames, self._rate = frames, BY_NAME["fps"].value(frame_rate)

    def to_file(
        self, dest: str | os.PathLike[str], *, codec: str | None = None, pixel_format: str | None = None,
        crf: float | None = None, preset: str | int | None = None, extra_options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Write a file, whose ending says the container."""
        self._write(dest, codec, pixel_format, crf, preset, extra_options)

    def to_tensor(
        self, format: str, *, codec: str | None = None, pixel_format: str | None = None, crf: float | None = None,
        preset: str | int | None = None, extra_options: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """The bytes of a file as a tensor uint8[n]. format: mp4."""
        import torch

        _check_format(format)
        data = io.BytesIO()
        self._write(data, codec, pixel_format, crf, preset, extra_options)
        return torch.frombuffer(data.getbuffer(), dtype=torch.uint8)

    def to_file_like(
        self, file_like: Any, format: str, *, codec: str | None = None, pixel_format: str | None = None,
        crf: float | None = None, preset: str | int | None = None, extra_options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Write to an object with `write`. format: mp4."""
        _check_format(format)
        self._write(file_like, codec, pixel_format, crf, preset, extra_options)

    def _write(self, target: Any, codec: Any, pixel_format: Any, crf: Any, preset: Any, extra: Any) -> None:
        _check_codec(codec, "codec")
        if pixel_format not in (None, "yuv420p"):
            raise OptionError(f"{show(pixel_format)}: only yuv420p is supported", "pixel_format")
        said = {name: value for name, value in (("crf", crf), ("preset", preset)) if value is not None}
        _write_video(target, self._frames, self._rate, layout="TCHW", **_options({**said, **(extra or {})}))


def _options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of the encoder for those of FFmpeg and x264; OptionError for others."""
    values: dict[str, Any] = {}
    for given, value in (options or {}).items():
        name = given.replace("-", "_")
        if name in _LISTS:
            values |= _options(_listed(value, given))
            continue
        rate, name = _RATES.get(name), _RENAMED.get(name, name)
        row = BY_NAME.get(name)
        if rate is not None:
            values[rate] = _kilobits(value, given)
        elif row is not None and row.is_switch and isinstance(value, str):
            values[name] = {"1": True, "0": False}.get(value, value)
        else:
            values[name] = value
    return values


def _listed(value: Any, option: str) -> dict[str, str]:
    """The options of name=value:name=value; a name alone is a switch."""
    if not isinstance(value, str):
        raise OptionError(f"{show(value)}: not of the form name=value:name=value", option)
    assignments = (word.partition("=") for word in value.split(":") if word)
    return {name: text if equals else "1" for name, equals, text in assignments}


def _kilobits(value: Any, option: str) -> int:
    """1000 bits, of bits as FFmpeg reads them: 2000000, "2M", "2000k"."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)([kKMG]?)", str(value))
    if isinstance(value, bool) or match is None:
        raise OptionError(f"{show(value)}: not a number of bits such as 2000000 or 2M", option)
    return round(float(match[1]) * _UNITS[match[2]] / 1000)


def _check_codec(codec: Any, name: str) -> None:
    if codec not in CODECS:
        raise OptionError(f"{show(codec)}: this encoder writes H.264 ({', '.join(str(c) for c in CODECS[1:])})", name)


def _check_format(format: Any) -> None:
    if format != "mp4":
        raise OptionError(f"{show(format)}: only mp4 can be made in memory", "format")
