"""Cyclic redundancy checks of FLAC and Ogg, by NumPy: halves of the data are checked apart and joined, level by level."""

import numpy as np


class Crc:
    """A check that begins with 0 and takes the highest bit of a byte first.

    width: 8, 16 or 32 bits; polynomial: without its highest term.
    """

    def __init__(self, width: int, polynomial: int) -> None:
        self._bytes = width // 8
        mask, top = (1 << width) - 1, 1 << width - 1
        rows = []
        for value in range(256):
            value <<= width - 8
            for _ in range(8):
                value = ((value << 1) ^ (polynomial if value & top else 0)) & mask
            rows.append(value)
        self._of_byte = rows
        self._table = np.array(rows, np.uint32)
        one_byte = [self._after_one(np.arange(256, dtype=np.uint32) << 8 * k, mask, width) for k in range(self._bytes)]
        self._levels = [np.array(one_byte, np.uint32)]  # [level][byte of the check][its value]: the check 2**level bytes on

    def _after_one(self, checks: np.ndarray, mask: int, width: int) -> np.ndarray:
        """Checks when a byte of zeros follows."""
        return ((checks << np.uint32(8)) & np.uint32(mask)) ^ self._table[checks >> np.uint32(width - 8)]

    def of_few(self, data: bytes) -> int:
        """The check of a few bytes, for a width of 8."""
        check = 0
        for byte in data:
            check = self._of_byte[check ^ byte]
        return check

    def __call__(self, data: bytes) -> int:
        """The check of any bytes."""
        checks, level = self._table[np.frombuffer(data, np.uint8)], 0
        while len(checks) > 1:
            if len(checks) & 1:  # zeros in front change nothing
                checks = np.concatenate((np.zeros(1, np.uint32), checks))
            checks = self._on(checks[::2], level) ^ checks[1::2]
            level += 1
        return int(checks[0]) if len(checks) else 0

    def _on(self, checks: np.ndarray, level: int) -> np.ndarray:
        """Checks when 2**level bytes of zeros follow."""
        while len(self._levels) <= level:
            self._levels.append(self._through(self._levels[-1], self._levels[-1]))
        return self._through(self._levels[level], checks)

    def _through(self, tables: np.ndarray, checks: np.ndarray) -> np.ndarray:
        result = tables[0][checks & np.uint32(255)]
        for k in range(1, self._bytes):
            result = result ^ tables[k][(checks >> np.uint32(8 * k)) & np.uint32(255)]
        return result


CRC_8 = Crc(8, 0x07)  # RFC 9639, 9.1.8
CRC_16 = Crc(16, 0x8005)  # RFC 9639, 9.3
CRC_32 = Crc(32, 0x04C11DB7)  # RFC 3533, 6
