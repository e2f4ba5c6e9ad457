"""The coding loop on several devices: the state in each memory, and the arrays and copies of a frame for its route."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...cpu_simd.layout import HEADER_BITS, WEIGHTS
from ...cuda_src.runtime.device import DeviceArray, DeviceMemoryError
from ...cuda_src.runtime.recording import placeholder_address
from ..arrays import CURRENT, KEPT_ARRAYS, PREVIOUS_FRAME_ARRAYS, REFERENCE_ARRAYS, Key, byte_span, pool_planes
from ..bundles import AnyArray, State
from ..coding_settings import CodingSettings
from ..compiled_frame import CompiledFrame
from ..cuda_executor import CudaExecutor
from ..frame_spec import FrameSpec
from ..frames.cuda_loop import CudaLoop
from ..frames.device_frame import DeviceFrame
from ..frames.dpb import DecodedPictureBuffer
from ..frames.frame import AnyFrame, Frame, FrameArrays, HostFrame
from ..frames.loop import Loop
from ..frames.loop_arrays import Arrays, FrameBinding, PreviousFrame
from ..frames.params import decision_params
from ..frames.placeholders import GpuFrame
from ..stages import MAIN
from ..threads.dependent_task import ComputeOnce
from .compiled_groups import CompiledGroups
from .executor import HybridExecutor, InFlightFrame
from .issue_order import IssueOrder
from .plan import HOST, is_gpu, memory_of
from .recorded import host_address, ranges_of
from .route import Copy, FrameTraits
from .workers import FRAMES_ON_DEVICE, CpuWorker


class HybridLoop:
    """See FrameLoop; the executor holds plans and devices."""

    def __init__(self, settings: CodingSettings, executor: HybridExecutor) -> None:
        self.settings, self.executor = settings, executor
        self.single_device_loops: dict[str, Loop] = {}  # loops of devices that encoded whole frames
        self.arrays: dict[str, Arrays] = {HOST: Arrays.allocate(settings, executor)}
        self.frames_on_device: list[GpuFrame] = []
        gpu_worker = executor.gpu_worker
        if gpu_worker is not None:
            self.arrays[gpu_worker.device] = Arrays.allocate(settings, gpu_worker)
            self.frames_on_device = [
                FrameArrays(settings.mb_width, settings.mb_height, gpu_worker.zeros, settings.has_b_frames)
                for _ in range(FRAMES_ON_DEVICE)
            ]
            self.params_on_device = [gpu_worker.zeros((HEADER_BITS - WEIGHTS,), np.int32) for _ in range(FRAMES_ON_DEVICE)]
            self.qps_on_device = [gpu_worker.zeros((1,), np.int32) for _ in range(FRAMES_ON_DEVICE)]
        executor.adaptation.mb_width = settings.mb_width
        self.size = settings.size
        self.references = self.arrays[HOST].references
        self.dpb = DecodedPictureBuffer(self.arrays[HOST].slots)  # of all loops: all memories use the same slots
        self.compiled_groups = CompiledGroups()
        self._ranges: dict[Hashable, np.ndarray] = {}  # of frames, results and slots
        self.previous: dict[str, AnyFrame] = {}
        self.previous_distances: tuple[int, ...] = ()  # of the last frame
        self._before: tuple[dict[str, AnyFrame], tuple[int, ...]] = {}, ()  # these two before the last frame
        self._pending_download: Callable[[], None] | None = None  # completes the download of the previous decoded frame

    def run(self, frame: Frame) -> Callable[[], None]:
        """See FrameLoop."""
        executor, settings, spec = self.executor, self.settings, frame.spec
        if self._pending_download is not None:
            self._pending_download()
            self._pending_download = None
        executor.adaptation.learn(frame.spec.n_ref)
        self._before = self.previous, self.previous_distances
        loop = self._single_device_loop(frame)
        if loop is not None:
            return self._run_on_single_device(loop, frame)
        source = frame.device_source if isinstance(frame, HostFrame) else None
        padded = [executor.cpus[0].begin(part) for part in frame.padding()]
        entries, after = self._numbers(spec)
        slot, list_slots = self.dpb.begin(spec)
        host = self.arrays[HOST]
        previous = host.continued(spec, list_slots, self.dpb) or self.previous_in(HOST)
        frame.write_params(host.list_numbers(spec, list_slots, previous))
        binding = FrameBinding(host, frame, frame.frame_params, slot, list_slots, previous)
        executor.begin(frame.index)
        frame_by_memory = self._frame_by_memory(frame)
        work = _FrameWork(self, frame, frame_by_memory, binding, entries)
        for memory, arrays in self.arrays.items():
            with executor.at_work(memory):
                arrays.fill(frame, frame_by_memory[memory], memory == HOST or (source is None and not spec.mb_qp))
        source_memory = HOST if source is None else self._import_source(frame, source, frame_by_memory)
        wanted = frame.decoded is not None and frame.keep_reconstruction
        frame_traits = self._frame_traits(spec, source_memory, wanted, entries, after)
        for task in padded:
            task.result()
        frame.is_padded = True
        in_flight, downloaded = executor.run_frame(frame.index, frame_traits, work, frame.stage_seconds)
        if isinstance(frame, HostFrame):
            frame.levels_packed = in_flight.order.compacts
            for rows in in_flight.order.levels if frame.levels_packed else [(0, settings.mb_height)]:
                frame.mark_levels_dirty(*rows)
        frame.write_slices = self.arrays[HOST].deferred_write(frame)
        self.dpb.end(frame.spec, slot)
        self.previous, self.previous_distances = frame_by_memory, spec.distances
        if not wanted:
            return downloaded
        self._pending_download = complete_download = ComputeOnce(lambda: self._decoded(in_flight, frame, slot))

        def ready() -> None:
            downloaded()
            complete_download()

        return ready

    def _import_source(self, frame: Frame, source: DeviceFrame, frame_by_memory: Mapping[str, AnyFrame]) -> str:
        """Load a source that lies on a GPU; returns the memory that has it."""
        worker = self.executor.gpu_worker
        if worker is None:
            return HOST
        with self.executor.at_work(worker.device):
            assert isinstance(frame, HostFrame)
            params = {
                "load_qp": worker.constant(frame.frame_params[:1]),
                "outside": worker.mapped(frame.outside),
            }
            arrays = frame_by_memory[worker.device].arrays
            state = self.arrays[worker.device].constants | arrays | source.numbers | params
            worker.import_device_frame(source, state)
        return worker.device

    def _frame_traits(
        self, spec: FrameSpec, source_memory: str, wanted: bool, entries: tuple[int, ...], after: tuple[int, ...]
    ) -> FrameTraits:
        """What the route depends on; wanted: whether the decoded frame is; entries, after: see `_numbers`."""
        settings = self.settings
        return FrameTraits(
            self.size,
            spec.n_ref - spec.duplicates,
            settings.ref,
            settings.me,
            source_memory,
            wanted,
            spec.is_idr,
            settings.subme,
            settings.cabac,
            spec.duplicates,
            spec.luma_weighted,
            spec.n_ref1,
            spec.is_reference,
            entries,
            after,
            spec.qp_varies,
            bool(spec.refresh),
        )

    def rewind(self) -> None:
        """See FrameLoop."""
        for loop in self.single_device_loops.values():
            if loop.executor is self.executor.single_device_executor:  # it has encoded the last frame
                loop.rewind()
        self.dpb.rewind()
        self.executor.rewind()
        self.previous, self.previous_distances = self._before

    def _numbers(self, spec: FrameSpec) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """`entries` and `after` of a frame's FrameTraits: references are numbered in the order of `dpb.references`."""
        references = () if spec.is_idr else self.dpb.references
        numbers = {index: k for k, index in enumerate(references)} | {spec.coding_index: CURRENT}
        return tuple([numbers[k] for k in (*spec.list0, *spec.list1)]), tuple([numbers[k] for k in spec.references_after])

    def previous_in(self, memory: str) -> PreviousFrame | None:
        """The last frame in a memory."""
        frame = self.previous.get(memory)
        return None if frame is None else PreviousFrame.of(frame, self.previous_distances)

    def params(self, frame: Frame, memory: str) -> AnyArray:
        """`decision_params` of a frame in a memory."""
        gpu_worker, block = self.executor.gpu_worker, decision_params(frame.frame_params)
        if gpu_worker is None or memory == HOST:
            return block
        params = self.params_on_device[frame.index % FRAMES_ON_DEVICE]
        params.put(block, gpu_worker.streams[MAIN])  # before the kernels that read it
        return params

    def qp_on_device(self, frame: Frame) -> AnyArray:
        """The first of `frame_params` on the GPU."""
        gpu_worker, qp = self.executor.gpu_worker, self.qps_on_device[frame.index % FRAMES_ON_DEVICE]
        assert gpu_worker is not None
        qp.put(frame.frame_params[:1], gpu_worker.streams[MAIN])
        return qp

    def _frame_by_memory(self, frame: Frame) -> dict[str, AnyFrame]:
        """The arrays of a frame in each memory."""
        gpu_worker = self.executor.gpu_worker
        if gpu_worker is None:
            return {HOST: frame}
        return {HOST: frame, gpu_worker.device: self.frames_on_device[frame.index % FRAMES_ON_DEVICE]}

    def _single_device_loop(self, frame: Frame) -> Loop | None:
        """The loop of the device that encodes this frame alone; None if several do."""
        executor = self.executor
        device = executor.single_device_for(frame.spec.is_idr)
        if device is None or (not is_gpu(device) and isinstance(frame, HostFrame) and frame.device_source is not None):
            return None
        if device not in self.single_device_loops:
            try:
                self.single_device_loops[device] = self._make_single_device_loop(device)
            except DeviceMemoryError:  # no memory for its own loop: keep the hybrid one
                executor.may_switch = False
                return None
        loop = self.single_device_loops[device]
        if executor.single_device_executor is not loop.executor:
            loop.history.previous = self.previous_in(memory_of(device))
            executor.switch_to(device)
        return loop

    def _make_single_device_loop(self, device: str) -> Loop:
        executor, arrays = self.executor.executor_of(device), self.arrays[memory_of(device)]
        if isinstance(executor, CudaExecutor):
            return CudaLoop(self.settings, executor, arrays.for_executor(executor), self.dpb, self.frames_on_device)
        return Loop(self.settings, executor, arrays.for_executor(executor), self.dpb)

    def _run_on_single_device(self, loop: Loop, frame: Frame) -> Callable[[], None]:
        """Encode a frame on one device."""
        ready = loop.run(frame)
        self.previous, self.previous_distances = self._frame_by_memory(frame), frame.spec.distances
        self.executor.finished_on_single_device(len(frame.spec.references_after), self.settings.has_b_frames)
        return ready

    def _decoded(self, in_flight: InFlightFrame, frame: Frame, slot: int) -> None:
        """Copy the decoded frame to `frame.decoded`, before `slot` is reused."""
        self.executor.wait_for_downloads(in_flight)
        assert frame.decoded is not None
        luma, chroma = frame.decoded
        decoded_luma, decoded_chroma = self.references.planes(slot)
        luma[...], chroma[...] = decoded_luma[0], decoded_chroma

    def ranges_of_frame(self, frame: Frame, frame_by_memory: Mapping[str, AnyFrame]) -> np.ndarray:
        """Where the arrays of a frame lie, see Work.ranges."""
        assert isinstance(frame, HostFrame)
        key = frame, frame.index % FRAMES_ON_DEVICE, host_address(frame.upload)
        if key not in self._ranges:
            arrays = [array for of_memory in frame_by_memory.values() for array in of_memory.arrays.values()]
            k = frame.index % FRAMES_ON_DEVICE
            more = frame.upload, frame.level_blocks, frame.outside, self.params_on_device[k], self.qps_on_device[k]
            self._ranges[key] = ranges_of([*arrays, *more])
        return self._ranges[key]

    def ranges_of_results(self, frame: AnyFrame) -> np.ndarray:
        """The same of the results of a frame before, on the host."""
        if frame not in self._ranges:
            self._ranges[frame] = ranges_of(frame.results.values())
        return self._ranges[frame]

    def ranges_of_slot(self, slot: int) -> np.ndarray:
        """The same of a slot in all memories."""
        if slot not in self._ranges:
            references = [arrays.references for arrays in self.arrays.values()]
            self._ranges[slot] = ranges_of(
                array for of_memory in references for array in (*of_memory.planes(slot), *of_memory.motion(slot).values())
            )
        return self._ranges[slot]


class _FrameWork:
    """A Work of the executor: the arrays of one frame in each memory."""

    def __init__(
        self, loop: HybridLoop, frame: Frame, frame_by_memory: Mapping[str, AnyFrame], binding: FrameBinding,
        entries: tuple[int, ...],
    ) -> None:  # fmt: skip
        """binding: to arrays of the host; entries: see FrameTraits."""
        self.loop, self.frame, self.frame_by_memory, self._binding = loop, frame, frame_by_memory, binding
        self.slot, self.list_slots = slot, list_slots = binding.slot, binding.list_slots
        self.slots = {CURRENT: slot, **dict(zip(entries, list_slots))}  # by number of the reference
        self.previous, self.previous_in = dict(loop.previous), {memory: loop.previous_in(memory) for memory in loop.previous}
        self.key = self._key()
        self._states: dict[tuple[str, int], State] = {}
        self._blocks: State = {}  # `decision_params`, by memory
        self._placeholders: State = {}

    def state(self, device: str, reference: int) -> State:
        """See Work."""
        if (device, reference) not in self._states:
            arrays = self.loop.arrays[device]
            if reference >= 0:
                state = dict(self.state(device, -1))
                state |= arrays.reference_state(reference, self.frame.spec, self.list_slots, self._block(device))
            else:
                device_frame = self.frame_by_memory[device]
                previous = arrays.continued(self.frame.spec, self.list_slots, self.loop.dpb) or self.previous_in.get(device)
                state = arrays.state(self.frame.spec, device_frame, self.slot, self.list_slots, previous, self._block(device))
                gpu_worker = self.loop.executor.gpu_worker
                state["frame_params"] = self.frame.frame_params
                if device != HOST:
                    state |= self._placeholders
                if gpu_worker is not None and device == gpu_worker.device and isinstance(self.frame, HostFrame):
                    state["level_blocks"] = gpu_worker.mapped(self.frame.level_blocks)
                    if self.frame.spec.mb_qp:
                        state["frame_params"] = self.loop.qp_on_device(self.frame)  # read for QP only
            self._states[device, reference] = state
        return self._states[device, reference]

    def _block(self, memory: str) -> AnyArray:
        if memory not in self._blocks:
            self._blocks[memory] = self.loop.params(self.frame, memory)
        return self._blocks[memory]

    def _key(self) -> Hashable:
        """Which of the frames on the GPU it is, and is behind; which of its slots are the same."""
        slots = self.slot, *self.list_slots
        on_device = [arrays for memory, arrays in self.previous.items() if memory != HOST]
        return self.frame.index % FRAMES_ON_DEVICE, *map(id, on_device), len(self.previous), *map(slots.index, slots)

    def with_placeholders(self) -> Sequence[int]:
        """See Work."""
        gpu_worker = self.loop.executor.gpu_worker
        assert gpu_worker is not None
        references = self.loop.arrays[gpu_worker.device].references
        pools = {name: getattr(references, pool) for name, pool in (("ref_luma", "luma"), ("ref_chroma", "chroma"))}
        self._placeholders = {
            name: DeviceArray(gpu_worker.gpu, placeholder_address(number), pool.shape, pool.dtype)
            for number, (name, pool) in enumerate(pools.items())
        }
        return [pool.ptr for pool in pools.values()]

    @property
    def ranges(self) -> np.ndarray:
        """See Work."""
        parts = [self.loop.ranges_of_frame(self.frame, self.frame_by_memory)]
        if HOST in self.previous:
            parts.append(self.loop.ranges_of_results(self.previous[HOST]))
        parts += [self.loop.ranges_of_slot(slot) for slot in (self.slot, *self.list_slots)]
        return np.concatenate(parts)

    def compiled(self, worker: CpuWorker, order: IssueOrder) -> tuple[CompiledFrame, np.ndarray] | None:
        """See Work."""
        return self.loop.compiled_groups.of(worker, order, self.frame.spec, self._binding)

    def copies(self, gpu: str, op: Copy) -> list[tuple[int, int, int]]:
        """See Work."""
        begin, end = byte_span(op.array[0], op.row0, op.row1, self.loop.size)
        pairs = zip(self._planes(gpu, op.array), self._planes(HOST, op.array))
        return [(array.ptr + begin, host_address(host) + begin, min(end, host.nbytes) - begin) for array, host in pairs]

    def _planes(self, memory: str, key: Key) -> list[Any]:
        """The planes of an array, C-contiguous."""
        (name, number), arrays = key, self.loop.arrays[memory]
        if name in KEPT_ARRAYS:
            return [arrays.references.motion(self.slots[number])[name]]
        if name in REFERENCE_ARRAYS:
            pool, planes = pool_planes(name)
            of_slot = getattr(arrays.references, pool)[self.slots[number]]
            return [of_slot[k] for k in planes]
        if number >= 0 and name in PREVIOUS_FRAME_ARRAYS:
            return [self.previous[memory].results[name]]
        return [self.state(memory, max(number, -1))[name]]
