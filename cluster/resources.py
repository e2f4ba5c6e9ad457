"""What Ray has given to this process: processors and GPUs, as threads and device of an encoder."""

import os
import sys
from typing import Any


def worker_context() -> Any:
    """The ray.get_runtime_context() of a task or an actor of Ray; None in any other process."""
    ray = sys.modules.get("ray")  # a worker process has it
    if ray is None or not ray.is_initialized():
        return None
    context = ray.get_runtime_context()
    return context if context.worker.mode == ray.WORKER_MODE else None


def assigned() -> tuple[int, float] | None:
    """(processors, at least 1; GPUs, maybe a part of one) of this task or actor; None outside of Ray's workers."""
    context = worker_context()
    if context is None:
        return None
    resources = context.get_assigned_resources()
    return max(1, int(resources.get("CPU", 1))), float(resources.get("GPU", 0))


def device() -> str:
    """cpu, or cuda:N for the GPU that Ray has assigned, as this process counts them."""
    given = assigned()
    if given is None or not given[1]:
        return "cpu"
    import ray

    return f"cuda:{ordinal_of(ray.get_gpu_ids()[0], os.environ.get('CUDA_VISIBLE_DEVICES'))}"


def ordinal_of(gpu: int | str, visible: str | None) -> int:
    """The number that CUDA gives to a GPU of Ray. visible: CUDA_VISIBLE_DEVICES of this process; None: all are visible."""
    names = [name.strip() for name in visible.split(",")] if visible else []
    return names.index(str(gpu)) if str(gpu) in names else int(gpu)
