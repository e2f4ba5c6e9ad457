"""CUDA lookahead gives the bits of its CPU twin: content, sizes, motion beyond the borders, split rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.lookahead import half_size as cpu_half_size
from h264lite.cpu_simd.lookahead import lookahead as cpu
from h264lite.cuda_src.lookahead import half_size as cuda_half_size
from h264lite.cuda_src.lookahead import lookahead as cuda

from ..cuda_emulator.fixtures import device  # noqa: F401
from ..support.bundles import blank
from ..support.cuda_cases import KINDS, SEED, plane

SIZES = [(96, 64), (37, 17), (200, 40), (16, 16)]


def frames(rng, kind, width, height):
    """Three uint8[H, W], each moved against the one before, the last one far."""
    big = plane(rng, kind, height + 160, width + 160)
    places = (80, 80), (77, 85), (12, 40)
    moved = [big[y : y + height, x : x + width].astype(int) for y, x in places]
    return [np.clip(luma + rng.integers(-2, 3, luma.shape), 0, 255).astype(np.uint8) for luma in moved]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "height", "quick"), [*((*size, False) for size in SIZES), (96, 64, True), (37, 17, True)])
def test_twin(device, kind, width, height, quick):  # noqa: F811
    rng = np.random.default_rng([SEED, width])
    rows, columns = -(-height // 16), -(-width // 16)
    n_mb, spans = rows * columns, [(0, rows)] if rows < 3 else [(1, rows), (0, 1)]
    host, gpu = [], []
    for luma in frames(rng, kind, width, height):
        half = cpu_half_size.half_size_arrays(columns, rows)
        cpu_half_size.half_size(luma, 0, rows, half)
        on_gpu, source = blank(device, half), device.upload(luma)
        for span in spans:
            cuda_half_size.half_size(source, *span, on_gpu)
        for result, expected in zip(on_gpu, half):
            np.testing.assert_array_equal(result.get(), expected)
        host.append(half)
        gpu.append(on_gpu)
        whole = device.upload(np.pad(luma, ((0, 16 * rows - height), (0, 16 * columns - width)), constant_values=255))
        for shown in source, whole:  # what is not displayed does not count
            total = device.zeros((1,), np.int64)
            cuda_half_size.sharpness(shown, width, height, total)
            assert total.get()[0] == cpu_half_size.sharpness(luma)

    def arrays(of):
        return of(2, np.int16), of((n_mb, 2), np.int16), of((n_mb, 2), np.int16), of(n_mb, np.uint16)

    def on_device(shape, kind):
        return device.array(shape if isinstance(shape, tuple) else (shape,), kind).fill(0xEE)

    def inner(costs):
        costs = costs.reshape(rows, columns)
        return int((costs[1:-1, 1:-1] if rows > 2 and columns > 2 else costs).sum(dtype=np.int64))

    motions, gpu_motions, jobs, intra = [], [], [], []
    for half, on_gpu in zip(host, gpu):
        cost, gpu_cost, total = np.zeros(n_mb, np.uint16), on_device(n_mb, np.uint16), device.zeros((1,), np.int64)
        cpu.lookahead_intra(half, 0, rows, cost)
        for span in spans:
            cuda.lookahead_intra(on_gpu, *span, gpu_cost, total)
        np.testing.assert_array_equal(gpu_cost.get(), cost)
        assert total.get()[0] == inner(cost)
        intra.append((cost, gpu_cost))
    for current, reference in ((1, 0), (1, 2), (2, 0)):
        camera, first, mv, cost = arrays(np.zeros)
        cpu.lookahead_camera(host[current], host[reference], camera)
        cpu.lookahead_search(host[current], host[reference], camera, 0, rows, first, quick)
        cpu.lookahead_refine(host[current], host[reference], first, 0, rows, mv, cost, quick)
        motions.append((camera, first, mv, cost))
        gpu_motions.append(arrays(on_device))
        camera, first, mv, cost = gpu_motions[-1]
        memory = cuda.SearchMemory(device.zeros((cuda.CAMERA_WORDS,), np.int32), camera, first)
        of_intra = intra[current][1] if reference < current else None
        jobs.append(cuda.motion_job(gpu[current], gpu[reference], of_intra, memory, cuda.Motion(mv, cost)))
    table = device.upload(np.array(jobs, np.int64))
    cuda.lookahead_camera(table, columns, rows)
    for camera, *_ in gpu_motions:
        camera.fill(0xEE)
    cuda.lookahead_camera(table, columns, rows)  # the first left its counters as they were
    for kernel in (cuda.lookahead_search, cuda.lookahead_refine):
        for span in spans:
            kernel(table, columns, rows, *span, quick)
    for result, expected in zip(gpu_motions, motions):
        for one, other in zip(result, expected):
            np.testing.assert_array_equal(one.get(), other)
    sums = table.get()[:, cuda.SUM].tolist()
    costs = [motion[3] for motion in motions]
    lesser = [np.minimum(costs[0], intra[1][0]), costs[1], np.minimum(costs[2], intra[2][0])]
    assert sums == [inner(cost) for cost in lesser]
    kinds = (n_mb, np.uint16), ((n_mb, 4), np.int16), (n_mb, np.uint8)
    positions, maps = (128, 40), (cuda.Used(*(on_device(*kind) for kind in kinds)), None)
    frames_of = tuple(gpu[k] for k in (1, 0, 2))
    of_frames = tuple(cuda.Motion(*motion[2:]) for motion in gpu_motions)
    jobs = [cuda.between_job(frames_of, *of) for of in zip(positions, 2 * [of_frames], maps)]
    table = device.upload(np.array(jobs, np.int64))
    for span in spans:
        cuda.lookahead_both(table, columns, rows, *span)
    cost = np.zeros(n_mb, np.uint16)
    for position, total in zip(positions, table.get()[:, cuda.SUM].tolist()):
        of_host = tuple(motion[2:] for motion in motions)
        cpu.lookahead_both((host[1], host[0], host[2]), position, of_host, 0, rows, cost)
        assert total == inner(cost)
        if position == positions[0]:
            used = [np.zeros(*kind) for kind in kinds]
            cpu.lookahead_used((host[1], host[0], host[2]), position, of_host, 0, rows, *used)
            for one, other in zip(maps[0], used):
                np.testing.assert_array_equal(one.get(), other)
