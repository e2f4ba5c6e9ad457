"""CUDA lookahead gives the bits of its CPU twin: content, sizes, motion beyond the borders, split rows."""

import numpy as np
import pytest
from h264lite.cpu_simd import half_size as cpu_half_size
from h264lite.cpu_simd import lookahead as cpu
from h264lite.cuda_src import half_size as cuda_half_size
from h264lite.cuda_src import lookahead as cuda

from ..bundles import blank
from ..cuda_cases import KINDS, SEED, plane
from ..cuda_emulator.fixtures import device  # noqa: F401

SIZES = [(96, 64), (37, 17), (200, 40), (16, 16)]


def frames(rng, kind, width, height):
    """Three uint8[H, W], each moved against the one before, the last one far."""
    big = plane(rng, kind, height + 160, width + 160)
    places = (80, 80), (77, 85), (12, 40)
    moved = [big[y : y + height, x : x + width].astype(int) for y, x in places]
    return [np.clip(luma + rng.integers(-2, 3, luma.shape), 0, 255).astype(np.uint8) for luma in moved]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_twin(device, kind, width, height):  # noqa: F811
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
        for found, expected in zip(on_gpu, half):
            np.testing.assert_array_equal(found.get(), expected)
        host.append(half)
        gpu.append(on_gpu)

    def arrays(of):
        return of(2, np.int16), of((n_mb, 2), np.int16), of((n_mb, 2), np.int16), of(n_mb, np.uint16)

    motions, gpu_motions = [], []
    totals = device.array((cuda.CANDIDATES,), np.int32)
    for current, reference in ((1, 0), (1, 2), (2, 0)):
        camera, first, mv, cost = arrays(np.zeros)
        cpu.lookahead_camera(host[current], host[reference], camera)
        cpu.lookahead_search(host[current], host[reference], camera, 0, rows, first)
        cpu.lookahead_refine(host[current], host[reference], first, 0, rows, mv, cost)
        on_gpu = arrays(lambda shape, kind: device.array(shape if isinstance(shape, tuple) else (shape,), kind).fill(0xEE))
        cuda.lookahead_camera(gpu[current], gpu[reference], totals, on_gpu[0])
        for span in spans:
            cuda.lookahead_search(gpu[current], gpu[reference], on_gpu[0], *span, on_gpu[1])
        for span in spans:
            cuda.lookahead_refine(gpu[current], gpu[reference], on_gpu[1], *span, *on_gpu[2:])
        for found, expected in zip(on_gpu, (camera, first, mv, cost)):
            np.testing.assert_array_equal(found.get(), expected)
        motions.append((mv, cost))
        gpu_motions.append(on_gpu[2:])
    cost, gpu_cost = np.zeros(n_mb, np.uint16), device.array((n_mb,), np.uint16)
    for position in (128, 40):
        cpu.lookahead_both((host[1], host[0], host[2]), position, tuple(motions), 0, rows, cost)
        for span in spans:
            cuda.lookahead_both((gpu[1], gpu[0], gpu[2]), position, tuple(gpu_motions), *span, gpu_cost)
        np.testing.assert_array_equal(gpu_cost.get(), cost)
    cpu.lookahead_intra(host[1], 0, rows, cost)
    for span in spans:
        cuda.lookahead_intra(gpu[1], *span, gpu_cost)
    np.testing.assert_array_equal(gpu_cost.get(), cost)
