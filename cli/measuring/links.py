"""Measures the speed of copies between host and GPU, with page-locked memory and events."""

import statistics

import numpy as np

from ...cuda_src.runtime.device import Device
from ...scheduler.hybrid.tuning.models import CPU, Link

SIZES = (4 << 10, 256 << 10, 4 << 20, 32 << 20)  # bytes
REPEATS = 12


def measure(ordinal: int = 0) -> dict[tuple[str, str], Link]:
    """Latency and rate of both directions of the link of GPU `ordinal`, by (source, target)."""
    gpu, name = Device(ordinal), f"cuda:{ordinal}"
    try:
        with gpu:
            stream = gpu.stream()
            before, after = gpu.event(timing=True), gpu.event(timing=True)
            points: dict[tuple[str, str], list[tuple[float, float]]] = {(CPU, name): [], (name, CPU): []}
            for size in SIZES:
                host_array, device_array = gpu.pinned((size,), np.uint8), gpu.array((size,), np.uint8)
                host_array.fill(0)
                for way, copy in (((CPU, name), device_array.put), ((name, CPU), device_array.get)):
                    times = []
                    for _ in range(REPEATS):
                        gpu.record(before, stream)
                        copy(host_array, stream)
                        gpu.record(after, stream)
                        gpu.synchronize(after)
                        times.append(before.time_till(after) / 1000)
                    points[way].append((size, statistics.median(times)))
            return {way: Link.measured(measured) for way, measured in points.items()}
    finally:
        gpu.close()
