"""CUDA intra macroblocks give the bits of their CPU twin: kinds of pictures, QPs, slices, inter, I_PCM, given modes."""

import copy

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import CodingTools, IntraChoice, Planes, Residual, SliceOrder
from h264lite.cpu_simd.intra import intra as cpu
from h264lite.cuda_src.intra.intra import intra
from h264lite.standard.macroblock import I_PCM, LAST_INTRA, P_SKIP, I_4x4, I_8x8, I_16x16, P_16x16

from ..cpu_simd.test_intra import empty_state, given_modes, picture
from ..cuda_emulator.fixtures import device, is_emulated  # noqa: F401
from ..support import slices as slices_of
from ..support.bundles import named, uploaded
from ..support.scaling_lists import FLAT, lists_named, quantiser_of

WRITTEN = ("mb_type", "intra4x4_mode", "intra16x16_mode", "intra_chroma_mode", *Residual._fields)


def both(
    device, planes, state, slice_first_mb, offset, rec, parts,  # noqa: F811
    given=None, transform_8x8_mode=0, cabac=0, subme=5, lists=FLAT,
):  # fmt: skip
    """Runs the twins; parts: first and last macroblock of each call; given: modes of a P picture. Returns the CPU's state."""
    n_ref, given = (0, np.full((len(state["mb_type"]), 16), 99, np.uint8)) if given is None else (1, given)
    progress = np.zeros(1 + 2 * (planes[0].shape[0] // 16), np.int64)
    modes, slices = device.upload(given), SliceOrder(device.upload(slice_first_mb), None)
    gpu = {name: device.upload(a) for name, a in state.items()}
    source, out = uploaded(device, Planes(*planes)), uploaded(device, Planes(*rec))

    def changed(state, rec, upload=None):
        tools = CodingTools(1, transform_8x8_mode, cabac, 32, 5 + planes[0].size // 256 % 90, 1, subme)
        coding = quantiser_of(state["qp"], offset, lists, upload), tools
        return named(IntraChoice, state), *coding, rec, named(Residual, state)

    for first_mb, end_mb in parts:
        intra(source, slices, n_ref, modes, first_mb, end_mb, *changed(gpu, out, device.upload))
    order, n_mb = SliceOrder(slice_first_mb, progress), len(state["mb_type"])
    cpu.intra(Planes(*planes), order, n_ref, given, 0, n_mb, *changed(state, Planes(*rec)))
    for name in WRITTEN:
        np.testing.assert_array_equal(gpu[name].get(), state[name], err_msg=name)
    for name, a, b in zip("yuv", out, rec):
        np.testing.assert_array_equal(a.get(), b, err_msg=name)
    return state


@pytest.mark.parametrize("kind", ["noise", "extremes", "checkerboard", "blocks", "smooth", "waves"])
@pytest.mark.parametrize("transform_8x8_mode", [0, 1])
def test_intra_pictures(device, kind, transform_8x8_mode):  # noqa: F811
    compare_pictures(device, kind, transform_8x8_mode, "flat")


@pytest.mark.parametrize(("kind", "transform_8x8_mode", "lists"), [
    ("noise", 0, "wild"), ("noise", 1, "wild"), ("waves", 0, "random"), ("waves", 1, "default"), ("smooth", 1, "random"),
])  # fmt: skip
def test_scaling_lists(device, kind, transform_8x8_mode, lists):  # noqa: F811
    compare_pictures(device, kind, transform_8x8_mode, lists)


def compare_pictures(device, kind, transform_8x8_mode, of):  # noqa: F811
    """Both twins on pictures of a kind; of: which scaling lists."""
    rng = np.random.default_rng(seed := 61)
    print("seed", seed)
    seen, seen_given = set(), set()
    for (width, height), qps in (((64, 48), (0, 14, 27, 36)), ((16, 16), (30,)), ((16, 64), (24,)), ((80, 32), (5, 40, 51))):
        for qp in qps:
            n_mb = width * height // 256
            state = empty_state(n_mb)
            state["qp"][:] = np.clip(qp + rng.integers(-2, 3, n_mb), 0, 51)
            state["mb_type"][:] = rng.integers(0, LAST_INTRA + 1, n_mb)
            planes = picture(rng, height, width, kind)
            rec = [np.full_like(p, 55) for p in planes]
            lists = lists_named(of, rng)
            offset, cabac = int(rng.integers(-12, 13)), int(rng.integers(2))
            slices, other_rec = slices_of.anywhere(rng, n_mb, 0.15), copy.deepcopy(rec)
            given, other = given_modes(rng, width // 16, slices, transform_8x8_mode), copy.deepcopy(state)
            both(device, planes, state, slices, offset, rec, [(0, n_mb)], None, transform_8x8_mode, cabac, 5, lists)
            both(device, planes, other, slices, offset, other_rec, [(0, n_mb)], given, transform_8x8_mode, cabac, 5, lists)
            seen.update(state["mb_type"].tolist())
            seen_given.update(other["mb_type"].tolist())
    print("types", seen, seen_given)
    if kind == "waves" and of == "flat":
        assert {I_4x4, I_16x16} <= seen_given and {I_8x8 if transform_8x8_mode else I_4x4} <= seen & seen_given
    if kind == "noise":
        assert I_PCM in seen


@pytest.mark.parametrize("share", [0.02, 0.3, 0.8])
@pytest.mark.parametrize("transform_8x8_mode", [0, 1])
def test_among_inter_macroblocks_and_slices(device, share, transform_8x8_mode):  # noqa: F811
    """Slices one by one and at once; rows longer than a warp looks at; inter macroblocks as they are."""
    rng = np.random.default_rng(seed := 62)
    print("seed", seed)
    for mb_width, first_rows in ((5, (0, 0, 2, 2, 2)), (37, (0, 1, 1)), (1, (0, 0, 0, 3)), (3, (0, 1, 2, 3))):
        mb_height = len(first_rows)
        n_mb, first = mb_width * mb_height, slices_of.of_rows(np.array(first_rows) * mb_width, mb_width)
        starts = [*np.unique(first).tolist(), n_mb]
        for parts in ([(0, n_mb)], list(zip(starts, starts[1:]))[::-1]):
            state = empty_state(n_mb)
            state["qp"][:] = rng.integers(12, 45, n_mb)
            inter = rng.random(n_mb) >= share
            state["mb_type"][inter] = rng.integers(P_16x16, P_SKIP + 1, n_mb)[inter]
            planes = picture(rng, 16 * mb_height, 16 * mb_width, "waves")
            rec = [np.clip(p + rng.integers(-9, 10, p.shape), 0, 255).astype(np.uint8) for p in planes]
            given = given_modes(rng, mb_width, first, transform_8x8_mode)
            both(device, planes, copy.deepcopy(state), first, 0, copy.deepcopy(rec), parts, None, transform_8x8_mode, 1)
            both(device, planes, copy.deepcopy(state), first, 0, rec, parts, given, transform_8x8_mode)


@pytest.mark.parametrize("kind", ["noise", "extremes", "blocks", "smooth", "waves"])
@pytest.mark.parametrize("transform_8x8_mode", [0, 1])
def test_by_true_cost(device, kind, transform_8x8_mode):  # noqa: F811
    """Types and modes by squared error and bits of CABAC, in I and P pictures, with inter macroblocks and slices."""
    rng = np.random.default_rng(seed := 65)
    print("seed", seed)
    seen = set()
    sizes = (4, (0, 0, 0), 3), (5, (0, 0, 2, 2), 20), (1, (0, 0, 2), 30), (3, (0, 1, 1), 36), (4, (0, 0), 47)
    for mb_width, first_rows, qp in sizes:
        n_mb = mb_width * len(first_rows)
        first = slices_of.of_rows(np.array(first_rows) * mb_width, mb_width)
        for given in (None, np.full((n_mb, 16), 99, np.uint8)):
            state = empty_state(n_mb)
            state["qp"][:] = np.clip(qp + rng.integers(-3, 4, n_mb), 0, 51)
            state["mb_type"][:] = rng.integers(0, LAST_INTRA + 1, n_mb)
            if given is not None:
                inter = rng.random(n_mb) < 0.3
                state["mb_type"][inter] = rng.integers(P_16x16, P_SKIP + 1, n_mb)[inter]
            planes = picture(rng, 16 * len(first_rows), 16 * mb_width, kind)
            first = np.maximum(first, slices_of.anywhere(rng, n_mb, 0.15))
            rec = [np.clip(p + rng.integers(-9, 10, p.shape), 0, 255).astype(np.uint8) for p in planes]
            both(device, planes, state, first, -3, rec, [(0, n_mb)], given, transform_8x8_mode, 1, 6 if given is None else 7)
            seen.update(state["mb_type"].tolist())
    print("types", seen)
    if kind == "waves":
        assert {I_4x4, I_16x16, I_8x8 if transform_8x8_mode else I_4x4} <= seen


def test_every_mode_is_used(device):  # noqa: F811
    rng = np.random.default_rng(seed := 24)
    print("seed", seed)
    modes4, modes16, chroma = set(), set(), set()
    for k in range(12):
        state = empty_state(36)
        state["qp"][:] = 20 + k
        planes = picture(rng, 96, 96, "waves" if k % 3 else "smooth")
        rec = [np.full_like(p, 55) for p in planes]
        both(device, planes, state, np.zeros(36, np.int32), 0, rec, [(0, 36)])
        modes4.update(state["intra4x4_mode"][state["mb_type"] == I_4x4].ravel().tolist())
        modes16.update(state["intra16x16_mode"][state["mb_type"] == I_16x16].tolist())
        chroma.update(state["intra_chroma_mode"].tolist())
    assert modes4 == set(range(9)) and modes16 == set(range(4)) and chroma == set(range(4))


@pytest.mark.gpu
def test_a_large_picture(device):  # noqa: F811
    """Only on a GPU: rows on many multiprocessors at once, again and again."""
    if is_emulated(device):
        pytest.skip("too long for the emulator")
    rng = np.random.default_rng(64)
    for n in range(10):
        state = empty_state(120 * 68)
        state["qp"][:] = 20 + 2 * n
        if n % 2:
            state["mb_type"][rng.random(120 * 68) < n / 10] = P_SKIP
        planes = picture(rng, 1088, 1920, ("waves", "smooth", "blocks")[n % 3])
        rec = [np.full_like(p, 55) for p in planes]
        slices = slices_of.anywhere(rng, 120 * 68, 0.01 * (n % 4 == 3))
        given = given_modes(rng, 120, slices) if n % 2 else None
        both(device, planes, state, slices, -2, rec, [(0, 120 * 68)], given)
