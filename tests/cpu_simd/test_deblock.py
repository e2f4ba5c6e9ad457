"""Deblocking: the kernel equals the raster-order definition, for every split of the rows."""

from itertools import pairwise

import h264lite.cpu_simd.loopfilter.deblock as stage
import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Deblocking, Planes, Quantiser, StrengthData
from h264lite.standard.macroblock import B_SKIP, LAST_INTRA, P_SKIP, B_8x8, P_16x16

from ..support import slices as slices_of
from ..support.naive_deblock import deblock_picture


def unite(rng, state, names):
    """Gives the blocks of half of the macroblocks the same motion."""
    one = rng.random(len(state["mb_type"])) < 0.5
    for name in names:
        state[name][one] = state[name][one][:, :1]


def random_state(rng, n_mb, intra_share, qp_low, qp_high):
    state = {
        "mb_type": rng.integers(P_16x16, P_SKIP + 1, n_mb).astype(np.uint8),
        "ref_idx": rng.integers(0, 3, (n_mb, 4)).astype(np.int8),
        "mv": rng.integers(-3, 4, (n_mb, 16, 2)).astype(np.int16),
        "total_coeff": (rng.integers(0, 17, (n_mb, 24)) * (rng.random((n_mb, 24)) < 0.4)).astype(np.uint8),
        "transform_8x8": rng.integers(0, 2, n_mb).astype(np.uint8),
        "qp": rng.integers(qp_low, qp_high + 1, n_mb).astype(np.uint8),
        "duplicates": int(rng.integers(3)),  # entries of the list after the first that are its first picture again
    }
    unite(rng, state, ("ref_idx", "mv"))
    intra = rng.random(n_mb) < intra_share
    state["mb_type"][intra] = rng.integers(0, LAST_INTRA + 1, intra.sum())
    state["ref_idx"][intra] = -1
    state["mv"][intra] = 0
    return state


def random_b_state(rng, n_mb, *numbers):
    """As random_state with both lists: the same frame may be in both, and lists are often unused."""
    state = random_state(rng, n_mb, *numbers)
    inter = state["mb_type"] > LAST_INTRA
    state["mb_type"][inter] = rng.integers(B_SKIP, B_8x8 + 1, inter.sum())
    state["slots"] = [rng.permutation(3).tolist(), rng.permutation(3).tolist()]
    state["ref_idx1"] = rng.integers(-1, 3, (n_mb, 4)).astype(np.int8)
    one, both = rng.integers(0, 3, (n_mb, 4)), rng.integers(-1, 3, (n_mb, 4))
    state["ref_idx"] = np.where(state["ref_idx1"] < 0, one, both).astype(np.int8)
    state["mv"] = rng.integers(-3, 4, (n_mb, 16, 2)).astype(np.int16)
    state["mv1"] = rng.integers(-3, 4, (n_mb, 16, 2)).astype(np.int16)
    unite(rng, state, ("ref_idx", "mv", "ref_idx1", "mv1"))
    for refs, vectors in (("ref_idx", "mv"), ("ref_idx1", "mv1")):
        state[refs][~inter] = -1
        blocks = state[refs].reshape(n_mb, 2, 2).repeat(2, 1).repeat(2, 2).reshape(n_mb, 16)
        state[vectors][blocks < 0] = 0
    return state


def random_planes(rng, height, width, kind):
    planes = []
    for h, w in ((height, width), (height // 2, width // 2), (height // 2, width // 2)):
        if kind == "noise":
            plane = rng.integers(0, 256, (h, w))
        else:  # blocks of near levels with little noise: nearly every line is filtered
            steps = 110 + rng.integers(-6, 7, (h // 4, w // 4))
            plane = np.kron(steps, np.ones((4, 4), int)) + rng.integers(-3, 4, (h, w))
            if kind == "bright":
                plane = np.clip(plane + 140, 0, 255)
        planes.append(plane.astype(np.uint8))
    return planes


def arguments(state, offsets, idc, upload=lambda array: array):
    """mb_type to Deblocking; offsets: of chroma QP, alpha, beta."""
    *arrays, qp = (upload(state[name]) for name in ("mb_type", "ref_idx", "mv", "total_coeff", "transform_8x8", "qp"))
    lists = ()
    if "slots" in state:
        slots = upload(np.array([*state["slots"][0], *state["slots"][1]], np.int32))
        lists = 3, 3, slots, upload(state["ref_idx1"]), upload(state["mv1"])
    return StrengthData(*arrays, state["duplicates"], *lists), Quantiser(qp, offsets[0]), Deblocking(*offsets[1:], idc)


def run(planes, state, offsets, idc, slice_first_mb, bands):
    out = [np.zeros((p.shape[0] + 4, p.shape[1] + 4), np.uint8)[2:-2, 2:-2] for p in planes]
    before = [p.copy() for p in planes]
    for row0, row1 in pairwise(bands):
        stage.deblock(Planes(*planes), *arguments(state, offsets, idc), slice_first_mb, row0, row1, Planes(*out))
    for plane, old in zip(planes, before):
        assert np.array_equal(plane, old)
    return out


@pytest.mark.parametrize("kind", ["noise", "steps", "bright"])
@pytest.mark.parametrize("intra_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("make_state", [random_state, random_b_state])
def test_equals_the_definition(make_state, kind, intra_share):
    rng = np.random.default_rng(seed := 11)
    print("seed", seed)
    mb_width, mb_height = 4, 5
    for qp_low, qp_high, idc in ((0, 51, 0), (24, 40, 0), (30, 51, 2), (40, 51, 1)):
        state = make_state(rng, mb_width * mb_height, intra_share, qp_low, qp_high)
        planes = random_planes(rng, 16 * mb_height, 16 * mb_width, kind)
        offsets = (int(rng.integers(-12, 13)), 2 * int(rng.integers(-6, 7)), 2 * int(rng.integers(-6, 7)))
        slice_first_mb = slices_of.anywhere(rng, mb_width * mb_height, 0.2)
        expected = deblock_picture(*planes, state, *offsets, idc, slice_first_mb)
        for bands in ([0, 5], [0, 1, 2, 3, 4, 5], [0, 2, 5], [0, 3, 4, 5]):
            got = run(planes, state, offsets, idc, slice_first_mb, bands)
            for name, a, b in zip("yuv", expected, got):
                wrong = np.argwhere(a != b)
                assert len(wrong) == 0, f"plane {name}, bands {bands}, first wrong sample (y, x) = {wrong[0]}"


def test_every_qp_and_offset():
    rng = np.random.default_rng(seed := 12)
    print("seed", seed)
    for qp in range(0, 52):
        state = random_state(rng, 4, 0.4, qp, qp)
        planes = random_planes(rng, 32, 32, "steps")
        offsets = (qp % 25 - 12, 2 * (qp % 13 - 6), 2 * (qp % 7 - 3))
        slice_first_mb = np.zeros(4, np.int32)
        expected = deblock_picture(*planes, state, *offsets, 0, slice_first_mb)
        for a, b in zip(expected, run(planes, state, offsets, 0, slice_first_mb, [0, 1, 2])):
            assert np.array_equal(a, b), f"qp {qp}"


@pytest.mark.slow
def test_bands_equal_the_whole():
    """Many pictures of touchy content: second-order effects of the halo show once in thousands of macroblocks."""
    rng = np.random.default_rng(seed := 13)
    print("seed", seed)
    for _ in range(300):
        mb_width, mb_height = 12, 6
        state = random_state(rng, mb_width * mb_height, float(rng.choice([0, 0.2, 1])), 26, 51)
        planes = random_planes(rng, 16 * mb_height, 16 * mb_width, "steps")
        slice_first_mb = np.zeros(mb_width * mb_height, np.int32)
        whole = run(planes, state, (0, 0, 0), 0, slice_first_mb, [0, 6])
        for bands in ([0, 1, 2, 3, 4, 5, 6], [0, 2, 4, 6], [0, 1, 5, 6]):
            for a, b in zip(whole, run(planes, state, (0, 0, 0), 0, slice_first_mb, bands)):
                assert np.array_equal(a, b)
