"""A slow writer of slice data by CABAC in plain Python, from 7.3.4, 7.3.5 and 9.3 word by word; random states with 8x8."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from h264lite.cpu_simd.bundles import CodingTools, Entries, Macroblocks, Planes, SliceCounts
from h264lite.cpu_simd.layout import CB_DC, CR_DC, ENTRY_BYTES, HEADER_BITS, LUMA_DC
from h264lite.standard import cabac_contexts as tables
from h264lite.standard import macroblock as mbk

from . import naive
from .naive_entropy import SKIPPED, State, random_state

INTRA_NXN = (mbk.I_4x4, mbk.I_8x8)
INTRA = (*INTRA_NXN, mbk.I_16x16, mbk.I_PCM)


class Engine:
    """9.3.4: the encoding engine of Figures 9-28 to 9-34, bit by bit."""

    def __init__(self, init: int, slice_qp: int) -> None:
        self.contexts = tables.initial_states(init, slice_qp).tolist()
        self.bits = ""
        self.bins = 0
        self.restart()

    def restart(self) -> None:
        """9.3.4.1."""
        self.low, self.range, self.first, self.outstanding = 0, 510, True, 0

    def put_bit(self, bit: int) -> None:
        if self.first:
            self.first = False
        else:
            self.bits += str(bit)
        self.bits += str(1 - bit) * self.outstanding
        self.outstanding = 0

    def renormalise(self) -> None:
        while self.range < 256:
            if self.low < 256:
                self.put_bit(0)
            elif self.low >= 512:
                self.low -= 512
                self.put_bit(1)
            else:
                self.low -= 256
                self.outstanding += 1
            self.range *= 2
            self.low *= 2

    def decision(self, context: int, value: int) -> None:
        self.bins += 1
        state, mps = self.contexts[context] >> 1, self.contexts[context] & 1
        lps = int(tables.RANGE_LPS[state][self.range >> 6 & 3])
        self.range -= lps
        if int(value) != mps:
            self.low += self.range
            self.range = lps
            mps = 1 - mps if state == 0 else mps
            state = int(tables.NEXT_LPS[state])
        else:
            state = min(state + 1, 62)
        self.contexts[context] = state << 1 | mps
        self.renormalise()

    def bypass(self, value: int) -> None:
        self.bins += 1
        self.low *= 2
        if value:
            self.low += self.range
        if self.low >= 1024:
            self.put_bit(1)
            self.low -= 1024
        elif self.low < 512:
            self.put_bit(0)
        else:
            self.low -= 512
            self.outstanding += 1

    def terminate(self, value: int) -> None:
        self.bins += 1
        self.range -= 2
        if not value:
            self.renormalise()
            return
        self.low += self.range
        self.range = 2
        self.renormalise()
        self.put_bit(self.low >> 9 & 1)
        self.bits += format(self.low >> 7 & 3 | 1, "02b")

    def text(self, bins: str, *contexts: int) -> None:
        """A bin string, with one ctxIdx a bin."""
        for value, context in zip(bins, contexts, strict=True):
            self.decision(context, int(value))

    def unary(self, value: int, contexts: list[int], most: int = 1 << 20) -> None:
        """9.3.2.1, 9.3.2.2: U or TU; the last context serves all later bins."""
        for k in range(min(value + 1, most)):
            self.decision(contexts[min(k, len(contexts) - 1)], int(k < value))

    def exp_golomb(self, value: int, k: int) -> None:
        """9.3.2.3: the suffix."""
        while True:
            if value >= 1 << k:
                self.bypass(1)
                value -= 1 << k
                k += 1
            else:
                self.bypass(0)
                while k:
                    k -= 1
                    self.bypass(value >> k & 1)
                return


def random_state_8x8(rng: np.random.Generator, *size_and_levels: Any) -> State:
    """A random state in which half of the macroblocks that may have 8x8 blocks have them; arguments of random_state."""
    state = random_state(rng, *size_and_levels)
    for mb, kind in enumerate(state.mb_type.tolist()):
        if rng.integers(0, 2):
            continue
        if kind == mbk.I_4x4:
            state.mb_type[mb] = mbk.I_8x8
            modes = state.intra4x4_mode[mb].reshape(2, 2, 2, 2)
            modes[:] = modes[:, :1, :, :1]
        if kind == mbk.P_8x8 and rng.integers(0, 2):
            state.sub_mb_type[mb] = 0
            vectors = state.mv[mb].reshape(2, 2, 2, 2, 2)
            vectors[:] = vectors[:, :1, :, :1]
        split = kind == mbk.P_8x8 and state.sub_mb_type[mb].any()
        whole = kind in (mbk.P_16x16, mbk.P_16x8, mbk.P_8x16, mbk.P_8x8) and state.cbp[mb] & 15 and not split
        state.transform_8x8[mb] = kind == mbk.I_4x4 or whole
    return state


class Slice:
    """7.3.4: writes the macroblocks of a slice."""

    def __init__(self, state: State, first_mb: int, end_mb: int, slice_qp: int, init: int, mode_8x8: bool) -> None:
        self.s, self.first, self.mode_8x8 = state, first_mb, mode_8x8
        self.engine = Engine(init if state.n_ref else 3, slice_qp)
        self.flags: dict[tuple[int, str, int], int] = {}  # coded_block_flag by macroblock, kind of block, block
        self.mvd = np.zeros((len(state.mb_type), 16, 2), int)
        qp, after = slice_qp, False
        for mb in range(first_mb, end_mb):
            self.mb = mb
            self.kind = int(state.mb_type[mb])
            self.cbp = int(state.cbp[mb])
            coded = self.kind not in (*SKIPPED, mbk.I_PCM) and (self.cbp or self.kind == mbk.I_16x16)
            if not state.n_ref or self.skip_flag():
                self.layer(qp, after)
            after = bool(coded) and int(state.qp[mb]) != qp
            qp = int(state.qp[mb]) if coded else qp
            self.engine.terminate(mb == end_mb - 1)

    def around(self) -> list[int | None]:
        """6.4.9: mbAddrA, mbAddrB."""
        width = self.s.mb_width
        left = self.mb - 1 if self.mb % width else None
        above = self.mb - width if self.mb - width >= self.first else None
        return [left, above]

    def blocks_around(self, x: int, y: int, side: int) -> list[tuple[int, int] | None]:
        """6.4.11: (macroblock, block in raster order) to the left and above of block (x, y) of `side` blocks a row."""
        left, above = self.around()
        a = (self.mb, y * side + x - 1) if x else (left, y * side + side - 1)
        b = (self.mb, (y - 1) * side + x) if y else (above, (side - 1) * side + x)
        return [None if block[0] is None else block for block in (a, b)]  # type: ignore[misc]

    def types(self) -> list[int | None]:
        return [None if n is None else int(self.s.mb_type[n]) for n in self.around()]

    def skip_flag(self) -> bool:
        """mb_skip_flag; whether the macroblock is coded."""
        inc = sum(kind is not None and kind != mbk.P_SKIP for kind in self.types())
        self.engine.decision(11 + inc, self.kind == mbk.P_SKIP)
        return self.kind != mbk.P_SKIP

    def layer(self, previous_qp: int, after_delta: bool) -> None:
        """7.3.5: macroblock_layer()."""
        s, mb, kind, engine = self.s, self.mb, self.kind, self.engine
        self.mb_type()
        if kind == mbk.I_PCM:
            self.pcm()
            return
        if kind in INTRA:
            if kind in INTRA_NXN:
                if self.mode_8x8:
                    self.transform_flag()
                self.intra_modes()
            inc = sum(n is not None and s.mb_type[n] in INTRA[:3] and s.intra_chroma_mode[n] != 0 for n in self.around())
            engine.unary(int(s.intra_chroma_mode[mb]), [64 + inc, 67], 3)
        else:
            self.motion()
        if kind != mbk.I_16x16:
            self.coded_block_pattern()
            split = kind == mbk.P_8x8 and s.sub_mb_type[mb].any()
            if self.cbp & 15 and self.mode_8x8 and kind not in INTRA and not split:
                self.transform_flag()
        if self.cbp or kind == mbk.I_16x16:
            delta = int(s.qp[mb]) - previous_qp
            delta = delta + 52 if delta < -26 else delta - 52 if delta > 25 else delta
            engine.unary(2 * delta - 1 if delta > 0 else -2 * delta, [60 + after_delta, 62, 63])
            self.residual()

    def mb_type(self) -> None:
        """Tables 9-36, 9-37."""
        kind, engine = self.kind, self.engine
        if kind not in INTRA:
            bins = {mbk.P_16x16: "000", mbk.P_16x8: "011", mbk.P_8x16: "010", mbk.P_8x8: "001"}[kind]
            engine.text(bins, 14, 15, 17 if bins[1] == "1" else 16)
        elif self.s.n_ref:
            engine.decision(14, 1)
            self.intra_mb_type(17)
        else:
            inc = sum(other is not None and other not in INTRA_NXN for other in self.types())
            engine.decision(3 + inc, kind not in INTRA_NXN)
            self.intra_mb_type_rest((6, 7, 9, 10), (6, 7, 8, 9, 10))

    def intra_mb_type(self, first: int) -> None:
        """The suffix of mb_type in P and B slices, whose ctxIdxOffset is `first`."""
        self.engine.decision(first, self.kind not in INTRA_NXN)
        self.intra_mb_type_rest([first + k for k in (1, 2, 3, 3)], [first + k for k in (1, 2, 2, 3, 3)])

    def intra_mb_type_rest(self, without_chroma: Sequence[int], with_chroma: Sequence[int]) -> None:
        """Table 9-36 after the first bin; ctxIdx of the bins after the terminating one."""
        kind, engine = self.kind, self.engine
        if kind in INTRA_NXN:
            return
        engine.terminate(kind == mbk.I_PCM)
        if kind == mbk.I_PCM:
            return
        luma, chroma, mode = int(self.cbp & 15 > 0), self.cbp >> 4, int(self.s.intra16x16_mode[self.mb])
        bins = f"{luma}{('0', '10', '11')[chroma]}{mode >> 1}{mode & 1}"
        engine.text(bins, *(with_chroma if chroma else without_chroma))

    def pcm(self) -> None:
        s, mb = self.s, self.mb
        self.engine.bits += "0" * (-len(self.engine.bits) % 8)
        x, y = mb % s.mb_width, mb // s.mb_width
        for plane, side in ((s.rec_y, 16), (s.rec_u, 8), (s.rec_v, 8)):
            samples = plane[y * side : y * side + side, x * side : x * side + side].ravel()
            self.engine.bits += "".join(format(int(v), "08b") for v in samples)
        self.engine.restart()

    def transform_flag(self) -> None:
        inc = sum(n is not None and int(self.s.transform_8x8[n]) for n in self.around())
        self.engine.decision(399 + inc, int(self.s.transform_8x8[self.mb]))

    def intra_modes(self) -> None:
        """8.3.1.1, 8.3.2.1; the modes of an 8x8 block stand in its four 4x4 blocks."""
        is_8x8 = self.kind == mbk.I_8x8
        for k in range(0, 16, 4 if is_8x8 else 1):
            bx, by = k % 4 % 2 + k // 4 % 2 * 2, k % 4 // 2 + k // 8 * 2
            modes = []
            for number, block in enumerate(self.blocks_around(bx, by, 4), 1):
                if block is not None:
                    n, at = block
                    if is_8x8 and self.s.mb_type[n] == mbk.I_4x4:  # 8x8 block, then its 4x4 block 1 (A) or 2 (B)
                        q = at // 8 * 2 + at % 4 // 2
                        at = int(mbk.BLOCK_TO_RASTER[4 * q + number])
                    modes.append(int(self.s.intra4x4_mode[n, at]) if self.s.mb_type[n] in INTRA_NXN else 2)
            predicted = min(modes) if len(modes) == 2 else 2
            mode = int(self.s.intra4x4_mode[self.mb, by * 4 + bx])
            self.engine.decision(68, mode == predicted)
            if mode != predicted:
                rem = mode if mode < predicted else mode - 1
                self.engine.text(format(rem, "03b")[::-1], 69, 69, 69)

    def motion(self) -> None:
        """7.3.5.1, 7.3.5.2."""
        s, mb, kind = self.s, self.mb, self.kind
        w, h = {mbk.P_16x16: (4, 4), mbk.P_16x8: (4, 2), mbk.P_8x16: (2, 4), mbk.P_8x8: (2, 2)}[kind]
        parts = whole = [(x, y, w, h) for y in range(0, 4, h) for x in range(0, 4, w)]
        if kind == mbk.P_8x8:
            parts = []
            for (x, y, _, _), sub in zip(whole, s.sub_mb_type[mb].tolist()):
                bins = ("1", "00", "011", "010")[sub]
                self.engine.text(bins, *(21, 22, 23)[: len(bins)])
                w, h = ((2, 2), (2, 1), (1, 2), (1, 1))[sub]
                parts += [(x + i, y + j, w, h) for j in range(0, 2, h) for i in range(0, 2, w)]
        if s.n_ref > 1:
            for x, y, _, _ in whole:
                self.ref_idx(x // 2, y // 2)
        for part in parts:
            self.vector(*part)

    def ref_idx(self, x: int, y: int) -> None:
        larger = [block is not None and self.s.ref_idx[block] > 0 for block in self.blocks_around(x, y, 2)]
        inc = int(larger[0]) + 2 * int(larger[1])
        self.engine.unary(int(self.s.ref_idx[self.mb, y * 2 + x]), [54 + inc, 58, 59])

    def vector(self, bx: int, by: int, bw: int, bh: int) -> None:
        s, mb = self.s, self.mb
        ref = int(s.ref_idx[mb, by // 2 * 2 + bx // 2])
        predicted = naive.predict_mv(mb, bx, by, bw, bh, ref, s.ref_idx, s.mv, s.mb_width, self.first)
        self.difference(s.mv[mb, by * 4 + bx].astype(int) - np.array([int(p) for p in predicted]), bx, by, bw, bh)

    def difference(self, mvd: np.ndarray, bx: int, by: int, bw: int, bh: int) -> None:
        """9.3.3.1.1.7: mvd of a partition; sets self.mvd in its blocks."""
        engine = self.engine
        blocks = [block for block in self.blocks_around(bx, by, 4) if block is not None]
        for i, base in ((0, 40), (1, 47)):
            total = sum(abs(int(self.mvd[n, at, i])) for n, at in blocks)
            inc = 0 if total < 3 else 1 if total <= 32 else 2
            value = int(mvd[i])
            engine.unary(min(abs(value), 9), [base + inc, base + 3, base + 4, base + 5, base + 6], 9)
            if abs(value) >= 9:
                engine.exp_golomb(abs(value) - 9, 3)
            if value:
                engine.bypass(value < 0)
        self.mvd[self.mb].reshape(4, 4, 2)[by : by + bh, bx : bx + bw] = mvd

    def coded_block_pattern(self) -> None:
        """9.3.3.1.1.4."""
        s, cbp = self.s, self.cbp
        for q in range(4):
            inc = 0
            for weight, block in zip((1, 2), self.blocks_around(q % 2, q // 2, 2)):
                if block is not None and s.mb_type[block[0]] != mbk.I_PCM:
                    skipped = s.mb_type[block[0]] in SKIPPED
                    inc += weight * (skipped or not int(s.cbp[block[0]]) >> block[1] & 1)
            self.engine.decision(73 + inc, cbp >> q & 1)
        chroma = []
        for n in self.around():
            kind = None if n is None else int(s.mb_type[n])
            chroma.append(2 if kind == mbk.I_PCM else 0 if n is None or kind in SKIPPED else int(s.cbp[n]) >> 4)
        self.engine.decision(77 + (chroma[0] > 0) + 2 * (chroma[1] > 0), cbp >> 4 > 0)
        if cbp >> 4:
            self.engine.decision(81 + (chroma[0] == 2) + 2 * (chroma[1] == 2), cbp >> 4 == 2)

    def coded_flag(
        self, category: int, name: str, index: int, blocks: list[tuple[int, int] | None], value: bool
    ) -> bool:
        """9.3.3.1.1.9: coded_block_flag of block `index` of a kind, next to `blocks` (left, above)."""
        inc = 0
        for weight, block in zip((1, 2), blocks):
            if block is None:
                flag = int(self.kind in INTRA)
            elif self.s.mb_type[block[0]] == mbk.I_PCM:
                flag = 1
            else:
                flag = self.flags.get((block[0], name, block[1]), 0)
            inc += weight * flag
        self.engine.decision((85, 89, 93, 97, 101)[category] + inc, value)
        self.flags[self.mb, name, index] = int(value)
        return value

    def block(self, category: int, levels: list[int]) -> None:
        """7.3.5.3.3, 9.3.3.1.3: residual_block_cabac() after coded_block_flag."""
        engine = self.engine
        significant, last = int(tables.SIGNIFICANT_BASE[category]), int(tables.LAST_BASE[category])
        positions = [i for i, value in enumerate(levels) if value]
        for i in range(len(levels) - 1):
            inc_s = inc_l = min(i, 2) if category == 3 else i
            if category == 5:
                inc_s, inc_l = int(tables.SIGNIFICANT_INC_8x8[i]), int(tables.LAST_INC_8x8[i])
            engine.decision(significant + inc_s, levels[i] != 0)
            if levels[i]:
                engine.decision(last + inc_l, i == positions[-1])
                if i == positions[-1]:
                    break
        ones = larger = 0
        for i in reversed(positions):
            base = int(tables.ABS_LEVEL_BASE[category])
            first = base + (0 if larger else min(4, 1 + ones))
            rest = base + 5 + min(4 - (category == 3), larger)
            value = abs(levels[i]) - 1
            engine.unary(min(value, 14), [first, rest], 14)
            if value >= 14:
                engine.exp_golomb(value - 14, 0)
            engine.bypass(levels[i] < 0)
            ones += value == 0
            larger += value > 0

    def residual(self) -> None:
        """7.3.5.3: residual()."""
        s, mb, cbp = self.s, self.mb, self.cbp
        levels = s.levels[mb].tolist()
        i_16x16 = self.kind == mbk.I_16x16
        macroblocks = [None if n is None else (n, 0) for n in self.around()]
        if i_16x16 and self.coded_flag(0, "luma dc", 0, macroblocks, any(levels[LUMA_DC])):
            self.block(0, levels[LUMA_DC])
        for q in range(4):
            if not cbp >> q & 1:
                continue
            if s.transform_8x8[mb]:
                self.block(5, [levels[4 * q + i % 4][i // 4] for i in range(64)])
                for k in range(4 * q, 4 * q + 4):
                    self.flags[mb, "luma", int(mbk.BLOCK_TO_RASTER[k])] = 1
                continue
            for k in range(4 * q, 4 * q + 4):
                raster = int(mbk.BLOCK_TO_RASTER[k])
                around = self.blocks_around(raster % 4, raster // 4, 4)
                without_dc = levels[k][int(i_16x16) :]
                if self.coded_flag(1 if i_16x16 else 2, "luma", raster, around, any(without_dc)):
                    self.block(1 if i_16x16 else 2, without_dc)
        if cbp >> 4:
            for block in (CB_DC, CR_DC):
                if self.coded_flag(3, f"dc {block}", 0, macroblocks, any(levels[block][:4])):
                    self.block(3, levels[block][:4])
        if cbp >> 4 == 2:
            for k in range(16, 24):
                around = self.blocks_around(k % 2, k % 4 // 2, 2)
                if self.coded_flag(4, f"ac {k // 4}", k % 4, around, any(levels[k][1:])):
                    self.block(4, levels[k][1:])


def slices(
    state: State, rows: list[int], headers: list[int], slice_qp: int, init: int, mode_8x8: bool, writer: type = Slice
) -> list[tuple[str, int]]:
    """Each slice, zeros for its header of so many bytes, up to the stop bit; and its bins. writer: Slice, or one like it."""
    texts = []
    for row0, row1, header in zip(rows, rows[1:], headers):
        engine = writer(state, row0 * state.mb_width, row1 * state.mb_width, slice_qp, init, mode_8x8).engine
        texts.append(("0" * 8 * header + engine.bits, engine.bins))
    return texts


def written(
    kernel: Any, state: State, rows: list[int], headers: list[int], slice_qp: int, init: int, mode_8x8: bool,
    upload: Any = np.copy, guard: int = 64,
) -> list[tuple[str, int] | None]:  # fmt: skip
    """The same by a kernel of the stage write_slices, None for -1; see naive_entropy.written."""
    width, height = state.mb_width, rows[-1]
    pitch = (width + 1) * ENTRY_BYTES
    first = np.repeat(np.array(rows[:-1]) * width, np.diff(rows) * width).astype(np.int32)
    params = np.array([slice_qp, init, *[0] * (HEADER_BITS - 2), *(8 * header for header in headers)], np.int32)
    *arrays, y, u, v = (upload(array) for array in state.arrays())
    data = upload(np.full(height * pitch + guard, 0xA5, np.uint8))
    sizes, bins = upload(np.zeros(height, np.int32)), upload(np.zeros(height, np.int32))
    layout = upload(first), upload(width * np.array(rows, np.int32)), upload(params)
    tools = CodingTools(0, int(mode_8x8), 1)
    entries = Entries(state.n_ref, state.n_ref1)
    kernel(*layout, entries, width, Planes(y, u, v), Macroblocks(*arrays), tools, data, SliceCounts(sizes, bins))
    if upload is not np.copy:
        data, sizes, bins = data.get(), sizes.get(), bins.get()
    assert (data[height * pitch :] == 0xA5).all()
    texts: list[tuple[str, int] | None] = []
    for row, n, count in zip(rows[:-1], sizes.tolist(), bins.tolist()):
        bits = np.unpackbits(data[row * pitch :][: -(-n // 8)]) if n >= 0 else None
        assert bits is None or not bits[n:].any()
        texts.append(None if bits is None else ("".join(map(str, bits[:n].tolist())), count))
    return texts
