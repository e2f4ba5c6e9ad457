"""A slow slice data writer in plain Python, from 7.3.4, 7.3.5, 9.1 and 9.2 word by word, and random states to write."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from h264lite.cpu_simd.bundles import CodingTools, Entries, Macroblocks, Planes, SliceCounts
from h264lite.cpu_simd.layout import CB_DC, CR_DC, ENTRY_BYTES, HEADER_BITS, LUMA_DC
from h264lite.standard import cavlc
from h264lite.standard import macroblock as mbk
from h264lite.standard.tables import CBP_INTER, CBP_INTRA

from . import naive

INTRA = (mbk.I_4x4, mbk.I_16x16, mbk.I_PCM)  # types that the encoder writes
SKIPPED = (mbk.P_SKIP, mbk.B_SKIP)
INTER = (mbk.P_16x16, mbk.P_16x8, mbk.P_8x16, mbk.P_8x8, mbk.P_SKIP)


def u(n: int, value: int) -> str:
    return format(value, f"0{n}b") if n else ""


def ue(value: int) -> str:
    zeros = (value + 1).bit_length() - 1
    return "0" * zeros + format(value + 1, "b")


def se(value: int) -> str:
    return ue(2 * value - 1 if value > 0 else -2 * value)


def te(value: int, largest: int) -> str:
    return ue(value) if largest > 1 else u(1, 1 - value)


def code(table: np.ndarray, *index: int) -> str:
    length, value = (int(x) for x in table[index])
    assert length, f"no code at {index}"
    return u(length, value)


def level(level_code: int, suffix_length: int) -> str:
    """9.2.2.1 read backwards: the prefix and suffix from which the clause derives level_code."""
    for level_prefix in range(16):
        suffix_size = suffix_length
        if level_prefix == 14 and suffix_length == 0:
            suffix_size = 4
        if level_prefix == 15:
            suffix_size = 12
        base = level_prefix << suffix_length
        if level_prefix == 15 and suffix_length == 0:
            base += 15
        if base <= level_code < base + (1 << suffix_size):
            return "0" * level_prefix + "1" + u(suffix_size, level_code - base)
    raise ValueError(f"levelCode {level_code} needs a longer prefix")


def residual_block(levels: list[int], nc: int) -> str:
    """7.3.5.3.2: residual_block_cavlc(); levels in scan order, as many as maxNumCoeff."""
    nc_class = cavlc.NC_CLASS_CHROMA_DC if nc < 0 else int(cavlc.NC_CLASS[nc])
    positions = [i for i, value in enumerate(levels) if value]
    values = [levels[i] for i in reversed(positions)]
    total = len(values)
    ones = 0
    while ones < min(3, total) and abs(values[ones]) == 1:
        ones += 1
    bits = code(cavlc.COEFF_TOKEN, nc_class, total, ones)
    if total == 0:
        return bits
    bits += "".join("1" if value < 0 else "0" for value in values[:ones])
    suffix_length = 1 if total > 10 and ones < 3 else 0
    for i, value in enumerate(values[ones:]):
        level_code = 2 * value - 2 if value > 0 else -2 * value - 1
        if i == 0 and ones < 3:
            level_code -= 2
        bits += level(level_code, suffix_length)
        if suffix_length == 0:
            suffix_length = 1
        if abs(value) > (3 << (suffix_length - 1)) and suffix_length < 6:
            suffix_length += 1
    zeros_left = positions[-1] + 1 - total
    if total < len(levels):
        table = cavlc.TOTAL_ZEROS_CHROMA_DC if len(levels) == 4 else cavlc.TOTAL_ZEROS
        bits += code(table, total, zeros_left)
    for k in range(total - 1, 0, -1):
        if zeros_left <= 0:
            break
        run = positions[k] - positions[k - 1] - 1
        bits += code(cavlc.RUN_BEFORE, min(zeros_left, 7), run)
        zeros_left -= run
    return bits


@dataclass
class State:
    """The macroblock arrays of a picture, as in scheduler/frames/frame.py."""

    mb_width: int
    n_ref: int
    mb_type: np.ndarray
    sub_mb_type: np.ndarray
    ref_idx: np.ndarray
    mv: np.ndarray
    intra4x4_mode: np.ndarray
    intra16x16_mode: np.ndarray
    intra_chroma_mode: np.ndarray
    cbp: np.ndarray
    qp: np.ndarray
    levels: np.ndarray
    total_coeff: np.ndarray
    transform_8x8: np.ndarray
    rec_y: np.ndarray
    rec_u: np.ndarray
    rec_v: np.ndarray
    transform_8x8_mode: int = 0
    n_ref1: int | None = None  # as write_slices has it; see naive_b.BState

    def inter(self, mb: int, first_mb: int) -> str:
        """mb_type, sub_mb_type, ref_idx and mvd of an inter macroblock."""
        return _inter(self, mb, first_mb)

    @property
    def intra_offset(self) -> int:
        """mb_type of I_NxN."""
        return 5 if self.n_ref else 0

    def arrays(self) -> tuple[np.ndarray, ...]:
        return tuple(value for value in vars(self).values() if isinstance(value, np.ndarray))


def random_state(
    rng: np.random.Generator, mb_width: int, mb_height: int, n_ref: int, slice_qp: int, density: float, largest: int,
    transform_8x8_mode: int = 0,
) -> State:  # fmt: skip
    """A picture of random legal macroblocks of all types; density and largest are those of the levels."""
    n = mb_width * mb_height
    planes = [rng.integers(0, 256, (s * mb_height, s * mb_width), np.uint8) for s in (16, 8, 8)]
    state = State(
        mb_width,
        n_ref,
        rng.choice((*INTRA, *INTER) if n_ref else INTRA, n).astype(np.uint8),
        rng.integers(0, 4, (n, 4)).astype(np.uint8),
        np.full((n, 4), -1, np.int8),
        np.zeros((n, 16, 2), np.int16),
        np.full((n, 16), 2, np.int8),
        rng.integers(0, 4, n).astype(np.uint8),
        rng.integers(0, 4, n).astype(np.uint8),
        np.zeros(n, np.uint8),
        np.zeros(n, np.uint8),
        np.zeros((n, 27, 16), np.int16),
        np.zeros((n, 24), np.uint8),
        np.zeros(n, np.uint8),
        *planes,
        transform_8x8_mode,
    )
    qp = slice_qp
    for mb in range(n):
        kind = state.mb_type[mb]
        if kind in INTER:
            _random_vectors(rng, state, mb)
        if kind == mbk.I_4x4:
            state.intra4x4_mode[mb] = rng.integers(0, 9, 16)
        if kind == mbk.I_PCM:
            state.total_coeff[mb] = 16
        elif kind != mbk.P_SKIP:
            _random_levels(rng, state, mb, density, largest)
            if state.cbp[mb] or kind == mbk.I_16x16:
                qp = int(rng.integers(0, 52))
        state.qp[mb] = qp
        if transform_8x8_mode and rng.integers(0, 2):
            _make_8x8(state, mb)
    return state


def _make_8x8(state: State, mb: int) -> None:
    """Turns I_4x4 into I_8x8, and an inter macroblock with luma levels into one of 8x8 blocks where the syntax allows it."""
    if state.mb_type[mb] == mbk.I_4x4:
        state.mb_type[mb] = mbk.I_8x8
        state.intra4x4_mode[mb] = np.kron(state.intra4x4_mode[mb].reshape(4, 4)[::2, ::2], np.ones((2, 2), np.int8)).ravel()
    elif not _has_8x8_flag(state, mb):
        return
    state.transform_8x8[mb] = 1


def _has_8x8_flag(state: State, mb: int) -> bool:
    """7.3.5: of an inter macroblock, if transform_8x8_mode_flag is 1."""
    whole = state.mb_type[mb] != mbk.P_8x8 or not state.sub_mb_type[mb].any()
    return state.mb_type[mb] > mbk.LAST_INTRA and bool(state.cbp[mb] & 15) and bool(whole)


def _random_vectors(rng, state: State, mb: int) -> None:
    kind = state.mb_type[mb]
    shape = {mbk.P_16x8: (2, 1), mbk.P_8x16: (1, 2), mbk.P_8x8: (2, 2)}.get(int(kind), (1, 1))
    ref = rng.integers(0, state.n_ref, shape) * rng.integers(0, 2)
    scale = 1 if rng.integers(0, 2) else 2000
    ref = np.zeros_like(ref) if kind == mbk.P_SKIP else ref
    state.ref_idx[mb] = np.broadcast_to(ref, (2, 2)).ravel()
    vectors = np.zeros((4, 4, 2), np.int16)
    vectors.reshape(2, 2, 2, 2, 2)[:] = rng.integers(-scale, scale + 1, (*shape, 2)).reshape(shape[0], 1, shape[1], 1, 2)
    if kind == mbk.P_8x8:
        for q in range(4):
            split = {0: (1, 1), 1: (2, 1), 2: (1, 2), 3: (2, 2)}[int(state.sub_mb_type[mb, q])]
            quadrant = vectors[2 * (q // 2) : 2 * (q // 2) + 2, 2 * (q % 2) : 2 * (q % 2) + 2]
            quadrant[:] = rng.integers(-scale, scale + 1, (*split, 2))
    state.mv[mb] = vectors.reshape(16, 2)


def random_levels(rng: np.random.Generator, n: int, density: float, largest: int) -> np.ndarray:
    """n levels, `density` of them not 0; small ones, large ones, or the largest."""
    size = [1, 3, 40, largest][rng.integers(0, 4)]
    values = rng.integers(1, min(size, largest) + 1, n) * rng.choice([-1, 1], n)
    return values * (rng.random(n) < density)


def _random_levels(rng, state: State, mb: int, density: float, largest: int) -> None:
    levels = state.levels[mb]
    i_16x16 = state.mb_type[mb] == mbk.I_16x16
    luma = 0
    for q in range(4):
        if rng.random() < 0.7:
            for k in range(4 * q, 4 * q + 4):
                first = 1 if i_16x16 else 0
                levels[k, first:] = random_levels(rng, 16 - first, density * rng.random() * 2, largest)
            luma |= int(levels[4 * q : 4 * q + 4].any()) << q
    if i_16x16:
        luma = 15 if luma else 0
        levels[LUMA_DC] = random_levels(rng, 16, density, largest)
    chroma = int(rng.integers(0, 3))
    if chroma:
        levels[CB_DC : CR_DC + 1, :4] = random_levels(rng, 8, density, largest).reshape(2, 4)
    if chroma == 2:
        for k in range(16, 24):
            levels[k, 1:] = random_levels(rng, 15, density, largest)
    state.cbp[mb] = luma | chroma << 4
    counts = (levels[:24] != 0).sum(1)
    state.total_coeff[mb, mbk.BLOCK_TO_RASTER] = counts[:16]
    state.total_coeff[mb, 16:] = counts[16:]


def _nc(state: State, mb: int, first_mb: int, plane: int, bx: int, by: int) -> int:
    """9.2.1: nC of block (bx, by) of plane 0 (luma), 1 (Cb), 2 (Cr)."""
    side = 2 if plane else 4
    base = (0, 16, 20)[plane]
    column, row = mb % state.mb_width, mb // state.mb_width
    counts = []
    for x, y in ((column * side + bx - 1, row * side + by), (column * side + bx, row * side + by - 1)):
        n = y // side * state.mb_width + x // side
        if x >= 0 and y >= 0 and n >= first_mb:
            counts.append(int(state.total_coeff[n, base + y % side * side + x % side]))
    return (sum(counts) + 1) // 2 if len(counts) == 2 else sum(counts)


def _residual(state: State, mb: int, first_mb: int) -> str:
    levels = state.levels[mb].tolist()
    i_16x16 = state.mb_type[mb] == mbk.I_16x16
    cbp = int(state.cbp[mb])
    bits = residual_block(levels[LUMA_DC], _nc(state, mb, first_mb, 0, 0, 0)) if i_16x16 else ""
    for k in range(16):
        if cbp & 1 << k // 4:
            bx, by = k % 4 % 2 + k // 4 % 2 * 2, k % 4 // 2 + k // 8 * 2
            bits += residual_block(levels[k][int(i_16x16) :], _nc(state, mb, first_mb, 0, bx, by))
    if cbp >> 4:
        bits += residual_block(levels[CB_DC][:4], -1) + residual_block(levels[CR_DC][:4], -1)
    if cbp >> 4 == 2:
        for k in range(16, 24):
            bits += residual_block(levels[k][1:], _nc(state, mb, first_mb, 1 + (k - 16) // 4, k % 2, k % 4 // 2))
    return bits


def _intra4x4_modes(state: State, mb: int, first_mb: int) -> str:
    bits = ""
    column, row = mb % state.mb_width, mb // state.mb_width
    for k in range(0, 16, 4 if state.transform_8x8[mb] else 1):
        bx, by = k % 4 % 2 + k // 4 % 2 * 2, k % 4 // 2 + k // 8 * 2
        modes = []
        for x, y in ((column * 4 + bx - 1, row * 4 + by), (column * 4 + bx, row * 4 + by - 1)):
            n = y // 4 * state.mb_width + x // 4
            if x >= 0 and y >= 0 and n >= first_mb:
                modes.append(int(state.intra4x4_mode[n, y % 4 * 4 + x % 4]))
        predicted = min(modes) if len(modes) == 2 else 2
        mode = int(state.intra4x4_mode[mb, by * 4 + bx])
        bits += "1" if mode == predicted else "0" + u(3, mode if mode < predicted else mode - 1)
    return bits


def _inter(state: State, mb: int, first_mb: int) -> str:
    kind = int(state.mb_type[mb])
    last_ref = state.n_ref - 1
    refs = state.ref_idx[mb].tolist()

    def mvd(bx, by, bw, bh):
        ref = refs[by // 2 * 2 + bx // 2]
        predicted = naive.predict_mv(mb, bx, by, bw, bh, ref, state.ref_idx, state.mv, state.mb_width, first_mb)
        vector = state.mv[mb, by * 4 + bx].tolist()
        return "".join(se(vector[i] - int(predicted[i])) for i in (0, 1))

    if kind == mbk.P_8x8:
        ref0 = last_ref > 0 and not any(refs)
        subs = state.sub_mb_type[mb].tolist()
        bits = ue(4 if ref0 else 3) + "".join(ue(sub) for sub in subs)
        if last_ref > 0 and not ref0:
            bits += "".join(te(ref, last_ref) for ref in refs)
        for q, sub in enumerate(subs):
            w, h = ((2, 2), (2, 1), (1, 2), (1, 1))[sub]
            for y in range(0, 2, h):
                for x in range(0, 2, w):
                    bits += mvd(q % 2 * 2 + x, q // 2 * 2 + y, w, h)
        return bits
    parts = {
        mbk.P_16x16: [(0, 0, 4, 4)],
        mbk.P_16x8: [(0, 0, 4, 2), (0, 2, 4, 2)],
        mbk.P_8x16: [(0, 0, 2, 4), (2, 0, 2, 4)],
    }[kind]
    bits = ue(kind - mbk.P_16x16)
    if last_ref > 0:
        bits += "".join(te(refs[by // 2 * 2 + bx // 2], last_ref) for bx, by, _, _ in parts)
    return bits + "".join(mvd(*part) for part in parts)


def slice_data(state: State, first_mb: int, end_mb: int, slice_qp: int, position: int) -> tuple[str, list[int]]:
    """7.3.4 with trailing bits, for data that starts at bit `position`; and the bits of each macroblock_layer()."""
    bits, qp, skipped = "", slice_qp, 0
    sizes = []
    for mb in range(first_mb, end_mb):
        kind = int(state.mb_type[mb])
        if kind in SKIPPED:
            skipped += 1
            sizes.append(0)
            continue
        if state.n_ref:
            bits += ue(skipped)
            skipped = 0
        start = len(bits)
        cbp = int(state.cbp[mb])
        offset = state.intra_offset
        if kind == mbk.I_PCM:
            bits += ue(offset + 25)
            bits += "0" * (-(position + len(bits)) % 8)
            x, y = mb % state.mb_width, mb // state.mb_width
            for plane, s in ((state.rec_y, 16), (state.rec_u, 8), (state.rec_v, 8)):
                bits += "".join(u(8, int(v)) for v in plane[y * s : y * s + s, x * s : x * s + s].ravel())
            sizes.append(len(bits) - start)
            continue
        chroma_mode = ue(int(state.intra_chroma_mode[mb]))
        if kind in (mbk.I_4x4, mbk.I_8x8):
            bits += ue(offset) + u(state.transform_8x8_mode, int(state.transform_8x8[mb]))
            bits += _intra4x4_modes(state, mb, first_mb) + chroma_mode
            bits += ue(CBP_INTRA.tolist().index(cbp))
        elif kind == mbk.I_16x16:
            name = 1 + int(state.intra16x16_mode[mb]) + 4 * (cbp >> 4) + (12 if cbp & 15 else 0)
            bits += ue(offset + name) + chroma_mode
        else:
            bits += state.inter(mb, first_mb) + ue(CBP_INTER.tolist().index(cbp))
            if state.transform_8x8_mode and _has_8x8_flag(state, mb):
                bits += u(1, int(state.transform_8x8[mb]))
        if cbp or kind == mbk.I_16x16:
            delta = int(state.qp[mb]) - qp
            bits += se(delta + 52 if delta < -26 else delta - 52 if delta > 25 else delta)
            qp = int(state.qp[mb])
            bits += _residual(state, mb, first_mb)
        sizes.append(len(bits) - start)
    if skipped:
        bits += ue(skipped)
    bits += "1"
    return bits + "0" * (-(position + len(bits)) % 8), sizes


def slices(state: State, rows: list[int], headers: list[int], slice_qp: int) -> list[str | None]:
    """Each slice, zeros for its header, up to the stop bit; None: a macroblock takes more than ENTRY_BYTES."""
    texts: list[str | None] = []
    for row0, row1, header in zip(rows, rows[1:], headers):
        first, end = row0 * state.mb_width, row1 * state.mb_width
        text, sizes = slice_data(state, first, end, slice_qp, header)
        too_long, skipped = False, 0
        for kind, size in zip(state.mb_type[first:end].tolist(), sizes):
            skipped += 1
            if kind not in SKIPPED:
                too_long |= size + (len(ue(skipped - 1)) if state.n_ref else 0) > 8 * ENTRY_BYTES
                skipped = 0
        texts.append(None if too_long else "0" * header + text.rstrip("0"))
    return texts


def written(
    kernel: Any, state: State, rows: list[int], headers: list[int], slice_qp: int, upload: Any = np.copy, guard: int = 64
) -> list[str | None]:
    """The same by a kernel of the stage write_slices; upload: makes its arrays. It must leave `guard` bytes at the end."""
    width, height = state.mb_width, rows[-1]
    pitch = (width + 1) * ENTRY_BYTES
    first = np.repeat(np.array(rows[:-1]) * width, np.diff(rows) * width).astype(np.int32)
    params = np.array([slice_qp, *[0] * (HEADER_BITS - 1), *headers], np.int32)
    *arrays, y, u, v = (upload(array) for array in state.arrays())
    data, sizes = upload(np.full(height * pitch + guard, 0xA5, np.uint8)), upload(np.zeros(height, np.int32))
    layout = upload(first), upload(width * np.array(rows, np.int32)), upload(params)
    bins = upload(np.zeros(height, np.int32))
    tools = CodingTools(0, state.transform_8x8_mode, 0)
    entries = Entries(state.n_ref, state.n_ref1)
    kernel(*layout, entries, width, Planes(y, u, v), Macroblocks(*arrays), tools, data, SliceCounts(sizes, bins))
    if upload is not np.copy:
        data, sizes = data.get(), sizes.get()
    assert (data[height * pitch :] == 0xA5).all()
    bits = [np.unpackbits(data[row * pitch :][: -(-n // 8)])[:n] for row, n in zip(rows[:-1], sizes.tolist())]
    return [None if n < 0 else "".join(map(str, bits_of_slice.tolist())) for bits_of_slice, n in zip(bits, sizes.tolist())]
