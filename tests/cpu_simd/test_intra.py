"""Intra macroblocks: the kernel's reconstruction is what the decoding clauses give for its levels and modes."""

import threading

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, IntraChoice, Planes, Quantiser, Residual, SliceOrder
from h264lite.cpu_simd.intra.intra import intra
from h264lite.standard.macroblock import I_PCM, LAST_INTRA, I_4x4, I_8x8, I_16x16, P_16x16

from ..support import slices as slices_of
from ..support.bundles import named
from ..support.naive_reconstruction import check_counts, decode_picture

BASELINE = CodingTools(1, 0, 0)
HIGH = CodingTools(0, 1, 1), CodingTools(1, 1, 0), CodingTools(1, 1, 1)
BY_COST = CodingTools(1, 0, 1, subme=6), CodingTools(1, 1, 1, subme=6)


def empty_state(n_mb):
    return {
        "mb_type": np.zeros(n_mb, np.uint8),
        "ref_idx": np.zeros((n_mb, 4), np.int8),
        "mv": np.zeros((n_mb, 16, 2), np.int16),
        "intra4x4_mode": np.full((n_mb, 16), -9, np.int8),
        "intra16x16_mode": np.zeros(n_mb, np.uint8),
        "intra_chroma_mode": np.zeros(n_mb, np.uint8),
        "cbp": np.full(n_mb, 99, np.uint8),
        "qp": np.zeros(n_mb, np.uint8),
        "levels": np.full((n_mb, 27, 16), 77, np.int16),
        "total_coeff": np.full((n_mb, 24), 99, np.uint8),
        "transform_8x8": np.full(n_mb, 9, np.uint8),
    }


def picture(rng, height, width, kind):
    planes = []
    for h, w in ((height, width), (height // 2, width // 2), (height // 2, width // 2)):
        y, x = np.mgrid[:h, :w]
        if kind == "noise":
            plane = rng.integers(0, 256, (h, w))
        elif kind == "extremes":
            plane = 255 * rng.integers(0, 2, (h, w))
        elif kind == "checkerboard":
            plane = 255 * ((x + y) & 1)
        elif kind == "blocks":
            plane = np.kron(255 * rng.integers(0, 2, (h // 8, w // 8)), np.ones((8, 8), int))
        elif kind == "smooth":  # slopes in all directions
            a, b = rng.normal(0, 2, 2)
            plane = np.clip(128 + a * (x - w / 2) + b * (y - h / 2), 0, 255)
        else:  # structure in all directions with a little noise
            angle = rng.random() * 6.3
            wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) / 3) * 60 + x - y
            plane = np.clip(128 + wave + rng.integers(-3, 4, (h, w)), 0, 255)
        planes.append(plane.astype(np.uint8))
    return planes


def given_modes(rng, mb_width, slice_first_mb, with_8x8=False):
    """What intra_estimate may say, uint8[n_mb, 16]: any modes that the available neighbours allow."""
    modes = np.zeros((len(slice_first_mb), 16), np.uint8)
    for mb in range(len(modes)):
        first = int(slice_first_mb[mb])
        left, top = mb % mb_width > 0 and mb > first, mb - mb_width >= first
        corner = left and mb - mb_width > first
        modes[mb] = 16 + rng.choice([2, *[0] * top, *[1] * left, *[3] * corner])
        for k in range(16 * (rng.random() < 0.7)):
            beside, above = left or k % 4 > 0, top or k > 3
            both = above and beside and (corner or k > 0)
            modes[mb, k] = rng.choice([2, *[0, 3, 7] * above, *[1, 8] * beside, *[4, 5, 6] * both])
        with_edge = with_8x8 and (corner or not left or not top)
        if with_edge and modes[mb, 0] < 16 and rng.random() < 0.5:  # each quadrant its first block's mode
            modes[mb] = 32 + np.kron(modes[mb].reshape(4, 4)[::2, ::2], np.ones((2, 2), np.uint8)).ravel()
    return modes


def run(planes, state, chroma_qp_offset, slice_first_mb, rec=None, given=None, tools=BASELINE):
    rec = rec or [np.full_like(p, 55) for p in planes]
    n_ref, given = (0, np.full((len(state["mb_type"]), 16), 77, np.uint8)) if given is None else (1, given)
    coded = Quantiser(state["qp"], chroma_qp_offset), tools, Planes(*rec), named(Residual, state)
    end_mb, choice = len(state["mb_type"]), named(IntraChoice, state)
    order = SliceOrder(slice_first_mb, np.zeros(1 + 2 * (planes[0].shape[0] // 16), np.int64))
    arguments = Planes(*planes), order, n_ref, given, 0, end_mb, choice, *coded
    other = threading.Thread(target=intra, args=arguments)  # takes every second row or so
    other.start()
    intra(*arguments)
    other.join()
    return rec


def compare(expected, got):
    for name, a, b in zip("yuv", expected, got):
        wrong = np.argwhere(a != b)
        assert len(wrong) == 0, f"plane {name}: first wrong sample (y, x) = {wrong[0]}"


@pytest.mark.parametrize("tools", [BASELINE, *HIGH, *BY_COST])
@pytest.mark.parametrize("kind", ["noise", "extremes", "checkerboard", "blocks", "waves"])
def test_reconstruction_is_the_decoders(kind, tools):
    rng = np.random.default_rng(seed := 21)
    print("seed", seed)
    seen = set()
    for qp in (0, 1, 5, 11, 17, 23, 24, 29, 33, 35, 36, 41, 47, 51):
        slice_first_mb, state = slices_of.anywhere(rng, 9, 0.3), empty_state(9)
        state["qp"][:] = np.clip(qp + rng.integers(-2, 3, 9), 0, 51)
        state["mb_type"][:] = rng.integers(0, LAST_INTRA + 1, 9)
        planes = picture(rng, 48, 48, kind)
        offset = int(rng.integers(-12, 13))
        rec = run(planes, state, offset, slice_first_mb, tools=tools)
        check_counts(state)
        assert np.array_equal(state["transform_8x8"], state["mb_type"] == I_8x8)
        compare(decode_picture(state, planes, (48, 48), offset, slice_first_mb), rec)
        seen.update(state["mb_type"].tolist())
        if qp == 0 and kind != "checkerboard":
            error = np.abs(planes[0].astype(int) - rec[0]).max()
            assert error <= 2, "QP 0 is near lossless"
    print("types", seen)
    if kind == "waves":
        assert {I_4x4, I_8x8 if tools.transform_8x8_mode else I_16x16} <= seen
    if kind == "noise":
        assert I_PCM in seen


def test_inter_macroblocks_are_neighbours():
    """Inter macroblocks are left alone, predict as they are, and count as DC for the prediction of modes."""
    rng = np.random.default_rng(seed := 22)
    print("seed", seed)
    slice_first_mb = np.zeros(9, np.int32)
    planes = picture(rng, 48, 48, "waves")
    state = empty_state(9)
    state["qp"][:] = 26
    state["mb_type"][[0, 2, 4]] = P_16x16
    state["levels"][[0, 2, 4]] = 0
    state["transform_8x8"][[0, 2, 4]] = 0
    rec = [np.full_like(p, 130) for p in planes]
    run(planes, state, 0, slice_first_mb, rec)
    assert (state["mb_type"][[0, 2, 4]] == P_16x16).all()
    assert (state["intra4x4_mode"][state["mb_type"] != I_4x4] == 2).all()
    assert (rec[0][16:32, 16:32] == 130).all() and (state["total_coeff"][4] == 99).all()
    grey = [np.full_like(p, 130) for p in planes]
    compare(decode_picture(state, planes, (48, 48), 0, slice_first_mb, [grey]), rec)


def test_slices_are_independent():
    rng = np.random.default_rng(seed := 23)
    print("seed", seed)
    planes = picture(rng, 64, 48, "waves")
    first = slices_of.of_rows([0, 0, 6, 6], 3)
    whole = empty_state(12)
    whole["qp"][:] = 30
    rec = run(planes, whole, 0, first)
    lower = empty_state(6)
    lower["qp"][:] = 30
    halves = [np.ascontiguousarray(p[p.shape[0] // 2 :]) for p in planes]
    rec2 = run(halves, lower, 0, np.zeros(6, np.int32))
    assert np.array_equal(whole["levels"][6:], lower["levels"])
    assert np.array_equal(rec[0][32:], rec2[0])


def test_every_mode_is_used():
    rng = np.random.default_rng(seed := 24)
    print("seed", seed)
    modes4, modes16, chroma = set(), set(), set()
    for k in range(12):
        state = empty_state(36)
        state["qp"][:] = 20 + k
        planes = picture(rng, 96, 96, "waves" if k % 3 else "smooth")
        rec = run(planes, state, 0, np.zeros(36, np.int32))
        modes4.update(state["intra4x4_mode"][state["mb_type"] == I_4x4].ravel().tolist())
        modes16.update(state["intra16x16_mode"][state["mb_type"] == I_16x16].tolist())
        chroma.update(state["intra_chroma_mode"].tolist())
        if k % 4 == 0:
            compare(decode_picture(state, planes, (96, 96), 0, np.zeros(36, np.int32)), rec)
    assert modes4 == set(range(9)) and modes16 == set(range(4)) and chroma == set(range(4))


@pytest.mark.parametrize("tools", [BASELINE, HIGH[2]])
@pytest.mark.parametrize("kind", ["noise", "extremes", "smooth", "waves"])
def test_given_modes_are_obeyed(kind, tools):
    """P pictures: types and luma modes are the given ones unless I_PCM is cheaper; samples are the decoder's."""
    rng = np.random.default_rng(seed := 25)
    print("seed", seed)
    seen, modes4, modes16 = set(), set(), set()
    for chance in (0, 0.1, 0.3):
        for qp in (2, 24, 33, 44):
            slice_first_mb = slices_of.anywhere(rng, 20, chance)
            state, given = empty_state(20), given_modes(rng, 5, slice_first_mb, bool(tools.transform_8x8_mode))
            state["qp"][:] = qp
            inter = rng.random(20) < 0.2
            state["mb_type"][inter] = P_16x16
            state["levels"][inter] = 0
            state["transform_8x8"][inter] = 0
            planes, before = picture(rng, 64, 80, kind), given.copy()
            rec = run(planes, state, 0, slice_first_mb, given=given, tools=tools)
            assert np.array_equal(given, before)
            coded = ~inter & (state["mb_type"] != I_PCM)
            as_4x4, as_8x8 = coded & (given[:, 0] < 16), coded & (given[:, 0] >= 32)
            as_16x16 = coded & ~as_4x4 & ~as_8x8
            assert (state["mb_type"][coded] == np.select([as_4x4, as_8x8], [I_4x4, I_8x8], I_16x16)[coded]).all()
            assert np.array_equal(state["intra4x4_mode"], np.where((as_4x4 | as_8x8)[:, None], given % 32, 2))
            assert np.array_equal(state["intra16x16_mode"], np.where(as_16x16, given[:, 0] % 16, 0))
            grey = [np.full_like(p, 55) for p in planes]
            compare(decode_picture(state, planes, (64, 80), 0, slice_first_mb, [grey]), rec)
            seen.update(state["mb_type"].tolist())
            modes4.update(given[as_4x4].ravel().tolist())
            modes16.update(state["intra16x16_mode"][as_16x16].tolist())
    assert {I_4x4, I_16x16, P_16x16} <= seen and modes4 == set(range(9))
    assert modes16 == set(range(4)) or kind == "extremes" or tools.transform_8x8_mode  # nearly all I_PCM, I_8x8
    assert I_PCM in seen or kind != "noise"
