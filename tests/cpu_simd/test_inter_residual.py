"""Inter macroblocks: the kernel's reconstruction is what the decoding clauses give for its levels and vectors."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, Motion, Planes, Quantiser, References, Residual
from h264lite.cpu_simd.inter.interpolate import interpolate
from h264lite.cpu_simd.inter.motion_compensation import predict_inter
from h264lite.cpu_simd.layout import MOST_WEIGHTED, N_WEIGHTS
from h264lite.cpu_simd.residual.inter_residual import inter_residual
from h264lite.jit.kernel import closed_kernel
from h264lite.scheduler.frame_spec import UNWEIGHTED, Weights
from h264lite.standard.macroblock import (
    B_DIRECT,
    B_SKIP,
    I_PCM,
    LAST_INTRA,
    P_SKIP,
    B_8x8,
    B_16x16,
    I_4x4,
    P_8x8,
    P_8x16,
    P_16x8,
    P_16x16,
)

from ..support.b_macroblocks import make_intra, random_motion, with_lists
from ..support.bundles import named
from ..support.naive_reconstruction import check_counts, decode_picture, partition_vectors, predict_b
from .test_intra import compare, empty_state, picture

PAD = 48
BASELINE = CodingTools(1, 0, 0)


def reference_pool(pictures, weights=()):
    height, width = pictures[0][0].shape
    luma = np.zeros((len(pictures) + 1, 4, height + 2 * PAD, width + 2 * PAD), np.uint8)
    chroma = np.zeros((len(pictures) + 1, 2, height // 2 + PAD, width // 2 + PAD), np.uint8)
    for slot, planes in enumerate(pictures):
        luma[slot + 1, 0] = np.pad(planes[0], PAD, "edge")
        for c in range(2):
            chroma[slot + 1, c] = np.pad(planes[1 + c], PAD // 2, "edge")
        interpolate(luma[slot + 1], PAD, 0, height // 16)
    slots = np.arange(1, len(pictures) + 1, dtype=np.int32)
    numbers = [number for of in weights for number in of]
    numbers += (MOST_WEIGHTED * N_WEIGHTS - len(numbers)) * [0]
    return References(luma, chroma, slots, slots, np.array(numbers, np.int32), PAD, len(pictures))


def run(planes, state, pool, chroma_qp_offset, bands, tools=BASELINE):
    rec = [np.full_like(p, 55) for p in planes]
    for row0, row1 in pairwise(bands):
        coded = Planes(*rec), named(Residual, state)
        quantiser, motion = Quantiser(state["qp"], chroma_qp_offset), named(Motion, state)
        inter_residual(Planes(*planes), pool, motion, quantiser, tools, row0, row1, *coded)
    return rec


def random_state(rng, n_mb, n_ref, largest):
    state = empty_state(n_mb)
    state["mb_type"][:] = rng.integers(P_16x16, P_SKIP + 1, n_mb)
    state["sub_mb_type"] = rng.integers(0, 4, (n_mb, 4)).astype(np.uint8)
    refs = rng.integers(0, n_ref, (n_mb, 4)).astype(np.int8)
    quadrants = {P_16x8: [0, 0, 2, 2], P_8x16: [0, 1, 0, 1], P_8x8: [0, 1, 2, 3]}  # the first of each partition
    for mb, kind in enumerate(state["mb_type"]):
        state["ref_idx"][mb] = refs[mb][quadrants.get(int(kind), [0] * 4)]
        state["mv"][mb] = partition_vectors(rng, kind, state["sub_mb_type"][mb], largest)
    return state


@pytest.mark.half
@pytest.mark.parametrize("kind", ["noise", "extremes", "waves"])
@pytest.mark.parametrize("largest", [9, 130, 700])
@pytest.mark.parametrize("tools", [BASELINE, CodingTools(0, 1, 1), CodingTools(1, 1, 0), CodingTools(1, 1, 1)])
def test_reconstruction_is_the_decoders(kind, largest, tools):
    rng = np.random.default_rng(seed := 31)
    print("seed", seed)
    pictures = [picture(rng, 48, 48, kind) for _ in range(2)]
    pool = reference_pool(pictures)
    used = 0
    for qp in (0, 14, 26, 35, 51):
        state = random_state(rng, 9, 2, largest)
        state["qp"][:] = np.clip(qp + rng.integers(-2, 3, 9), 0, 51)
        planes = picture(rng, 48, 48, kind)
        if kind == "waves":
            planes = [np.clip(p + rng.integers(-4, 5, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        offset = int(rng.integers(-12, 13))
        rec = run(planes, state, pool, offset, [0, 1, 3], tools)
        used += np.count_nonzero(state["transform_8x8"])
        pcm = state["mb_type"] == I_PCM
        assert (state["ref_idx"][pcm] == -1).all() and not np.any(state["mv"][pcm])
        state["transform_8x8"][pcm] = 0
        for name in ("levels", "total_coeff", "cbp"):
            state[name][pcm] = 16 if name == "total_coeff" else 0
        check_counts(state)
        expected = decode_picture(state, planes, (48, 48), offset, np.zeros(9, np.int32), pictures)
        for mb in np.flatnonzero(pcm):  # intra( ) codes those
            for a, b, size in zip(expected, rec, (16, 8, 8)):
                y, x = size * (mb // 3), size * (mb % 3)
                a[y : y + size, x : x + size] = b[y : y + size, x : x + size]
        compare(expected, rec)
    assert (used > 0) == bool(tools.transform_8x8_mode)


# luma log2, weight, offset; chroma log2, both weights and offsets: mild, extreme, without denominators, one of both
WEIGHTS = [
    Weights(3, 5, 30, 3, 6, 70, -9, 50, 7), Weights(3, 7, -128, 127, 7, 127, -128, -128, 127),
    Weights(3, 0, 2, -70, 0, -1, 120, 127, 5), Weights(1, 1, 3, 0), Weights(2, 0, 0, 0, 3, 0, 5, 9, -3),
]  # fmt: skip


@pytest.mark.parametrize("weights", [*([one] for one in WEIGHTS), [UNWEIGHTED, WEIGHTS[0]], WEIGHTS[:2]])
def test_weighted_prediction_is_the_decoders(weights):
    """Of single entries of the list, and of several."""
    rng = np.random.default_rng(seed := 33)
    print("seed", seed)
    pictures = [picture(rng, 48, 48, "waves") for _ in range(4)]
    state = random_state(rng, 9, 4, 20)
    state["qp"][:] = 30
    planes = picture(rng, 48, 48, "waves")
    rec = run(planes, state, reference_pool(pictures, weights), 0, [0, 3])
    assert (state["mb_type"] != I_PCM).all()
    compare(decode_picture(state, planes, (48, 48), 0, np.zeros(9, np.int32), pictures, weights), rec)


def test_bands_and_intra_macroblocks():
    rng = np.random.default_rng(seed := 32)
    print("seed", seed)
    pool = reference_pool([picture(rng, 64, 48, "waves")])
    planes = picture(rng, 64, 48, "waves")
    one, other = random_state(np.random.default_rng(1), 12, 1, 20), random_state(np.random.default_rng(1), 12, 1, 20)
    for state in (one, other):
        state["qp"][:] = 28
        state["mb_type"][5] = I_4x4
    a = run(planes, one, pool, 0, [0, 4])
    b = run(planes, other, pool, 0, [0, 1, 2, 3, 4])
    compare(a, b)
    for name in one:
        assert np.array_equal(one[name], other[name]), name
    assert (a[0][16:32, 32:48] == 55).all() and (one["levels"][5] == 77).all()


def test_small_residual_is_dropped():
    """A picture that differs from its reference by single samples is not worth any level."""
    reference = [np.full((32, 32), 100, np.uint8)] + [np.full((16, 16), 100, np.uint8) for _ in range(2)]
    planes = [p.copy() for p in reference]
    planes[0][5, 7] += 24
    state = empty_state(4)
    state["mb_type"][:] = P_16x16
    state["sub_mb_type"] = np.zeros((4, 4), np.uint8)
    state["qp"][:] = 26
    rec = run(planes, state, reference_pool([reference]), 0, [0, 2])
    assert not np.any(state["cbp"]) and not np.any(state["levels"]) and not np.any(state["total_coeff"])
    compare(reference, rec)


@pytest.mark.parametrize("qp", [20, 26, 32])
def test_lone_levels_far_up_the_scan(qp):
    """Blocks with one level of 1 at any place of the scan: dropped or kept, levels and reconstruction agree."""
    reference = [np.full((48, 64), 120, np.uint8)] + [np.full((24, 32), 120, np.uint8) for _ in range(2)]
    pool = reference_pool([reference])
    y, x = np.mgrid[:4, :4]
    for amplitude in (6, 12, 20, 32):
        planes = [p.copy() for p in reference]
        for n in range(12):  # one frequency a macroblock, in one block of it or in all
            waves = np.cos((2 * y + 1) * (n % 4) * np.pi / 8) * np.cos((2 * x + 1) * (3 - n // 4) * np.pi / 8)
            wave = np.rint(amplitude * waves).astype(int)
            for plane, size in zip(planes, (16, 8, 8)):
                top, left = size * (n // 4), size * (n % 4)
                plane[top : top + 4, left : left + 4] = 120 + wave
                if n % 3 == 0:
                    plane[top : top + size, left : left + size] = 120 + np.tile(wave, (size // 4, size // 4))
        state = empty_state(12)
        state["mb_type"][:] = P_16x16
        state["sub_mb_type"] = np.zeros((12, 4), np.uint8)
        state["qp"][:] = qp
        rec = run(planes, state, pool, 0, [0, 3])
        check_counts(state)
        compare(decode_picture(state, planes, (48, 64), 0, np.zeros(12, np.int32), [reference]), rec)


def b_references(rng, pictures, n_ref, n_ref1, average=False):
    """(References of a B frame over these frames, both lists of frames, implicit weights [n_ref][n_ref1])."""
    order = rng.integers(0, len(pictures), n_ref + n_ref1)
    weights = np.full((n_ref, n_ref1), 32) if average else rng.choice([-64, -9, 0, 31, 32, 33, 64, 128], (n_ref, n_ref1))
    pool = with_lists(reference_pool(pictures), n_ref, order + 1, weights)
    return pool, ([pictures[k] for k in order[:n_ref]], [pictures[k] for k in order[n_ref:]]), weights


@closed_kernel
def predicted_by(references, motion, mb_width, out):
    for mb in range(len(motion.mb_type)):
        predict_inter(mb, 16 * (mb % mb_width), 16 * (mb // mb_width), references, motion, out[mb])


@pytest.mark.parametrize("kind", ["noise", "extremes"])
@pytest.mark.parametrize("largest", [1, 40, 700, 8000])
def test_prediction_of_b_macroblocks(kind, largest):
    """All types, one list and both, all weights, across borders and far beyond them."""
    rng = np.random.default_rng(seed := 34 + largest)
    print("seed", seed)
    pictures = [picture(rng, 32, 48, kind) for _ in range(3)]
    for n_ref, n_ref1 in ((1, 1), (3, 2)):
        pool, lists, weights = b_references(rng, pictures, n_ref, n_ref1)
        state = empty_state(6)
        random_motion(rng, state, (n_ref, n_ref1), largest)
        out = np.full((6, 384), 7, np.uint8)
        predicted_by(pool, named(Motion, state), 3, out)
        for mb in range(6):
            luma, cb, cr = predict_b(lists, state, mb, 16 * (mb % 3), 16 * (mb // 3), weights)
            np.testing.assert_array_equal(out[mb, :256].reshape(16, 16), luma)
            np.testing.assert_array_equal(out[mb, 256:].reshape(8, 16), np.hstack([cb, cr]))


def test_extreme_weights_of_extreme_samples():
    """Each weight -64..128 with samples 0 and 255 in both lists: no sum leaves 16 bits."""
    levels = [0, 1, 128, 254, 255]
    pictures = [[np.full((16, 16), v, np.uint8), np.full((8, 8), v, np.uint8), np.full((8, 8), v, np.uint8)] for v in levels]
    pool = reference_pool(pictures)
    state = empty_state(1)
    state |= {"sub_mb_type": np.zeros((1, 4), np.uint8), "ref_idx1": np.zeros((1, 4), np.int8)}
    state["mv1"], state["mb_type"][:] = np.zeros((1, 16, 2), np.int16), B_16x16
    out = np.zeros((1, 384), np.uint8)
    for first in range(5):
        for second in range(5):
            for weight in range(-64, 129):
                of_both = with_lists(pool, 1, [1 + first, 1 + second], [[weight]])
                predicted_by(of_both, named(Motion, state), 1, out)
                value = (levels[first] * (64 - weight) + levels[second] * weight + 32) >> 6
                assert (out == min(255, max(0, value))).all(), (first, second, weight)


@pytest.mark.parametrize("tools", [BASELINE, CodingTools(0, 1, 1), CodingTools(1, 1, 1)])
def test_reconstruction_of_b_macroblocks_is_the_decoders(tools):
    rng = np.random.default_rng(seed := 35)
    print("seed", seed)
    used, skipped, turned = 0, 0, 0
    for kind, qp in (("noise", 0), ("waves", 14), ("waves", 26), ("extremes", 35), ("waves", 51)):
        pictures = [picture(rng, 48, 48, kind) for _ in range(3)]
        pool, lists, weights = b_references(rng, pictures, 2, 1, average=qp == 26)
        state = empty_state(9)
        random_motion(rng, state, (2, 1), 30)
        make_intra(state, [4], I_4x4)
        state["qp"][:] = np.clip(qp + rng.integers(-2, 3, 9), 0, 51)
        planes = picture(rng, 48, 48, kind)
        if kind == "waves":
            planes = [np.clip(p + rng.integers(-4, 5, p.shape), 0, 255).astype(np.uint8) for p in pictures[0]]
        rec = run(planes, state, pool, 2, [0, 1, 3], tools)
        skip = state["mb_type"] == B_SKIP
        assert not np.any(state["cbp"][skip]) and not np.any(state["levels"][skip])
        skipped += np.count_nonzero(skip)
        of_both = (state["transform_8x8"] == 1) & np.isin(state["mb_type"], [B_DIRECT, B_8x8])
        used += np.count_nonzero(of_both)
        intra = state["mb_type"] <= LAST_INTRA
        turned += np.count_nonzero(state["mb_type"] == I_PCM)
        for suffix in ("", "1"):
            assert (state["ref_idx" + suffix][intra] == -1).all() and not np.any(state["mv" + suffix][intra])
        assert state["mb_type"][4] == I_4x4 and (state["levels"][4] == 77).all() and (rec[0][16:32, 16:32] == 55).all()
        state["transform_8x8"][intra], state["mb_type"][4] = 0, I_PCM
        for name in ("levels", "total_coeff", "cbp"):
            state[name][intra] = 16 if name == "total_coeff" else 0
        check_counts(state)
        expected = decode_picture(state, planes, (48, 48), 2, np.zeros(9, np.int32), weights=weights, lists=lists)
        for mb in np.flatnonzero(intra):  # intra( ) codes those
            for a, b, size in zip(expected, rec, (16, 8, 8)):
                y, x = size * (mb // 3), size * (mb % 3)
                a[y : y + size, x : x + size] = b[y : y + size, x : x + size]
        compare(expected, rec)
    assert (used > 0) == bool(tools.transform_8x8_mode) and skipped and turned


def test_p_frames_beside_b_frames_are_the_same():
    """n_ref1 0 in place of None: explicit weights, sub-partitions; list 1 stays as it is."""
    rng = np.random.default_rng(36)
    pictures = [picture(rng, 48, 48, "waves") for _ in range(2)]
    planes, pool = picture(rng, 48, 48, "waves"), reference_pool(pictures, WEIGHTS[:2])
    one, other = (random_state(np.random.default_rng(2), 9, 2, 20) for _ in range(2))
    one["qp"][:] = other["qp"][:] = 30
    other["ref_idx1"], other["mv1"] = np.full((9, 4), -1, np.int8), np.zeros((9, 16, 2), np.int16)
    compare(run(planes, one, pool, 0, [0, 3]), run(planes, other, pool._replace(n_ref1=0), 0, [0, 3]))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert (other["ref_idx1"] == -1).all() and not np.any(other["mv1"])
