"""The coding loop on a GPU: upload of the source, all stages, the bits of the slices, download of the results."""

from dataclasses import replace
from functools import partial

import numpy as np

from ...cuda_src.runtime.array import DeviceArray
from ..bundles import State
from ..coding_settings import CodingSettings
from ..cuda_executor import CudaExecutor, FrameInFlight
from .dpb import DecodedPictureBuffer
from .frame import (
    Frame,
    FrameArrays,
    HostFrame,
    References,
    Zeros,
    nothing,
    split_numbers,
    split_planes,
    split_upload,
    upload_shape,
)
from .loop import FrameHistory, Loop
from .loop_arrays import Arrays, FrameBinding
from .placeholders import DECODED, FIRST_ENTRY, NO_SOURCE, GpuFrame, Placeholders
from .stream_schedule import StreamSchedule


class CudaLoop(Loop):
    """See FrameLoop. The driver calls of a frame are recorded, and replayed on the arrays of later frames with its key."""

    executor: CudaExecutor

    def __init__(
        self, settings: CodingSettings, executor: CudaExecutor, arrays: Arrays | None = None,
        dpb: DecodedPictureBuffer | None = None, frames_on_device: list[GpuFrame] | None = None,
    ) -> None:  # fmt: skip
        """arrays, dpb, frames_on_device: shared with a loop that alternates with this one."""
        (upload,) = upload_shape(settings.mb_height, settings.display)
        executor.expect_host(executor.frames_on_device * upload)
        super().__init__(settings, executor, arrays, dpb)
        zeros = executor.zeros

        def make_frame(zeros: Zeros[DeviceArray]) -> GpuFrame:
            return FrameArrays(settings.mb_width, settings.mb_height, zeros, settings.has_b_frames)

        self.frames_on_device = frames_on_device or [make_frame(zeros) for _ in range(executor.frames_on_device)]
        self.inputs = [_input(settings, zeros) for _ in self.frames_on_device]
        references = self.arrays.references
        assert isinstance(references, References)
        frames = list(zip(self.frames_on_device, self.inputs))
        self.placeholders = Placeholders(executor.gpu, references, frames, make_frame, partial(_input, settings))
        self._stream_schedule = self._new_schedule()
        arrays_b = [self.arrays.with_own_workspace() for _ in range(executor.parallel_b_frames)]
        self._arrays_of = [self.arrays, *arrays_b]  # by stream
        self._recorded_arrays_of = [replace(arrays, references=self.placeholders.references) for arrays in self._arrays_of]

    def renew(self) -> None:
        """Be as new for a later encoder: no frame is a reference. All work has ended."""
        self.history, self.dpb = FrameHistory(), self.dpb.emptied()
        self._stream_schedule = self._new_schedule()

    def _new_schedule(self) -> StreamSchedule:
        return StreamSchedule(self.executor.parallel_b_frames, len(self.frames_on_device))

    def _code(self, frame: Frame, binding: FrameBinding) -> GpuFrame:
        """See Loop."""
        assert isinstance(frame, HostFrame)
        frame.levels_packed, frame.write_slices = False, nothing if self.for_download else partial(self._write, frame)
        if frame.with_levels:
            frame.mark_levels_dirty()
        executor, k, source = self.executor, frame.index % len(self.frames_on_device), frame.device_source
        device_frame, spec = self.frames_on_device[k], frame.spec
        n_ref, n_ref1 = len(spec.list0), len(spec.list1)
        slot, list_slots = binding.slot, binding.list_slots
        stream, waits = self._stream_schedule.enter(frame.index, slot, list_slots, n_ref1 > 0, spec.is_reference)
        executor.enter(stream, waits)
        handles = source.buffered.buffer.handles if source is not None and source.buffered is not None else None
        if source is not None and (handles is None or not executor.records):
            state = (
                self.arrays.constants
                | device_frame.arrays
                | self.inputs[k]
                | source.numbers
                | {"outside": executor.mapped(frame.outside)}
            )
            pairs = [(frame.buffer.numbers, self.inputs[k]["numbers"])]
            executor.import_device_frame(frame.index, source, pairs, state)
        if not executor.records:
            inputs = self.inputs[k]
            on_gpu = binding._replace(arrays=self._arrays_of[stream], frame=device_frame, params=inputs["frame_params"])
            self._issue(frame, on_gpu, inputs)
            return device_frame
        placeholders = self.placeholders
        recording_key = (
            stream, n_ref, n_ref1, spec.duplicates, spec.luma_weighted, spec.is_reference, spec.qp_varies,
            bool(spec.refresh), source is None, handles is None, frame.keep_reconstruction, frame.pending_fence is None,
        )  # fmt: skip
        upload = frame.upload if handles is None else frame.buffer.numbers
        in_flight = FrameInFlight(frame.index, frame.ring_slot, upload, frame.host_buffers)
        addresses = placeholders.addresses(k, slot, list_slots, binding.previous, n_ref, handles or NO_SOURCE)
        if not executor.replay(recording_key, in_flight, addresses):
            with executor.record(recording_key, in_flight, addresses):
                entries = tuple(range(FIRST_ENTRY, FIRST_ENTRY - len(list_slots), -1))
                arrays, params = self._recorded_arrays_of[stream], placeholders.input["frame_params"]
                recorded = FrameBinding(arrays, placeholders.frame, params, DECODED, entries, placeholders.previous)
                self._issue(frame, recorded, placeholders.input)
        return device_frame

    def _write(self, frame: HostFrame) -> None:
        """The entropy stage on the host, of a frame whose slices are cut by their sizes."""
        frame.samples()  # of I_PCM
        self.arrays.deferred_write(frame)()

    def _issue(self, frame: HostFrame, binding: FrameBinding, inputs: State) -> None:
        """Start all work of a frame, but for the import of a source that is on the GPU and in no buffer of a recording.
        inputs: its upload target.
        """
        executor, device_frame, source = self.executor, binding.frame, frame.device_source
        state = self.arrays.constants | device_frame.arrays | inputs
        if source is None:
            pairs = [(frame.upload, inputs["upload"])]
            executor.upload_frame(frame.index, pairs, (("load_i420",), {}), state, frame.pending_fence)
        elif source.buffered is not None and executor.records:
            pairs = [(frame.buffer.numbers, inputs["numbers"])]
            executor.import_gpu_source(frame.index, self.placeholders.handles, pairs, state | source.numbers)
        entropy_state = {"frame_params": inputs["frame_params"], "slice_data": executor.mapped(frame.slice_data)}
        self._stages(executor, frame, binding, entropy_state)
        results = [(device_frame.block, frame.block), *self._decoded(frame, binding)]
        if frame.with_levels:
            results.append((device_frame.levels, frame.levels))
        executor.download_results(frame.index, results, frame.ring_slot)


def _input(settings: CodingSettings, zeros: Zeros[DeviceArray]) -> State:
    """The upload target of a frame of display size on a GPU, with its parameters, planes and pitches by name."""
    upload = zeros(upload_shape(settings.mb_height, settings.display), np.uint8)
    source, numbers = split_upload(upload, settings.display)
    params, load_qp = split_numbers(numbers, settings.mb_height)
    y, u, v = split_planes(source, settings.display)
    pitches = {"pitch": settings.width, "chroma_pitch": settings.display[1][1], "chroma_step": 1}
    arrays = {"upload": upload, "numbers": numbers, "frame_params": params, "load_qp": load_qp}
    return {**arrays, "input_y": y, "input_u": u, "input_v": v, **pitches}
