"""Files with the arrays of a stream's macroblocks: CSV and NumPy's .npz, written frame by frame, and read again."""

import io
import os
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from ..decoder.decoder import Decoder
from .frame import BIT_KINDS, MB_TYPE_NAMES, AnalysedFrame
from .recorder import Recorder

_FACTS = ("display_index", "coding_index", "frame_type", "is_idr", "is_reference", "poc", "bits", "header_bits")
_FIRST = ("frame", "coded", "mb", "x", "y", "type")
_OF_MB = ("skip", "slice_id", "qp", "cbp", "transform_8x8", "bits", "residual_energy", "intra16x16_mode", "chroma_mode")
_OF_BLOCKS = ("sub_type", "intra_mode", "total_coeff")
_OF_LISTS = ("ref_idx", "reference", "mv")
CSV_COLUMNS = (
    *_FIRST, *_OF_MB, *(f"bits_{kind}" for kind in BIT_KINDS), *_OF_BLOCKS,
    *(f"{name}_l{k}" for k in range(2) for name in _OF_LISTS), "strengths_left", "strengths_upper",
)  # fmt: skip


def csv_rows(frame: AnalysedFrame) -> list[list[str]]:
    """A row for each macroblock, by CSV_COLUMNS; several values are separated by spaces, none where a list is not used."""
    get, width = frame.by_macroblock, frame.mb_width
    indices = [str(frame.display_index), str(frame.coding_index)]
    addresses = range(width * frame.mb_height)
    columns = [[MB_TYPE_NAMES[mb_type] for mb_type in get("mb_type").tolist()]]
    columns += [[str(value) for value in get(name).astype(np.int64).tolist()] for name in _OF_MB]
    columns += [[f"{value:.3f}" for value in get("bits_by_kind")[:, k] / 256] for k in range(len(BIT_KINDS))]
    columns += [_joined(get(name)) for name in _OF_BLOCKS]
    for k in range(2):
        used: list[bool] = np.any(get("ref_idx")[:, k] >= 0, axis=1).tolist()
        for name in _OF_LISTS:
            cells = _joined(get(name)[used, k])[::-1]
            columns.append([cells.pop() if some else "" for some in used])
    columns += [_joined(get("strengths")[:, k]) for k in range(2)]
    cells_of = zip(*columns)
    return [[*indices, str(mb), str(mb % width), str(mb // width), *cells] for mb, cells in zip(addresses, cells_of)]


def _joined(values: np.ndarray) -> list[str]:
    return [" ".join(map(str, row)) for row in values.reshape(len(values), int(np.prod(values.shape[1:]))).tolist()]


class CsvFile:
    """A line of names, then a line for each macroblock, frames in coding order; `write` gets pieces of text as bytes."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._begun = False

    def add(self, frame: AnalysedFrame) -> None:
        """The next frame."""
        rows = csv_rows(frame) if self._begun else [list(CSV_COLUMNS), *csv_rows(frame)]
        self._begun = True
        self._write("".join(",".join(row) + "\n" for row in rows).encode())

    def close(self) -> None:
        """The end: nothing is left to write."""


class _Pipe(io.RawIOBase):
    """What zipfile writes to: a file without positions."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        """Write all of it."""
        self._write(bytes(data))
        return len(data)


class NpzFile:
    """An .npz: the arrays of MacroblockGrids as NAME/DISPLAY_INDEX (six digits), one a frame; frames/FACT at the end.

    Frames that are never shown are not in it. Any number of frames takes the memory of one.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._zip = zipfile.ZipFile(_Pipe(write), "w", zipfile.ZIP_DEFLATED, compresslevel=1)  # type: ignore[arg-type]
        self._facts: dict[str, list[object]] = {name: [] for name in _FACTS}

    def add(self, frame: AnalysedFrame) -> None:
        """The next frame."""
        if frame.display_index < 0:
            return
        for name, array in frame.macroblocks.items():
            self._put(f"{name}/{frame.display_index:06d}", array)
        for name, values in self._facts.items():
            values.append(getattr(frame, name))

    def _put(self, name: str, array: np.ndarray) -> None:
        with self._zip.open(f"{name}.npy", "w") as member:
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)

    def close(self) -> None:
        """Facts of the frames in display order, and the directory of the file."""
        order = np.argsort(np.array(self._facts["display_index"], np.int64), kind="stable")
        for name, values in self._facts.items():
            self._put(f"frames/{name}", np.array(values)[order] if values else np.zeros(0, np.int64))
        self._zip.close()


def load_npz(file: str | os.PathLike[str], *names: str) -> dict[str, np.ndarray]:
    """Arrays of an NpzFile by name, of all frames in display order: [frames, ...]; without names all of them.

    Facts of the frames have names like "frames/bits". KeyError for a name that is not in the file; ValueError where the
    size of the frames changes.
    """
    with np.load(file) as arrays:
        groups: dict[str, list[str]] = {}
        for key in sorted(arrays.files):
            name = key.rpartition("/")[0]
            groups.setdefault(key if name == "frames" else name, []).append(key)
        wanted = names or tuple(groups)
        return {
            name: arrays[name] if name.startswith("frames/") else np.stack([arrays[key] for key in groups[name]])
            for name in wanted
        }


class StreamArrays:
    """Files of the arrays of a stream that comes in pieces, access unit by access unit."""

    def __init__(self, files: list[CsvFile | NpzFile]) -> None:
        self._files = files
        self._decoder: Any = Decoder(observer=Recorder(samples=False))  # gives out AnalysedFrames

    def add(self, data: bytes) -> None:
        """The next piece of the byte stream."""
        for frame in self._decoder.decode(data):
            self._take(frame)

    def _take(self, frame: AnalysedFrame) -> None:
        for file in self._files:
            file.add(frame)

    def close(self) -> None:
        """The end of the stream."""
        for frame in self._decoder.flush():
            self._take(frame)
        for file in self._files:
            file.close()
