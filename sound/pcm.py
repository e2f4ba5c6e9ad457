"""PCM out of WAV files and arrays, as FLAC: nothing is lost of up to 24 bits."""

import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from ..standard.bits import BitstreamError
from .flac_encoder import MOST_CHANNELS, FlacEncoder
from .reading import Reader
from .stream import SoundPacket, SoundStream

RATES = range(1000, 655351)
LOUDEST = 4.0  # of floating-point samples: what is above 1 is clipped, what is far above is no such sample
_PIECE = 1 << 16  # samples read at a time
_FLOATS, _INTEGERS, _EXTENSIBLE = 3, 1, 0xFFFE  # tags of formats


def to_flac(rate: int, bits: int, blocks: Iterator[np.ndarray]) -> SoundStream:
    """A stream of FLAC. blocks: int32[n, channels], each of any n, of `bits` bits (16 or 24); at least one."""
    first = next(blocks)
    encoder = FlacEncoder(rate, first.shape[1], bits)
    from .flac import format_of

    all_blocks = chain((first,), blocks)
    whole = _encoded(encoder, all_blocks)

    def drop(count: int) -> Iterator[SoundPacket]:
        return _encoded(encoder, _without(all_blocks, count))

    return SoundStream(format_of(encoder.stream_info()), whole, drop=drop)


def _without(blocks: Iterator[np.ndarray], count: int) -> Iterator[np.ndarray]:
    """Blocks from sample `count` on."""
    for block in blocks:
        if len(block) > count:
            yield block[count:]
        count = max(0, count - len(block))


def _encoded(encoder: FlacEncoder, blocks: Iterator[np.ndarray]) -> Iterator[SoundPacket]:
    waiting = np.zeros((0, encoder.channels), np.int32)
    for block in blocks:
        waiting = np.concatenate((waiting, block)) if len(waiting) else block
        whole = len(waiting) // encoder.block * encoder.block
        for at in range(0, whole, encoder.block):
            yield _packet(encoder, waiting[at : at + encoder.block])
        waiting = waiting[whole:]
    if len(waiting):
        yield _packet(encoder, waiting)


def _packet(encoder: FlacEncoder, samples: np.ndarray) -> SoundPacket:
    number = encoder.number
    encoder.number += 1
    return SoundPacket(encoder.frame(samples, number), len(samples), lambda count: encoder.frame(samples[:count], number))


def from_floats(samples: np.ndarray) -> np.ndarray:
    """Samples in -1..1 as 16 bits, rounded, clipped; ValueError for what is no such sample."""
    scaled = samples.astype(np.float64)
    peak = float(np.abs(scaled).max()) if scaled.size else 0.0
    if not peak <= LOUDEST:  # NaN too
        raise ValueError(f"floating-point samples up to {peak:g}: they are in -1..1")
    return np.clip(np.rint(scaled * 32768), -32768, 32767).astype(np.int32)


def open_wav(reader: Reader) -> SoundStream | None:
    """A WAV file (RIFF, RF64) of PCM; None for another codec, BitstreamError for a damaged one.

    8 bits become 16, 32 bits 24, and floating-point samples 16.
    """
    head = reader.exactly(12, "its header")
    large, layout = 0, None
    while True:
        name, size = (chunk := reader.exactly(8, "a chunk before the samples"))[:4], int.from_bytes(chunk[4:], "little")
        if name == b"data":
            break
        contents = reader.some(min(size, 40))
        if name == b"ds64" and len(contents) >= 16:
            large = int.from_bytes(contents[8:16], "little")
        elif name == b"fmt ":
            layout = _layout(contents)
            if layout is None:
                return None
        reader.skip(size + (size & 1) - len(contents))
    if layout is None:
        raise BitstreamError("the samples come before the chunk fmt, which describes them")
    if size == 0xFFFFFFFF:
        size = large if head[:4] != b"RIFF" else 0
    rate, channels, width, is_float = layout
    if not reader.peek(channels * width):
        raise BitstreamError("it has no samples")
    bits = 24 if not is_float and width > 2 else 16
    return to_flac(rate, bits, _blocks(reader, size or None, channels, width, is_float))


def _layout(contents: bytes) -> tuple[int, int, int, bool] | None:
    """(samples a second, channels, bytes of a sample, whether it is floating-point) of the chunk fmt; None: another codec."""
    if len(contents) < 16:
        raise BitstreamError(f"the chunk fmt has {len(contents)} bytes")
    tag, channels, rate = (int.from_bytes(contents[k : k + n], "little") for k, n in ((0, 2), (2, 2), (4, 4)))
    frame, bits = (int.from_bytes(contents[k : k + 2], "little") for k in (12, 14))
    if tag == _EXTENSIBLE and len(contents) >= 26:
        tag = int.from_bytes(contents[24:26], "little")
    if tag not in (_INTEGERS, _FLOATS):
        return None
    if rate not in RATES:
        raise BitstreamError(f"{rate} samples a second: {RATES[0]} to {RATES[-1]} are possible")
    if not 1 <= channels <= MOST_CHANNELS:
        raise BitstreamError(f"{channels} channels: 1 to {MOST_CHANNELS} are possible")
    width = frame // channels
    if frame % channels or width not in ((4, 8) if tag == _FLOATS else (1, 2, 3, 4)) or not 0 < bits <= 8 * width:
        raise BitstreamError(f"samples of {bits} bits, {channels} of them in {frame} bytes")
    return rate, channels, width, tag == _FLOATS


def _blocks(reader: Reader, size: int | None, channels: int, width: int, is_float: bool) -> Iterator[np.ndarray]:
    """int32[n, channels] of the samples of a file; bytes after the last whole ones are left out."""
    for data in reader.pieces(size, _PIECE * channels * width):
        data = data[: len(data) // (channels * width) * channels * width]
        if data:
            yield _integers(data, width, is_float).reshape(-1, channels)


def _integers(data: bytes, width: int, is_float: bool) -> np.ndarray:
    """int32 of 16 or 24 bits."""
    if is_float:
        try:
            return from_floats(np.frombuffer(data, f"<f{width}"))
        except ValueError as error:
            raise BitstreamError(str(error)) from None
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(np.int32) - 128) << 8
    if width == 3:
        padded = np.zeros((len(data) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return padded.view("<i4").ravel().astype(np.int32) >> 8
    return np.frombuffer(data, f"<i{width}").astype(np.int32) >> (8 if width == 4 else 0)


# Arrays ----------------------------------------------------------------------------------------------------------------


def from_arrays(samples: Any, rate: int) -> SoundStream:
    """Sound of an array, or of an iterable of them, one after another; ValueError with the reason, at once or with a packet.

    samples: [samples], [samples, channels] or [channels, samples], the shorter side of up to 8 being the channels, of
    floating-point numbers in -1..1 (stored as 16 bits), int16, uint8 (as of WAV), or int32 of full scale (as 24 bits);
    tensors of libraries that have `__array__`, also on a GPU by their `cpu` or `get`.
    """
    is_one = hasattr(samples, "shape") or (isinstance(samples, list | tuple) and _is_number(samples))
    arrays, shapes = iter([samples]) if is_one else iter(samples), _Shapes()
    blocks = (block for array in arrays if len(block := shapes.block(array)))
    first = next(blocks, None)
    if first is None:
        raise ValueError("no samples")
    return to_flac(rate, shapes.bits, chain((first,), blocks))


def _is_number(values: Any) -> bool:
    """Whether lists in lists end in numbers, and not in arrays."""
    while isinstance(values, list | tuple) and values:
        values = values[0]
    return isinstance(values, int | float)


class _Shapes:
    """What the first array of some says of all of them."""

    bits = 0
    _channels = 0
    _last = False  # whether the channels are the last axis
    _type = ""

    def block(self, array: Any) -> np.ndarray:
        """int32[n, channels]; ValueError."""
        samples = on_host(array)
        while samples.ndim > 2 and len(samples) == 1:
            samples = samples[0]
        name = "f" if samples.dtype.kind == "f" else samples.dtype.name
        if name not in ("f", "int16", "int32", "uint8") or samples.ndim not in (1, 2):
            raise ValueError(f"{samples.dtype}{list(samples.shape)}: not floats, int16, int32 or uint8 [samples, channels]")
        if not samples.size:
            return np.zeros((0, 1), np.int32)
        if not self.bits:
            self._learn(samples, name)
        if name != self._type:
            raise ValueError(f"{samples.dtype} after {self._type}: all have one type")
        samples = samples[:, None] if samples.ndim == 1 else samples if self._last else samples.T
        if samples.shape[1] != self._channels:
            raise ValueError(f"{samples.shape[1]} channels after {self._channels}")
        if name == "f":
            return from_floats(samples)
        if name == "uint8":
            return (samples.astype(np.int32) - 128) << 8
        return samples.astype(np.int32) >> (8 if name == "int32" else 0)

    def _learn(self, samples: np.ndarray, name: str) -> None:
        self.bits, self._type = 24 if name == "int32" else 16, name
        if samples.ndim == 1:
            self._channels, self._last = 1, True
            return
        rows, columns = samples.shape
        if min(rows, columns) > MOST_CHANNELS or min(rows, columns) < 1:
            raise ValueError(f"of shape {[rows, columns]}: one side is the channels, 1 to {MOST_CHANNELS}")
        if max(rows, columns) <= MOST_CHANNELS and rows > 1 < columns:
            raise ValueError(f"of shape {[rows, columns]}: which side the channels are is not clear")
        self._last = columns < rows or (columns == rows == 1)
        self._channels = columns if self._last else rows


def on_host(array: Any) -> np.ndarray:
    """An array or tensor of any library as one of NumPy in native byte order; ValueError."""
    try:
        for call in ("detach", "cpu"):
            array = getattr(array, call)() if hasattr(array, call) else array
        if "bfloat16" in str(getattr(array, "dtype", "")):
            array = array.float() if hasattr(array, "float") else array.astype(np.float32)
        array = array.get() if type(array).__module__.split(".")[0] == "cupy" else array
        result = np.asarray(array)
    except Exception as error:  # whatever the library raises
        raise ValueError(f"no array of samples: {type(error).__name__}: {str(error)[:80]}") from None
    if result.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
        result = result.astype(result.dtype.newbyteorder("="))
    return result
