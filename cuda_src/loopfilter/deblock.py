"""Deblocking on the GPU: the schedule of a tile's lines, and the launches of deblock.cu.

A tile (2x2 macroblocks) needs, of its own edges and its neighbours', the lines found by walking the filter backwards
from the tile's final samples: which lines wrote a sample that is still needed, and which samples they read. Lines of
one step neither read nor write what another line of the step writes.
"""

from functools import cache

import numpy as np

from ...cpu_simd.bundles import Deblocking, Planes, Quantiser, StrengthData
from ...standard.sample_format import MB_WIDTH_C, SUB_WIDTH_C
from ..runtime.array import DeviceArray, Stream

# What the lines of a tile read, in shared memory: bytes a row, rows, columns and rows before the tile. The last luma row
# decides no sample of the tile: it is there so that no line reads chroma, which another warp writes meanwhile.
LUMA_STRIDE, LUMA_ROWS, LUMA_LEFT, LUMA_TOP = 52, 51, 12, 12
CHROMA_STRIDE, CHROMA_ROWS, CHROMA_LEFT, CHROMA_TOP = 28, 20, 4, 2
TILE = 2  # macroblocks a side: a larger tile has less halo; 2x2 macroblocks fill the steps of a warp
RECORD = 12  # words a macroblock: 32 strengths of 4 bits, thresholds of six classes of edges, 2 unused
OF_LISTS = StrengthData._fields.index("n_ref")  # from this member on: what B frames need
BLOCK_TILES = 4  # a block of threads; two warps each
PITCH = 1 << 10  # stride of sample numbers: more than a row has

# Offsets across an edge (p_i = -1 - i, q_i = i): output: inputs, for bS < 4, bS 4 as well, chroma
_ALL = {-3, -2, -1, 0, 1, 2}
_INNER = {-1: _ALL, 0: _ALL, -2: _ALL - {2}, 1: _ALL - {-3}}
_MB_EDGE = _INNER | {-3: {-4, -3, -2, -1, 0, 1}, 2: {-2, -1, 0, 1, 2, 3}}
_CHROMA = {-1: {-2, -1, 0, 1}, 0: {-2, -1, 0, 1}}

Line = tuple[int, int, int, int, int]  # mx, my relative to the tile; direction (0 vertical edges), edge, line along it


def _flow(n: int, edge: int) -> dict[int, set[int]]:
    return _CHROMA if n == 8 else _INNER if edge else _MB_EDGE


def _sample(n: int, line: Line, offset: int) -> tuple[int, int]:
    mx, my, direction, edge, k = line
    along, across = k, 4 * edge + offset
    return (my * n + across, mx * n + along) if direction else (my * n + along, mx * n + across)


def _number(n: int, line: Line) -> tuple[int, int]:
    """(number of the sample at offset 0, distance to the next one across the edge); numbers are faster than coordinates."""
    y, x = _sample(n, line, 0)
    return PITCH * y + x, PITCH if line[2] else 1


def halo_lines(n: int, tile: int = TILE) -> list[Line]:
    """The lines that decide the final samples of tile x tile macroblocks of n x n samples, in the order of the standard."""
    live = {PITCH * y + x for y in range(tile * n) for x in range(tile * n)}
    lines: list[Line] = []
    for my in range(tile + 1, -3, -1):
        for mx in range(tile + 1, -3, -1):
            for direction in (1, 0):
                for edge in reversed(range(n // 4)):
                    if edge == 0 and (my if direction else mx) == -2:
                        continue
                    flow = _flow(n, edge)
                    for k in reversed(range(n)):
                        line = (mx, my, direction, edge, k)
                        at, step = _number(n, line)
                        needed = [o for o in flow if at + o * step in live]
                        if needed:
                            lines.append(line)
                            live.difference_update([at + o * step for o in needed])
                            live.update([at + i * step for i in set().union(*(flow[o] for o in needed))])
    return lines[::-1]


def steps_of(n: int, lines: list[Line]) -> list[list[Line]]:
    """The lines by the earliest step after all their dependencies, at most 32 a step."""
    read: dict[int, int] = {}
    written: dict[int, int] = {}
    steps: list[list[Line]] = []
    reads = {edge: set().union(*_flow(n, edge).values()) for edge in range(n // 4)}
    for line in lines:
        at, across = _number(n, line)
        inputs = [at + i * across for i in reads[line[3]]]
        outputs = [at + o * across for o in _flow(n, line[3])]
        step = 1 + max([written.get(s, -1) for s in inputs + outputs] + [read.get(s, -1) for s in outputs])
        while step < len(steps) and len(steps[step]) == 32:
            step += 1
        if step == len(steps):
            steps.append([])
        steps[step].append(line)
        for s in inputs:
            read[s] = max(read.get(s, -1), step)
        for s in outputs:
            written[s] = step  # after the earlier write of the same sample
    return steps


def _word(n: int, line: Line, plane: int = 0) -> int:
    mx, my, direction, edge, k = line
    y, x = _sample(n, line, 0)
    if n == 16:
        offset = (y + LUMA_TOP) * LUMA_STRIDE + x + LUMA_LEFT
    else:
        offset = (y + CHROMA_TOP + plane * CHROMA_ROWS) * CHROMA_STRIDE + x + CHROMA_LEFT
    block, luma_edge = (k // 4, edge) if n == 16 else (k // 2, 2 * edge)
    return offset | direction << 12 | block << 13 | luma_edge << 15 | ((TILE + 2) * (my + 1) + mx + 1) << 17


@cache
def schedule(n: int) -> np.ndarray:
    """uint32[steps, 32] as run_schedule reads it; chroma (n = 8) takes both planes."""
    rows = []
    for step in steps_of(n, halo_lines(n)):
        words = [_word(n, line, plane) for line in step for plane in range(1 if n == 16 else 2)]
        for first in range(0, len(words), 32):
            warp = words[first : first + 32]
            rows.append(warp + [0xFFFFFFFF] * (32 - len(warp)))
    return np.array(rows, np.uint32)


def strengths(
    strength_data: StrengthData,
    quantiser: Quantiser,
    deblocking: Deblocking,
    slice_first_mb: DeviceArray,
    mb_width: int,
    row0: int,
    row1: int,
    stream: Stream | None,
) -> DeviceArray:
    """8.7.2.1, 8.7.2.2: uint32[n_mb, 12]: bS of all edges and the thresholds of each class of edge."""
    device = strength_data.mb_type.device
    records = device.scratch("deblock records", (strength_data.mb_type.shape[0], RECORD), np.uint32, stream)
    kernel, of_lists = "deblock_strengths", [strength_data.duplicates]
    if strength_data.n_ref1:
        kernel, of_lists = "deblock_strengths_b", list(strength_data[OF_LISTS:])
    arguments = [*strength_data[:5], *of_lists, quantiser.qp, slice_first_mb, mb_width, quantiser.chroma_offset]
    arguments += [*deblocking, row0, records]
    device.launch("loopfilter/deblock", kernel, (-(-mb_width // 4), row1 - row0), (128,), arguments, stream)
    return records


def deblock(
    rec: Planes,  # before deblocking
    strength_data: StrengthData,
    quantiser: Quantiser,
    deblocking: Deblocking,
    slice_first_mb: DeviceArray,
    row0: int,
    row1: int,
    out: Planes,  # with borders, also of 0 samples: the interior is written
    stream: Stream | None = None,
) -> None:
    """8.7: twin of cpu_simd.loopfilter.deblock.deblock."""
    device = rec.y.device
    height, width = rec.y.shape
    mb_width, mb_height = width // 16, height // 16
    above, below = max(0, row0 - 1), min(mb_height, row1 + 1)
    records = strengths(strength_data, quantiser, deblocking, slice_first_mb, mb_width, above, below, stream)
    luma, chroma = (device.constant(f"deblock schedule {n}", schedule(n)) for n in (16, MB_WIDTH_C))
    arguments = [*rec, records, luma, luma.shape[0], chroma, chroma.shape[0], mb_width, mb_height]
    arguments += [row0, row1, *interiors(out, width)]
    grid = (-(-mb_width // (TILE * BLOCK_TILES)), -(-(row1 - row0) // TILE))
    device.launch("loopfilter/deblock", "deblock_tiles", grid, (64 * BLOCK_TILES,), arguments, stream)


def interiors(out: Planes, width: int) -> list[object]:
    """Arguments of a kernel that writes frames with any border: Y from its first sample, its stride, U, V, their stride."""
    (y, y_stride), (u, c_stride), (v, _) = (
        _interior(plane, samples) for plane, samples in zip(out, (width, *2 * (width // SUB_WIDTH_C,)))
    )
    return [y, y_stride, u, v, c_stride]


def _interior(plane: DeviceArray, width: int) -> tuple[DeviceArray, int]:
    """(view of the array from the first sample of the frame, stride); width: of the frame."""
    stride = plane.shape[1]
    border = (stride - width) // 2
    return DeviceArray(plane.device, plane.ptr + border * stride + border, plane.shape, plane.dtype, plane), stride
