"""Streams whose coding order is not their display order, without B frames: types of frames, and syntax for their order."""

from dataclasses import replace
from typing import ClassVar

from h264lite.encoder import slice_writer
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.settings.config import Config
from h264lite.encoder.slice_writer import SliceWriter
from h264lite.scheduler.coding_settings import CodingSettings
from h264lite.scheduler.frame_spec import FrameSpec, I, P

DELAY = 1


class Pairs(FrameDecider):
    """I0 P2 P1 P4 P3 ...: odd frames of a GOP are no references, and refer to the frame after them first."""

    instances: ClassVar[list] = []

    def __init__(self, config, warn=None, copies=True, start=None):
        super().__init__(config, warn, copies, start)
        self._config = config
        self.added = self.coded = self.idr = self.frame_num = 0
        self.gop, self.references, self.held, self.lumas, self.flushed = -1, [], [], [], 0
        Pairs.instances.append(self)

    def add(self, planes=()):
        index = self.added
        self.added += 1
        self.lumas.append(planes[0].copy() if len(planes) else None)
        place = index % self._config.types.keyint
        if place % 2 and place + 1 < self._config.types.keyint:
            self.held.append(index)
            return []
        held, self.held = self.held, []
        return [self.spec(index, True), *(self.spec(k, False) for k in held)]

    def flush(self):
        self.flushed += 1
        held, self.held = self.held, []
        return [self.spec(index, True) for index in held]

    def spec(self, index, is_reference):
        is_idr = index % self._config.types.keyint == 0
        if is_idr:
            self.gop, self.idr, self.frame_num, self.references = self.gop + 1, index, 0, []
        before = list(self.references)
        coding, number = self.coded, self.frame_num
        if is_reference:
            self.references = [(coding, index), *before][: self._config.coding.ref]
            self.frame_num += 1
        self.coded += 1
        return FrameSpec(
            display_index=index, coding_index=coding, gop=self.gop, frame_type=I if is_idr else P, is_idr=is_idr,
            is_reference=is_reference, frame_num=number, pic_order_cnt=2 * (index - self.idr), idr_pic_id=(self.gop + 1) % 2,
            qp=self._config.rate.i_qp if is_idr else self._config.rate.qp, cabac_init_idc=0,
            list0=tuple(c for c, _ in before),
            references_after=tuple(c for c, _ in self.references), slices=self._config.coding.slice_ranges,
            distances=tuple(index - shown for _, shown in before), delay=DELAY,
        )  # fmt: skip


def install(monkeypatch, types=Pairs):
    """All encoders made from now on code frames in that order."""
    plain_set, plain_headers = slice_writer.sequence_parameter_set, SliceWriter.headers
    bits = slice_writer.LOG2_MAX_PIC_ORDER_CNT_LSB

    def with_order(config):
        return replace(plain_set(config), pic_order_cnt_type=0)

    def with_number(self, spec):
        words, lsb = plain_headers(self, spec), spec.pic_order_cnt % (1 << bits)  # the element after frame_num
        numbers = [number | (lsb << shift) >> bits for number, shift in zip(words.numbers, words.shifts)]
        return words._replace(numbers=tuple(numbers))

    Pairs.instances = []
    monkeypatch.setattr("h264lite.encoder.decision_queue.FrameDecider", types)
    monkeypatch.setattr(Config, "holds_frames", property(lambda self: True))
    monkeypatch.setattr(CodingSettings, "frames_back", property(lambda self: 2 * self.ref))
    monkeypatch.setattr(CodingSettings, "max_num_reorder_frames", property(lambda self: DELAY))
    monkeypatch.setattr(slice_writer, "sequence_parameter_set", with_order)
    monkeypatch.setattr(SliceWriter, "headers", with_number)
