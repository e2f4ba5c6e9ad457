"""`h264lite.ray.Encode`: a stage of Ray Data that encodes a clip a row; the encoder's kernels and GPU stay loaded."""

import itertools
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ..encoder.errors import DeviceError, DeviceLost, Error, InputError, OptionError
from ..encoder.files.left_out import of_tags
from ..encoder.files.opening import open_inputs
from ..encoder.files.video import Source, take_over
from ..encoder.settings.options import API, BY_NAME, CLI, OPTIONS
from ..encoder.settings.user_options import check_keywords, read_options
from ..encoder.writer import VideoWriter, write_video
from ..files import Replacement
from .resources import assigned, device

_OF_WRITER = ("layout", "format", "value_range", "fragment", "width", "height")  # besides options of the encoder
_REFUSED = ("pass_", "pass", "stats", "slow_firstpass", "audio", "progress")
_SIZE = (64, 64)  # rows and columns of the clip that loads the kernels


class Encode:
    """For `ray.data.Dataset.map_batches`: a column of frames or paths in, one of MP4 bytes or paths out.

        ds.map_batches(h264lite.ray.Encode, fn_constructor_kwargs=dict(crf=23), concurrency=4, num_cpus=1, batch_size=8)

    input: the column of clips, which the result lacks. A clip is uint8 (T, H, W, 3), as an array or tensor, or what else
    `h264lite.write_video` takes as frames, or the path of a video file. output: the column of results, MP4 bytes; with
    `target`, the name of a column of paths to write to, it has these paths: a file gets its name when it is complete. fps:
    frames per second, or the name of a column; of a path by default those of the file, else 25.

    on_error: "raise", or "null": a row that cannot be encoded gives null, and the column OUTPUT_error says why.

    options: those of `write_video`. Where Ray Data gives a GPU to the actor (num_gpus), clips are encoded on it, else on the
    CPU; threads are the CPUs given (num_cpus, 1 by default). Raises OptionError for options that no clip can have.
    """

    def __init__(
        self, input: str = "frames", output: str = "video", *, target: str | None = None, fps: Any = None,
        on_error: str = "raise", **options: Any,
    ) -> None:  # fmt: skip
        if on_error not in ("raise", "null"):
            raise OptionError(f"{on_error!r}: not one of raise, null", "on_error")
        for name in (name for name in _REFUSED if options.get(name) is not None):
            raise OptionError("is for one video, and here each row is one; use h264lite.write_video", name.rstrip("_"))
        self._input, self._output, self._target, self._fps, self._on_error = input, output, target, fps, on_error
        self._options = self._where(options)
        encoder = {name: value for name, value in self._options.items() if name not in _OF_WRITER}
        check_keywords(encoder)
        read_options(encoder, [row for row in OPTIONS if row.scope not in (API, CLI)])
        self._warm_up(encoder)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Encode the rows of a batch, NumPy or pandas; the other columns stay as they are."""
        if not hasattr(batch, "keys"):
            raise InputError(f"a batch of type {type(batch).__name__}: use batch_format='numpy' or 'pandas'")
        columns = {name: batch[name] for name in batch}
        clips = self._column(columns, self._input)
        if self._target is not None:
            self._column(columns, self._target)
        if isinstance(self._fps, str) and self._fps not in columns:
            BY_NAME["fps"].value(self._fps)
        results: list[bytes | str | None] = []
        errors: list[str | None] = []
        for row in range(len(clips)):
            try:
                results.append(self._encode(columns, row))
                errors.append(None)
            except (DeviceError, DeviceLost):  # of the actor, not of the row: Ray replaces it
                raise
            except (Error, OSError) as error:
                text = f"row {row} of the batch, column {self._input!r}: {error}"
                if self._on_error == "raise":
                    raise InputError(text + self._which(columns, row)) from None
                results.append(None)
                errors.append(text)
        kept = {name: np.asarray(column) for name, column in columns.items() if name != self._input}
        kept[self._output] = _objects(results)
        if self._on_error == "null":
            kept[f"{self._output}_error"] = _objects(errors)
        return kept

    def _where(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options with device and threads by what Ray has given, unless they are said."""
        given = assigned()
        if given is None:
            return options
        options = dict(options)
        if options.get("device") in (None, "auto") and options.get("devices") is None:
            options.pop("device", None)
            name = device()
            options |= {"device": "cpu"} if name == "cpu" else {"devices": (name,)}
        if options.get("threads") is None:
            options["threads"] = given[0]
        return options

    def _warm_up(self, options: dict[str, Any]) -> None:
        """Load kernels, and the GPU's context, by a small clip: the first row takes no longer than others."""
        with suppress(OptionError):  # of a clip of this size, for example more slices than rows
            write_video(None, np.zeros((4, *_SIZE, 3), np.uint8), **options)

    def _encode(self, columns: Mapping[str, Any], row: int) -> bytes | str:
        """The MP4 of a row, or the path that it was written to."""
        clip = columns[self._input][row] if not hasattr(columns[self._input], "iloc") else columns[self._input].iloc[row]
        fps = self._fps
        if isinstance(fps, str) and fps in columns:
            fps = np.asarray(columns[fps])[row]
        path = None
        if self._target is not None:
            path = np.asarray(columns[self._target])[row]
            if not isinstance(path, str):
                raise InputError(f"column {self._target!r}: {type(path).__name__} is not a path")
            if "://" in path:
                raise InputError(f"{path}: not a local path; without target the bytes are a column, which Ray Data can write")
        if clip is None:
            raise InputError("null, no frames to encode")
        if isinstance(clip, bytes):
            raise InputError("bytes: give frames, or the path of a video file")
        if isinstance(clip, str | os.PathLike):
            return self._write(path, fps, self._options, os.fspath(clip))
        if isinstance(clip, np.ndarray) and clip.dtype.kind == "O":
            clip = list(clip)
        return self._write(path, 25 if fps is None else fps, self._options, clip)

    def _write(self, path: str | None, fps: Any, options: dict[str, Any], clip: Any) -> bytes | str:
        """Bytes, or the path of a file that has its name when it is complete: a retry leaves no half of one."""
        if path is None:
            return self._video(None, fps, options, clip)
        replacement = Replacement(path)  # whose temporary file has its ending, by which the container is chosen
        try:
            self._video(replacement.temporary, fps, options, clip)
            replacement.finish()
        finally:
            replacement.discard()
        return path

    def _video(self, target: str | None, fps: Any, options: dict[str, Any], clip: Any) -> bytes:
        if not isinstance(clip, str):
            return write_video(target, clip, fps, **options) or b""
        source, _ = open_inputs([clip], None)
        try:
            options = dict(options)
            if fps is not None:
                options["fps"] = fps
            take_over(source.format, options)
            with VideoWriter(target, options.pop("fps", 25), **options) as writer:
                for planes in source.frames(0, 0):
                    writer.write(planes)
            if lost := self._lost(source):
                warnings.warn(f"{clip}: left out: {', '.join(lost)}", RuntimeWarning, stacklevel=2)
            return writer.getvalue() if target is None else b""
        finally:
            source.close()

    def _lost(self, source: Source) -> list[str]:
        """What of a file the video lacks, which has frames at a constant rate and no sound."""
        video, times = source.format, source.times
        more = {"sound": video.has_audio, "rotation": video.matrix is not None,
                "times of frames": times is not None and times.is_variable,
                "captions and user data": bool(source.sei)}  # fmt: skip
        return [*(words for words, holds in more.items() if holds), *source.left_out, *of_tags(video.tags)]

    def _column(self, columns: Mapping[str, Any], name: str) -> Any:
        if name not in columns:
            raise OptionError(f"{name!r}: the dataset has no such column, but {', '.join(columns)}", "column")
        return columns[name]

    def _which(self, columns: Mapping[str, Any], row: int) -> str:
        """The short values of the row in other columns, by which its user knows it."""
        named = ((name, np.asarray(column)[row]) for name, column in columns.items() if name != self._input)
        texts = (f"{name}={value!s:.80}" for name, value in named if isinstance(value, str | int | float | np.number))
        return "".join(f" [{', '.join(values)}]" for values in [list(itertools.islice(texts, 3))] if values)


def _objects(values: list[Any]) -> np.ndarray:
    """One value a row, whatever it is: np.array would make fixed-length bytes of bytes and lose zeros at the end."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
