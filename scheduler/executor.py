"""Runs stages on CPU threads: parts of the picture inside a stage, tasks that outlive it beside the next frame.

The executor knows threads and nothing else: stages come bound to their arrays. Kernels release the GIL, so plain threads
run side by side. Results never depend on the number of threads or parts.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .stages import ROWS, SLICES, STAGES, TICKETS

BANDS_A_THREAD = 4  # more bands than threads: who is free takes the next one, also beside an entropy task
LEAST_BAND = 60  # macroblocks: below that a task costs more than it shares out


def bands(n_rows: int, n_bands: int) -> list[tuple[int, int]]:
    """[row0, row1) of at most `n_bands` bands of nearly equal height that cover `n_rows`."""
    n_bands = max(1, min(n_bands, n_rows))
    cuts = [n_rows * k // n_bands for k in range(n_bands + 1)]
    return list(zip(cuts, cuts[1:]))


def _run_part(calls: Sequence[Callable[..., Any]], part: tuple[int, ...]) -> list[float]:
    """One part of the picture through bound stages; seconds of each."""
    times = []
    for call in calls:
        start = time.perf_counter()
        call(*part)
        times.append(time.perf_counter() - start)
    return times


class Executor:
    """A pool of `threads` worker threads; with one, everything runs in the caller's thread.

    n_rows: macroblock rows of the picture; slices: (first, end) macroblock address of each slice.

    What an executor for another device has as well: `zeros` makes arrays where the stages run, `host_zeros` those that
    cross over; `twins` is how many pictures it holds on its side (0: it works on the host's own arrays).
    """

    twins = 0

    def __init__(self, threads: int, n_rows: int, slices: list[tuple[int, int]]) -> None:
        self._pool = ThreadPoolExecutor(threads, "h264lite") if threads > 1 else None
        n_mb = slices[-1][1]
        rows = bands(n_rows, min(BANDS_A_THREAD * threads, n_mb // LEAST_BAND) if threads > 1 else 1)
        self._parts = {ROWS: rows, SLICES: slices, TICKETS: [(0, n_rows)] * min(threads, len(rows))}

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        """An array of the stages' side."""
        return np.zeros(shape, dtype)

    def host_zeros(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """An array of the host, from or to which pictures are copied."""
        return np.zeros(shape, dtype)

    def constant(self, values: np.ndarray) -> Any:
        """An array that is never written."""
        return values

    def interior(self, plane: Any, border: int) -> Any:
        """What `deblock` writes of a plane with a border."""
        return plane[border:-border, border:-border]

    def fill(self, array: Any, value: int) -> None:
        """Every element of an array of the stages' side, in the order of the stages."""
        array.fill(value)

    def at_work(self) -> AbstractContextManager[Any]:
        """Around whatever the loop does for one picture."""
        return nullcontext()

    def bring(self, number: int, pairs: Iterable[tuple[np.ndarray, Any]]) -> None:
        """Start picture `number`: (host array, array of the stages' side) to copy."""

    def take(self, number: int, pairs: Iterable[tuple[Any, np.ndarray]]) -> Callable[[], None]:
        """End it: (array of the stages' side, host array) to copy. Returns what waits until that is done."""
        for source, target in pairs:
            target[...] = source
        return lambda: None

    def run(self, names: Sequence[str], state: Mapping[str, Any], seconds: dict[str, float]) -> None:
        """Run stages over the whole picture and return when they are done.

        A part of the picture goes through all of them in one task, so each may read of the others' results only what its
        own part wrote. The time spent in each is added to `seconds`, summed over threads.
        """
        calls = [STAGES[name].bind(state) for name in names]
        parts = self._parts.get(STAGES[names[0]].split, [()])
        if self._pool is None or len(parts) == 1:
            spent = [_run_part(calls, part) for part in parts]
        else:
            futures = [self._pool.submit(_run_part, calls, part) for part in parts]
            wait(futures)
            spent = [future.result() for future in futures]
        for times in spent:
            for name, time_taken in zip(names, times):
                seconds[name] = seconds.get(name, 0.0) + time_taken

    def submit(self, function: Callable[..., Any], *args: Any) -> "Future[Any]":
        """Start a task that runs beside what follows; its result is the future's."""
        if self._pool is not None:
            return self._pool.submit(function, *args)
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args))
        except BaseException as error:  # the future carries it to whoever asks for the result
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Wait for running tasks and end the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
