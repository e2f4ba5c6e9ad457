"""The pictures of a byte stream by their headers alone: access units, IDR pictures, order of output; no sample is decoded."""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ..standard.bits import NAL_IDR, NAL_PPS, NAL_SLICE, NAL_SPS, BitReader, NalUnit
from ..standard.syntax import Pps, SliceHeader, Sps
from .decoder import Decoder
from .picture import Picture, Pool
from .picture_decoding import PictureDecoding

_LONGEST_HEADER = 4096  # bytes that a slice header has at most, with room for emulation prevention
_BEGINS_PICTURE = 0x80  # bit of a slice's first byte: first_mb_in_slice is 0


class _Headers(PictureDecoding):
    """A picture of which nothing is decoded."""

    def __init__(self, picture: Picture, header: SliceHeader) -> None:
        self.picture, self.header, self.slices = picture, header, []

    def decode_slice(self, header: SliceHeader, pps: Pps, rbsp: bytes, position: int, references: list[Picture]) -> None:
        """Nothing."""

    @property
    def is_complete(self) -> bool:
        """Nothing is missing."""
        return True

    def finish(self) -> None:
        """Nothing."""


class HeaderDecoder(Decoder):
    """A decoder that reads headers: parameter sets, and the first slice of each picture; its observer sees those units.

    References are marked and pictures put out as a Decoder does it, so that their order is the same.
    """

    def _new_pool(self, sps: Sps, slots: int) -> Pool:
        return cast(Pool, None)

    def _new_work(self, picture: Picture, pool: Pool, header: SliceHeader) -> PictureDecoding:
        return _Headers(picture, header)

    def _nal_unit(self, offset: int, data: bytes) -> None:
        if data[0] & 31 in (NAL_SLICE, NAL_IDR):
            if len(data) > 1 and not data[1] & _BEGINS_PICTURE:
                return
            data = data[:_LONGEST_HEADER]
        super()._nal_unit(offset, data)


class StreamMap:
    """Where the pictures of a stream lie, in coding order, and which are shown, in order of output: a decoder's observer."""

    traced = False

    def __init__(self) -> None:
        self.ready: deque[Any] = deque()
        self.positions = array("q")  # byte of the first NAL unit's header of each access unit
        self.is_idr = bytearray()
        self.shown_pictures = array("q")  # coding index of each frame in order of output
        self.sps: Sps | None = None  # of the first picture
        self._begin = -1  # of the access unit at work
        self._sets: list[NalUnit] = []  # of the access unit at work
        self._known: dict[tuple[int, int], bytes] = {}
        self._changes: list[tuple[int, tuple[int, int], bytes]] = []  # coding index, (type, identifier), NAL unit

    def unit(self, unit: NalUnit) -> None:
        """See decoder.Observer."""
        if self._begin < 0:
            self._begin = unit.offset
        if unit.nal_unit_type in (NAL_SPS, NAL_PPS):
            self._sets.append(unit)

    def decoded(self, work: PictureDecoding, pool: Pool) -> None:
        """See decoder.Observer."""
        for unit in self._sets:
            key = unit.nal_unit_type, _identifier(unit)
            if self._known.get(key) != unit.data:
                self._known[key] = unit.data
                self._changes.append((len(self.positions), key, unit.data))
        self._sets.clear()
        if self.sps is None:
            self.sps = work.picture.sps
        self.positions.append(self._begin)
        self.is_idr.append(work.picture.is_idr)
        self._begin = -1

    def shown(self, picture: Picture) -> None:
        """See decoder.Observer."""
        self.shown_pictures.append(picture.decode_index)

    def sets_before(self, index: int) -> list[bytes]:
        """The parameter sets that a decoder has before picture `index` in coding order, as NAL units."""
        known: dict[tuple[int, int], bytes] = {}
        for before, key, data in self._changes:
            if before >= index:
                break
            known.pop(key, None)  # the later before counts
            known[key] = data
        return list(known.values())


def _identifier(unit: NalUnit) -> int:
    """7.3.2.1, 7.3.2.2: seq_parameter_set_id or pic_parameter_set_id."""
    return BitReader(unit.rbsp()[:16], 24 if unit.nal_unit_type == NAL_SPS else 0).get_ue()


def map_of(pieces: Iterable[bytes]) -> StreamMap:
    """The pictures of a byte stream in pieces. BitstreamError where headers are broken, Unsupported by the tool's name."""
    stream_map = StreamMap()
    decoder: Any = HeaderDecoder(observer=stream_map)

    def pictures() -> Iterator[Any]:
        for piece in pieces:
            yield from decoder.decode(piece)
        yield from decoder.flush()

    for _ in pictures():
        pass
    return stream_map
