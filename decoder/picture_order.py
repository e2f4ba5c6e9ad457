"""8.2.1: picture order count, types 0, 1 and 2, for frames."""

from ..standard.syntax import SliceHeader, Sps
from .errors import BitstreamError

LARGEST_COUNT = (1 << 31) - 1


class PictureOrder:
    """Keeps what the next picture's order count depends on."""

    def __init__(self) -> None:
        self.prev_msb = 0  # prevPicOrderCntMsb
        self.prev_lsb = 0  # prevPicOrderCntLsb
        self.prev_frame_num = 0
        self.prev_offset = 0  # prevFrameNumOffset

    def counts(self, header: SliceHeader, sps: Sps) -> tuple[int, int]:
        """8.2.1: TopFieldOrderCnt and BottomFieldOrderCnt of a new picture. BitstreamError where they leave 32 bits."""
        if sps.pic_order_cnt_type == 0:
            counts = self._type_0(header, sps)
        else:
            delta = header.delta_pic_order_cnt
            counts = self._by_frame_num(header.frame_num, header.nal_ref_idc, header.idr, sps, delta)
        for count in counts:
            if not -LARGEST_COUNT - 1 <= count <= LARGEST_COUNT:
                raise BitstreamError(f"picture order count {count} is outside {-LARGEST_COUNT - 1}..{LARGEST_COUNT}")
        return counts

    def gap(self, frame_num: int, sps: Sps) -> tuple[int, int]:
        """8.2.5.2: the same of a "non-existing" frame; 0 for type 0, where it is not defined."""
        if sps.pic_order_cnt_type == 0:
            return 0, 0
        return self._by_frame_num(frame_num, 1, 0, sps, [0, 0])

    def after_mmco5(self, top: int) -> None:
        """8.2.1: a picture with memory_management_control_operation 5 counts as frame_num 0; top: as changed by it."""
        self.prev_msb, self.prev_lsb = 0, top
        self.prev_frame_num = self.prev_offset = 0

    def _type_0(self, header: SliceHeader, sps: Sps) -> tuple[int, int]:
        """8.2.1.1."""
        if header.idr:
            self.prev_msb = self.prev_lsb = 0
        size = 1 << (sps.log2_max_pic_order_cnt_lsb_minus4 + 4)
        lsb = header.pic_order_cnt_lsb
        msb = self.prev_msb
        if lsb < self.prev_lsb and self.prev_lsb - lsb >= size // 2:
            msb += size
        elif lsb > self.prev_lsb and lsb - self.prev_lsb > size // 2:
            msb -= size
        if header.nal_ref_idc:
            self.prev_msb, self.prev_lsb = msb, lsb
        return msb + lsb, msb + lsb + header.delta_pic_order_cnt_bottom

    def _by_frame_num(self, frame_num: int, nal_ref_idc: int, idr: int, sps: Sps, delta: list[int]) -> tuple[int, int]:
        """8.2.1.2, 8.2.1.3."""
        offset = 0
        if not idr:
            offset = self.prev_offset
            if self.prev_frame_num > frame_num:
                offset += 1 << (sps.log2_max_frame_num_minus4 + 4)
        self.prev_offset, self.prev_frame_num = offset, frame_num
        if sps.pic_order_cnt_type == 2:
            count = 0 if idr else 2 * (offset + frame_num) - (0 if nal_ref_idc else 1)
            return count, count
        cycle = sps.offset_for_ref_frame
        abs_frame_num = offset + frame_num if cycle else 0
        if nal_ref_idc == 0 and abs_frame_num > 0:
            abs_frame_num -= 1
        expected = 0
        if abs_frame_num > 0:
            cycles, position = divmod(abs_frame_num - 1, len(cycle))
            expected = cycles * sum(cycle) + sum(cycle[: position + 1])
        if nal_ref_idc == 0:
            expected += sps.offset_for_non_ref_pic
        top = expected + delta[0]
        return top, top + sps.offset_for_top_to_bottom_field + delta[1]
