"""CUDA deblocking gives the bits of the CPU: strengths, thresholds, slices, split rows."""

from itertools import pairwise

import numpy as np
import pytest
from h264lite.cpu_simd.bundles import Deblocking, Planes, Quantiser, StrengthData
from h264lite.cpu_simd.loopfilter import deblock as cpu
from h264lite.cuda_src.loopfilter import deblock as cuda

from ..cpu_simd.test_deblock import arguments, random_b_state, random_planes, random_state
from ..cuda_emulator.fixtures import device, is_emulated  # noqa: F401
from ..support import slices as slices_of

KINDS = ("noise", "steps", "bright")


def expected(planes, state, offsets, idc, slice_first_mb):
    out = [np.zeros_like(p) for p in planes]
    rows = 0, planes[0].shape[0] // 16
    cpu.deblock(Planes(*planes), *arguments(state, offsets, idc), slice_first_mb, *rows, Planes(*out))
    return out


def on_gpu(device, planes, state, offsets, idc, slice_first_mb, pad, launch):  # noqa: F811
    """The planes that `launch` writes into arrays with a border, which it leaves as it is."""
    out = [
        device.array((p.shape[0] + 2 * b, p.shape[1] + 2 * b), np.uint8).fill(0x5A)
        for p, b in zip(planes, (pad, pad // 2, pad // 2))
    ]
    rec = [device.upload(p) for p in planes]
    data, quantiser, _ = arguments(state, offsets, idc, device.upload)
    launch(rec, [*data, quantiser.qp], offsets, idc, device.upload(slice_first_mb), out)
    result = []
    for p, o, b in zip(planes, out, (pad, pad // 2, pad // 2)):
        whole = o.get()
        inside = whole[b : b + p.shape[0], b : b + p.shape[1]].copy()
        whole[b : b + p.shape[0], b : b + p.shape[1]] = 0x5A
        assert (whole == 0x5A).all(), "the border was written"
        result.append(inside)
    return result


def by_bands(bands):
    """Launches rows [bands[0], bands[1]), [bands[1], bands[2]), ..."""

    def launch(rec, arrays, offsets, idc, slices, out):
        for row0, row1 in pairwise(bands):
            *chosen, qp = arrays
            quantiser, deblocking = Quantiser(qp, offsets[0]), Deblocking(*offsets[1:], idc)
            cuda.deblock(Planes(*rec), StrengthData(*chosen), quantiser, deblocking, slices, row0, row1, Planes(*out))

    return launch


def compare(got, want):
    for name, a, b in zip("yuv", got, want):
        wrong = np.argwhere(a != b)
        assert len(wrong) == 0, f"plane {name}: {len(wrong)} wrong, first (y, x) = {wrong[0]}"


def frames(kind, make_state=random_state):
    """Small frames: (planes, state, offsets, disable_idc, slice_first_mb) of each."""
    seed = 31
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for mb_width, mb_height, intra, low, high, idc in (
        (5, 4, 0.3, 24, 40, 0),
        (4, 5, 0.0, 0, 51, 0),
        (3, 4, 1.0, 36, 51, 2),
        (1, 3, 0.2, 30, 45, 0),
        (6, 1, 0.2, 30, 45, 0),
        (2, 2, 0.2, 40, 51, 1),
    ):
        state = make_state(rng, mb_width * mb_height, intra, low, high)
        planes = random_planes(rng, 16 * mb_height, 16 * mb_width, kind)
        offsets = (int(rng.integers(-12, 13)), 2 * int(rng.integers(-6, 7)), 2 * int(rng.integers(-6, 7)))
        yield planes, state, offsets, idc, slices_of.anywhere(rng, mb_width * mb_height, 0.2)


def large_frames():
    """Enough macroblocks for what acts through a single +-1; too many for the emulator."""
    rng = np.random.default_rng(32)
    for n in range(20):
        state = random_state(rng, 60 * 34, (0.0, 0.1, 1.0)[n % 3], 24, 45)
        yield random_planes(rng, 16 * 34, 16 * 60, "steps"), state, (0, 0, 0), 0, np.zeros(60 * 34, np.int32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make_state", [random_state, random_b_state])
def test_twin(device, kind, make_state):  # noqa: F811
    for frame in frames(kind, make_state):
        mb_height, want = frame[0][0].shape[0] // 16, expected(*frame)
        for bands in ([0, mb_height], list(range(mb_height + 1))):
            compare(on_gpu(device, *frame, 16, by_bands(bands)), want)


@pytest.mark.gpu
def test_many_frames(device):  # noqa: F811
    if is_emulated(device):
        pytest.skip("too long for the emulator")
    for frame in large_frames():
        compare(on_gpu(device, *frame, 32, by_bands([0, 34])), expected(*frame))


def test_schedule_is_a_valid_order():
    """No line of a step touches what another line of the step writes; of one macroblock as many as in the slice."""
    for n, tile, count in ((16, 1, 285), (8, 1, 64), (16, 2, 801), (8, 2, 188)):
        lines = cuda.halo_lines(n, tile)
        assert len(lines) == count
        steps = cuda.steps_of(n, lines)
        assert sorted(line for step in steps for line in step) == sorted(lines)
        for step in steps:
            for a in step:
                writes = {cuda._sample(n, a, o) for o in cuda._flow(n, a[3])}
                for b in step:
                    if a != b:
                        reads = {cuda._sample(n, b, i) for s in cuda._flow(n, b[3]).values() for i in s}
                        assert not writes & reads


def test_lines_stay_in_their_plane():
    """All samples that lines of a tile read lie in the rows that shared memory has for their plane, needed ones or not."""
    for n, stride, rows in ((16, cuda.LUMA_STRIDE, cuda.LUMA_ROWS), (8, cuda.CHROMA_STRIDE, 2 * cuda.CHROMA_ROWS)):
        for word in cuda.schedule(n)[cuda.schedule(n) != 0xFFFFFFFF].tolist():
            place, across, edge = word & 4095, stride if word >> 12 & 1 else 1, word >> 15 & 3
            flow = cuda._flow(n, edge if n == 16 else edge // 2)
            reads = [place + i * across for i in set().union(*flow.values())]
            assert 0 <= min(reads) and max(reads) < stride * rows
