"""The coding loop on a GPU: upload of the source, all stages, the bits of the slices, download of the results."""

from typing import Any

import numpy as np

from ..arrays import Size
from ..cuda_executor import CudaExecutor
from ..frame_spec import FrameSpec
from .dpb import DecodedPictureBuffer
from .frame import Frame, HostFrame, Zeros, nothing, split_planes, split_upload, upload_shape
from .loop import Arrays, Loop, LoopSettings
from .source_sums import SourceSums


class CudaLoop(Loop):
    """See FrameLoop. The driver calls of a frame are recorded, and replayed for later frames of its kind."""

    executor: CudaExecutor

    def __init__(
        self, settings: LoopSettings, executor: CudaExecutor, arrays: Arrays | None = None,
        dpb: DecodedPictureBuffer | None = None, frames_on_device: list[Frame] | None = None,
    ) -> None:  # fmt: skip
        """arrays, dpb, frames_on_device: shared with a loop that alternates with this one."""
        super().__init__(settings, executor, arrays, dpb)
        config, zeros = settings.config, executor.zeros
        self.frames_on_device = frames_on_device or [
            Frame(config.mb_width, config.mb_height, zeros, config.lists) for _ in range(executor.frames_on_device)
        ]
        self._sums: SourceSums | None = None
        self.inputs = [_input(settings, zeros) for _ in self.frames_on_device]

    def _code(self, frame: Frame, slot: int, lists: tuple[int, ...]) -> Frame:
        """See Loop."""
        assert isinstance(frame, HostFrame)
        frame.levels_packed, frame.write_slices = False, nothing
        if frame.with_levels:
            frame.mark_levels_dirty()
        executor, k, source = self.executor, frame.index % len(self.frames_on_device), frame.device_source
        device_frame = self.frames_on_device[k]
        params = self.inputs[k]["frame_params"]
        qps = [(frame.mb_qp, device_frame.qp)] if frame.spec.mb_qp else []
        if source is not None:
            state = self.arrays.constants | device_frame.arrays | source.numbers | {
                "frame_params": params, "outside": executor.mapped(frame.outside)}
            pairs = [(frame.frame_params, params)]
            executor.import_device_frame(frame.index, source.stage, source.pointers, pairs, source.order, state, qps)
        fence = frame.pending_fence
        key = (k, slot, lists, self._numbers(frame.spec, lists), source is None, frame.keep_reconstruction, fence is None)
        if executor.replay(key, frame.ring_slot, frame.host_buffers):
            return device_frame
        with executor.record(key, frame.ring_slot):
            if source is None:
                state = self.arrays.constants | device_frame.arrays | self.inputs[k]
                pairs = [(frame.upload, self.inputs[k]["upload"])]
                executor.upload_frame(frame.index, pairs, (("load_i420",), {}), state, fence, qps)
            entropy_state = {"frame_params": params, "slice_data": executor.mapped(frame.slice_data)}
            self._stages(frame, device_frame, slot, lists, entropy_state)
            results = [(device_frame.block, frame.block), *self._decoded(frame, slot)]
            if frame.with_levels:
                results.append((device_frame.levels, frame.levels))
            executor.download_results(frame.index, results, frame.ring_slot)
        return device_frame

    def _numbers(self, spec: FrameSpec, lists: tuple[int, ...]) -> tuple[Any, ...]:
        """What a recording holds of these, beside slots."""
        continued = self._continued(spec, lists) if lists else None
        distances = spec.distances, continued and continued.distances
        return spec.n_ref, spec.luma_weighted, *distances, spec.is_weighted, spec.is_reference, bool(spec.mb_qp)

    def source_sums(self, frame: HostFrame) -> np.ndarray:
        """See FrameExecutor."""
        if self._sums is None:
            size = Size(self.config.mb_width, self.config.mb_height)
            self._sums = SourceSums(self.executor, size, self.arrays.constants)
        return self._sums.of(frame)

    def _params(self, frame: Frame) -> Any:
        """See Loop."""
        return self.inputs[frame.index % len(self.inputs)]["frame_params"]


def _input(settings: LoopSettings, zeros: Zeros) -> dict[str, Any]:
    """The upload target of a frame of display size on a GPU, with its parameters, planes and pitches by name."""
    config = settings.config
    upload = zeros(upload_shape(config.mb_height, config.display), np.uint8)
    source, params = split_upload(upload, config.mb_height, config.display)
    y, u, v = split_planes(source, config.display)
    pitches = {"pitch": config.width, "chroma_pitch": (config.width + 1) // 2, "chroma_step": 1}
    return {"upload": upload, "frame_params": params, "input_y": y, "input_u": u, "input_v": v, **pitches}
