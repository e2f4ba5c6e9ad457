"""The decoder: bytes of an H.264 stream in, frames in output order out; refuses what it lacks by name."""

from collections.abc import Iterator

import numpy as np

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
from .errors import BitstreamError, Unsupported
from .picture import NO_SLOT, SHORT_TERM, Frame, Picture, Pool
from .picture_decoding import PictureDecoding
from .picture_order import PictureOrder
from .support import check_pool, check_slice, check_sps

# 7.4.1.2.3: NAL units that end the primary coded picture before them.
_BETWEEN_PICTURES = (NAL_SEI, NAL_SPS, NAL_PPS, NAL_AUD, NAL_END_OF_SEQUENCE, NAL_END_OF_STREAM, *range(14, 19))


class Decoder:
    """Decodes an Annex B byte stream, given in pieces of any size.

    macroblocks: frames carry their macroblock arrays. resilient: after an error, go on at the next IDR picture; what
    was dropped stands in `dropped`, one line each.
    """

    def __init__(self, macroblocks: bool = False, resilient: bool = False) -> None:
        self.macroblocks = macroblocks
        self.resilient = resilient
        self.dropped: list[str] = []
        self._splitter = ByteStreamSplitter()
        self._sps: dict[int, Sps] = {}
        self._pps: dict[int, Pps] = {}
        self._active: Sps | None = None
        self._pool: Pool | None = None
        self._buffer: PictureBuffer | None = None
        self._order = PictureOrder()
        self._work: PictureDecoding | None = None  # the picture at work
        self._last: SliceHeader | None = None  # header of the last slice
        self._prev_ref_frame_num: int | None = None  # None before the first picture
        self._ready: list[Frame] = []
        self._pictures = 0  # begun so far
        self._ids = 0
        self._nal_units = 0
        self._skipping = False  # resilient: until the next IDR picture
        self._skipped = 0  # slices dropped so

    # The byte stream -------------------------------------------------------------------------------------------------

    def decode(self, data: bytes) -> Iterator[Frame]:
        """The frames that a piece of the stream completes; BitstreamError where it is broken."""
        yield from self._units(lambda: self._splitter.feed(data))
        if self.resilient:
            yield from self._units(lambda: self._splitter.feed(b""))  # behind what is not a byte stream

    def flush(self) -> Iterator[Frame]:
        """The frames left at the end of the stream; the decoder may be used for another stream afterwards."""
        try:
            yield from self._units(self._splitter.flush)
            yield from self._guarded(self._finish_picture, f"at the end of the stream, byte {self._splitter.offset}")
        finally:
            self._work = None
            if self._buffer is not None:
                self._buffer.flush()
            frames, self._ready = self._ready, []
            self._end_skipping("the end of the stream")
            self._active, self._pool, self._buffer, self._last = None, None, None, None
            self._order, self._prev_ref_frame_num = PictureOrder(), None
        yield from frames

    def _units(self, take) -> Iterator[Frame]:  # type: ignore[no-untyped-def]
        units: list[tuple[int, bytes]] = []
        yield from self._guarded(lambda: units.extend(take()), "byte stream")
        for offset, data in units:
            self._nal_units += 1
            where = f"NAL unit {self._nal_units} at byte {offset}"
            yield from self._guarded(lambda offset=offset, data=data: self._nal_unit(offset, data), where)

    def _guarded(self, step, where: str) -> Iterator[Frame]:  # type: ignore[no-untyped-def]
        """Run a step and give out its frames; an error is named with its place, or noted if resilient."""
        try:
            step()
        except BitstreamError as error:
            self._work = None
            unit = "byte" if where == "byte stream" else "bit"
            place = "" if error.position is None else f", {unit} {error.position}"
            error.args = (f"{where}{place}: {error.args[0]}",)
            if not self.resilient:
                self._splitter.clear()  # nothing follows an error but the frames that wait
                raise
            self.dropped.append(str(error))
            self._skipping = True
            if self._buffer is not None:
                self._buffer.flush()
        frames, self._ready = self._ready, []
        yield from frames

    def _end_skipping(self, where: str) -> None:
        """Resilient: say how much was dropped before decoding goes on."""
        if self._skipped:
            self.dropped.append(f"{self._skipped} slices dropped up to {where}")
        self._skipping, self._skipped = False, 0

    # NAL units (7.4.1) -----------------------------------------------------------------------------------------------

    def _nal_unit(self, offset: int, data: bytes) -> None:
        """7.3.1: one NAL unit; those that decoding does not need are skipped."""
        unit = parse_nal_unit(data)._replace(offset=offset)
        kind = unit.nal_unit_type
        if kind in _BETWEEN_PICTURES:
            self._finish_picture()
            self._last = None
        if kind in (NAL_SLICE, NAL_IDR):
            if self._skipping and kind != NAL_IDR:
                self._skipped += 1
            else:
                self._slice(unit)
        elif kind == NAL_SPS:
            sps = parse_sps(unit.rbsp())
            self._sps[sps.seq_parameter_set_id] = sps
        elif kind == NAL_PPS:
            self._parameter_set(unit.rbsp())
        elif NAL_PARTITION_A <= kind <= NAL_PARTITION_C:
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
        header, sps, pps, position = parse_slice_header(
            unit.nal_unit_type, unit.nal_ref_idc, rbsp, self._sps, self._pps
        )
        check_sps(sps)
        check_slice(header, sps, pps)
        if header.redundant_pic_cnt:
            return  # the primary picture is there, or an error has said that it is not
        if self._skipping and header.first_mb_in_slice:
            self._skipped += 1  # of an IDR picture whose beginning is lost
            return
        if self._last is None or self._work is None or starts_new_picture(header, self._last):
            self._finish_picture()
            if self._skipping and header.idr:
                self._end_skipping(f"byte {unit.offset}")
                self._order, self._prev_ref_frame_num, self._last = PictureOrder(), None, None
            self._begin_picture(header, sps)
        self._last = header
        assert self._work is not None and self._buffer is not None
        self._work.decode_slice(header, pps, rbsp, position, self._buffer.references())

    # Pictures --------------------------------------------------------------------------------------------------------

    def _begin_picture(self, header: SliceHeader, sps: Sps) -> None:
        """8.2.1, 8.2.5.2: order count and gaps before the first slice of a picture."""
        if self._active is None or sps != self._active:
            if self._active is not None and not header.idr:
                raise BitstreamError("the sequence parameter set changes between IDR pictures")
            self._activate(sps, header)
        assert self._pool is not None and self._buffer is not None
        if header.idr:
            self._prev_ref_frame_num = 0
        elif self._prev_ref_frame_num is None:
            self._prev_ref_frame_num = header.frame_num  # a stream that does not begin with an IDR picture
        self._fill_gap(header, sps)
        top, bottom = self._order.counts(header, sps)
        picture = Picture(
            id=self._next_id(), slot=self._buffer.free_slot(), frame_num=header.frame_num, sps=sps,
            top_poc=top, bottom_poc=bottom, waiting=True, is_idr=bool(header.idr), decode_index=self._pictures,
        )  # fmt: skip
        self._pictures += 1
        self._work = PictureDecoding(picture, self._pool, header)

    def _next_id(self) -> int:
        self._ids = (self._ids + 1) % (1 << 31)
        return self._ids

    def _activate(self, sps: Sps, header: SliceHeader) -> None:
        """7.4.1.2.1: another sequence parameter set: what waits is given out, and the pool is made anew."""
        if self._buffer is not None:
            self._buffer.flush(discard=bool(header.no_output_of_prior_pics_flag))
        self._active = sps
        slots = dpb_size(sps) + 1
        check_pool(sps, slots)
        pool = Pool(sps.mb_width, sps.mb_height, slots)
        self._pool = pool
        self._buffer = PictureBuffer(sps, lambda picture: self._ready.append(pool.frame(picture)))

    def _fill_gap(self, header: SliceHeader, sps: Sps) -> None:
        """8.2.5.2: "non-existing" frames for the values of frame_num that were left out."""
        assert self._buffer is not None and self._prev_ref_frame_num is not None
        previous, size = self._prev_ref_frame_num, header.max_frame_num(sps)
        missing = (header.frame_num - previous) % size
        if header.idr or missing <= 1:
            return
        if not sps.gaps_in_frame_num_value_allowed_flag:
            raise BitstreamError(f"frame_num goes from {previous} to {header.frame_num}: pictures are missing")
        for back in range(min(missing - 1, max(sps.max_num_ref_frames, 1)), 0, -1):
            frame_num = (header.frame_num - back) % size
            self._buffer.slide(frame_num)
            top, bottom = self._order.gap(frame_num, sps)
            picture = Picture(self._next_id(), NO_SLOT, frame_num, sps, top, bottom, marking=SHORT_TERM)
            self._buffer.store(picture)
            self._prev_ref_frame_num = frame_num

    def _finish_picture(self) -> None:
        """8.7, 8.2.5, C.4: deblock the picture at work, mark references, put it in the buffer."""
        work, self._work = self._work, None
        if work is None:
            return
        assert self._buffer is not None and self._pool is not None
        work.finish()
        picture, header = work.picture, work.header
        if self.macroblocks:
            picture.arrays = self._pool.macroblock_arrays(picture)
        reset = False
        if header.idr:
            self._buffer.mark_idr(picture, header)
            self._buffer.flush(discard=bool(header.no_output_of_prior_pics_flag))
        elif header.nal_ref_idc and header.adaptive_ref_pic_marking_mode_flag:
            reset = self._buffer.mark_adaptive(picture, header.marking_operations)
        elif header.nal_ref_idc:
            self._buffer.slide(picture.frame_num)
            picture.marking = SHORT_TERM
        if header.nal_ref_idc:
            self._prev_ref_frame_num = picture.frame_num
        if reset:  # 8.2.1: from now on as after an IDR picture
            self._buffer.flush()
            smallest = picture.poc
            picture.top_poc -= smallest
            picture.bottom_poc -= smallest
            picture.frame_num = self._prev_ref_frame_num = 0
            self._order.after_mmco5(picture.top_poc)
        self._buffer.store(picture)


def decode(data: bytes) -> list[Frame]:
    """All frames of a whole stream."""
    decoder = Decoder()
    return [*decoder.decode(data), *decoder.flush()]


def decode_planes(data: bytes) -> np.ndarray:
    """All frames of a whole stream of one size as planar I420, uint8[frames, width * height * 3 / 2]."""
    return np.array([np.frombuffer(frame.to_bytes(), np.uint8) for frame in decode(data)])
