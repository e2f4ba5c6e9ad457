"""The deblocking filter as 8.7 describes it: plain Python, sample by sample, macroblock by macroblock."""

import numpy as np
from h264lite.standard import tables
from h264lite.standard.macroblock import I_PCM, LAST_INTRA


def clip3(low, high, value):
    return low if value < low else high if value > high else value


def has_levels(state, mb, block):
    """8.7.2.1: whether the 4x4 block, or the 8x8 block that contains it, has levels."""
    if not state["transform_8x8"][mb]:
        return state["total_coeff"][mb, block] != 0
    x, y = block % 4 // 2 * 2, block // 8 * 2
    return any(state["total_coeff"][mb, 4 * (y + j) + x + i] for j in range(2) for i in range(2))


def boundary_strength(state, mb_p, block_p, mb_q, block_q, mb_edge):
    """8.7.2.1 for progressive frames; blocks in raster order. Of B slices `state` has the lists as `slots` of both."""
    if state["mb_type"][mb_p] <= LAST_INTRA or state["mb_type"][mb_q] <= LAST_INTRA:
        return 4 if mb_edge else 3
    if has_levels(state, mb_p, block_p) or has_levels(state, mb_q, block_q):
        return 2
    quadrant = [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    if "slots" in state:
        return int(moved_in_lists(state, [(mb_p, block_p), (mb_q, block_q)], quadrant))
    entries = (state["ref_idx"][mb, quadrant[block]] for mb, block in ((mb_p, block_p), (mb_q, block_q)))
    if len({max(int(entry), state["duplicates"]) for entry in entries}) == 2:
        return 1
    difference = state["mv"][mb_p, block_p].astype(int) - state["mv"][mb_q, block_q].astype(int)
    return int(max(abs(difference)) >= 4)


def moved_in_lists(state, blocks, quadrant):
    """8.7.2.1 for B slices: whether references or vectors of two blocks differ."""
    of_blocks = []  # of each block: (frame, vector) of each list that it uses
    for mb, block in blocks:
        refs = [int(state[name][mb, quadrant[block]]) for name in ("ref_idx", "ref_idx1")]
        vectors = [state[name][mb, block].astype(int).tolist() for name in ("mv", "mv1")]
        of_blocks.append([(int(state["slots"][n][ref]), vectors[n]) for n, ref in enumerate(refs) if ref >= 0])
    p, q = of_blocks
    if sorted(frame for frame, _ in p) != sorted(frame for frame, _ in q):
        return True
    pairings = [list(zip(p, q)), list(zip(p, q[::-1]))]  # which vectors refer to the same frame
    same = [pairing for pairing in pairings if all(one[0] == other[0] for one, other in pairing)]
    apart = [any(abs(a - b) >= 4 for one, other in pairing for a, b in zip(one[1], other[1])) for pairing in same]
    return all(apart)


def filter_line(p, q, strength, qp_average, offset_a, offset_b, chroma):
    """8.7.2.2 - 8.7.2.4: p, q lists of the samples on both sides, nearest first; returns new lists."""
    index_a = clip3(0, 51, qp_average + offset_a)
    index_b = clip3(0, 51, qp_average + offset_b)
    alpha, beta = int(tables.ALPHA[index_a]), int(tables.BETA[index_b])
    if not (strength and abs(p[0] - q[0]) < alpha and abs(p[1] - p[0]) < beta and abs(q[1] - q[0]) < beta):
        return p, q
    new_p, new_q = list(p), list(q)
    ap = abs(p[2] - p[0]) if not chroma else 0
    aq = abs(q[2] - q[0]) if not chroma else 0
    if strength < 4:
        tc0 = int(tables.TC0[strength, index_a])
        tc = tc0 + 1 if chroma else tc0 + (ap < beta) + (aq < beta)
        delta = clip3(-tc, tc, (((q[0] - p[0]) << 2) + (p[1] - q[1]) + 4) >> 3)
        new_p[0] = clip3(0, 255, p[0] + delta)
        new_q[0] = clip3(0, 255, q[0] - delta)
        if not chroma and ap < beta:
            new_p[1] = p[1] + clip3(-tc0, tc0, (p[2] + ((p[0] + q[0] + 1) >> 1) - (p[1] << 1)) >> 1)
        if not chroma and aq < beta:
            new_q[1] = q[1] + clip3(-tc0, tc0, (q[2] + ((p[0] + q[0] + 1) >> 1) - (q[1] << 1)) >> 1)
        return new_p, new_q
    for a, b, new, near in ((p, q, new_p, ap), (q, p, new_q, aq)):
        if not chroma and near < beta and abs(p[0] - q[0]) < ((alpha >> 2) + 2):
            new[0] = (a[2] + 2 * a[1] + 2 * a[0] + 2 * b[0] + b[1] + 4) >> 3
            new[1] = (a[2] + a[1] + a[0] + b[0] + 2) >> 2
            new[2] = (2 * a[3] + 3 * a[2] + a[1] + a[0] + b[0] + 4) >> 3
        else:
            new[0] = (2 * a[1] + a[0] + b[1] + 2) >> 2
    return new_p, new_q


def deblock_picture(y, u, v, state, chroma_qp_offset, offset_a, offset_b, idc, slice_first_mb):
    """8.7: the whole picture in raster order; returns new planes."""
    planes = [plane.astype(int) for plane in (y, u, v)]
    if idc == 1:
        return [plane.astype(np.uint8) for plane in planes]
    mb_width, mb_height = y.shape[1] // 16, y.shape[0] // 16

    def luma_qp(mb):
        return 0 if state["mb_type"][mb] == I_PCM else int(state["qp"][mb])

    def plane_qp(mb, chroma):
        qp = luma_qp(mb)
        return int(tables.QP_CHROMA[clip3(0, 51, qp + chroma_qp_offset)]) if chroma else qp

    for mb in range(mb_width * mb_height):
        mx, my = mb % mb_width, mb // mb_width
        for c, plane in enumerate(planes):
            size = 8 if c else 16
            for vertical in (True, False):
                for edge in range(0, size, 4):
                    mb_p = mb
                    if edge == 0:
                        if (vertical and mx == 0) or (not vertical and my == 0):
                            continue
                        mb_p = mb - 1 if vertical else mb - mb_width
                        if idc == 2 and mb_p < slice_first_mb[mb]:
                            continue
                    if c == 0 and edge % 8 and state["transform_8x8"][mb]:
                        continue  # transform_size_8x8_flag: no edge of a transform block
                    for k in range(size):
                        scale = 16 // size  # chroma: the bS of the luma edge at the same place
                        e, along = edge * scale // 4, k * scale // 4
                        block_q = along * 4 + e if vertical else e * 4 + along
                        e_p = e - 1 if e else 3
                        block_p = along * 4 + e_p if vertical else e_p * 4 + along
                        strength = boundary_strength(state, mb_p, block_p, mb, block_q, edge == 0)
                        qp_average = (plane_qp(mb_p, c > 0) + plane_qp(mb, c > 0) + 1) >> 1
                        x0, y0 = size * mx, size * my
                        where = [
                            (y0 + k, x0 + edge + i) if vertical else (y0 + edge + i, x0 + k) for i in range(-4, 4)
                        ]
                        if c:
                            where = where[2:6]
                        n = len(where) // 2
                        samples = [int(plane[w]) for w in where]
                        p, q = filter_line(
                            samples[n - 1 :: -1], samples[n:], strength, qp_average, offset_a, offset_b, c > 0
                        )
                        for w, value in zip(where, p[::-1] + q):
                            plane[w] = value
    return [plane.astype(np.uint8) for plane in planes]
