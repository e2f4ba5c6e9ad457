"""Typical CABAC states by slice type and QP, measured in x264's streams: the table of cpu_simd/costs/cabac_bits.py.

    H264LITE_SEQUENCES=... python -m h264lite.benchmarks.cabac_states

Streams of several clips and QPs are parsed by the own decoder with an engine that adds up, by context, the states that bins
meet. A line by QP is fitted through their means, as `m` and `n` of 9.3.1.1 are one; contexts without bins keep those of the
standard. Prints the table, and the bits of the bins by initial states, by the fitted table and by the one in use.
"""

import os
import tempfile

os.environ["H264LITE_CACHE"] = tempfile.mkdtemp()  # kernels with another engine must not stay in the user's cache
os.environ["H264LITE_CACHE_ALONE"] = "1"

import numpy as np

from ..cpu_simd.cabac_typical import TYPICAL_M_N
from ..cpu_simd.costs.cabac_bits import STATE_BITS
from ..decoder import cabac, layout
from ..jit.kernel import helper
from ..standard.cabac_contexts import INITIAL_M_N, N_CONTEXTS
from . import clips, x264

SLICES = "IPB"  # rows of the table
RUNS = ((1, 0), (250, 0), (250, 3))  # distance of I frames and consecutive B frames of the streams, by row
CLIPS = {  # frames of each stream
    "BasketballPass_416x240_50": (6, 40, 40), "foreman_352x288_30": (6, 40, 40), "mobile_352x288_30": (4, 30, 30),
    "city_704x576_30": (2, 14, 14), "driving_1920x1080_30": (1, 6, 9),
}  # fmt: skip
QPS = (15, 19, 23, 27, 31, 35, 39, 43)
TOOLS = {
    "ref": "1", "me": "hex", "subme": "7", "trellis": "1", "partitions": "all", "8x8dct": "1", "cabac": "1",
    "ipratio": "1.0", "scenecut": "0", "weightp": "0", "aq-mode": "0", "psy": "0",
    "pbratio": "1.0", "b-adapt": "0", "b-pyramid": "none",
}  # fmt: skip
ROW = 3  # sums of a context: zeros, ones, sum of their states
FIRST = layout.N_STATE  # of the sums, behind the reader's state
INITIAL = [3, 0, 0]  # rows of INITIAL_M_N: cabac_init_idc 0
PRIOR = 400  # bins of a context at a QP in a clip that count as much as the standard's line

_decision = cabac.decision


@helper
def counting_decision(data, s, c, context):
    """9.3.3.2.1, and the sums of the context."""
    state = np.int64(c[context])
    value = _decision(data, s, c, context)
    at = FIRST + ROW * context
    signed = state >> 1 if state & 1 else -1 - (state >> 1)
    s[at + value] += 1
    s[at + 2] += signed
    return value


def measure() -> dict[tuple[int, int, str], np.ndarray]:
    """(place in SLICES, QP, clip) -> int64[N_CONTEXTS, ROW]."""
    cabac.decision = counting_decision
    layout.N_STATE += ROW * N_CONTEXTS
    from ..decoder import picture_decoding
    from ..decoder.decoder import Decoder

    parse = picture_decoding.parse_slice
    sums: dict[tuple[int, int, str], np.ndarray] = {}

    def parse_and_add(data, s, p, m, motion):  # type: ignore[no-untyped-def]
        parse(data, s, p, m, motion)
        slice_type = {layout.SLICE_I: 0, layout.SLICE_P: 1, layout.SLICE_B: 2}[int(p[layout.P_SLICE_TYPE])]
        if slice_type == 2 or bframes == 0:  # P slices between B slices are left out
            key = (slice_type, int(p[layout.P_QP]), name)
            sums.setdefault(key, np.zeros((N_CONTEXTS, ROW), np.int64))
            sums[key] += s[FIRST:].reshape(N_CONTEXTS, ROW)

    picture_decoding.parse_slice = parse_and_add
    for name, counts in CLIPS.items():
        for (keyint, bframes), count in zip(RUNS, counts, strict=True):
            clip = clips.load(name, count)
            for qp in QPS:
                data, _ = x264.run(clip, x264.video_frames(clip), qp, 1, keyint=str(keyint), bframes=str(bframes), **TOOLS)
                for _ in Decoder().decode(data):
                    pass
        print(name, flush=True)
    return sums


def fit(sums: dict[tuple[int, int, str], np.ndarray]) -> np.ndarray:
    """int16[3, N_CONTEXTS, 2]: m and n by slice type (SLICES) and context, least squares in preCtxState."""
    result = INITIAL_M_N[INITIAL].astype(np.int16)
    for slice_type in range(len(SLICES)):
        rows = {key: value for key, value in sums.items() if key[0] == slice_type}
        qp = np.array([key[1] for key in rows], float)
        for k in range(N_CONTEXTS):
            count = np.array([value[k, 0] + value[k, 1] for value in rows.values()], float)
            if count.sum() < PRIOR:
                continue
            mean = 64 + np.array([value[k, 2] for value in rows.values()]) / np.maximum(count, 1)
            m, n = (float(v) for v in result[slice_type, k])
            weight = np.concatenate([count / (count + PRIOR), np.full(len(qp), 0.02)])  # of clips; of the standard's line
            x = np.concatenate([qp, qp])
            y = np.concatenate([mean, np.clip(m * qp / 16 + n, 1, 126)])
            slope = np.polyfit(x, y, 1, w=np.sqrt(weight))[0]
            m = round(16 * slope)
            result[slice_type, k] = m, round(float(np.average(y - m * x / 16, weights=weight)) + 0.5)
    return result


def bits(m_n: np.ndarray, qp: int, sums: np.ndarray) -> float:
    """Bits of the bins of `sums` by states from `m_n` int16[N_CONTEXTS, 2]."""
    state = np.clip((m_n[:, 0].astype(int) * qp >> 4) + m_n[:, 1], 1, 126)
    return float((STATE_BITS[state] * sums[:, :2]).sum() / 256)


def entropy(sums: np.ndarray) -> float:
    """Bits of the bins by their own frequencies in one clip: the least that constant states allow."""
    total = sums[:, :2].sum(1, keepdims=True)
    return float(-(sums[:, :2] * np.log2(np.maximum(sums[:, :2], 1) / np.maximum(total, 1))).sum())


def main() -> None:
    sums = measure()
    table = fit(sums)
    for slice_type, name in enumerate(SLICES):
        print(f"# {name} slices: m n by ctxIdx, ten a row")
        for k in range(0, N_CONTEXTS, 10):
            print("   ", "  ".join(f"{m} {n}" for m, n in table[slice_type, k : k + 10]))
    for slice_type, init in enumerate(INITIAL):
        for qp in QPS:
            rows = [value for key, value in sums.items() if key[:2] == (slice_type, qp)]
            least = sum(map(entropy, rows))
            shares = [sum(bits(m_n, qp, row) for row in rows) / least for m_n in (INITIAL_M_N[init], table[slice_type])]
            shares.append(sum(bits(TYPICAL_M_N[slice_type], qp, row) for row in rows) / least)
            print(SLICES[slice_type], qp, "initial {:.3f}, fitted {:.3f}, in use {:.3f} of the least bits".format(*shares))


if __name__ == "__main__":
    main()
