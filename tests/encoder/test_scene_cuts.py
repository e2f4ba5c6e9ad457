"""Whole streams with scene cuts and adaptive B frames: IDR frames at cuts, same bytes for threads and GOPs, decoders."""

import h264lite
import numpy as np
import pytest

from ..support import round_trip
from .test_adaptive_types import HEIGHT, WIDTH, pan

GREY = np.full((2, HEIGHT // 2, WIDTH // 2), 128, np.uint8)
CUTS = 9, 21
CLIP = [(np.ascontiguousarray(luma), *GREY) for luma in (*pan(0, 9), *pan(1, 12), *pan(2, 5))]
OPTIONS = {"device": "cpu", "preset": "ultrafast", "no_cabac": False, "keyint": 40}


def packets_of(**options):
    with h264lite.Encoder(WIDTH, HEIGHT, 30, keep_reconstruction=True, **{**OPTIONS, **options}) as encoder:
        return [packet for planes in CLIP for packet in encoder.encode(planes)] + encoder.flush()


def bytes_of(packets):
    return b"".join(packet.data for packet in packets)


@pytest.mark.parametrize("bframes", [0, 3])
def test_scenes_begin_with_idr_frames(bframes):
    packets = packets_of(bframes=bframes, scenecut=40, min_keyint=1, threads=1)
    assert sorted(packet.pts for packet in packets) == list(range(len(CLIP)))
    assert sorted(packet.pts for packet in packets if packet.is_keyframe) == [0, *CUTS]
    stream = bytes_of(packets)
    shown = [packet.reconstruction for packet in sorted(packets, key=lambda packet: packet.pts)]
    round_trip.assert_same(round_trip.own_frames(stream), shown, "own decoder")
    round_trip.assert_same(round_trip.ffmpeg_frames(stream), shown, "FFmpeg")
    for options in ({"threads": 3}, {"gops": 2, "threads": 2}):
        assert bytes_of(packets_of(bframes=bframes, scenecut=40, min_keyint=1, **options)) == stream


def test_close_scenes_begin_with_i_frames():
    packets = packets_of(scenecut=40, min_keyint=15, threads=1)
    assert [packet.pts for packet in packets if packet.is_keyframe] == [0, CUTS[1]]
    assert [packet.frame_type for packet in packets if packet.frame_type != "P"] == ["I", "I", "I"]
    shown = [packet.reconstruction for packet in packets]
    round_trip.assert_same(round_trip.own_frames(bytes_of(packets)), shown, "own decoder")
