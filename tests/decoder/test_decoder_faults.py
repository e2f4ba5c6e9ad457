"""A decoder after an exception that its caller catches: correct from the next IDR picture, wherever the exception was."""

import linecache
import random
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from h264lite.decoder import decoder, picture_decoding
from h264lite.decoder.decoder import Decoder
from h264lite.decoder.errors import MOST_LINES, BitstreamError, StateError
from h264lite.decoder.info import StreamInfo
from h264lite.standard.bits import NAL_SPS, BitReader, nal_unit, parse_nal_unit
from h264lite.standard.syntax import (
    MarkingOperation,
    SliceHeader,
    parse_pps,
    parse_sei,
    parse_slice_header,
    parse_sps,
    write_sei,
    write_slice_header,
    write_sps,
)
from h264lite.standard.syntax_slice import MOST_OPERATIONS

from ..support import round_trip
from ..support.broken import units_of

DELIMITER = b"\0\0\1\x09\xf0"  # ends the NAL unit before it
FOLDER = Path(decoder.__file__).parent


@pytest.fixture(scope="module")
def small() -> tuple[bytes, list[bytes]]:
    """A stream of two IDR and three other pictures, and its frames."""
    return encoded(32, 32, 5)


@pytest.fixture(scope="module")
def large() -> tuple[bytes, list[bytes]]:
    """The same of another size."""
    return encoded(112, 48, 5)


@pytest.fixture(scope="module")
def cavlc() -> tuple[bytes, list[bytes]]:
    """The small one by CAVLC, without states of contexts, which NumPy would refuse first."""
    return encoded(32, 32, 5, profile="baseline")


def encoded(width: int, height: int, frames: int, **options: str) -> tuple[bytes, list[bytes]]:
    clip = round_trip.noise_clip(width, height, frames, width)
    stream, _ = round_trip.encode(clip, width, height, qp=30, keyint=3, ref=2, **options)
    return stream, [frame.to_bytes() for frame in decoder.decode(stream)]


def resized(stream: bytes, mb_width: int, mb_height: int, references: int) -> bytes:
    """The stream with another size and number of reference frames in its sequence parameter sets."""
    units = []
    for unit in units_of(stream):
        payload = parse_nal_unit(unit.lstrip(b"\0")[1:])
        if payload.nal_unit_type == NAL_SPS:
            sps = parse_sps(payload.rbsp())
            sps.pic_width_in_mbs_minus1, sps.pic_height_in_map_units_minus1 = mb_width - 1, mb_height - 1
            sps.max_num_ref_frames, sps.frame_cropping_flag = references, 0
            unit = nal_unit(NAL_SPS, 3, write_sps(sps))
        units.append(unit)
    return b"".join(units)


def unit_by_unit(coder: Decoder, stream: bytes) -> tuple[list[bytes], list[str]]:
    """Frames and errors where the caller catches every BitstreamError and MemoryError and goes on."""
    frames, errors = [], []
    for unit in units_of(stream):
        try:
            frames += [frame.to_bytes() for frame in coder.decode(unit + DELIMITER)]
        except (BitstreamError, MemoryError) as error:
            errors.append(str(error))
    return frames, errors


# A new sequence parameter set -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resilient", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_refused_size_is_never_active(small, large, resilient, first):
    """Each of its IDR pictures is refused: none is decoded into the arrays of the size before, or into none."""
    refused = resized(large[0], 42, 1055, 16)
    pictures = sum(unit.lstrip(b"\0")[1] & 31 == 5 for unit in units_of(refused))
    coder = Decoder(resilient=resilient)
    start, _ = ([], []) if first else unit_by_unit(coder, small[0])
    frames, errors = unit_by_unit(coder, refused)
    said = [line for line in [*errors, *coder.dropped] if "more than any level's buffer holds" in line]
    assert len(said) == pictures
    end, errors = unit_by_unit(coder, small[0])
    assert not errors and start + frames + end + [f.to_bytes() for f in coder.flush()] == small[1] * (1 if first else 2)


def test_memory_that_runs_out_for_a_new_size(small, large, monkeypatch):
    coder = Decoder()
    before, _ = unit_by_unit(coder, small[0])
    left = [2]

    def pool(*arguments: int) -> object:
        left[0] -= 1
        if left[0] >= 0:
            raise MemoryError("no room for a pool")
        return picture_decoding.Pool(*arguments)

    monkeypatch.setattr(decoder, "Pool", pool)
    between, errors = unit_by_unit(coder, large[0] + large[0])  # four IDR pictures, two of them without a pool
    assert errors == ["no room for a pool"] * 2
    frames = before + between + [frame.to_bytes() for frame in coder.flush()]
    assert frames == small[1] + large[1]


def test_memory_that_runs_out_for_a_frame(small, monkeypatch):
    """The picture goes on waiting, and is given out once."""
    left, frame = [2], picture_decoding.Pool.frame

    def frame_of(*arguments: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError("no room for a frame")
        return frame(*arguments)

    monkeypatch.setattr(picture_decoding.Pool, "frame", frame_of)
    coder, frames = Decoder(), []
    with pytest.raises(MemoryError):
        frames += coder.decode(small[0])
    frames += coder.decode(small[0])
    frames += coder.flush()
    assert [frame.to_bytes() for frame in frames] == small[1][:2] + small[1]


# Exceptions from elsewhere ----------------------------------------------------------------------------------------------


class Interrupt:
    """Raises KeyboardInterrupt before the n-th line that the decoder runs.

    Not at "with": a trace function sees the way out of it as one more line, at which no signal is handled.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame, event, argument):  # type: ignore[no-untyped-def]
        if Path(frame.f_code.co_filename).parent != FOLDER:
            return None
        if event == "line" and "with self._lock" not in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self

    def run(self, coder: Decoder, stream: bytes) -> list[bytes]:
        """The frames until then."""
        frames = []
        sys.settrace(self)
        try:
            for frame in coder.decode(stream + DELIMITER):
                frames.append(frame.to_bytes())
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        return frames


@pytest.mark.parametrize("count", [70, pytest.param(250, marks=pytest.mark.slow)])
def test_interrupts_anywhere(small, large, count):
    """After an interrupt at any line the next stream is right, and no frame before the interrupt is wrong."""
    stream, expected = small[0], small[1]
    never = Interrupt(1 << 60)
    assert len(never.run(Decoder(), stream)) >= len(expected) - 2
    lines = (1 << 60) - never.left
    places = random.Random(20261122).sample(range(1, lines + 1), min(lines, count))
    for at in places:
        coder = Decoder()
        frames = Interrupt(at).run(coder, stream)
        assert all(frame in expected for frame in frames), at
        for other, wanted in ((large[0], large[1]), (stream, expected)):
            frames = [frame.to_bytes() for frame in coder.decode(other)] + [frame.to_bytes() for frame in coder.flush()]
            assert frames[len(frames) - len(wanted) :] == wanted, at


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_what_was_given_before_an_exception_is_forgotten(small, large, error, monkeypatch):
    """Also where the caller had not fetched it yet, and where the piece ended within a NAL unit."""
    coder = Decoder()

    def fails(*arguments: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(picture_decoding, "parse_slice", fails)
        with pytest.raises(error):
            [*coder.decode(small[0][:-100])]
    frames = [frame.to_bytes() for frame in coder.decode(small[0][-100:] + large[0])]
    assert frames + [frame.to_bytes() for frame in coder.flush()] == large[1]


# Frames are made when they are asked for --------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_input_is_decoded_though_its_frames_are_not_fetched(small, asked):
    stream, expected = small
    coder, frames = Decoder(), []
    for at in range(0, len(stream), 200):
        decoded = coder.decode(stream[at : at + 200])
        frames += [frame for _, frame in zip(range(asked), decoded)]
    frames += coder.flush()
    assert [frame.to_bytes() for frame in frames] == expected


def test_a_piece_that_the_caller_changes_afterwards(small):
    piece = bytearray(small[0])
    coder = Decoder()
    decoded = coder.decode(piece)
    piece[:] = bytes(len(piece))
    assert [frame.to_bytes() for frame in [*decoded, *coder.flush()]] == small[1]
    with pytest.raises(TypeError):
        coder.decode(7)  # type: ignore[arg-type]


def test_threads_that_share_a_decoder(small, large):
    """One decodes at a time: their units mix, and no two kernels are in the same array."""
    coder, failed = Decoder(resilient=True), []

    def work(stream: bytes) -> None:
        try:
            for unit in units_of(stream) * 5:
                for _ in coder.decode(unit + DELIMITER):
                    pass
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(stream,)) for stream in (small[0], large[0]) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed and not any(thread.is_alive() for thread in threads)
    frames = [frame.to_bytes() for frame in [*coder.flush(), *coder.decode(small[0]), *coder.flush()]]
    assert frames[-len(small[1]) :] == small[1]


# Bounded memory ---------------------------------------------------------------------------------------------------------


def test_dropped_lines_are_counted_after_the_first():
    coder = Decoder(resilient=True)
    assert not [*coder.decode(b"\0\0\1\x80" * 20_000), *coder.flush()]
    assert len(coder.dropped) == MOST_LINES + 1 and coder.dropped[-1] == f"{20_000 - MOST_LINES} more messages"
    assert coder.dropped[0].startswith("NAL unit 1 at byte 3")


def test_messages_of_info_are_counted_after_the_first():
    info = StreamInfo()
    lines = [*info.feed(b"\0\0\1\x80" * 20_000), *info.flush()]
    assert len(lines) == info.errors.total == 20_000
    assert len(info.errors) == MOST_LINES + 1 and len(info.summary()) == MOST_LINES + 2


def test_info_takes_large_sei_in_one_step(monkeypatch):
    """Bytes of 255 are counted together, and of many messages the first are named."""
    calls, get_u = [], BitReader.get_u
    monkeypatch.setattr(BitReader, "get_u", lambda self, n: calls.append(n) or get_u(self, n))
    info = StreamInfo()
    (line,) = [*info.feed(b"\0\0\1\x06" + b"\xff" * 300_000), *info.flush()]
    assert "the data ends" in line and len(calls) < 5
    (line,) = [*info.feed(b"\0\0\1\x06" + b"\x05\x00" * 100_000 + b"\x80"), *info.flush()]
    assert line.endswith("payload types " + "5, " * 16 + "...") and len(calls) < 100
    assert parse_sei(write_sei([(511, b"x" * 600)])) == [(511, b"x" * 600)]


def test_marking_operations_have_an_end(small):
    """A slice header of a thousand of them is refused before they fill the memory."""
    units = [parse_nal_unit(unit.lstrip(b"\0")[1:]) for unit in units_of(small[0])]
    sps, pps = parse_sps(units[0].rbsp()), parse_pps(units[1].rbsp())
    pps.weighted_pred_flag = 0  # the header below has no weights
    operations = [MarkingOperation(1, number) for number in range(MOST_OPERATIONS + 1)]
    header = SliceHeader(nal_unit_type=1, nal_ref_idc=1, slice_type=5, frame_num=1, num_ref_idx_active_override_flag=1,
                         adaptive_ref_pic_marking_mode_flag=1, marking_operations=operations)  # fmt: skip
    with pytest.raises(BitstreamError, match="more than"):
        write_slice_header(header, sps, pps)
    header.marking_operations = operations[1:]
    rbsp = write_slice_header(header, sps, pps).to_bytes()
    assert len(parse_slice_header(1, 1, rbsp, {0: sps}, {0: pps})[0].marking_operations) == MOST_OPERATIONS


# What kernels rely on ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", ["mbs", "motion", "planes"])
@pytest.mark.parametrize("kernel", ["parse_slice", "deblock_picture"])
def test_kernels_are_not_called_with_arrays_of_another_size(cavlc, group, kernel, monkeypatch):
    """Each array of a pool cut by one: no kernel, or no deblocking, runs."""
    names = getattr(picture_decoding.Pool(parse_sps(parse_nal_unit(units_of(cavlc[0])[0][4:]).rbsp()), 1), group)._fields

    class Cut(picture_decoding.Pool):
        def cut(self, name: str) -> None:
            arrays = getattr(self, group)
            short = np.ascontiguousarray(getattr(arrays, name)[..., :-1])
            setattr(self, group, arrays._replace(**{name: short}))

    for name in names:
        with monkeypatch.context() as patch:
            if kernel == "deblock_picture":  # the last kernel of a picture; the others have run
                run = picture_decoding.reconstruct_slice
                pools: list[Cut] = []

                def last(*arguments: object, run=run, pools=pools, name=name) -> tuple[int, int]:
                    result = run(*arguments)
                    pools[0].cut(name)
                    return result

                patch.setattr(picture_decoding, "reconstruct_slice", last)
                patch.setattr(decoder, "Pool", lambda *arguments, pools=pools: pools.append(Cut(*arguments)) or pools[-1])
            else:

                def pool(*arguments: object, name=name) -> Cut:
                    cut_pool = Cut(*arguments)
                    cut_pool.cut(name)
                    return cut_pool

                patch.setattr(decoder, "Pool", pool)
                patch.setattr(Cut, "clear", lambda *arguments: None)
            patch.setattr(picture_decoding, kernel, None)
            with pytest.raises(StateError, match=f"^{name} is an array"):
                decoder.decode(cavlc[0])


def test_parameters_that_leave_the_arrays_are_refused(cavlc, monkeypatch):
    """A picture's parameters that another has changed: no kernel runs."""
    layout = picture_decoding.at
    parameters = picture_decoding.PictureDecoding._parameters
    for index, value in ((layout.P_MB_WIDTH, 3), (layout.P_N_MB, 8), (layout.P_SLOT, 99), (layout.P_FIRST_MB, 4),
                         (layout.P_QP, 52), (layout.P_COL_SLOT, 99), (layout.P_REFS_0, 33), (layout.P_SLICE_ID, -1),
                         (layout.P_CABAC_INIT, 4), (layout.P_ROWS_PER_MB, 1 << 40)):  # fmt: skip

        def changed(*arguments: object, index: int = index, value: int = value) -> np.ndarray:
            p = parameters(*arguments)
            p[index] = value
            return p

        with monkeypatch.context() as patch:
            patch.setattr(picture_decoding.PictureDecoding, "_parameters", changed)
            patch.setattr(picture_decoding, "parse_slice", None)
            with pytest.raises(StateError):
                decoder.decode(cavlc[0])
