"""The inside of an encoder, for tests: so that a refactoring of the product changes one file of the tests.

The rule: where a test goes through several objects, or needs a private attribute of an object that it does not test, it asks
a function of this file. A unit test may use private attributes of the very object that it made, and private functions of
the module that it tests: a function here would only rename them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from h264lite import Encoder, VideoWriter
    from h264lite.cuda_src.runtime.device import Device
    from h264lite.encoder.pipeline import Pipeline
    from h264lite.encoder.reordering import ReorderingPipeline
    from h264lite.encoder.settings.config import Config
    from h264lite.encoder.workers.remote_lanes import SentGop
    from h264lite.encoder.workers.workers import Workers
    from h264lite.scheduler.cuda_executor import CudaExecutor
    from h264lite.scheduler.executor import Executor
    from h264lite.scheduler.frame_spec import FrameSpec
    from h264lite.scheduler.frames.frame import Frame
    from h264lite.scheduler.frames.frame_executor import FrameExecutor
    from h264lite.scheduler.frames.loop import FrameLoop
    from h264lite.scheduler.frames.ring import FrameRing
    from h264lite.scheduler.hybrid.executor import HybridExecutor
    from h264lite.scheduler.threads.copiers import Copiers

Owner: TypeAlias = "Encoder | ReorderingPipeline | Pipeline"  # of one device
Patch: TypeAlias = Callable[[Any, str, Any], None]  # monkeypatch.setattr, or setattr in a process of its own


# ---- from the encoder down to the device
def front_of(encoder: "Encoder") -> Any:
    """What the encoder gives its frames to: a Pipeline, a ReorderingPipeline, Gops or Workers."""
    return encoder._pipeline


def pipeline_of(owner: Owner) -> "Pipeline":
    """The pipeline that codes the frames, behind the one that reorders them if there is one."""
    pipeline: Any = owner
    while hasattr(pipeline, "_pipeline"):
        pipeline = pipeline._pipeline
    return pipeline


def pipelines_of(encoder: "Encoder") -> list["Pipeline"]:
    """The pipelines of all lanes, or the one pipeline."""
    return [pipeline_of(lane) for lane in getattr(front_of(encoder), "lanes", [front_of(encoder)])]


def n_lanes(encoder: "Encoder") -> int:
    """How many lanes encode GOPs; 0 if one GOP is encoded at a time."""
    return len(getattr(front_of(encoder), "lanes", ()))


def frame_executor_of(owner: Owner) -> "FrameExecutor":
    """What has the frames in flight."""
    return pipeline_of(owner).executor


def loop_of(owner: Owner) -> "FrameLoop":
    """The walk over the stages of a frame, on the present device."""
    return frame_executor_of(owner).loop


def executor_of(owner: Owner) -> Any:
    """The present device: an Executor, a CudaExecutor or a HybridExecutor."""
    return loop_of(owner).executor


def ring_of(owner: Owner) -> "FrameRing":
    """The frames that are used in turn."""
    return frame_executor_of(owner).ring


def copiers_of(owner: Owner) -> "Copiers":
    """The threads that copy source frames into the ring."""
    copiers = ring_of(owner)._copiers
    assert copiers is not None
    return copiers


def n_waiting(encoder: "Encoder") -> tuple[int, int]:
    """(frames that wait to be decided about, buffers that are free) of an encoder that reorders frames."""
    reordering: ReorderingPipeline = front_of(encoder)
    return len(reordering._decisions), len(reordering._free)


def switching_executor_of(owner: Owner) -> "HybridExecutor":
    """The hybrid executor, from now on without models: plans are those of the test, and one device may take over."""
    executor: HybridExecutor = executor_of(owner)
    executor.may_switch, executor.adaptation.models = True, None
    return executor


def on_each_frame(patch: Patch, act: "Callable[[Pipeline, FrameSpec], FrameSpec]") -> None:
    """Call act(pipeline, spec) before each frame that is coded from now on, by the spec that it returns; it may raise."""
    from h264lite.encoder.pipeline import Pipeline

    encode = Pipeline._encode

    def acting(pipeline: Pipeline, frame: Any, spec: "FrameSpec | None", *more: Any) -> Any:
        return encode(pipeline, frame, act(pipeline, pipeline.decider.next() if spec is None else spec), *more)

    patch(Pipeline, "_encode", acting)


def on_each_b_frame(patch: Patch, act: "Callable[[Frame], None]") -> None:
    """Call act(frame) before each B frame that is coded beside others on a CPU, in the thread that codes it."""
    from h264lite.scheduler.frames.loop import Loop

    code = Loop._code_parallel

    def acting(loop: Loop, executor_b: "Executor", frame: "Frame", *more: Any) -> None:
        act(frame)
        code(loop, executor_b, frame, *more)

    patch(Loop, "_code_parallel", acting)


# ---- settings
def changed(config: "Config", **values: Any) -> "Config":
    """Settings with other values of fields, whichever subject they are of."""
    assert values.keys() <= config.values.keys()
    return type(config)(*(group._replace(**{key: values[key] for key in group._fields if key in values}) for group in config))


# ---- GPUs
def gpu_of(owner: Owner) -> "Device | None":
    """The GPU of the executor; None for a CPU."""
    executor = executor_of(owner)
    on_gpu = getattr(executor, "gpu_worker", None) or executor  # the part of a hybrid executor
    return getattr(on_gpu, "gpu", None)


def recordings_of(owner: Owner) -> dict[Any, Any]:
    """Recordings of frames on a GPU, by their key."""
    return executor_of(owner)._recordings


def n_host_buffers(owner: Owner) -> int:
    """How many sets of page-locked arrays the executor of a GPU has made."""
    executor: CudaExecutor = executor_of(owner)
    return len(executor._host_buffers)


def kept_gpus() -> "list[Device]":
    """The GPUs of what waits for later encoders; that of the last encoder is the last."""
    from h264lite.cuda_src.runtime import idle

    return [user.gpu for _, _, user in idle._users]


def kept_gpu() -> "Device | None":
    """That of the last encoder."""
    return next(reversed(kept_gpus()), None)


def allocations_of(gpu: "Device") -> list[Any]:
    """Memory that a GPU has taken from its driver, in use or free."""
    return [allocation for _, allocation in gpu._memory._allocations]


def resources_of(gpu: "Device") -> tuple[list[int], int, dict[str, Any], int]:
    """(identities of allocations, number of streams, modules by name, number of events without times) of a GPU."""
    streams, events = len(gpu._streams._all), len(gpu._events[False]._all)
    return list(map(id, allocations_of(gpu))), streams, dict(gpu.calls._modules), events


def take_gpu_for_any_size(patch: Patch) -> None:
    """`auto` takes a GPU for frames of any size."""
    from h264lite.encoder.settings import device

    patch(device, "SMALLEST_FOR_CUDA", 1)


def say_no_gpu(patch: Patch, why: str) -> None:
    """Settings find no GPU, and this reason."""
    from h264lite.encoder.settings import device

    patch(device, "why_no_cuda", lambda: why)


# ---- worker processes
def slots_in_use(workers: "Workers") -> int:
    """How many source frames lie in memory that processes share."""
    return workers._slots.used


def limit_room(workers: "Workers", room: int) -> None:
    """So many slots may be in use, as a worker sees it."""
    for remote in workers._remotes:
        remote._team = replace(remote._team, room=room)


def sent_gops_of(workers: "Workers") -> "list[SentGop]":
    """The GOPs that worker processes have."""
    return [sent for remote in workers._remotes for sent in remote._sent.values()]


# ---- calls and files
@contextmanager
def in_use(encoder: "Encoder") -> Iterator[None]:
    """As if a call of another thread were under way."""
    call = encoder._session._call
    call["call"] = object()
    try:
        yield
    finally:
        call.clear()


def finished_of(encoder: "Encoder") -> list[Any]:
    """The frames that are finished and were not handed out."""
    return encoder._session.hand_out()


def waiting_file_of(writer: "VideoWriter") -> Any:
    """The temporary file in which a long MP4 waits for its end."""
    sink: Any = writer._sink
    return sink._waiting._file
