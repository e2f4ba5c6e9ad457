"""Frames of one macroblock, which names any entry of its lists: decoders find the frames that the specs mean."""

from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.cpu_simd.layout import LUMA_WEIGHTED
from h264lite.encoder.decisions import weights
from h264lite.encoder.decisions.frame_order import FrameOrder
from h264lite.encoder.settings.config import Config
from h264lite.encoder.slice_writer import SliceWriter
from h264lite.scheduler.frame_spec import MOST_ENTRIES, UNWEIGHTED, Weights
from h264lite.standard.bits import NAL_IDR, NAL_SLICE, BitWriter, nal_unit

from ..support import round_trip
from ..support.steady import steady
from .test_frame_order import MANY, random_types

I_PCM = {"I": 25, "P": 30, "B": 48}  # mb_type (Tables 7-11, 7-13, 7-14)
P_L0, B_LISTS = 0, {1: (True, False), 2: (False, True), 3: (True, True)}  # whole macroblocks


def predicted(spec, decoded, entries):
    """(luma, chroma) of a flat frame from entries of both lists, None: not used; decoded: of frames by coding index."""
    values = []
    for entry, indices in zip(entries, (spec.list0, spec.list1)):
        if entry is not None:
            values.append(decoded[indices[entry]])
    if len(values) == 2:
        weight = spec.implicit_weights[entries[0] * spec.n_ref1 + entries[1]]
        return tuple((a * (64 - weight) + b * weight + 32) >> 6 for a, b in zip(*values))
    luma, chroma = values[0]
    offset = (*spec.weights, *MOST_ENTRIES * [UNWEIGHTED])[entries[0]].luma_offset if spec.frame_type == "P" else 0
    return min(255, max(0, luma + offset)), chroma


def macroblock(writer, spec, decoded, rng):
    """7.3.5: I_PCM, or motion without a vector and a residual. Returns (luma, chroma) of the frame."""
    kind = spec.frame_type
    if kind != "I":
        writer.put_ue(0)  # mb_skip_run
    if kind == "I" or rng.random() < 0.3:
        luma, chroma = map(int, rng.integers(1, 256, 2))
        writer.put_ue(I_PCM[kind])
        writer.align()
        for value in (*256 * (luma,), *128 * (chroma,)):
            writer.put_u(8, value)
        return luma, chroma
    mb_type = int(rng.choice(list(B_LISTS))) if kind == "B" else P_L0
    used = B_LISTS[mb_type] if kind == "B" else (True, False)
    entries = [int(rng.integers(0, count)) if on else None for on, count in zip(used, (spec.n_ref, spec.n_ref1))]
    writer.put_ue(mb_type)
    for entry, count in zip(entries, (spec.n_ref, spec.n_ref1)):
        if entry is not None and count > 1:
            writer.put_te(entry, count - 1)
    for _ in range(2 * sum(used)):
        writer.put_se(0)  # mvd
    writer.put_ue(0)  # coded_block_pattern
    return predicted(spec, decoded, entries)


def stream_of(config, specs, rng):
    """The stream, and (luma, chroma) of each frame in display order."""
    writer, decoded, units = SliceWriter(config), {}, []
    for spec in specs:
        headers = writer.headers(spec)
        out = BitWriter()
        out.put_u(headers.bits[0], writer.header_number(spec, headers, 0))
        decoded[spec.coding_index] = macroblock(out, spec, decoded, rng)
        out.trailing_bits()
        units += writer._units_before_slices(spec)
        units.append(nal_unit(NAL_IDR if spec.is_idr else NAL_SLICE, spec.nal_ref_idc, out.to_bytes()))
    shown = sorted(specs, key=lambda spec: spec.display_index)
    return b"".join(units), [decoded[spec.coding_index] for spec in shown]


OPTIONS = [
    {"bframes": 1}, {"bframes": 2, "ref": 2}, {"bframes": 3, "b_pyramid": "none", "ref": 3}, {"bframes": 3, "ref": 4},
    {"bframes": 9, "b_pyramid": "dyadic", "ref": 5, "aud": True}, {"bframes": 16, "ref": 2, "no_weightb": True},
    {"bframes": 16, "b_pyramid": "dyadic"}, {"bframes": 0, "ref": 2},
]  # fmt: skip


@pytest.mark.parametrize("weightp", (0, 2))
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_decoders_find_the_frames(monkeypatch, options, weightp):
    """In display order, without a complaint; with --weightp 2 the first reference of P frames comes with other offsets."""
    rng = np.random.default_rng(weightp)
    config = Config.from_options(width=16, height=16, device="cpu", threads=1, keyint=MANY, no_cabac=True, no_deblock=True,
                                 weightp=weightp, profile="main", **steady(options))  # fmt: skip

    def entries(*_):
        return tuple(Weights(LUMA_WEIGHTED, 0, 1, int(rng.integers(-20, 20))) for _ in range(rng.integers(0, 3)))

    monkeypatch.setattr(weights, "entries", entries)
    order, coding = FrameOrder(config), config.coding
    weighting = weights.Weighting((coding.width, coding.height), coding.repeats_references)
    types = random_types(rng, 330, config.coding.bframes)
    specs = [spec for kind in types for spec in order.add(kind)]
    if weightp:
        specs = [weighting.of(spec, SimpleNamespace()) for spec in specs]
        assert any(spec.duplicates for spec in specs)
    stream, frames = stream_of(config, specs, rng)
    expected = [[np.full((16, 16), y, np.uint8), *2 * [np.full((8, 8), c, np.uint8)]] for y, c in frames]
    round_trip.assert_same(round_trip.own_frames(stream), expected, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), expected, "FFmpeg")
