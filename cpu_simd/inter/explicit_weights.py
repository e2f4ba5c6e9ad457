"""Chooses the explicit weights of a reference (8.4.2.3) from sums of two source frames: for fades, flashes, lights, captions.

Integers only, so that every processor chooses the same.
"""

import numpy as np

from ...jit.kernel import helper, quick_kernel
from ..layout import CHROMA_WEIGHTED, LUMA_WEIGHTED, N_WEIGHTS, SUM_SAMPLES

_LARGEST_LOG2 = 7  # of the denominators
_MOST = 127  # weight, and offset
_GAIN, _GAIN_OF = 3, 4  # weighted differences are at most this share of the unweighted ones
_SAVED_BY_FIRST, _SAVED_BY_SECOND, _SAVED_BY_NONE = 1, 4, 2  # quarters of a sample by which the differences shrink at least:
# less is by motion
_BADLY = 2  # samples: difference of the means of a block
_LEAST_SHARE = 16  # one of so many blocks
_SECOND_LOG2 = 6  # of the denominator where the first weights have none
_LEFT, _LEFT_OF = 3, 5  # most that a second entry may leave of the differences beside one without weights: motion leaves more
_LEVELS = 16  # parts of a sample in means of blocks
_RANGE = 256 * _LEVELS  # of those means
_FAR = 1 << 30  # from all sums


@helper
def _ratio(square, divisor, log2):
    """sqrt(square / divisor) * 2^log2, rounded; 128 or more where it is above 127. Both up to 2^61, the divisor not 0."""
    quotient, rest = square // divisor, square % divisor
    if quotient >> 16:
        return np.int64(2 * _MOST)
    for _ in range(2 * log2 + 2):
        quotient, rest = 2 * quotient, 2 * rest
        if rest >= divisor:
            quotient, rest = quotient + 1, rest - divisor
    root = np.int64(0)
    for bit in range(15, -1, -1):
        more = root + (np.int64(1) << bit)
        root = more if more * more <= quotient else root
    return (root + 1) >> 1


@helper
def _rounded(value, by):
    """value / by, rounded to nearest."""
    return (2 * value + by) // (2 * by)


@helper
def _clipped(offset):
    return max(np.int64(-_MOST - 1), min(np.int64(_MOST), offset))


@helper
def _distance(a, b):
    """|a - b| of two int32 below 2^30, as int32, so that loops of it become vectors of these."""
    difference = np.int32(a - b)
    return max(difference, np.int32(-difference))


@helper
def _least_differences(current, reference, least):
    """For each block the least absolute difference from a block of the reference at most one block away, so that small motion
    does not count; returns the sum of these differences.

    current, least (out): int32[h, w]; reference: int32[h + 2, w + 2], with a border that nothing is near to.
    """
    total = np.int64(0)
    for y in range(current.shape[0]):
        for x in range(current.shape[1]):
            now, nearest = current[y, x], np.int32(_FAR)
            for v in range(3):
                row = y + v
                left, middle = _distance(now, reference[row, x]), _distance(now, reference[row, x + 1])
                nearest = min(min(nearest, _distance(now, reference[row, x + 2])), min(left, middle))
            least[y, x] = nearest
        for x in range(current.shape[1]):
            total += np.int64(least[y, x])
    return total


@helper
def _samples(y, size):
    """Of a block that count: in row y of blocks, all but the last one; in the last one.

    size: columns and lines that count, of the plane and of a block.
    """
    width, lines, columns, rows = size
    high = min(rows, lines - rows * y)
    return columns * high, ((width - 1) % columns + 1) * high


@helper
def _weighted_differences(current, reference, size, log2, weight, offset, scaled, predicted, least):
    """_least_differences from the reference with weight and offset, times 2^log2.

    size: see _samples. Scratch: scaled int32[h, w], predicted int32[h + 2, w + 2] with its border.
    """
    last = current.shape[1] - 1
    for y in range(current.shape[0]):
        full, rest = _samples(y, size)
        for x in range(last + 1):
            scaled[y, x] = current[y, x] << log2
            predicted[y + 1, x + 1] = weight * reference[y, x] + (offset << log2) * full
        predicted[y + 1, last + 1] += (offset << log2) * (rest - full)
    return _least_differences(scaled, predicted, least)


@helper
def _plane_weight(current, reference, totals, size, scaled, predicted, least):
    """(log2, weight, offset) that give a reference the mean and variance of the current plane; (0, 1, 0): they are no better.

    current, reference: int32[h, w]; size: see _samples; totals: int64[5], samples that count; sum and sum of squares of the
    current plane, of the reference plane.
    """
    none = np.int64(0), np.int64(1), np.int64(0)
    count, total, before_total = totals[0], totals[1], totals[3]
    variance, before_variance = count * totals[2] - total * total, count * totals[4] - before_total * before_total
    log2, weight = np.int64(0), np.int64(1)
    if before_variance:
        log2 = np.int64(_LARGEST_LOG2)
        weight = _ratio(variance, before_variance, log2)
        while weight > _MOST and log2:
            log2 -= 1
            weight = _ratio(variance, before_variance, log2)
        while log2 and weight % 2 == 0:
            log2, weight = log2 - 1, weight // 2
    if weight > _MOST:
        return none
    offset = _clipped(_rounded((total << log2) - weight * before_total, count << log2))
    if log2 == 0 and weight == 1 and offset == 0:
        return none
    enough = _SAVED_BY_FIRST * count << log2  # in quarters
    before = _weighted_differences(current, reference, size, 0, 1, 0, scaled, predicted, least) << log2
    if 4 * before < enough:
        return none
    after = _weighted_differences(current, reference, size, log2, weight, offset, scaled, predicted, least)
    if after * _GAIN_OF <= before * _GAIN and 4 * (before - after) >= enough:
        return log2, weight, offset
    return none


@helper
def _mean(total, count):
    """Of the samples of a block, in _LEVELS. Whole blocks, which are nearly all, need no division."""
    return total * _LEVELS // SUM_SAMPLES if count == SUM_SAMPLES else total * _LEVELS // count


@helper
def _add_badly_served(current, reference, columns, y, count, limit, served, missed, sums):
    """Blocks of `columns` in row y, which have `count` samples, see _badly_served; limit: served badly above it."""
    n, total, before_total, squares, before_squares = sums[0], sums[1], sums[2], sums[3], sums[4]
    for x in range(columns[0], columns[1]):
        badly = np.int64(served[y, x] > limit)
        now, before = badly * _mean(np.int64(current[y, x]), count), badly * _mean(np.int64(reference[y, x]), count)
        missed[y, x] = _RANGE + now - before if badly else 2 * _RANGE
        n, total, before_total = n + badly, total + now, before_total + before
        squares, before_squares = squares + now * now, before_squares + before * before
    sums[0], sums[1], sums[2], sums[3], sums[4] = n, total, before_total, squares, before_squares


@helper
def _badly_served(current, reference, size, log2, served, missed, sums, histogram):
    """What the means of the blocks that are served badly miss in the median, in samples; 0 without any.

    sums: int64[5] out, of these blocks: their number, sums of the means now and before in _LEVELS, of their squares. Scratch:
    missed int32[h, w], histogram int32[2 * _RANGE + 1], whose last element is for other blocks.
    """
    height, last = current.shape[0], current.shape[1] - 1
    for k in range(5):
        sums[k] = 0
    for level in range(2 * _RANGE):
        histogram[level] = 0
    for y in range(height):
        full, rest = _samples(y, size)
        _add_badly_served(current, reference, (0, last), y, full, _BADLY * full << log2, served, missed, sums)
        _add_badly_served(current, reference, (last, last + 1), y, rest, _BADLY * rest << log2, served, missed, sums)
        for x in range(last + 1):
            histogram[missed[y, x]] += 1
    level, fewer = np.int64(0), np.int64(histogram[0])
    while sums[0] and fewer <= sums[0] // 2:
        level += 1
        fewer += histogram[level]
    return (level - _RANGE) // _LEVELS if sums[0] else np.int64(0)


@helper
def _left_by_second(current, reference, size, log2, weight, offset, scaled, predicted, least, served):
    """The sum of the differences that a second entry of this weight and offset leaves: each block takes the better entry."""
    height, width = current.shape
    _weighted_differences(current, reference, size, log2, weight, offset, scaled, predicted, least)
    left = np.int64(0)
    for y in range(height):
        for x in range(width):
            left += np.int64(min(served[y, x], least[y, x]))
    return left


@helper
def _missed_by_first(current, reference, size, samples, first, scaled, predicted, served):
    """The sum of the differences that the first entry leaves, times 2^log2 of _second_weights; 0: too few for a second entry.

    first: int32[N_WEIGHTS]; samples: of the plane that count.
    """
    weighted = first[0] & LUMA_WEIGHTED
    log2 = np.int64(first[1]) if weighted else np.int64(_SECOND_LOG2)
    weight, offset = (np.int64(first[2]), np.int64(first[3])) if weighted else (np.int64(1) << log2, np.int64(0))
    missing = _weighted_differences(current, reference, size, log2, weight, offset, scaled, predicted, served)
    return missing if 4 * missing >= (_SAVED_BY_NONE if weighted else _SAVED_BY_SECOND) * samples << log2 else np.int64(0)


@helper
def _second_weights(
    current, reference, size, totals, entries, missing, scaled, predicted, least, served, missed, histogram
):  # fmt: skip
    """Other weights for the blocks that the first entry serves badly, such as captions over a fade, and lights.

    Into entries[1], int32[N_WEIGHTS]; returns whether there are enough of them. None at all, an offset (the median of what
    these blocks miss), or what gives their means the mean and the variance. totals: as in _plane_weight, then sums of these;
    missing, served: of _missed_by_first.
    """
    weighted = entries[0, 0] & LUMA_WEIGHTED
    log2 = np.int64(entries[0, 1]) if weighted else np.int64(_SECOND_LOG2)
    one, unit = np.int64(1) << log2, totals[0] << log2
    offset_missed = _badly_served(current, reference, size, log2, served, missed, totals, histogram)
    n, total, before, squares, before_squares = totals[0], totals[1], totals[2], totals[3], totals[4]
    if n * _LEAST_SHARE < current.size:
        return False
    best_weight = best_offset = np.int64(0)
    least_left = missing
    for trial in range(3):
        weight, offset = one, _clipped(offset_missed)
        if trial == 0:
            offset = np.int64(0)
        elif trial == 2:
            spread = n * before_squares - before * before
            if spread == 0:
                continue
            weight = _ratio(n * squares - total * total, spread, log2)
            offset = _clipped(_rounded((total << log2) - weight * before, _LEVELS * n << log2))
        is_one = weight == one and offset == 0
        if (is_one and not weighted) or (weight > _MOST and not is_one):
            continue
        left = _left_by_second(current, reference, size, log2, weight, offset, scaled, predicted, least, served)
        if not weighted and left * _LEFT_OF > missing * _LEFT:
            continue
        if left < least_left and 4 * (missing - left) >= (_SAVED_BY_NONE if is_one else _SAVED_BY_SECOND) * unit:
            best_weight, best_offset, least_left = weight, offset, left
    if least_left == missing:
        return False
    if best_weight != one or best_offset:
        for k in range(4, N_WEIGHTS):
            entries[1, k] = entries[0, k]
        entries[1, 0], entries[1, 1], entries[1, 2], entries[1, 3] = LUMA_WEIGHTED, log2, best_weight, best_offset
    return True


@helper
def _sums_of_plane(sums, squares, totals, at):
    """Sum and sum of squares of a plane into totals[at], totals[at + 1]; sums, squares: int32[n]."""
    total = all_squares = np.int64(0)
    for block in range(len(sums)):
        total += np.int64(sums[block])
        all_squares += np.int64(squares[block])
    totals[at], totals[at + 1] = total, all_squares


@helper
def _is_weighted(numbers):
    """Whether log2, weight and offset change a sample."""
    return numbers[0] != 0 or numbers[1] != 1 or numbers[2] != 0


@helper
def _set_first(planes, first):
    """The first entry, int32[N_WEIGHTS], by the weights of the planes, int64[3, 3]; it stays empty without any."""
    luma, cb, cr = _is_weighted(planes[0]), _is_weighted(planes[1]), _is_weighted(planes[2])
    if not luma and not cb and not cr:
        return
    log2 = max(planes[1, 0], planes[2, 0])  # the denominator is common
    while max(planes[1, 1] << log2 >> planes[1, 0], planes[2, 1] << log2 >> planes[2, 0]) > _MOST:
        log2 -= 1
    first[0] = LUMA_WEIGHTED * int(luma) + CHROMA_WEIGHTED * int(cb or cr)
    first[1], first[2], first[3], first[4] = planes[0, 0], planes[0, 1], planes[0, 2], log2
    for c in range(1, 3):
        first[3 + 2 * c], first[4 + 2 * c] = planes[c, 1] << log2 >> planes[c, 0], planes[c, 2]


@quick_kernel
def choose_weights(current, reference, width, height, block, step, repeats, entries):
    """Weights of the first entries of RefPicList0, which are one frame, into entries, int32[2, N_WEIGHTS], see layout.py; the
    number of these entries is returned, 0: one entry without weights. repeats: there may be two.

    current, reference: int32[2, n], see block_sums in weighting.py, of a frame of this display size and of its reference;
    block, step: sum_block in layout.py.
    """
    planes, totals, end = np.empty((3, 3), np.int64), np.empty(5, np.int64), current.shape[1]
    entries[:] = 0
    for plane in range(2, -1, -1):  # luma is the last one
        half = min(plane, 1)
        wide, lines, rows = (width + half) >> half, (((height + half) >> half) + step - 1) // step, block // step
        shape = (lines + rows - 1) // rows, (wide + block - 1) // block
        at = end - shape[0] * shape[1]
        now, before = current[0, at:end].reshape(shape), reference[0, at:end].reshape(shape)
        size, scaled, least = (wide, lines, block, rows), np.empty(shape, np.int32), np.empty(shape, np.int32)
        predicted = np.full((shape[0] + 2, shape[1] + 2), _FAR, np.int32)
        totals[0] = wide * lines
        _sums_of_plane(current[0, at:end], current[1, at:end], totals, 1)
        _sums_of_plane(reference[0, at:end], reference[1, at:end], totals, 3)
        planes[plane, 0], planes[plane, 1], planes[plane, 2] = _plane_weight(
            now, before, totals, size, scaled, predicted, least
        )
        end = at
    _set_first(planes, entries[0])
    served = np.empty(shape, np.int32)
    missing = _missed_by_first(now, before, size, totals[0], entries[0], scaled, predicted, served) if repeats else 0
    if missing:
        missed, histogram = np.empty(shape, np.int32), np.empty(2 * _RANGE + 1, np.int32)
        if _second_weights(now, before, size, totals, entries, missing, scaled, predicted, least, served, missed, histogram):
            return 2
    return int(entries[0, 0] != 0)
