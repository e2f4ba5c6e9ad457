"""Where FFmpeg's frames are others than ours (docs/differences.md): the causes, each made small, and what decides."""

import random
from types import SimpleNamespace

import numpy as np
from h264lite.decoder import layout as at
from h264lite.standard.bits import NAL_IDR, NAL_PPS, NAL_SPS
from h264lite.standard.macroblock import I_PCM, LAST_INTRA, I_16x16
from h264lite.standard.syntax import HIGH, MAIN, parse_pps, parse_slice_header, parse_sps, write_pps, write_sps
from h264lite.standard.syntax_slice import _slice_header_start, slice_header

from ..fuzz.mutate import MutatingWriter, Unit, stream_of, units_of
from ..support import round_trip, x264_streams
from ..support.naive_8x8 import level_scale_8x8, residual_8x8
from ..support.naive_reconstruction import level_scale, residual_4x4
from ..support.residual_limits import leaves_range, one_dimension_4, one_dimension_8, spoiled_frames


def stream(units: list[Unit]) -> bytes:
    """The units as a byte stream."""
    return stream_of(units, random.Random(0))


def frames(planes: list[round_trip.Planes]) -> list[bytes]:
    """Frames to compare."""
    return [b"".join(np.ascontiguousarray(plane).tobytes() for plane in picture) for picture in planes]


def test_scaling_lists_of_any_value():
    """Frames are FFmpeg's unless a residual leaves its range, which no stream may ask for."""
    rng, seen = random.Random(20261122), set()
    clip = round_trip.noise_clip(48, 32, 3, 8)
    streams = [units_of(x264_streams.encode(clip, qp=qp, bframes=1, cabac=cabac)) for qp in (22, 35) for cabac in (0, 1)]
    for _ in range(60):
        units, most = list(rng.choice(streams)), rng.choice((20, 40, 80, 255))
        at_pps = next(n for n, unit in enumerate(units) if unit.kind == NAL_PPS)
        pps = parse_pps(units[at_pps].rbsp)
        pps.pic_scaling_matrix_present_flag = 1
        pps.scaling.lists = [[rng.randint(most // 4, most) for _ in range(16 if k < 6 else 64)] for k in range(8)]
        units[at_pps] = units[at_pps]._replace(rbsp=write_pps(pps))
        data = stream(units)
        ours, other = frames(round_trip.own_frames(data)), frames(round_trip.ffmpeg_frames(data))
        different = {n for n, pair in enumerate(zip(ours, other, strict=True)) if pair[0] != pair[1]}
        spoiled = spoiled_frames(data)
        assert different <= spoiled
        seen.add((bool(different), bool(spoiled)))
    assert seen == {(False, False), (False, True), (True, True)}


def test_values_of_the_transforms():
    """The residual samples of what is measured are those of the clauses, written down another way."""
    rng = np.random.default_rng(5)
    for size, one_dimension, residual, qp in (
        (4, one_dimension_4, residual_4x4, 24),
        (8, one_dimension_8, residual_8x8, 36),  # no rounding of levels
    ):
        c = rng.integers(-9, 10, (size, size))
        scale = level_scale if size == 4 else level_scale_8x8
        d = c * np.array([[scale(0, i, j) for j in range(size)] for i in range(size)])
        h = one_dimension(one_dimension(d)[-1].T)[-1].T
        assert np.array_equal((h + 32) >> 6, residual(c.tolist(), qp))


def test_the_range_of_a_residual():
    """8.5.12.2: h is at most 32767 - 32; 8.5.10, 8.5.11: so are f and scaled DC at most 32767."""
    m = SimpleNamespace(**{name: np.zeros(1, np.int64) for name in ("mb_type", "qp", "transform_8x8")})
    m.levels = np.zeros((1, at.LEVELS_PER_MB), np.int16)
    factors = np.full((2, 2, 52, 256), 16), np.full((2, 52, 64), 64)
    m.mb_type[:] = LAST_INTRA + 1

    def leaves(place: int, level: int) -> bool:
        m.levels[:] = 0
        m.levels[0, place] = level
        return leaves_range(m, 0, *factors)

    for place in (0, 7, 16 * 5):  # of block 0, of block 7, and not a DC: the largest h is the level
        assert not leaves(place, 32735) and leaves(place, 32736)
    m.transform_8x8[:] = 1
    assert not leaves(0, 32735) and leaves(0, 32736) and not leaves(0, -32768)
    m.transform_8x8[:] = 0
    m.mb_type[:] = I_16x16
    factors[0][0, 0] = 128  # of scaled DC: twice the level
    assert not leaves(0, 16367) and leaves(0, 16368) and leaves(0, 16384)
    m.mb_type[:] = I_PCM
    assert not leaves(0, 32767)


def test_second_chroma_offset_whatever_the_profile():
    """7.3.2.2: ours in Main is FFmpeg's in High, with the same parameter sets otherwise."""
    units = units_of(x264_streams.encode(round_trip.noise_clip(48, 32, 4, 9), profile="main", bframes=0, qp=30))
    by_profile = {}
    for profile in (MAIN, HIGH):
        for n, unit in enumerate(units):
            if unit.kind == NAL_SPS:
                sps = parse_sps(unit.rbsp)
                sps.profile_idc = profile
                units[n] = unit._replace(rbsp=write_sps(sps))
            elif unit.kind == NAL_PPS:
                pps = parse_pps(unit.rbsp)
                pps.second_chroma_qp_index_offset = 9
                units[n] = unit._replace(rbsp=write_pps(pps))
        by_profile[profile] = stream(units)
    expected = frames(round_trip.ffmpeg_frames(by_profile[HIGH]))
    assert frames(round_trip.own_frames(by_profile[MAIN])) == frames(round_trip.own_frames(by_profile[HIGH])) == expected
    assert frames(round_trip.ffmpeg_frames(by_profile[MAIN])) != expected, "docs/differences.md says otherwise"


def test_no_output_of_prior_pictures():
    """C.4.4: what waits when such an IDR picture comes is not given out; everything else is."""
    clip = round_trip.noise_clip(48, 32, 8, 10)
    units = units_of(x264_streams.encode(clip, keyint=4, min_keyint=4, scenecut=0, bframes=0, ref=2))
    sps_by_id, pps_by_id = {}, {}
    for n, unit in enumerate(units):
        if unit.kind == NAL_SPS:
            sps = parse_sps(unit.rbsp)
            sps.pic_order_cnt_type, sps.vui.bitstream_restriction_flag = 0, 1
            sps.vui.max_num_reorder_frames = sps.vui.max_dec_frame_buffering = 2
            units[n] = unit._replace(rbsp=write_sps(sps))
            sps_by_id[0] = parse_sps(unit.rbsp)
        elif unit.kind == NAL_PPS:
            pps_by_id[0] = parse_pps(unit.rbsp)
        elif unit.kind in (1, NAL_IDR):  # written again, since the order of output was not in the headers
            header, _, pps, position = parse_slice_header(*unit, sps_by_id, pps_by_id)
            header.pic_order_cnt_lsb = 2 * header.frame_num
            header.no_output_of_prior_pics_flag = header.idr
            writer = MutatingWriter(random.Random(0), -1)
            _slice_header_start(writer, header)
            slice_header(writer, header, sps, pps)
            writer.align(1)
            body = unit.rbsp[-(-position // 8) :]
            units[n] = unit._replace(rbsp=writer.to_bytes() + body)
    whole = x264_streams.encode(clip, keyint=4, min_keyint=4, scenecut=0, bframes=0, ref=2)
    expected = frames(round_trip.own_frames(whole))
    assert frames(round_trip.own_frames(stream(units))) == expected[:2] + expected[4:]
