"""The decoder: bytes of an H.264 stream in, frames in output order out; refuses what it lacks by name."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

from ..forks import tell_in_child
from ..standard.bits import (
    NAL_AUD,
    NAL_END_OF_SEQUENCE,
    NAL_END_OF_STREAM,
    NAL_IDR,
    NAL_PARTITION_A,
    NAL_PARTITION_C,
    NAL_PPS,
    NAL_SEI,
    NAL_SLICE,
    NAL_SPS,
    ByteStreamSplitter,
    NalUnit,
    parse_nal_unit,
)
from ..standard.syntax import Pps, SliceHeader, Sps, parse_pps, parse_slice_header, parse_sps, starts_new_picture
from .dpb import PictureBuffer, dpb_size
from .errors import BitstreamError, Lines, Unsupported
from .info import user_data_texts
from .picture import NO_SLOT, SHORT_TERM, Frame, Picture, Pool
from .picture_decoding import PictureDecoding
from .picture_order import PictureOrder
from .support import check_pool, check_slice, check_sps

_ENDS = (NAL_END_OF_SEQUENCE, NAL_END_OF_STREAM)
# 7.4.1.2.3: NAL units that end the primary coded picture before them.
_BETWEEN_PICTURES = (NAL_SEI, NAL_SPS, NAL_PPS, NAL_AUD, *_ENDS, *range(14, 19))

# Places of errors outside NAL units
BYTE_STREAM, END, ACCESS_UNIT = "byte stream", "at the end of the stream", "at the end of the access unit"
Take = Callable[[], list[tuple[int, bytes]]]  # gives (offset, data) of NAL units
_MOST_BEHIND_ERRORS = 16  # pieces that wait because each call ends in an error: then all are forgotten, and memory is bounded


class Sequence(NamedTuple):
    """7.4.1.2.1: the active sequence parameter set, and what is made for it: all of it is there, or nothing."""

    sps: Sps
    pool: Pool
    buffer: PictureBuffer


class Observer(Protocol):
    """Sees what a decoder does with a stream, and gives out what it makes of it."""

    ready: deque[Any]  # what the decoder gives out in place of frames
    traced: bool  # whether the pool has layout.Traces of the picture at work, which takes time

    def unit(self, unit: NalUnit) -> None:
        """A NAL unit, before it is decoded; those before the first slice of a picture come after the picture before."""

    def decoded(self, work: PictureDecoding, pool: Pool) -> None:
        """A decoded picture, still in the arrays of the pool, in coding order."""

    def shown(self, picture: Picture) -> None:
        """The output of a picture, whose display_index says its place."""


class Decoder:
    """Decodes an Annex B byte stream, given in pieces of any size.

    macroblocks: frames carry their macroblock arrays. observer: gives out what it makes of the stream, in place of frames.
    user_data: distinct texts of user data in SEI messages so far, where encoders say what they are. resilient: errors are
    not raised; what was dropped stands in `dropped`, one line each, of which the last counts those behind the first
    hundred. Threads may share a decoder: one decodes at a time. After a fork both processes have
    one, unless it was at work in another thread: then RuntimeError in the child.

    After an exception that the caller catches, the next call gives the frames that wait. Behind a BitstreamError `decode`
    then goes on with what was given, behind the NAL unit or picture that was dropped; `flush` forgets it, so that frames
    behind an error come only where the caller feeds on. Any other exception lets both forget what was given. Pictures are
    decoded again from the next IDR picture on.
    """

    def __init__(self, macroblocks: bool = False, resilient: bool = False, observer: Observer | None = None) -> None:
        self.macroblocks = macroblocks
        self.resilient = resilient
        self.dropped = Lines()
        self.user_data = Lines()
        self._splitter = ByteStreamSplitter()
        self._inputs: deque[tuple[str, Take]] = deque()  # pieces and ends of streams that wait, in order
        self._units: deque[tuple[int, bytes]] = deque()  # NAL units that wait, before them
        self._observer = observer
        self._ready: deque[Any] = observer.ready if observer else deque()
        self._shown = 0  # pictures given out
        self._sps: dict[int, Sps] = {}
        self._pps: dict[int, Pps] = {}
        self._sequence: Sequence | None = None
        self._order = PictureOrder()
        self._work: PictureDecoding | None = None  # the picture at work
        self._last: SliceHeader | None = None  # header of the last slice
        self._prev_ref_frame_num: int | None = None  # None before the first picture
        self._pictures = 0  # begun so far
        self._ids = 0
        self._nal_units = 0
        self._skipping = False  # after an error, until the next IDR picture
        self._skipped = 0  # slices dropped so
        self._halfway = False  # a step has begun and has not ended
        self._failed = False  # the last call has ended in a BitstreamError
        self._lock = threading.Lock()  # kernels run without the interpreter's lock: one step at a time
        self._parent = 0  # in a fork: the process in which another thread was at work
        tell_in_child(self)

    # The byte stream -------------------------------------------------------------------------------------------------

    def decode(self, data: bytes) -> Iterator[Frame]:
        """The frames that a piece of the stream completes, decoded one by one as they are asked for.

        What is not asked for is not lost: the next call begins with it. BitstreamError where the stream is broken.
        """
        piece = data if isinstance(data, bytes) else bytes(memoryview(data))
        return self._take_in((BYTE_STREAM, partial(self._splitter.feed, piece)))

    def decode_access_unit(self, units: Iterable[tuple[int, bytes]]) -> Iterator[Frame]:
        """The frames that an access unit completes. units: (offset, data) of all its NAL units: its picture ends with them.

        For callers that have NAL units, as MP4 has. Other calls of `decode` must have ended at the end of a NAL unit.
        """
        return self._take_in((ACCESS_UNIT, partial(list, units)), (ACCESS_UNIT, self._finish_last))

    def flush(self) -> Iterator[Frame]:
        """The frames left at the end of the stream; the decoder may be used for another stream afterwards."""
        ends: tuple[tuple[str, Take], ...] = ((END, self._finish_last), (END, self._reset))
        return self._take_in((BYTE_STREAM, self._splitter.flush), *ends, most=0)

    def _take_in(self, *inputs: tuple[str, Take], most: int = _MOST_BEHIND_ERRORS) -> Iterator[Frame]:
        """The frames that inputs complete. most: pieces that may wait behind an error; where more do, all are forgotten."""
        with self._lock:
            self._require_own()
            if self._halfway or (self._failed and (not most or len(self._inputs) > most)):
                self._recover()
            self._failed = False
            self._inputs += inputs
        return self._frames()

    def _frames(self) -> Iterator[Frame]:
        while True:
            while self._ready:
                yield self._ready.popleft()
            with self._lock:
                self._require_own()
                if self._halfway:
                    self._recover()
                elif not self._step():
                    return

    def _require_own(self) -> None:
        if self._parent:
            raise RuntimeError(
                f"the decoder was at work in another thread of process {self._parent} when this process was "
                "forked from it: make a decoder here"
            )

    def forked(self) -> None:
        """This process is a fork, where no other thread exists that would release the lock."""
        if self._lock.locked():
            self._parent, self._lock = os.getppid(), threading.Lock()

    def _step(self) -> bool:
        """Decode one NAL unit, or cut a piece into units; False where nothing waits."""
        if not self._units and not self._inputs:
            return False
        self._halfway = True  # and stays so if an exception gets out
        where = BYTE_STREAM
        try:
            if self._units:
                offset, data = self._units.popleft()
                self._nal_units += 1
                where = f"NAL unit {self._nal_units} at byte {offset}"
                self._nal_unit(offset, data)
            else:
                where, take = self._inputs.popleft()
                self._units += take()
        except BitstreamError as error:
            self._name_position(error, where)
            self._finish_complete()
            self._abandon()
            if where == BYTE_STREAM:  # what follows may be a stream
                self._inputs.appendleft((BYTE_STREAM, partial(self._splitter.feed, b"")))
            self._failed = not self.resilient
            self._halfway = False
            if self._failed:
                raise
            self.dropped.add(str(error))
        self._halfway = False
        return True

    def _name_position(self, error: BitstreamError, where: str) -> None:
        position = "" if error.position is None else f", {'byte' if where == BYTE_STREAM else 'bit'} {error.position}"
        end = f", byte {self._splitter.offset}" if where == END else ""
        error.args = (f"{where}{end}{position}: {error.args[0]}",)

    def _recover(self) -> None:
        """After an exception that the caller has caught: forget what was given to the decoder, but for parameter sets."""
        self._inputs.clear()
        self._units.clear()
        self._splitter.clear(complain=False)
        self._abandon()
        self._halfway = False

    def _finish_complete(self) -> None:
        """The picture before a broken NAL unit, if all of it is there."""
        if self._work is not None and self._work.is_complete:
            with suppress(BitstreamError):  # the error of the unit is told
                self._finish_picture()

    def _abandon(self) -> None:
        """The picture at work is lost, what waits is given out, and an IDR picture begins anew."""
        self._work = self._last = None
        self._skipping = True
        if self._sequence is not None:
            self._sequence.buffer.flush()

    def _finish_last(self) -> list[tuple[int, bytes]]:
        """The last picture of the stream."""
        self._finish_picture()
        return []

    def _reset(self) -> list[tuple[int, bytes]]:
        """Behind the last picture: give out what waits, and be as before the first."""
        if self._sequence is not None:
            self._sequence.buffer.flush()
        self._end_skipping("the end of the stream")
        self._sequence = self._last = None
        self._order, self._prev_ref_frame_num = PictureOrder(), None
        return []

    def _end_skipping(self, where: str) -> None:
        """Say how much was dropped before decoding goes on."""
        if self._skipped:
            self.dropped.add(f"{self._skipped} slices dropped up to {where}")
        self._skipping, self._skipped = False, 0

    # NAL units (7.4.1) -----------------------------------------------------------------------------------------------

    def _nal_unit(self, offset: int, data: bytes) -> None:
        """7.3.1: one NAL unit; those that decoding does not need are skipped."""
        unit = parse_nal_unit(data)._replace(offset=offset)
        nal_unit_type = unit.nal_unit_type
        ends = nal_unit_type in _ENDS  # the access unit that they belong to
        if self._observer is not None and ends:
            self._observer.unit(unit)
        if nal_unit_type in _BETWEEN_PICTURES:
            self._finish_before(unit)
            self._last = None
        if self._observer is not None and not ends and nal_unit_type not in (NAL_SLICE, NAL_IDR):
            self._observer.unit(unit)
        if nal_unit_type in (NAL_SLICE, NAL_IDR):
            if self._skipping and nal_unit_type != NAL_IDR:
                self._skipped += 1
            else:
                self._slice(unit)
        elif nal_unit_type == NAL_SPS:
            sps = parse_sps(unit.rbsp())
            self._sps[sps.seq_parameter_set_id] = sps
        elif nal_unit_type == NAL_PPS:
            self._parameter_set(unit.rbsp())
        elif nal_unit_type == NAL_SEI:
            with suppress(BitstreamError):  # decoding does not need it
                user_data_texts(unit.rbsp(), self.user_data)
        elif NAL_PARTITION_A <= nal_unit_type <= NAL_PARTITION_C:
            raise Unsupported("data partitioning")

    def _parameter_set(self, rbsp: bytes) -> None:
        """7.3.2.2: a picture parameter set; what it means may depend on its sequence parameter set."""
        pps = parse_pps(rbsp)
        sps = self._sps.get(pps.seq_parameter_set_id)
        if sps is not None:
            pps = parse_pps(rbsp, sps)
        self._pps[pps.pic_parameter_set_id] = pps

    def _slice(self, unit: NalUnit) -> None:
        """7.3.2.8: a slice; the first of a picture ends the one before."""
        rbsp = unit.rbsp()
        header, sps, pps, position = parse_slice_header(unit.nal_unit_type, unit.nal_ref_idc, rbsp, self._sps, self._pps)
        check_sps(sps)
        check_slice(header, sps, pps)
        if header.redundant_pic_cnt:
            if self._observer is not None:
                self._observer.unit(unit)
            return  # the primary picture is there, or an error has said that it is not
        if self._skipping and header.first_mb_in_slice:
            self._skipped += 1  # of an IDR picture whose beginning is lost
            return
        if self._last is None or self._work is None or starts_new_picture(header, self._last):
            self._finish_before(unit)
            if self._skipping and header.idr:
                self._end_skipping(f"byte {unit.offset}")
                self._order, self._prev_ref_frame_num, self._last = PictureOrder(), None, None
            self._begin_picture(header, sps)
        if self._observer is not None:
            self._observer.unit(unit)
        self._last = header
        assert self._work is not None and self._sequence is not None
        self._work.decode_slice(header, pps, rbsp, position, self._sequence.buffer.references())

    # Pictures --------------------------------------------------------------------------------------------------------

    def _begin_picture(self, header: SliceHeader, sps: Sps) -> None:
        """8.2.1, 8.2.5.2: order count and gaps before the first slice of a picture."""
        sequence = self._sequence
        if sequence is None or sps != sequence.sps:
            if sequence is not None and not header.idr:
                raise BitstreamError("the sequence parameter set changes between IDR pictures")
            sequence = self._activate(sps, header)
        if header.idr:
            self._prev_ref_frame_num = 0
        elif self._prev_ref_frame_num is None:
            self._prev_ref_frame_num = header.frame_num  # a stream that does not begin with an IDR picture
        self._fill_gap(header, sequence)
        top, bottom = self._order.counts(header, sps)
        picture = Picture(
            id=self._next_id(),
            slot=sequence.buffer.free_slot(),
            frame_num=header.frame_num,
            sps=sps,
            top_poc=top,
            bottom_poc=bottom,
            waiting=True,
            is_idr=bool(header.idr),
            decode_index=self._pictures,
        )
        self._pictures += 1
        self._work = self._new_work(picture, sequence.pool, header)

    def _new_pool(self, sps: Sps, slots: int) -> Pool:
        return Pool(sps, slots, self._observer is not None and self._observer.traced)

    def _new_work(self, picture: Picture, pool: Pool, header: SliceHeader) -> PictureDecoding:
        return PictureDecoding(picture, pool, header)

    def _next_id(self) -> int:
        self._ids = (self._ids + 1) % (1 << 31)
        return self._ids

    def _activate(self, sps: Sps, header: SliceHeader) -> Sequence:
        """7.4.1.2.1: another sequence parameter set: what waits is given out, and the pool is made anew."""
        slots = dpb_size(sps) + 1
        check_pool(sps, slots)
        if self._sequence is not None:
            self._sequence.buffer.flush(discard=bool(header.no_output_of_prior_pics_flag))
        self._sequence = None  # its memory goes before the new pool takes as much
        pool = self._new_pool(sps, slots)
        self._sequence = Sequence(sps, pool, PictureBuffer(sps, partial(self._output, pool)))
        return self._sequence

    def _output(self, pool: Pool, picture: Picture) -> None:
        """C.4.2: the next picture in output order."""
        if self._observer is None:
            self._ready.append(pool.frame(picture))
        picture.display_index = self._shown
        self._shown += 1
        if self._observer is not None:
            self._observer.shown(picture)

    def _fill_gap(self, header: SliceHeader, sequence: Sequence) -> None:
        """8.2.5.2: "non-existing" frames for the values of frame_num that were left out."""
        assert self._prev_ref_frame_num is not None
        sps, buffer = sequence.sps, sequence.buffer
        previous, size = self._prev_ref_frame_num, header.max_frame_num(sps)
        missing = (header.frame_num - previous) % size
        if header.idr or missing <= 1:
            return
        if not sps.gaps_in_frame_num_value_allowed_flag:
            raise BitstreamError(f"frame_num goes from {previous} to {header.frame_num}: pictures are missing")
        for back in range(min(missing - 1, max(sps.max_num_ref_frames, 1)), 0, -1):
            frame_num = (header.frame_num - back) % size
            buffer.slide(frame_num)
            top, bottom = self._order.gap(frame_num, sps)
            picture = Picture(self._next_id(), NO_SLOT, frame_num, sps, top, bottom, marking=SHORT_TERM)
            buffer.store(picture)
            self._prev_ref_frame_num = frame_num

    def _finish_before(self, unit: NalUnit) -> None:
        """The end of the picture before a NAL unit. An error drops the picture alone: the unit comes again."""
        try:
            self._finish_picture()
        except BitstreamError:
            if unit.nal_unit_type not in _ENDS:  # which say nothing else
                self._units.appendleft((unit.offset, unit.data))
                self._nal_units -= 1
            raise

    def _finish_picture(self) -> None:
        """8.7, 8.2.5, C.4: deblock the picture at work, mark references, put it in the buffer."""
        work, self._work = self._work, None
        if work is None:
            return
        assert self._sequence is not None
        pool, buffer = self._sequence.pool, self._sequence.buffer
        work.finish()
        picture, header = work.picture, work.header
        if self._observer is not None:
            self._observer.decoded(work, pool)
        if self.macroblocks:
            picture.arrays = pool.macroblock_arrays(picture)
        reset = False
        if header.idr:
            buffer.mark_idr(picture, header)
            buffer.flush(discard=bool(header.no_output_of_prior_pics_flag))
        elif header.nal_ref_idc and header.adaptive_ref_pic_marking_mode_flag:
            reset = buffer.mark_adaptive(picture, header.marking_operations)
        elif header.nal_ref_idc:
            buffer.slide(picture.frame_num)
            picture.marking = SHORT_TERM
        if header.nal_ref_idc:
            self._prev_ref_frame_num = picture.frame_num
        if reset:  # 8.2.1: from now on as after an IDR picture
            buffer.flush()
            smallest = picture.poc
            picture.top_poc -= smallest
            picture.bottom_poc -= smallest
            picture.frame_num = self._prev_ref_frame_num = 0
            self._order.after_mmco5(picture.top_poc)
        buffer.store(picture)


def decode(data: bytes) -> list[Frame]:
    """All frames of a whole stream."""
    decoder = Decoder()
    return [*decoder.decode(data), *decoder.flush()]
