"""B slices for the slow writers of naive_entropy.py and naive_cabac.py, from 7.3.5 and 9.3 word by word; random B states."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from h264lite.cpu_simd.bundles import Macroblocks
from h264lite.standard import cavlc
from h264lite.standard import macroblock as mbk
from h264lite.standard.tables import B_MB_TYPES

from . import naive
from .naive_cabac import INTRA, Slice
from .naive_entropy import State, _has_8x8_flag, _make_8x8, random_state, se, te, ue

Parts = list[tuple[int, int, int, int]]  # x, y, width, height of partitions in 4x4 blocks

# Table 9-37: mb_type in B slices, and the prefix of intra macroblocks
MB_TYPE_BINS = (
    "0 100 101 110000 110001 110010 110011 110100 110101 110110 110111 111110 1110000 1110001 1110010 1110011 1110100 "
    "1110101 1110110 1110111 1111000 1111001 111111"
).split()
INTRA_BINS = "111101"
SUB_MB_TYPE_BINS = ("0", "100", "101", "11000")  # Table 9-38, of B macroblocks, without partitions below 8x8


@dataclass
class BState(State):
    """A State of a B frame. Arrays in the order of the bundle Macroblocks, then the planes."""

    ref_idx1: np.ndarray = None  # type: ignore[assignment]
    mv1: np.ndarray = None  # type: ignore[assignment]

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (*(getattr(self, name) for name in Macroblocks._fields), self.rec_y, self.rec_u, self.rec_v)

    def lists(self) -> list[tuple[int, np.ndarray, np.ndarray]]:
        """Entries, references and vectors of both lists."""
        return [(self.n_ref, self.ref_idx, self.mv), (self.n_ref1 or 0, self.ref_idx1, self.mv1)]

    @property
    def intra_offset(self) -> int:
        return 23

    def is_direct(self, mb: int, q: int) -> bool:
        """Whether the motion of a quadrant is derived."""
        kind = int(self.mb_type[mb])
        return kind in (mbk.B_SKIP, mbk.B_DIRECT) or (kind == mbk.B_8x8 and self.sub_mb_type[mb, q] == 0)

    def number(self, mb: int) -> int:
        """Table 7-14: mb_type."""
        kind = int(self.mb_type[mb])
        if kind in (mbk.B_DIRECT, mbk.B_8x8):
            return 0 if kind == mbk.B_DIRECT else 22
        modes = [int(self.ref_idx[mb, q] >= 0) + 2 * int(self.ref_idx1[mb, q] >= 0) for q in (0, 3)]
        size = {mbk.B_16x16: (1, 16, 16), mbk.B_16x8: (2, 16, 8), mbk.B_8x16: (2, 8, 16)}[kind]
        return B_MB_TYPES.tolist().index([*size, modes[0], modes[1] if size[0] == 2 else 0])

    def parts(self, mb: int, k: int) -> Parts:
        """The partitions whose reference and vector in list k are in the bits."""
        rectangles = []
        for x, y, w, h in _partitions(int(self.mb_type[mb])):
            q = y // 2 * 2 + x // 2
            if self.lists()[k][1][mb, q] >= 0 and not self.is_direct(mb, q):
                rectangles.append((x, y, w, h))
        return rectangles

    def mvd(self, mb: int, k: int, part: tuple[int, int, int, int], first_mb: int) -> np.ndarray:
        """7.4.5.1: the vector less its prediction."""
        x, y, w, h = part
        _, ref_idx, mv = self.lists()[k]
        ref = int(ref_idx[mb, y // 2 * 2 + x // 2])
        predicted = naive.predict_mv(mb, x, y, w, h, ref, ref_idx, mv, self.mb_width, first_mb)
        return mv[mb, y * 4 + x].astype(int) - np.array([int(p) for p in predicted])

    def inter(self, mb: int, first_mb: int) -> str:
        bits = ue(self.number(mb))
        if self.mb_type[mb] == mbk.B_8x8:
            bits += "".join(ue(sub) for sub in self.sub_mb_type[mb].tolist())
        for k, (n, ref_idx, _) in enumerate(self.lists()):
            if n > 1:
                bits += "".join(te(int(ref_idx[mb, y // 2 * 2 + x // 2]), n - 1) for x, y, _, _ in self.parts(mb, k))
        for k in (0, 1):
            for part in self.parts(mb, k):
                bits += "".join(se(int(value)) for value in self.mvd(mb, k, part, first_mb))
        return bits


def _partitions(kind: int) -> Parts:
    w = 2 if kind in (mbk.B_8x16, mbk.B_8x8) else 4
    h = 2 if kind in (mbk.B_16x8, mbk.B_8x8) else 4
    return [] if kind == mbk.B_DIRECT else [(x, y, w, h) for y in range(0, 4, h) for x in range(0, 4, w)]


def random_b_state(
    rng: np.random.Generator, mb_width: int, mb_height: int, n_ref: int, n_ref1: int, *of_levels: Any, mode_8x8: int = 0
) -> BState:
    """random_state with B macroblocks of all types in place of P; of_levels: its slice_qp, density and largest."""
    state = random_state(rng, mb_width, mb_height, n_ref, *of_levels)
    n = mb_width * mb_height
    fields = {**vars(state), "n_ref1": n_ref1, "transform_8x8_mode": mode_8x8}
    b = BState(**fields, ref_idx1=np.full((n, 4), -1, np.int8), mv1=np.zeros((n, 16, 2), np.int16))
    b.ref_idx[:], b.mv[:] = -1, 0
    for mb, kind in enumerate(state.mb_type.tolist()):
        if kind == mbk.P_SKIP:
            b.mb_type[mb] = mbk.B_SKIP
        elif kind > mbk.LAST_INTRA:
            b.mb_type[mb] = rng.choice([mbk.B_DIRECT, mbk.B_16x16, mbk.B_16x8, mbk.B_8x16, mbk.B_8x8, mbk.B_8x8])
        if kind > mbk.LAST_INTRA:
            random_motion(rng, b, mb)
        if mode_8x8 and rng.integers(0, 2):
            _make_8x8(b, mb)
        assert not b.transform_8x8[mb] or b.mb_type[mb] == mbk.I_8x8 or _has_8x8_flag(b, mb)
    return b


def random_motion(rng: np.random.Generator, b: BState, mb: int) -> None:
    """References and vectors of partitions, each from one list or both; of direct quadrants any."""
    scale = 2 if rng.integers(0, 2) else 2000
    one = b.mb_type[mb] in (mbk.B_SKIP, mbk.B_DIRECT)
    lists = rng.integers(1, 4)
    for x, y, w, h in _partitions(mbk.B_8x8 if one else int(b.mb_type[mb])):
        lists = lists if one else int(rng.integers(1, 4))
        for k, (n, ref_idx, mv) in enumerate(b.lists()):
            if lists >> k & 1:
                ref = rng.integers(0, n) * rng.integers(0, 2)
                ref_idx[mb].reshape(2, 2)[y // 2 : (y + h) // 2, x // 2 : (x + w) // 2] = ref
                mv[mb].reshape(4, 4, 2)[y : y + h, x : x + w] = rng.integers(-scale, scale + 1, 2)
        q = y // 2 * 2 + x // 2
        b.sub_mb_type[mb, q] = lists if rng.integers(0, 3) else 0


class BSlice(Slice):
    """7.3.4: writes the macroblocks of a B slice."""

    s: BState

    def __init__(self, state: BState, *rest: Any) -> None:
        self.differences = np.zeros((2, len(state.mb_type), 16, 2), int)
        super().__init__(state, *rest)

    def skip_flag(self) -> bool:
        inc = sum(kind is not None and kind != mbk.B_SKIP for kind in self.types())
        self.engine.decision(24 + inc, self.kind == mbk.B_SKIP)
        return self.kind != mbk.B_SKIP

    def mb_type(self) -> None:
        """9.3.3.1.2 for the third bin: 5 - b1."""
        bins = INTRA_BINS if self.kind in INTRA else MB_TYPE_BINS[self.s.number(self.mb)]
        inc = sum(kind is not None and kind not in (mbk.B_SKIP, mbk.B_DIRECT) for kind in self.types())
        contexts = [27 + inc, 27 + 3, 27 + 5 - int(bins[1:2] == "1"), *[27 + 5] * 4]
        self.engine.text(bins, *contexts[: len(bins)])
        if self.kind in INTRA:
            self.intra_mb_type(32)

    def motion(self) -> None:
        s, mb = self.s, self.mb
        if self.kind == mbk.B_8x8:
            for sub in s.sub_mb_type[mb].tolist():
                bins = SUB_MB_TYPE_BINS[sub]
                third = 38 if bins[1:2] == "1" else 39  # 9.3.3.1.2: by b1
                self.engine.text(bins, *(36, 37, third, 39, 39)[: len(bins)])
        for k, (n, _, _) in enumerate(s.lists()):
            if n > 1:
                for x, y, _, _ in s.parts(mb, k):
                    self.index(k, x // 2, y // 2)
        for k in (0, 1):
            self.mvd = self.differences[k]
            for part in s.parts(mb, k):
                self.difference(s.mvd(mb, k, part, self.first), *part)

    def index(self, k: int, x: int, y: int) -> None:
        """9.3.3.1.1.6."""
        _, ref_idx, _ = self.s.lists()[k]
        inc = 0
        for weight, block in zip((1, 2), self.blocks_around(x, y, 2)):
            if block is not None and ref_idx[block] > 0 and not self.s.is_direct(*block):
                inc += weight
        self.engine.unary(int(ref_idx[self.mb, y * 2 + x]), [54 + inc, 58, 59])


def derive_direct(b: BState, rows: list[int]) -> None:
    """8.4.1.2.2: sets the motion of direct quadrants, slice by slice; the co-located macroblocks are intra macroblocks."""
    for row0, row1 in zip(rows, rows[1:]):
        first = row0 * b.mb_width
        for mb in range(first, row1 * b.mb_width):
            quadrants = [q for q in range(4) if b.is_direct(mb, q)]
            if not quadrants:
                continue
            motion = []
            for _, ref_idx, mv in b.lists():
                at = [(-1, 0), (0, -1), (4, -1), (-1, -1)]
                neighbours = [naive.neighbour(mb, x, y, ref_idx, mv, b.mb_width, first, (0, 0)) for x, y in at]
                neighbours[2:] = [neighbours[3] if neighbours[2] is None else neighbours[2]]
                ref = min((n[0] for n in neighbours if n is not None and n[0] >= 0), default=-1)
                vector = naive.predict_mv(mb, 0, 0, 4, 4, ref, ref_idx, mv, b.mb_width, first) if ref >= 0 else (0, 0)
                motion.append((ref, vector))
            if motion[0][0] < 0 and motion[1][0] < 0:
                motion = [(0, (0, 0))] * 2
            for (ref, vector), (_, ref_idx, mv) in zip(motion, b.lists()):
                for q in quadrants:
                    ref_idx[mb, q] = ref
                    x, y = q % 2 * 2, q // 2 * 2
                    mv[mb].reshape(4, 4, 2)[y : y + 2, x : x + 2] = vector


ENTROPY_CASES = [  # mb_width, mb_height, n_ref, n_ref1, density, largest level
    (5, 4, 1, 1, 0.3, 40),
    (3, 4, 2, 1, 0.1, cavlc.MAX_LEVEL),
    (5, 3, 1, 3, 0.05, 2),
    (1, 5, 4, 2, 0.5, 5),
    (7, 3, 16, 16, 0.05, 1),
]


def random_slices(case: tuple[Any, ...], mode_8x8: int, seeds: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """(generator, random state, QP, rows of its slices, bits of their headers); the second state ends in a run of B_Skip.

    case: of ENTROPY_CASES; seeds: of the states.
    """
    mb_width, mb_height, n_ref, n_ref1, density, largest = case
    for number, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        qp = int(rng.integers(0, 52))
        state = random_b_state(rng, mb_width, mb_height, n_ref, n_ref1, qp, density, largest, mode_8x8=mode_8x8)
        if number == 1:
            state.mb_type[-3:] = mbk.B_SKIP
        for rows in ([0, mb_height], sorted({0, mb_height // 2, mb_height})):
            yield rng, state, qp, rows, [int(n) for n in rng.integers(0, 100, len(rows) - 1)]
