"""Hostile streams: parameter sets and slice headers written once more with other values, NAL units moved, mixed and cut.

The structures are those of standard/syntax.py: a writer that changes values sees every element they have, with its range.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from h264lite.standard import bits, syntax_pps, syntax_slice, syntax_sps
from h264lite.standard.syntax import Pps, Sps, Weight

# Values for elements whose legal ones lie far apart; others come from the element's range.
FAVOURITES = {
    "profile_idc": (44, 66, 77, 88, 100, 110, 122, 244),
    "level_idc": (9, 10, 11, 13, 20, 30, 40, 51, 52, 62, 255),
    "seq_parameter_set_id": (0, 0, 0, 1, 31),
    "pic_parameter_set_id": (0, 0, 0, 1, 255),
    "pic_size_in_map_units_minus1": (0, 11, 98, 300),
}
HOSTILE = (0, 1, 2, 15, 16, 17, 31, 32, 63, 255, 256, 1054, 1055, 65535, 1 << 24, (1 << 31) - 1, (1 << 32) - 2, -1)


class Unit(NamedTuple):
    """A NAL unit before emulation prevention."""

    kind: int  # nal_unit_type
    ref_idc: int
    rbsp: bytes


def units_of(stream: bytes) -> list[Unit]:
    """The NAL units of a byte stream."""
    return [Unit(u.nal_unit_type, u.nal_ref_idc, u.rbsp()) for u in bits.split_byte_stream(stream)]


def stream_of(units: Sequence[Unit], rng: random.Random) -> bytes:
    """A byte stream; start codes of either length, and zeros after some units."""
    return b"".join(bits.nal_unit(u.kind & 31, u.ref_idc & 3, u.rbsp, rng.random() < 0.7) + bytes(rng.choice((0, 0, 0, 1, 9)))
                    for u in units)  # fmt: skip


class MutatingWriter(bits.BitWriter):
    """Writes elements with some values changed; where one has changed, more of the later ones are.

    A legal value goes into the object too, and what follows from it is written; of others only the bits are.
    """

    def __init__(self, rng: random.Random, rate: float) -> None:
        super().__init__()
        self._rng, self._rate, self._near = rng, rate, 0

    def infer(self, name: str, obj: Any, value: int) -> None:
        setattr(obj, name, value)

    def _element(self, kind: str, n: int, name: str, obj: Any, low: int, high: int, index: int | None) -> int:
        if index is not None and index >= len(getattr(obj, name)):
            getattr(obj, name).append(low)
        old = int(getattr(obj, name) if index is None else getattr(obj, name)[index])
        value = old
        self._near -= 1
        if self._rng.random() < (0.35 if self._near > 0 else self._rate):
            value, self._near = self._other(name, old, low, high), 8
        if kind == "u":
            self.put_u(n, value & ((1 << n) - 1))
        elif kind == "ue":
            self.put_ue(min(bits.MAX_UE, max(0, value)))
        else:
            self.put_se(min(bits.MAX_SE, max(-bits.MAX_SE, value)))
        if not low <= value <= high:
            return old
        if index is None:
            setattr(obj, name, value)
        else:
            getattr(obj, name)[index] = value
        return value

    def _other(self, name: str, old: int, low: int, high: int) -> int:
        rng = self._rng
        if (low, high) == (0, 1):
            return 1 - old
        if name in FAVOURITES and rng.random() < 0.8:
            return rng.choice(FAVOURITES[name])
        ways: tuple[Callable[[], int], ...] = (
            lambda: rng.choice((low, high)),
            lambda: old + rng.choice((-2, -1, 1, 2)),
            lambda: old + rng.choice((-1, 1)),
            lambda: low + round(2 ** rng.uniform(0, math.log2(high - low + 1))) - 1,
            lambda: low + round(2 ** rng.uniform(0, min(6, math.log2(high - low + 1)))) - 1,
            lambda: rng.choice((low - 1, high + 1)),
            lambda: rng.choice(HOSTILE),
        )
        return rng.choice(ways)()


def _rate(rng: random.Random) -> float:
    """How many elements of a structure change: some hold thirty, and one to three are to change."""
    return rng.choice((0.02, 0.05, 0.1))


def changed_sps(rbsp: bytes, rng: random.Random) -> bytes:
    """A sequence parameter set with other values."""
    sps, writer = syntax_sps.parse_sps(rbsp), MutatingWriter(rng, _rate(rng))
    _fill(sps.scaling, rng)
    syntax_sps.seq_parameter_set(writer, sps)
    return writer.to_bytes()


def changed_pps(rbsp: bytes, rng: random.Random) -> bytes:
    """A picture parameter set with other values."""
    pps, writer = syntax_pps.parse_pps(rbsp), MutatingWriter(rng, _rate(rng))
    if pps.second_chroma_qp_index_offset is None and rng.random() < 0.3:
        pps.second_chroma_qp_index_offset = rng.randint(-12, 12)
    _fill(pps.scaling, rng)
    syntax_pps.pic_parameter_set(writer, pps)
    return writer.to_bytes()


def _fill(matrix: syntax_sps.ScalingMatrix, rng: random.Random) -> None:
    """Scaling lists, for when the flag that announces them is set."""
    for i in range(len(matrix.lists), 12):
        values = [rng.choice((1, 8, 16, 40, 255, rng.randint(1, 255))) for _ in range(16 if i < 6 else 64)]
        matrix.lists.append(rng.choice((None, values)))


def changed_slice(unit: Unit, sps_by_id: dict[int, Sps], pps_by_id: dict[int, Pps], rng: random.Random) -> Unit:
    """A slice with other values in its header, before the same slice data."""
    header, sps, pps, position = syntax_slice.parse_slice_header(*unit, sps_by_id, pps_by_id)
    for weights in (header.weights_l0, header.weights_l1):
        while len(weights) < 32:
            y, cb, cr = ([rng.randint(-128, 127), rng.randint(-128, 127)] for _ in range(3))
            weights.append(Weight(rng.randint(0, 1), *y, rng.randint(0, 1), cb, cr))
    if rng.random() < 0.04:
        header.nal_unit_type = rng.choice((bits.NAL_SLICE, bits.NAL_IDR))
        header.nal_ref_idc = rng.randint(0, 3)
    writer = MutatingWriter(rng, _rate(rng))
    syntax_slice._slice_header_start(writer, header)
    syntax_slice.slice_header(writer, header, sps, pps)
    if pps.entropy_coding_mode_flag:
        writer.align(1)
        position += -position % 8
    kept = 8 * len(unit.rbsp) - position
    writer.put_u(kept, int.from_bytes(unit.rbsp, "big") & ((1 << kept) - 1))
    return Unit(header.nal_unit_type, header.nal_ref_idc, writer.to_bytes().rstrip(b"\0"))


def flipped(rbsp: bytes, rng: random.Random) -> bytes:
    """Some bits, or a burst of bytes, changed."""
    data = bytearray(rbsp)
    for _ in range(rng.choice((1, 1, 2, 5)) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    if data and rng.random() < 0.2:
        at = rng.randrange(len(data))
        data[at : at + rng.randint(1, 8)] = rng.randbytes(rng.randint(0, 8))
    return bytes(data)


def _parameter_sets(units: Sequence[Unit]) -> tuple[dict[int, Sps], dict[int, Pps]]:
    """The parameter sets in force after the units."""
    sps_by_id, pps_by_id = {}, {}
    for unit in units:
        if unit.kind == bits.NAL_SPS:
            sps = syntax_sps.parse_sps(unit.rbsp)
            sps_by_id[sps.seq_parameter_set_id] = sps
        elif unit.kind == bits.NAL_PPS:
            pps = syntax_pps.parse_pps(unit.rbsp)
            pps_by_id[pps.pic_parameter_set_id] = pps
    return sps_by_id, pps_by_id


def _any(units: Sequence[Unit], rng: random.Random, *kinds: int) -> int:
    """The index of a unit, of some kinds if any are given."""
    return rng.choice([i for i, unit in enumerate(units) if not kinds or unit.kind in kinds])


def _change_one(units: list[Unit], others: Sequence[Unit], rng: random.Random) -> None:
    """One change of a stream, in place; ValueError or IndexError where it cannot be made."""
    way = rng.random()
    if way < 0.2:
        i = _any(units, rng, bits.NAL_SPS)
        units[i] = units[i]._replace(rbsp=changed_sps(units[i].rbsp, rng))
    elif way < 0.38:
        i = _any(units, rng, bits.NAL_PPS)
        units[i] = units[i]._replace(rbsp=changed_pps(units[i].rbsp, rng))
    elif way < 0.72:
        i = _any(units, rng, bits.NAL_SLICE, bits.NAL_IDR)
        units[i] = changed_slice(units[i], *_parameter_sets(units[:i]), rng)
    elif way < 0.8:
        i = _any(units, rng)
        units[i] = units[i]._replace(rbsp=flipped(units[i].rbsp, rng))
    else:
        i, j = _any(units, rng), _any(units, rng)
        unit = units[i]
        if way < 0.84:
            units[i] = Unit(rng.choice((*range(16), 19, 20, 21, 31)), rng.randrange(4), unit.rbsp)
        elif way < 0.88:
            units.insert(j, units.pop(i))
        elif way < 0.92:
            units.insert(j, unit)
        elif way < 0.95:
            units.insert(j, others[_any(others, rng)])
        elif way < 0.97:
            del units[i]
        else:
            units[i] = unit._replace(rbsp=unit.rbsp[: rng.randrange(len(unit.rbsp) + 1)])


def mutated(streams: Sequence[list[Unit]], rng: random.Random) -> bytes:
    """One of the streams, or two in turn, with one to six changes."""
    units = list(rng.choice(streams))
    others = rng.choice(streams)
    if rng.random() < 0.15:
        units += others
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        try:
            _change_one(units, others, rng)
        except (ValueError, IndexError):  # a structure that an earlier change has broken, or a list without values
            continue
    return stream_of(units, rng)
