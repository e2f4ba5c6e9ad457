"""FLAC frames of PCM samples (RFC 9639): fixed predictors, Rice codes in partitions, both channels as middle and side."""

import numpy as np

from .crc import CRC_8, CRC_16

MOST_CHANNELS = 8
_MOST_PARTITIONS = 6  # log2
_LEAST_PARTITION = 64  # samples
BITS = {8: 1, 12: 2, 16: 4, 20: 5, 24: 6}  # 9.1.4
_RATES = {88200: 1, 176400: 2, 192000: 3, 8000: 4, 16000: 5, 22050: 6, 24000: 7, 32000: 8, 44100: 9, 48000: 10,
          96000: 11}  # fmt: skip  # 9.1.2
_SIDES = {8: (0, 3), 9: (3, 1), 10: (2, 3)}  # 9.1.3: what is coded of left, right, middle, side


class FlacEncoder:
    """Frames of up to `block` samples, each of which decodes alone. bits: of a sample, a multiple of 4 from 8 to 24."""

    def __init__(self, rate: int, channels: int, bits: int) -> None:
        self.rate, self.channels, self.bits = rate, channels, bits
        # an eighth of a second at most, so that sound and video interleave
        self.block = 1 << min(12, max(8, (rate // 8).bit_length() - 1))
        self.number = 0  # of the next frame

    def stream_info(self) -> bytes:
        """8.2: STREAMINFO without the sizes of frames, the number of samples and their MD5, which the end would say."""
        fields = self.rate << 44 | self.channels - 1 << 41 | self.bits - 1 << 36
        return self.block.to_bytes(2, "big") * 2 + bytes(6) + fields.to_bytes(8, "big") + bytes(16)

    def frame(self, samples: np.ndarray, number: int) -> bytes:
        """9: frame `number`, from 0. samples: int32[n, channels], n = `block`, but for the last one."""
        assignment, subframes = self._channels(np.ascontiguousarray(samples.T, np.int32))
        body = np.packbits(np.concatenate([_subframe(channel, bits) for channel, bits in subframes]))
        data = self._header(len(samples), assignment, number) + body.tobytes()
        return data + CRC_16(data).to_bytes(2, "big")

    def _header(self, count: int, assignment: int, number: int) -> bytes:
        """9.1: blocks of another size than `block` say it, and rates that are not among the usual ones."""
        usual = count == self.block
        size = self.block.bit_length() - 1 if usual else 7
        code, rate = _rate(self.rate)
        head = bytes((0xFF, 0xF8, size << 4 | code, assignment << 4 | BITS[self.bits] << 1)) + _coded_number(number)
        head += (b"" if usual else (count - 1).to_bytes(2, "big")) + rate
        return head + bytes((CRC_8.of_few(head),))

    def _channels(self, rows: np.ndarray) -> tuple[int, list[tuple[np.ndarray, int]]]:
        """(channel assignment, rows with their bits): of two channels the pair whose second differences are least."""
        if len(rows) != 2:
            return len(rows) - 1, [(row, self.bits) for row in rows]
        left, right = rows
        four = left, right, (left + right) >> 1, left - right
        costs = [int(np.abs(np.diff(row, 2)).sum(dtype=np.int64)) for row in four]
        pairs = {1: (0, 1), **_SIDES}
        best = min(pairs, key=lambda pair: costs[pairs[pair][0]] + costs[pairs[pair][1]])
        return best, [(four[k], self.bits + (k == 3)) for k in pairs[best]]


def _rate(rate: int) -> tuple[int, bytes]:
    """9.1.2, 9.1.7: (code, the rate in thousands, ones or tens where the code says so); code 0: that of STREAMINFO."""
    if rate in _RATES:
        return _RATES[rate], b""
    if rate % 1000 == 0 and rate < 256000:
        return 12, bytes((rate // 1000,))
    if rate < 1 << 16:
        return 13, rate.to_bytes(2, "big")
    return (14, (rate // 10).to_bytes(2, "big")) if rate % 10 == 0 and rate < 655360 else (0, b"")


def _coded_number(number: int) -> bytes:
    """9.1.5: a number as UTF-8 would code it, up to 36 bits."""
    if number < 0x80:
        return bytes((number,))
    tail = []
    room = 6  # bits in the first byte
    while number >= 1 << room:
        tail.append(0x80 | number & 0x3F)
        number >>= 6
        room -= 1
    first = (0xFF << room + 1 & 0xFF) | number
    return bytes((first, *reversed(tail)))


def _subframe(row: np.ndarray, bits: int) -> np.ndarray:
    """9.2: one channel as bits, uint8[...]. row: int32[n], samples of `bits` bits."""
    first = int(row[0])
    if (row == first).all():
        return np.concatenate((_number(0, 8), _number(first, bits)))
    union = int(np.bitwise_or.reduce(row))
    wasted = (union & -union).bit_length() - 1  # 9.2.2: zeros below all samples are not coded
    row, bits = row >> wasted, bits - wasted
    tail = [_number(1, wasted)] if wasted else []
    order, residual = _prediction(row)
    partitions, parameters, size = _partitions(residual, order, len(row))
    if size + order * bits >= len(row) * bits:
        return np.concatenate((_number(1 << 1 | bool(wasted), 8), *tail, _numbers(row, bits)))
    head = _number((8 | order) << 1 | bool(wasted), 8)
    return np.concatenate((head, *tail, _numbers(row[:order], bits), _residual(residual, order, partitions, parameters)))


def _prediction(row: np.ndarray) -> tuple[int, np.ndarray]:
    """9.2.5: (order, residual) of the fixed predictor with the least sum of magnitudes."""
    residuals = [row]
    for _ in range(min(4, len(row) - 1)):
        residuals.append(np.diff(residuals[-1]))
    rest = len(residuals[-1])
    sums = [int(np.abs(residual[-rest:]).sum(dtype=np.int64)) for residual in residuals]
    order = sums.index(min(sums))
    return order, residuals[order]


def _partitions(residual: np.ndarray, order: int, count: int) -> tuple[int, np.ndarray, int]:
    """9.2.7: (log2 of the number of partitions, the Rice parameter of each, bits of the coded residual)."""
    most = 0
    while most < _MOST_PARTITIONS and not count >> most & 1 and count >> most + 1 >= _LEAST_PARTITION:
        most += 1
    folded = np.concatenate((np.zeros(order, np.uint32), _folded(residual))).reshape(1 << most, -1)
    sizes = np.full(1 << most, folded.shape[1])
    sizes[0] -= order
    largest = min(30, int(folded.max()).bit_length())
    costs = np.empty((largest + 1, 1 << most), np.int64)
    for k in range(largest + 1):
        costs[k] = (folded >> np.uint32(k)).sum(axis=1, dtype=np.int64) + (k + 1) * sizes
    best: tuple[int, np.ndarray, int] | None = None
    for log in range(most, -1, -1):
        parameters = costs.argmin(axis=0)
        size = int(costs.min(axis=0).sum()) + (_parameter_bits(parameters) << log) + 6
        if best is None or size < best[2]:
            best = log, parameters, size
        if log:
            costs = costs[:, ::2] + costs[:, 1::2]
    assert best is not None
    return best


def _parameter_bits(parameters: np.ndarray) -> int:
    return 4 if parameters.max() < 15 else 5  # 15 would be an escape code


def _folded(residual: np.ndarray) -> np.ndarray:
    """9.2.7.3: signed numbers as 0, -1, 1, -2, ... in uint32."""
    return ((residual << 1) ^ (residual >> 31)).view(np.uint32)


def _residual(residual: np.ndarray, order: int, log: int, parameters: np.ndarray) -> np.ndarray:
    """9.2.7: the coded residual as bits: quotients in unary, then the low bits, written place by place for all samples."""
    width = _parameter_bits(parameters)
    each = (len(residual) + order) >> log
    firsts = np.maximum(np.arange(1 << log) * each - order, 0)
    values, lows = _folded(residual).astype(np.int64), np.repeat(parameters, each)[order:]
    sizes = (values >> lows) + 1 + lows
    sizes[firsts] += width
    ends = np.cumsum(sizes)
    bits = np.zeros(int(ends[-1]), np.uint8)
    bits[ends - lows - 1] = 1  # behind the quotient
    least = int(lows.min())
    for bit in range(least):
        bits[ends - 1 - bit] = values >> bit & 1
    for bit in range(least, int(lows.max())):
        some = lows > bit
        bits[ends[some] - 1 - bit] = values[some] >> bit & 1
    starts = ends[firsts] - sizes[firsts]
    for bit in range(width):
        bits[starts + bit] = parameters >> width - 1 - bit & 1
    return np.concatenate((_number(width - 4, 2), _number(log, 4), bits))


def _number(value: int, width: int) -> np.ndarray:
    """A number in two's complement as bits."""
    return np.array([value >> bit & 1 for bit in reversed(range(width))], np.uint8)


def _numbers(values: np.ndarray, width: int) -> np.ndarray:
    """Numbers in two's complement as bits, one after another."""
    return (values[:, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.uint8).ravel()
