"""CUDA mode decision gives the bits of its CPU twin: neighbours, references, kinds, slices, skipping."""

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import DecisionSettings, LumaReferences, Motion, OtherCosts, Searches
from h264lite.cpu_simd.decide import mode_decision as cpu
from h264lite.cpu_simd.decisions.common import LAMBDA
from h264lite.cpu_simd.inter import interpolate as cpu_interpolate
from h264lite.cuda_src.decide import mode_decision as cuda
from h264lite.standard.macroblock import B_DIRECT

from ..cuda_emulator.fixtures import device, is_emulated  # noqa: F401
from ..support import naive
from ..support import slices as slices_of
from ..support.bundles import blank, uploaded
from ..support.cuda_cases import SEED, padded, plane, shifted
from ..support.quantiser import constant, varying

TURN = 2  # where `inboxes` counts launches, as in mode_decision.cu


def case(rng, kind, width, height, n_ref, pad, lam):
    n_mb = width * height // 256
    luma = np.zeros((n_ref + 1, 4, height + 2 * pad, width + 2 * pad), np.uint8)
    for slot in range(n_ref + 1):
        luma[slot, 0] = padded(plane(rng, kind, height, width), pad)
        cpu_interpolate.interpolate(luma[slot], pad, 0, height // 16)
    slots = rng.permutation(n_ref + 1)[:n_ref].astype(np.int32)
    source = shifted(rng, luma[slots[0], 0], pad, noise=int(rng.integers(1, 6)))
    still = rng.random() < 0.6  # nothing moves: the P_Skip vector is probed, with residuals about the size that counts
    if still:
        inner = luma[slots[0], 0, pad : pad + height, pad : pad + width].astype(int)
        blocks = np.kron(rng.integers(0, 3, (height // 16, width // 16)), np.ones((16, 16), int))
        noise = rng.integers(-4, 5, inner.shape) * blocks + np.kron(
            rng.integers(-3, 4, (height // 4, width // 4)), np.ones((4, 4), int)
        ) * (blocks > 0)
        source = np.clip(inner + noise, 0, 255).astype(np.uint8)
    # neighbours with like vectors, so that every rule of prediction is met
    base = rng.integers(-12, 13, (n_ref, n_mb, 1, 2)) * (0 if still else 1)
    mv = (base + rng.integers(-2, 3, (n_ref, n_mb, 41, 2)) * (rng.random((n_ref, n_mb, 41, 1)) < 0.5)).astype(np.int16)
    area = np.array([1] * 16 + [2] * 16 + [4] * 4 + [8] * 4 + [16])
    cost = area * rng.integers(20, 60, (n_ref, n_mb, 1)) + rng.integers(0, 30, (n_ref, n_mb, 41)) + 12 * lam
    cost = cost.astype(np.int32)
    predictor = rng.integers(-20, 21, (n_ref, n_mb, 2)).astype(np.int16)
    intra = rng.integers(300, 1500, n_mb).astype(np.int32)
    skip_limit = rng.integers(-1000, 500, n_mb).astype(np.int32)
    return source, LumaReferences(luma, slots, pad, n_ref), Searches(cost, mv, predictor), OtherCosts(intra, skip_limit)


def results(n_mb):
    shapes = ((n_mb,), np.uint8), ((n_mb, 4), np.uint8), ((n_mb, 4), np.int8), ((n_mb, 16, 2), np.int16)
    return Motion(*(np.zeros(*shape) for shape in shapes))


def on_gpu(device, arguments):  # noqa: F811
    """Arrays and bundles on the device."""
    return [uploaded(device, a) if isinstance(a, tuple) else device.upload(a) for a in arguments]


def both(device, read, settings, rows):  # noqa: F811
    """The twins decide the same; read: the arguments before the settings. Returns the motion."""
    n_mb = len(read[3].intra_cost)
    out, turns = results(n_mb), (np.zeros(1 + rows, np.int64), 0, rows)
    d_out = Motion(*(device.upload(np.full_like(a, 77)) for a in out))
    cpu.mode_decision(*read, settings, *turns, out)
    cuda.mode_decision(*on_gpu(device, read), settings, *turns, d_out)
    for a, b in zip(d_out, out):
        np.testing.assert_array_equal(a.get(), b)
    return out


@pytest.mark.parametrize("kind", ["random", "smooth"])
@pytest.mark.parametrize("n_ref", [1, 2, 4])
def test_twin(device, kind, n_ref):  # noqa: F811
    rng = np.random.default_rng(SEED + n_ref)
    pad = 48
    for width, height, lam, one_qp, subme, kinds, max_mv_y in (
        (80, 64, 4, 26, 5, 31, 128), (80, 80, 4, 20, 5, 31, 128), (80, 80, 4, 24, 5, 15, 128),
        (96, 96, 4, 28, 5, 31, 64), (96, 80, 4, None, 5, 31, 64),
        (48, 48, 1, 10, 1, 31, 2), (64, 32, 20, 40, 3, 7, 64), (16, 48, 9, 35, 5, 1, 64),
        (64, 64, 9, 45, 5, 3, 64), (80, 64, 4, 26, 6, 31, 128), (96, 80, 9, None, 6, 31, 64),
    ):  # fmt: skip
        mb_width, rows, n_mb = width // 16, height // 16, width * height // 256
        inputs = case(rng, kind, width, height, n_ref, pad, lam)
        first = slices_of.anywhere(rng, n_mb, 0.15)
        qp = varying(rng, n_mb) if one_qp is None else constant(n_mb, one_qp)
        settings = DecisionSettings(subme, 0, max_mv_y, kinds, 700 * (width == 96))
        read, out = (*inputs, first, qp), results(n_mb)
        d_read, d_out = on_gpu(device, read), blank(device, out)
        progress = np.zeros(1 + rows, np.int64)
        for rows_at_once in ((0, rows),) if rng.random() < 0.5 else ((0, 1), (1, rows)):
            progress[0] = 0
            cpu.mode_decision(*read, settings, progress, *rows_at_once, out)
            cuda.mode_decision(*d_read, settings, None, *rows_at_once, d_out)
        for name, a, b in zip(("mb_type", "sub_mb_type", "ref_idx", "mv"), d_out, out):
            np.testing.assert_array_equal(a.get(), b, err_msg=name)
        prior, d_prior = (out.ref_idx, out.mv), (d_out.ref_idx, d_out.mv)
        cbp, mb_type = rng.integers(0, 2, n_mb).astype(np.uint8), out.mb_type.copy()
        mb_type[rng.random(n_mb) < 0.2] = B_DIRECT  # never beside P macroblocks, which does not matter here
        d_mb_type = device.upload(mb_type)
        cpu.mark_skipped(first, *prior, cbp, mb_width, 0, rows, mb_type)
        cuda.mark_skipped(d_read[4], *d_prior, device.upload(cbp), mb_width, 0, rows, d_mb_type)
        np.testing.assert_array_equal(d_mb_type.get(), mb_type)


def check_two_slices(device, seed):  # noqa: F811
    """11x9 macroblocks with two references: both decide the same."""
    rng = np.random.default_rng(seed)
    pad, width, height, n_ref = 48, 16 * 11, 16 * 9, 2
    first = np.repeat(np.array([0, 55], np.int32), (55, 44))
    inputs = case(rng, "smooth", width, height, n_ref, pad, 4)
    both(device, (*inputs, first, constant(99, 24)), DecisionSettings(5, 0, 128, 15), 9)


@pytest.mark.parametrize("tile_rows", [1, 2, 3])
def test_fewer_rows_a_tile(device, tile_rows):  # noqa: F811
    """A choice of the tuning file; 3 are 2."""
    launched, launch = [], device.launch
    device.tile_rows = tile_rows
    device.launch = lambda *given, **more: (launched.append(given[2]), launch(*given, **more))
    check_two_slices(device, SEED + tile_rows)
    assert launched == [(9 * 2,) if tile_rows == 1 else (5 * 2,)]


@pytest.mark.parametrize("launch", [(1 << 24) - 2, (1 << 24) - 1, 1 << 24, (1 << 25) - 2, -1, -(1 << 31)])
def test_many_launches(device, monkeypatch, launch):  # noqa: F811
    """A launch's mark of its words comes again, but never equals the content of words that were not written."""
    scratch = device.scratch

    def late(name, shape, *given, **more):
        array = scratch(name, shape, *given, **more)
        if name == "messages of mode decision":
            words = np.zeros(shape, np.int32)
            words[TURN] = launch
            array.put(words)
        return array

    monkeypatch.setattr(device, "scratch", late)
    for seed in range(SEED, SEED + 4):
        check_two_slices(device, seed)


@pytest.mark.parametrize("n_ref", [1, 16])
def test_more_tiles_than_run_at_once(device, n_ref):  # noqa: F811
    """The emulator runs 64 blocks at once, a GPU with little shared memory few: those that wait are not waited for."""
    rng = np.random.default_rng(SEED)
    pad, width, height = 48, 16, 16 * (290 if n_ref == 1 else 20)
    if n_ref > 1 and is_emulated(device):
        device.shared_limit = 99 << 10
    rows, inputs = height // 16, case(rng, "smooth", width, height, n_ref, pad, 4)
    both(device, (*inputs, np.zeros(rows, np.int32), constant(rows, 24)), DecisionSettings(5, 0, 128, 15), rows)


def test_what_levels_are_worth(device):  # noqa: F811
    """Rows: the place of a lone level in its block; columns: how many blocks of the macroblock have one."""
    pad, width, height, qp = 48, 16, 16 * 9 * 16, 20  # a slice each, so that no neighbour matters
    forward = np.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]])
    luma = np.full((1, 4, height + 2 * pad, width + 2 * pad), 128, np.uint8)
    source = np.full((height, width), 128, np.uint8)
    for p in range(16):
        i, j = divmod(p, 4)
        # quantises to one level of 1
        basis = np.outer(forward[i], forward[j]) * (2 if i % 2 == 0 and j % 2 == 0 else 1)
        for count in range(9):
            for k in range(count):
                y, x = 16 * (9 * p + count) + 4 * (k // 4), 4 * (k % 4)
                source[y : y + 4, x : x + 4] = 128 + basis * (1 if k % 2 else -1)
    n_mb = rows = 144
    mv = np.full((1, n_mb, 41, 2), 8, np.int16)
    # the vector found costs two bits more than the P_Skip vector if that one is skipped, and less if it is coded
    residual = source.astype(int) - 128
    satds = [naive.satd(residual[y : y + 16, x : x + 16]) for y in range(0, height, 16) for x in range(0, width, 16)]
    cost = np.repeat(np.array(satds, np.int32) - 14 * int(LAMBDA[qp]), 41).reshape(1, n_mb, 41)
    predictor, intra = np.full((1, n_mb, 2), 8, np.int16), np.full(n_mb, 9999, np.int32)
    first, slots = np.arange(n_mb, dtype=np.int32), np.zeros(1, np.int32)
    references, searches = LumaReferences(luma, slots, pad, 1), Searches(cost, mv, predictor)
    read = source, references, searches, OtherCosts(intra, np.zeros(n_mb, np.int32)), first, constant(n_mb, qp)
    out = both(device, read, DecisionSettings(5, 0, 128, 15), rows)
    kept = (out[3][:, 0, 0] != 0).reshape(16, 9)
    assert kept[0, 2:].all() and not kept[0, :2].any() and not kept[12:].any()
    assert len({tuple(row) for row in kept.tolist()}) >= 4
