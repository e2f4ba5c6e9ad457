"""The lookahead's half-size frames and costs against their definitions: any size, motion beyond borders, split of rows."""

import numpy as np
import pytest
from h264lite.cpu_simd.lookahead.half_size import half_size, half_size_arrays, sharpness
from h264lite.cpu_simd.lookahead.lookahead import (
    lookahead_both,
    lookahead_camera,
    lookahead_intra,
    lookahead_refine,
    lookahead_search,
    lookahead_used,
    sum_inside,
)

from ..support import naive_lookahead
from ..support.cuda_cases import textured

SEED = 41
SIZES = [(64, 48), (33, 17), (100, 70), (16, 16)]
KINDS = ["pan", "fast pan", "noise", "still", "flat", "opposite"]


def frames(kind, width, height):
    """Three uint8[H, W] in display order."""
    rng = np.random.default_rng([SEED, KINDS.index(kind)])
    if kind == "noise":
        return rng.integers(0, 256, (3, height, width)).astype(np.uint8)
    if kind == "opposite":
        return np.stack([np.full((height, width), 255 * (n % 2), np.uint8) for n in range(3)])
    if kind == "flat":
        return np.full((3, height, width), 77, np.uint8)
    step = {"pan": (7, -3), "fast pan": (40, 22), "still": (0, 0)}[kind]
    big = textured(rng, height + 200, width + 200)
    parts = [big[100 + n * step[1] :, 100 + n * step[0] :][:height, :width] for n in range(3)]
    return np.clip(np.stack(parts).astype(int) + rng.integers(-1, 2, (3, height, width)), 0, 255).astype(np.uint8)


def half(luma, splits=1):
    rows, columns = -(-luma.shape[0] // 16), -(-luma.shape[1] // 16)
    out = half_size_arrays(columns, rows)
    for part in out:
        part[...] = 99
    for row0, row1 in spans(rows, splits):
        half_size(luma, row0, row1, out)
    return out


def spans(rows, splits):
    edges = np.linspace(0, rows, splits + 1).astype(int).tolist()
    return [(a, b) for a, b in zip(edges, edges[1:]) if a < b][::-1]


def searched(current, reference, splits=1, quick=False):
    """camera, first vectors, (mv, cost)."""
    rows, columns = current.tiny.shape
    n_mb = rows * columns
    camera, first = np.empty(2, np.int16), np.empty((n_mb, 2), np.int16)
    mv, cost = np.empty((n_mb, 2), np.int16), np.empty(n_mb, np.uint16)
    lookahead_camera(current, reference, camera)
    for row0, row1 in spans(rows, splits):
        lookahead_search(current, reference, camera, row0, row1, first, quick)
    for row0, row1 in spans(rows, splits):
        lookahead_refine(current, reference, first, row0, row1, mv, cost, quick)
    return camera, first, (mv, cost)


@pytest.mark.parametrize(("width", "height"), [*SIZES, (37, 90), (2, 5), (1, 1)])
@pytest.mark.parametrize("values", [range(256), (0, 255)], ids=("noise", "extremes"))
def test_sharpness(values, width, height):
    rng = np.random.default_rng(SEED)
    luma = rng.choice(values, (height, width))
    middle = luma[1:-1, 1:-1]
    across = np.abs(2 * middle - luma[1:-1, :-2] - luma[1:-1, 2:])
    down = np.abs(2 * middle - luma[:-2, 1:-1] - luma[2:, 1:-1])
    assert sharpness(luma.astype(np.uint8)) == (across + down).sum()


@pytest.mark.parametrize(("width", "height"), [*SIZES, (37, 90), (1, 1)])
def test_half_size_frames(width, height):
    luma = np.random.default_rng(SEED).integers(0, 256, (height, width)).astype(np.uint8)
    for splits in (1, 2, 5):
        for plane, expected in zip(half(luma, splits), naive_lookahead.half_size(luma), strict=True):
            np.testing.assert_array_equal(plane, expected)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quick", [False, True])
def test_against_the_definition(kind, width, height, quick):
    lumas = frames(kind, width, height)
    fast, slow = [half(luma) for luma in lumas], [naive_lookahead.half_size(luma) for luma in lumas]
    motions_so_far, expected = [], []
    for frame, reference in ((1, 0), (1, 2), (2, 0)):
        camera, first, motion = searched(fast[frame], fast[reference], quick=quick)
        moved = naive_lookahead.camera(slow[frame], slow[reference])
        assert tuple(camera) == moved
        vectors = naive_lookahead.first_round(slow[frame], slow[reference], moved, quick)
        np.testing.assert_array_equal(first, list(vectors.values()))
        both = naive_lookahead.second_round(slow[frame], slow[reference], vectors, quick)
        np.testing.assert_array_equal(motion[0], [v for v, _ in both.values()])
        np.testing.assert_array_equal(motion[1], [c for _, c in both.values()])
        for splits in (2, 3):
            _, again, split = searched(fast[frame], fast[reference], splits, quick)
            assert (again == first).all() and all((a == b).all() for a, b in zip(split, motion))
        motions_so_far.append(motion)
        expected.append(both)
    rows, n_mb = fast[0].tiny.shape[0], fast[0].tiny.size
    cost = np.empty(n_mb, np.uint16)
    for position in (128, 64):
        for row0, row1 in spans(rows, 2):
            lookahead_both((fast[1], fast[0], fast[2]), position, tuple(motions_so_far), row0, row1, cost)
        np.testing.assert_array_equal(cost, naive_lookahead.both(slow[1], slow[0], slow[2], position, expected))
        used = np.empty(n_mb, np.uint16), np.empty((n_mb, 4), np.int16), np.empty(n_mb, np.uint8)
        for row0, row1 in spans(rows, 2):
            lookahead_used((fast[1], fast[0], fast[2]), position, tuple(motions_so_far), row0, row1, *used)
        for mb, at in enumerate(expected[0]):
            motions = [motion[at] for motion in expected]
            least, v0, v1, lists = naive_lookahead.b_motion(slow[1], slow[0], slow[2], position, motions, at)
            assert (used[0][mb], tuple(used[1][mb]), used[2][mb]) == (least, (*v0, *v1), lists)
    for row0, row1 in spans(rows, 2):
        lookahead_intra(fast[1], row0, row1, cost)
    np.testing.assert_array_equal(cost, naive_lookahead.intra(slow[1]))


@pytest.mark.parametrize("step", [(7, -3), (31, 12), (-90, 40), (-150, 0)])
def test_motion_of_the_camera_is_found(step):
    big = textured(np.random.default_rng(SEED), 500, 900)
    height, width, (x, y) = 240, 400, step
    a, b = (half(np.ascontiguousarray(big[130 + dy :, 250 + dx :][:height, :width])) for dx, dy in ((0, 0), step))
    mv = searched(b, a)[2][0].reshape(height // 16, width // 16, 2)
    inside = mv[max(0, -y // 16) + 1 :, :][: height // 16 - abs(y) // 16 - 3]
    right = inside[:, max(0, -x) // 16 + 1 : width // 16 - max(0, x) // 16 - 1]
    assert (right == step).all(2).mean() > 0.9


@pytest.mark.parametrize(("width", "height"), [(22, 18), (3, 3), (2, 5), (5, 2), (1, 1)])
def test_sums_leave_the_border_out(width, height):
    costs, others = np.random.default_rng([SEED, width]).integers(0, 65536, (2, height, width)).astype(np.uint16)
    least = np.minimum(costs, others)
    inside = least[1:-1, 1:-1] if width > 2 and height > 2 else least
    assert sum_inside(costs.reshape(-1), others.reshape(-1), width) == inside.sum(dtype=np.int64)
