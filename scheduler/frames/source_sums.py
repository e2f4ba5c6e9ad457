"""Sums of source frames that lie on a GPU, which the host waits for before it decides weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import ARRAYS, SOURCES, Size
from ..gpu_memory import GpuMemory
from .frame import HostFrame


class SourceSums:
    """Converts frames to planes of its own, on a stream of its own: frames in the loop neither wait nor are waited for."""

    def __init__(self, memory: GpuMemory, size: Size, constants: Mapping[str, Any]) -> None:
        """constants: of scheduler/arrays.py, in the memory."""
        self._memory = memory
        self._sums = memory.host_zeros(ARRAYS["block_sums"].shape(size), np.int32)
        made = {name: memory.zeros(ARRAYS[name].shape(size), np.uint8) for name in (*SOURCES, "qp")}
        params = memory.zeros((1,), np.int32)
        self._state = {**constants, **made, "frame_params": params, "block_sums": memory.mapped(self._sums)}

    def of(self, frame: HostFrame) -> np.ndarray:
        """int32[2, n]: sums of blocks of the source of a frame, and of their squares; overwritten by the next call."""
        source = frame.device_source
        assert source is not None
        state = {**self._state, **source.numbers, "outside": self._memory.mapped(frame.outside)}
        self._memory.sum_source(source.stage, source.pointers, source.order, state)
        return self._sums
