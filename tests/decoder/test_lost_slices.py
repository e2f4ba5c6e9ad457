"""A lost slice costs its picture and those that refer to it: never the NAL unit behind it, never the picture before."""

import io
import random

import pytest
from h264lite.analysis.analyse import analyse
from h264lite.decoder.decoder import Decoder, decode
from h264lite.decoder.errors import BitstreamError
from h264lite.decoder.info import StreamInfo
from h264lite.standard.bits import (
    NAL_AUD,
    NAL_END_OF_SEQUENCE,
    NAL_IDR,
    NAL_PPS,
    NAL_SEI,
    NAL_SLICE,
    NAL_SPS,
    nal_unit,
    parse_nal_unit,
)
from h264lite.standard.syntax import parse_pps, parse_slice_header, parse_sps

from ..fuzz.seeds import own
from ..support.broken import units_of

WIDTH, HEIGHT, FRAMES, GOP = 64, 48, 8, 4
SLICES = (NAL_SLICE, NAL_IDR)


def kind_of(unit: bytes) -> int:
    return unit.lstrip(b"\0")[1] & 31


def frames_of(stream: bytes) -> list[bytes]:
    return [frame.to_bytes() for frame in decode(stream)]


@pytest.fixture(scope="module")
def first() -> list[bytes]:
    """NAL units of two GOPs of two slices a picture, with parameter sets at the beginning alone."""
    units = units_of(own(WIDTH, HEIGHT, FRAMES, qp=30, keyint=GOP, slices=2, bframes=0))
    head = next(n for n, unit in enumerate(units) if kind_of(unit) in SLICES)
    return units[:head] + [unit for unit in units[head:] if kind_of(unit) in SLICES]


@pytest.fixture(scope="module", params=[(48, 64), (96, 80)], ids=["as many macroblocks", "another size"])
def second(request) -> bytes:
    """A stream of its own parameter sets; the first ones have the same numbers."""
    return own(*request.param, 5, qp=34, keyint=5)


def in_pieces(pieces: list[bytes], resilient: bool, macroblocks: bool = False) -> tuple[list[bytes], list[str]]:
    """Frames, and what was dropped or raised, where the caller catches errors and feeds on."""
    coder, frames, errors = Decoder(resilient=resilient, macroblocks=macroblocks), [], []

    def take(decoded) -> bool:  # type: ignore[no-untyped-def]
        try:
            for frame in decoded:
                frames.append(frame.to_bytes())
        except BitstreamError as error:
            errors.append(str(error))
            return False
        return True

    for piece in pieces:
        take(coder.decode(piece))
    while not take(coder.decode(b"")):
        pass
    while not take(coder.flush()):
        pass
    return frames, [*errors, *coder.dropped]


def ways(units: list[bytes]):  # type: ignore[no-untyped-def]
    """The stream at once, NAL unit by NAL unit, and in pieces of 100 bytes; with errors raised and not."""
    stream = b"".join(units)
    for pieces in ([stream], units, [stream[at : at + 100] for at in range(0, len(stream), 100)]):
        yield from ((pieces, resilient) for resilient in (False, True))


def test_a_loss_before_an_idr_picture_costs_one_picture(first):
    """The IDR slice ends the incomplete picture, and is decoded."""
    whole = frames_of(b"".join(first))
    at = [n for n, unit in enumerate(first) if kind_of(unit) == NAL_IDR][2] - 1
    for pieces, resilient in ways(first[:at] + first[at + 1 :]):
        frames, said = in_pieces(pieces, resilient)
        assert frames == whole[: GOP - 1] + whole[GOP:]
        assert len(said) == 1 and "8 macroblocks of picture 3 are missing" in said[0]


def test_a_loss_within_a_gop_costs_the_rest_of_it(first):
    """The P slice that ends the incomplete picture is counted with the others that are left out."""
    whole = frames_of(b"".join(first))
    slices = [n for n, unit in enumerate(first) if kind_of(unit) in SLICES]
    for pieces, resilient in ways([unit for n, unit in enumerate(first) if n != slices[3]]):
        frames, said = in_pieces(pieces, resilient)
        assert frames == whole[:1] + whole[GOP:]
        assert "macroblocks of picture 1 are missing" in said[0] and said[1].startswith("4 slices dropped up to byte")


def test_the_next_stream_has_its_own_parameter_sets(first, second):
    """The sequence parameter set that ends an incomplete picture counts; with the old one of as many macroblocks frames
    would be wrong without a word.
    """
    whole = frames_of(b"".join(first))
    for pieces, resilient in ways([*first[:-1], *units_of(second)]):
        frames, said = in_pieces(pieces, resilient)
        assert frames == whole[:-1] + frames_of(second) and len(said) == 1


@pytest.mark.parametrize("kind", [NAL_AUD, NAL_SEI, NAL_END_OF_SEQUENCE])
def test_other_units_behind_an_incomplete_picture(first, second, kind):
    """None of them is an error itself, and none is taken twice."""
    payload = b"\x05\x12" + bytes(16) + b"hi\x80" if kind == NAL_SEI else b"\xf0" if kind == NAL_AUD else b""
    units = [*first[:-1], nal_unit(kind, 0, payload), *units_of(second)]
    for pieces, resilient in ways(units):
        frames, said = in_pieces(pieces, resilient)
        assert frames == frames_of(b"".join(first))[:-1] + frames_of(second)
        assert len(said) == 1 and said[0].startswith(f"NAL unit {len(first)} at byte")
    coder = Decoder(resilient=True)
    assert len([*coder.decode(b"".join(units))]) and coder.user_data.total == (kind == NAL_SEI)


def test_the_picture_before_a_broken_unit_is_whole(first):
    """A slice header that cannot be read drops nothing before it."""
    whole = frames_of(b"".join(first))
    for broken in (b"\0\0\1\x41\0\0", b"\0\0\1\x80\x11", b"\0\0\1\x42\x11"):
        for pieces, resilient in ways([*first, broken]):
            frames, said = in_pieces(pieces, resilient)
            assert frames == whole and len(said) == 1, broken


def slices_of(units: list[bytes]) -> list[tuple[int, int, int]]:
    """(unit, GOP, picture) of each slice."""
    places, gop, picture, sps, pps = [], -1, -1, {}, {}
    for n, unit in enumerate(units):
        parsed = parse_nal_unit(unit.lstrip(b"\0")[1:])
        if parsed.nal_unit_type == NAL_SPS:
            sps[0] = parse_sps(parsed.rbsp())
        elif parsed.nal_unit_type == NAL_PPS:
            pps[0] = parse_pps(parsed.rbsp())
        elif parsed.nal_unit_type in SLICES:
            header = parse_slice_header(parsed.nal_unit_type, parsed.nal_ref_idc, parsed.rbsp(), sps, pps)[0]
            first = not header.first_mb_in_slice
            gop, picture = gop + (first and bool(header.idr)), picture + first
            places.append((n, gop, picture))
    return places


@pytest.mark.parametrize("bframes", [0, 2])
def test_any_loss_costs_its_gop_at_most(bframes):
    """Every frame that comes out is right, and all frames of GOPs without a loss are there."""
    units = units_of(own(48, 48, 14, qp=36, keyint=5, slices=3, bframes=bframes, scenecut=0))
    slices, whole, rng = slices_of(units), frames_of(b"".join(units)), random.Random(1)
    gops = [{picture for _, g, picture in slices if g == gop} for gop in range(slices[-1][1] + 1)]
    ends = [sum(map(len, gops[:n])) for n in range(len(gops) + 1)]  # closed GOPs: in display order too
    assert len(gops) >= 3 and ends[-1] == len(whole)
    for _ in range(40):
        lost = rng.sample(slices, rng.choice((1, 1, 2, 4)))
        idr = {min(gop) for gop in gops}
        if any(all(s in lost for s in slices if s[2] == picture) for picture in idr):
            continue  # of an IDR picture that is gone as a whole nothing tells
        kept = [unit for n, unit in enumerate(units) if n not in {n for n, _, _ in lost}]
        frames, said = in_pieces(rng.choice((kept, [b"".join(kept)])), rng.random() < 0.5)
        assert said and [frame for frame in whole if frame in frames] == frames
        for gop in set(range(len(gops))) - {gop for _, gop, _ in lost}:
            assert all(frame in frames for frame in whole[ends[gop] : ends[gop + 1]])


def test_flush_behind_an_error_ends_the_stream(first):
    """A caller that stops at an error gets the frames before it; what it has given does not mix with another stream."""
    whole = frames_of(b"".join(first))
    at = [n for n, unit in enumerate(first) if kind_of(unit) == NAL_IDR][2] - 1
    coder, frames = Decoder(), []
    with pytest.raises(BitstreamError, match="are missing"):
        for frame in coder.decode(b"".join(first[:at] + first[at + 1 :])):
            frames.append(frame.to_bytes())
    frames += [frame.to_bytes() for frame in coder.flush()]
    assert frames == whole[: GOP - 1]
    assert [f.to_bytes() for f in [*coder.decode(b"".join(first)), *coder.flush()]] == whole


def test_what_waits_behind_errors_is_bounded(first):
    """Each call ends in an error, and the caller gives on and on: what waits is forgotten, memory stays."""
    coder, errors = Decoder(), 0
    for _ in range(60):
        try:
            for _ in coder.decode(b"\0\0\1\x80" * 1000):
                pass
        except BitstreamError:
            errors += 1
        assert len(coder._inputs) <= 17 and len(coder._units) <= 1000
    assert errors == 60
    for _ in range(2):
        frames = [frame.to_bytes() for frame in [*coder.flush(), *coder.decode(b"".join(first)), *coder.flush()]]
    assert frames == frames_of(b"".join(first))


def test_info_and_analyse_read_the_sets_behind_a_loss(first, second):
    stream = b"".join(first[:-1]) + second
    info = StreamInfo()
    assert len([*info.feed(stream), *info.flush()]) == len(first) - 1 + len(units_of(second)) and not info.errors
    assert len(info.sequences) == 2
    analysed = []
    with pytest.raises(BitstreamError, match="are missing"):
        for frame in analyse(stream):
            analysed.append(frame.display_index)
    assert analysed == list(range(FRAMES - 1))


def test_frames_behind_a_loss_are_those_of_ffmpeg(first, second):
    av = pytest.importorskip("av")
    units = [*first[:-1], *units_of(second)]
    theirs = []
    with av.open(io.BytesIO(b"".join(units)), format="h264") as file:
        file.streams.video[0].codec_context.thread_count = 1
        for frame in file.decode(video=0):
            theirs.append(frame.to_ndarray(format="yuv420p").tobytes())
    ours, _ = in_pieces(units, True)
    assert all(frame in theirs for frame in ours) and ours[FRAMES - 1 :] == theirs[-5:]
