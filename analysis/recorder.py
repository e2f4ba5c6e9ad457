"""What a decoder did to each picture, copied from its arrays before the next one: the decoder's observer."""

from collections import deque
from typing import NamedTuple

import numpy as np

from ..decoder.layout import KIND_CHROMA, KIND_LUMA, KIND_MOTION
from ..decoder.picture import Picture, Pool
from ..decoder.picture_decoding import CodedSlice, PictureDecoding
from ..standard.bits import NalUnit
from ..standard.cabac_contexts import UNIT
from ..standard.macroblock import B_SKIP, I_PCM, LAST_INTRA, P_SKIP, I_4x4, I_8x8, I_16x16
from ..standard.syntax import SLICE_TYPE_NAMES
from .frame import AnalysedFrame, AnalysedSlice, MacroblockGrids, Samples

_START_CODE = b"\0\0\0\1"


class _Waiting(NamedTuple):
    """A frame whose place in display order, or that of a reference, is not known yet."""

    frame: AnalysedFrame
    picture: Picture
    slices: list[CodedSlice]
    ref_id: np.ndarray  # int32[2, H8, W8], Picture.id


class Recorder:
    """Makes AnalysedFrames of a decoder's pictures, in coding order; holds as many as the decoder reorders."""

    traced = True  # see decoder.Observer

    def __init__(self, samples: bool) -> None:
        self.ready: deque[AnalysedFrame] = deque()
        self._samples = samples
        self._waiting: deque[_Waiting] = deque()
        self._units: list[tuple[NalUnit, int]] = []  # of the access unit at work, with bytes in the stream
        self._end = 0  # of the NAL unit before, in the stream

    def unit(self, unit: NalUnit) -> None:
        """See decoder.Observer. The bytes before a NAL unit, of start codes and zeros, count for it."""
        end = unit.offset + len(unit.data)
        self._units.append((unit, end - self._end))
        self._end = end

    def decoded(self, work: PictureDecoding, pool: Pool) -> None:
        """See decoder.Observer."""
        picture, header, slices = work.picture, work.header, work.slices
        grids, ref_id = _grids(pool, picture)
        _set_pcm_qp(grids, {s.first_mb: s.header.qp(s.pps) for s in slices})
        units, self._units = self._units, []
        bits = 8 * sum(size for _, size in units)
        kinds = grids.bits_by_kind.sum((0, 1), np.int64)
        vectors, luma, chroma = ((kinds[[KIND_MOTION, KIND_LUMA, KIND_CHROMA]] + UNIT // 2) // UNIT).tolist()
        types = {SLICE_TYPE_NAMES[s.header.type_mod_5] for s in slices}
        sps = picture.sps
        frame = AnalysedFrame(
            coding_index=picture.decode_index,
            display_index=-1,
            poc=picture.poc,
            frame_num=picture.frame_num,
            frame_type=next(name for name in "BPI" if name in types),
            is_idr=picture.is_idr,
            is_reference=header.nal_ref_idc > 0,
            nal_ref_idc=header.nal_ref_idc,
            width=sps.width,
            height=sps.height,
            crop=sps.crop,
            mb_width=sps.mb_width,
            mb_height=sps.mb_height,
            bits=bits,
            header_bits=bits - int(grids.bits.sum()),
            bits_by_kind={"headers": bits - vectors - luma - chroma, "vectors": vectors, "luma": luma, "chroma": chroma},
            slices=(),
            sps=sps,
            units=tuple((unit.nal_unit_type, size) for unit, size in units),
            data=b"".join(chunk for unit, _ in units for chunk in (_START_CODE, unit.data)),
            macroblocks=grids,
        )
        if self._samples:
            frame.samples = _shown(picture, *(plane[picture.slot] for plane in pool.planes))
            frame.prediction = _shown(picture, *pool.traces[:3])
        self._waiting.append(_Waiting(frame, picture, slices, ref_id))
        self._release()

    def shown(self, picture: Picture) -> None:
        """See decoder.Observer."""
        self._release()

    def _release(self) -> None:
        """Give out the first frames whose place in display order is known: references come before them in coding order."""
        waiting = self._waiting
        while waiting and (waiting[0].picture.display_index >= 0 or not waiting[0].picture.waiting):
            frame, picture, slices, ref_id = waiting.popleft()
            frame.display_index = picture.display_index
            frame.macroblocks.reference = _twice(_places(slices, ref_id))
            frame.slices = tuple(_slice(s) for s in slices)
            self.ready.append(frame)


def _places(slices: list[CodedSlice], ref_id: np.ndarray) -> np.ndarray:
    """display_index by Picture.id; -1 where there is none."""
    known = {p.id: p.display_index for s in slices for p in (*s.list0, *s.list1) if p is not None}
    below = min(known, default=0) - 1
    table = np.full(max(known, default=0) - below + 1, -1, np.int32)
    for number, index in known.items():
        table[number - below] = index
    return table[np.maximum(ref_id - below, 0)]


def _set_pcm_qp(grids: MacroblockGrids, slice_qps: dict[int, int]) -> None:
    """7.4.5: QP_Y of I_PCM is that before it, where the decoder has the 0 of deblocking. slice_qps: by first macroblock."""
    qp = grids.qp.reshape(-1)
    for mb in np.flatnonzero(grids.mb_type == I_PCM).tolist():
        qp[mb] = slice_qps[mb] if mb in slice_qps else qp[mb - 1]


def _slice(s: CodedSlice) -> AnalysedSlice:
    lists = tuple(tuple(-1 if p is None else p.display_index for p in entries) for entries in (s.list0, s.list1))
    return AnalysedSlice(
        SLICE_TYPE_NAMES[s.header.type_mod_5],
        s.header,
        s.pps,
        s.header.qp(s.pps),
        s.first_mb,
        s.end_mb - s.first_mb,
        s.data_bits,
        lists,  # type: ignore[arg-type]
    )


def _twice(grid: np.ndarray) -> np.ndarray:
    """A grid [n, H8, W8] of 8x8 blocks as one of 4x4 blocks."""
    n, height, width = grid.shape
    wide = np.empty((n, height, width, 2), grid.dtype)
    wide[..., 0] = wide[..., 1] = grid
    return np.repeat(wide.reshape(n, height, 2 * width), 2, axis=1)


def _grids(pool: Pool, picture: Picture) -> tuple[MacroblockGrids, np.ndarray]:
    """Copies of the state of the picture at work, without `reference`; the numbers of its references."""
    mbs, traces, slot = pool.mbs, pool.traces, picture.slot
    size = pool.mb_height, pool.mb_width
    mb_type = mbs.mb_type.reshape(size).copy()
    ref_idx = _twice(pool.motion.ref_idx[slot])
    pairs = pool.motion.mv[slot].view(np.int32)[..., 0]  # (x, y) as one number: 30 times as fast
    mv = (pairs * (ref_idx >= 0)).view(np.int16).reshape(*pairs.shape, 2)
    nxn = np.repeat(np.repeat((mb_type == I_4x4) | (mb_type == I_8x8), 4, axis=0), 4, axis=1)
    sub_type = mbs.sub_type.reshape(*size, 4).copy()
    grids = MacroblockGrids(
        mb_type=mb_type,
        sub_type=sub_type,
        skip=(mb_type == P_SKIP) | (mb_type == B_SKIP),
        transform_8x8=mbs.transform_8x8.reshape(size).copy(),
        intra_mode=np.where(nxn, mbs.intra_mode, np.int8(-1)),
        intra16x16_mode=np.where(mb_type == I_16x16, mbs.intra16x16_mode.reshape(size).view(np.int8), np.int8(-1)),
        chroma_mode=np.where(
            (mb_type <= LAST_INTRA) & (mb_type != I_PCM), mbs.chroma_mode.reshape(size).view(np.int8), np.int8(-1)
        ),
        mv=mv,
        ref_idx=ref_idx,
        reference=ref_idx,  # until the places of references are known
        qp=mbs.qp.reshape(size).copy(),
        cbp=mbs.cbp.reshape(size).copy(),
        total_coeff=mbs.nonzero.copy(),
        bits=mbs.bits.reshape(size).copy(),
        bits_by_kind=mbs.bits_by_kind.reshape(*size, -1).copy(),
        slice_id=mbs.slice_id.reshape(size).copy(),
        residual_energy=traces.energy.reshape(size).copy(),
        strengths=traces.strengths.copy(),
    )
    return grids, pool.motion.ref_id[slot].copy()


def _shown(picture: Picture, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> Samples:
    """Copies of the planes of a picture without what is cropped."""
    left, right, top, bottom = picture.sps.crop
    height, width = y.shape

    def cut(plane: np.ndarray, k: int) -> np.ndarray:
        return plane[top // k : (height - bottom) // k, left // k : (width - right) // k].copy()

    return Samples(cut(y, 1), cut(u, 2), cut(v, 2))
