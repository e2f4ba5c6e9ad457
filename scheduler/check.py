"""H264LITE_CHECK=1: compares each kernel call with a portable build of the kernel; the first difference ends the encode.

The twin is the same source in another process, compiled for the least processor of the architecture
(NUMBA_CPU_NAME=generic), where each operation of cpu_simd/simd/vector.py is plain LLVM on baseline registers. It gets a copy
of all arguments; after the call all arrays must be equal, also those that the kernel must not write. Calls are serialised.
"""

import atexit
import functools
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..cpu_simd.layout import COARSE_PAD
from ..standard.sample_format import MB_WIDTH_C, SUB_WIDTH_C
from .bundles import State, getters
from .stages import CPU, Kernel, Stage

Result = TypeVar("Result")
_FOLDER = Path(__file__).resolve().parent.parent / CPU


class TwinDiffers(Exception):
    """A kernel and its portable twin differ."""


def _freeze(value: object) -> object:
    """An argument for the other process: views keep their strides, because kernels are compiled by them."""
    if isinstance(value, tuple):
        return _mapped(_freeze, value)
    if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
        return value
    return _View(np.ascontiguousarray(value), value.strides)


def _mapped(function: Callable[[object], object], values: tuple[object, ...]) -> tuple[object, ...]:
    """A tuple, or a bundle of the same type, of the results."""
    results = map(function, values)
    return values._make(results) if hasattr(values, "_make") else tuple(results)


class _View:
    def __init__(self, values: np.ndarray, strides: tuple[int, ...]) -> None:
        self.values, self.strides = values, strides

    def thaw(self) -> np.ndarray:
        """The same values with the same strides."""
        size = sum((n - 1) * stride for n, stride in zip(self.values.shape, self.strides)) + self.values.itemsize
        base = np.zeros(size, np.uint8)
        view = np.ndarray(self.values.shape, self.values.dtype, base.data, 0, self.strides)
        view[...] = self.values
        return view


def _thaw(value: object) -> object:
    """The counterpart of _freeze."""
    if isinstance(value, tuple):
        return _mapped(_thaw, value)
    return value.thaw() if isinstance(value, _View) else value


def flat(arguments: Iterable[object]) -> Iterator[object]:
    """Arguments with the members of bundles in place of these."""
    for value in arguments:
        yield from value if isinstance(value, tuple) else (value,)


def portable_environment() -> dict[str, str]:
    """Environment in which another process compiles for the least processor, into its own cache."""
    changes = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "H264LITE_CHECK": "0"}
    if os.access(_FOLDER, os.W_OK) or "NUMBA_CACHE_DIR" in os.environ:  # one cache could mix the code of both
        changes["NUMBA_CACHE_DIR"] = str(Path(os.environ.get("NUMBA_CACHE_DIR") or _FOLDER / "__pycache__") / "portable")
    return changes


class Twin:
    """The other process."""

    def __init__(self) -> None:
        import subprocess

        command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        pipe, environment = subprocess.PIPE, os.environ | portable_environment()
        self._process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, start_new_session=True)
        self._lock = threading.Lock()
        atexit.register(self.close)

    def call(self, where: str, function: str, names: Sequence[str], arguments: Sequence[object], native: Callable[[], Result],
             size: tuple[int, int], pad: int = 0) -> Result:  # fmt: skip
        """Run folder/file.function of cpu_simd/ in the twin and `native` here, and compare. Returns the result.

        names: of the arguments, members in place of bundles; size: (width, height) of the frame in macroblocks; pad: border
        of its references.
        """
        with self._lock:  # until all is compared, because bands of a frame share its arrays
            assert self._process.stdin is not None and self._process.stdout is not None
            try:
                pickle.dump((function, [_freeze(value) for value in arguments]), self._process.stdin, -1)
                self._process.stdin.flush()
                own_result = native()
                result, after = pickle.load(self._process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError) as error:
                raise TwinDiffers(f"{where}: the portable twin's process ended ({error})") from None
            if isinstance(result, Exception):
                raise TwinDiffers(f"{where}: the portable twin failed: {result!r}")
            compare(where, zip(names, flat(arguments)), after, size, pad)
            if own_result != result:
                raise TwinDiffers(f"{where}: returned {own_result}, the portable twin {result}")
            return own_result

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def serve() -> None:
    """Main loop of the other process: calls from standard input, answers to standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            name, args = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            file, function = name.split(".")
            args = [_thaw(value) for value in args]
            result = getattr(import_module(f"..{CPU}.{file.replace('/', '.')}", __package__), function)(*args)
        except Exception as error:
            result = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump((result, [value if isinstance(value, np.ndarray) else None for value in flat(args)]), answers, -1)
        answers.flush()


def twin() -> Twin | None:
    """The twin, started at the first call; None unless H264LITE_CHECK=1."""
    return _the_twin(os.getpid()) if os.environ.get("H264LITE_CHECK", "0") not in ("", "0") else None


_the_twin = functools.cache(lambda process: Twin())  # a fork of the process has one of its own


def compare(
    where: str, arguments: Iterable[tuple[str, object]], after: Sequence[np.ndarray], size: tuple[int, int], pad: int
) -> None:
    """Raise TwinDiffers at the first difference between arrays and those of the twin, `after`.

    arguments: names and values; a number may come twice, in two bundles.
    """
    for (name, array), other in zip(arguments, after):
        if isinstance(array, np.ndarray) and not np.array_equal(array, other):
            index = tuple(int(i) for i in np.argwhere(array != other)[0])
            row = macroblock_row(index, array.shape, size, pad)
            at = "" if row is None else f", macroblock row {row}"
            raise TwinDiffers(f"{where}{at}, array {name}{list(index)}: {array[index]}, the portable twin {other[index]}")


def macroblock_row(index: tuple[int, ...], shape: tuple[int, ...], size: tuple[int, int], pad: int) -> int | None:
    """The macroblock row of an element of a frame's array; None if the shape does not determine it."""
    width, height = size
    if width * height in shape:
        return index[shape.index(width * height)] // width
    if shape == (height,):
        return index[0]
    for unit, border in ((16, 0), (MB_WIDTH_C, 0), (16, 2 * pad), (MB_WIDTH_C, 2 * pad // SUB_WIDTH_C), (4, 2 * COARSE_PAD)):
        if shape[-2:] == (unit * height + border, unit * width + border):
            return min(max((index[-2] - border // 2) // unit, 0), height - 1)
    return None


def compared(other: Twin, stage: Stage, state: State, call: Kernel) -> Kernel:
    """`call`, a stage as a function of its span, compared with its twin."""
    mb_width = int(state["mb_width"])
    size = mb_width, len(state["slice_first_mb"]) // mb_width

    def run(*span: int) -> None:
        values = {**state, **dict(zip(stage.span, span))}
        arguments = [get(values) for get in getters(stage.passed)]
        pad = int(state["pad"])
        other.call(f"stage {stage.name}", stage.function, stage.names, arguments, lambda: call(*span), size, pad)

    return run
