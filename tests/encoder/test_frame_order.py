"""Streams with B frames: order, references and numbers of frames; their slice headers, read by the decoder's own code."""

from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from h264lite.decoder.dpb import PictureBuffer
from h264lite.decoder.picture import SHORT_TERM, Picture
from h264lite.decoder.picture_order import PictureOrder
from h264lite.decoder.reference_lists import kernel_references, reference_lists
from h264lite.encoder import list_syntax, slice_writer
from h264lite.encoder.decisions import weights
from h264lite.encoder.decisions.fixed_types import IDR, FixedTypes
from h264lite.encoder.decisions.frame_decider import FrameDecider
from h264lite.encoder.decisions.frame_order import FrameOrder
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.pyramid import coding_order, dpb_frames, reference_levels, reordered_frames
from h264lite.encoder.slice_writer import SliceWriter
from h264lite.scheduler.frame_spec import UNWEIGHTED, FrameSpec, ReferenceFrame
from h264lite.scheduler.frames.dpb import DecodedPictureBuffer
from h264lite.standard.syntax import B as B_SLICE
from h264lite.standard.syntax import parse_pps, parse_slice_header, parse_sps, write_pps, write_sps

from ..inside import changed
from ..support.steady import steady

SLICES = ((0, 2), (2, 3))
MANY = 2**30


def config_of(**options):
    fixed = {"width": 48, "height": 48, "device": "cpu", "threads": 1, "slices": 2, "b_adapt": 0, "scenecut": 0}
    return Config.from_options(**steady(fixed | options))


def specs_of(frames, **options):
    types = FrameDecider(config_of(**options))
    return [spec for _ in range(frames) for spec in types.add()] + types.flush()


def shown(specs, name="frame_type"):
    """Of the frames in display order."""
    return [getattr(spec, name) for spec in sorted(specs, key=lambda spec: spec.display_index)]


def test_types_in_display_order():
    for frames, options, wanted in (
        (9, {"bframes": 2}, "IBBPBBPBP"), (8, {"bframes": 2}, "IBBPBBPP"), (7, {"bframes": 2}, "IBBPBBP"),
        (11, {"bframes": 3, "keyint": 7}, "IBBBPBPIBBP"), (4, {"bframes": 3, "keyint": 2}, "IPIP"),
        (3, {"bframes": 3, "keyint": 1}, "III"), (1, {"bframes": 1}, "I"), (6, {"bframes": 16}, "IBBBBP"),
        (5, {}, "IPPPP"),
    ):  # fmt: skip
        specs = specs_of(frames, **options)
        assert "".join(shown(specs)) == wanted
        assert shown(specs, "display_index") == [spec.coding_index for spec in specs] == list(range(frames))
        keyint = options.get("keyint", MANY)
        assert shown(specs, "is_idr") == [n % keyint == 0 for n in range(frames)]
        assert shown(specs, "gop") == [n // keyint for n in range(frames)]


def test_frames_without_b_frames_come_at_once_and_as_of_the_order_with_b_frames():
    config = config_of(keyint=5, ref=3)
    types, order, fixed = FrameDecider(config), FrameOrder(changed(config, bframes=1)), FixedTypes(config)
    for _ in range(13):
        (spec,) = types.add([np.zeros((48, 48), np.uint8)])
        (ordered,) = [spec for kind in fixed.add(None) for spec in order.add(kind)]
        assert ordered._replace(references_before=(), delay=0) == spec
    assert types.flush() == fixed.flush() == []


def test_order_of_a_pyramid():
    def order(count, pyramid):
        return [place if is_reference else -place for place, is_reference in coding_order(count, pyramid)]

    assert order(3, "none") == [0, -1, -2]
    assert order(1, "normal") == [0] and not coding_order(1, "normal")[0][1] and coding_order(0, "dyadic") == []
    assert order(2, "normal") == order(2, "dyadic") == [0, -1] and coding_order(2, "normal")[0][1]
    assert order(3, "normal") == order(3, "dyadic") == [1, 0, -2]
    assert order(7, "normal") == [3, 0, -1, -2, -4, -5, -6]
    assert order(7, "dyadic") == [3, 1, 0, -2, 5, -4, -6]


@pytest.mark.parametrize("pyramid", ("none", "normal", "dyadic"))
@pytest.mark.parametrize("count", range(17))
def test_what_a_pyramid_takes(count, pyramid):
    """By counting in the order of each shorter run too, as the last one of a GOP may be."""
    most_before, most_levels = 0, 0
    for n in range(count + 1):
        coded = [n, *(place for place, _ in coding_order(n, pyramid))]
        assert sorted(coded) == list(range(n + 1))
        before = [sum(other > place for other in coded[:at]) for at, place in enumerate(coded)]
        most_before = max(most_before, *before)
        references = {place for place, is_reference in coding_order(n, pyramid) if is_reference}
        later = [sum(other > place and other in references for other in coded[:at]) for at, place in enumerate(coded)]
        most_levels = max([most_levels, *(k + (place in references) for k, place in zip(later, coded))])
    assert reordered_frames(count, pyramid) == most_before
    assert reference_levels(count, pyramid) >= most_levels
    assert dpb_frames(1, count, pyramid) == (2 + reference_levels(count, pyramid) if count else 1)


def test_a_mini_gop():
    specs = specs_of(9, bframes=3, ref=2, qp=30)
    assert [spec.display_index for spec in specs] == [0, 4, 2, 1, 3, 8, 6, 5, 7]
    assert [spec.frame_type for spec in specs] == list("IPBBBPBBB")
    assert [spec.qp for spec in specs[:5]] == [27, 30, 33, 35, 35]
    assert [spec.nal_ref_idc for spec in specs[:5]] == [3, 2, 2, 0, 0]
    assert [spec.frame_num for spec in specs] == [0, 1, 2, 3, 3, 3, 4, 5, 5]
    assert [spec.pic_order_cnt for spec in specs[:5]] == [0, 8, 4, 2, 6]
    assert [spec.list0 for spec in specs] == [(), (0,), (0,), (0,), (2,), (1, 0), (1,), (1,), (6,)]
    assert [spec.list1 for spec in specs] == [(), (), (1,), (2,), (1,), (), (5,), (6,), (5,)]
    assert specs[4].distances == (1, -1) and specs[5].distances == (4, 8)
    assert [spec.delay for spec in specs] == 9 * [2] and specs[3].dts == specs[3].pts == 1
    assert [spec.references_after for spec in specs[3:6]] == [(1, 2, 0), (1, 2, 0), (5, 1, 2)]
    assert specs[4].is_weighted and not specs[1].is_weighted and len(specs[4].implicit_weights) == 1
    assert not any(spec.is_weighted for spec in specs_of(9, bframes=3, no_weightb=True))


@pytest.mark.parametrize("options", [{"ref": 3}, {"ref": 5, "b_pyramid": "dyadic"}, {"ref": 16}], ids=str)
def test_p_frames_wait_for_no_b_frame(options):
    """They have as many references as are asked for, but where the levels of B frames leave no room for the sixteenth."""
    specs = specs_of(240, bframes=8, **options)
    kinds = {spec.coding_index: spec.frame_type for spec in specs}
    of_p = [spec for spec in specs if spec.frame_type == "P"]
    assert {kinds[index] for spec in of_p for index in spec.list0} == {"I", "P"}
    assert len(of_p[-1].list0) == min(options["ref"], 15)
    assert all((len(spec.list0), len(spec.list1)) == (1, 1) for spec in specs if spec.frame_type == "B")


def test_a_b_frame_before_an_idr_frame_is_refused():
    order = FrameOrder(config_of(bframes=2))
    assert len(order.add(IDR)) == 1 and order.add("B") == []
    with pytest.raises(ValueError, match="no frame of its GOP after it"):
        order.add(IDR)


class HeaderDecoder:
    """Reads slice headers alone: picture order, lists, marking and output, by the decoder's own code."""

    def __init__(self, writer, bumping):
        """bumping: output only where the buffer is full (C.4.5.3), else as early as max_num_reorder_frames allows."""
        self.sps, self.pps = parse_sps(write_sps(writer.sps)), parse_pps(write_pps(writer.pps))
        self.output, self.pictures = deque(), 0
        self.buffer, self.order = PictureBuffer(self.sps, self.output.append), PictureOrder()
        if bumping:
            self.buffer._reorder = self.buffer.size
        self.last_frame_num = 0

    def decode(self, unit_type, ref_idc, slices):
        """One picture: its coding index, headers, lists (coding indices), counts, and the references after it."""
        buffer, decoded = self.buffer, []
        for rbsp in slices:
            header, _, _, _ = parse_slice_header(unit_type, ref_idc, rbsp, {0: self.sps}, {0: self.pps})
            if not decoded:
                top, bottom = self.order.counts(header, self.sps)
                picture = Picture(self.pictures, buffer.free_slot(), header.frame_num, self.sps, top, bottom, waiting=True)
            lists = reference_lists(header, picture, buffer.references()) if header.type_mod_5 in (0, B_SLICE) else ((), ())
            assert None not in lists[0] and None not in lists[1]
            arrays = kernel_references(header, self.pps, picture, *map(list, lists))
            decoded.append((header, tuple(tuple(p.id for p in pictures) for pictures in lists), arrays.implicit))
        header = decoded[0][0]
        assert header.idr or header.frame_num == (self.last_frame_num + 1) % header.max_frame_num(self.sps)
        self.pictures += 1
        if header.idr:
            buffer.mark_idr(picture, header)
            buffer.flush()
        elif header.adaptive_ref_pic_marking_mode_flag:
            buffer.mark_adaptive(picture, header.marking_operations)
        elif header.nal_ref_idc:
            buffer.slide(picture.frame_num)
            picture.marking = SHORT_TERM
        self.last_frame_num = header.frame_num if header.nal_ref_idc else self.last_frame_num
        buffer.store(picture)
        return picture, decoded, {p.id for p in buffer.references()}


def check_headers(config, specs, bumping=False):
    """The decoder finds in the headers what the specs say. Returns what the headers had to say beyond the defaults."""
    writer, slots, seen = SliceWriter(config), DecodedPictureBuffer(config.coding.dpb_frames + 1), set()
    decoder, counts = HeaderDecoder(writer, bumping), {}
    for spec in specs:
        frame = SimpleNamespace(spec=spec, headers=writer.headers(spec))
        payloads = [writer._header_as_bytes(frame, n).tobytes() + b"\x80" for n in range(len(spec.slices))]
        picture, slices, references = decoder.decode(5 if spec.is_idr else 1, spec.nal_ref_idc, payloads)
        counts[picture.id] = spec.display_index
        assert picture.poc == spec.pic_order_cnt and picture.id == spec.coding_index
        for (header, lists, implicit), (first_mb, _) in zip(slices, spec.slices):
            assert lists == (spec.list0, spec.list1)
            assert header.first_mb_in_slice == first_mb and header.qp(writer.pps) == spec.qp
            assert "PBI"[header.type_mod_5] == spec.frame_type
            table = implicit[: spec.n_ref, : spec.n_ref1].ravel().tolist() if spec.n_ref1 else []
            assert table == list(spec.implicit_weights)
            seen |= {"list"} if header.modifications_l0 else set()
            seen |= {"marking"} if header.marking_operations else set()
        assert references == set(spec.references_after)
        slot, listed = slots.begin(spec)
        assert len(listed) == spec.n_ref + spec.n_ref1 <= config.coding.most_searches
        slots.end(spec, slot)
        assert spec.dts <= spec.pts and spec.delay == config.coding.max_num_reorder_frames
    decoder.buffer.flush()
    assert [counts[picture.id] for picture in decoder.output] == list(range(len(specs)))
    return seen


OPTIONS = [
    {"bframes": 1}, {"bframes": 2, "keyint": 9}, {"bframes": 3, "ref": 3, "no_weightb": True},
    {"bframes": 3, "b_pyramid": "none"}, {"bframes": 5, "b_pyramid": "none", "ref": 4, "keyint": 23, "no_cabac": True},
    {"bframes": 7, "b_pyramid": "dyadic", "ref": 2}, {"bframes": 16, "b_pyramid": "dyadic", "ref": 5},
    {"bframes": 16, "ref": 16}, {"bframes": 4, "b_pyramid": "dyadic", "keyint": 3}, {"ref": 3, "keyint": 50},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_decoders_find_the_lists(options):
    """More frames than wrap pic_order_cnt_lsb and, with references enough, frame_num."""
    options = {"keyint": MANY, **options}
    seen = check_headers(config_of(**options), specs_of(560, **options))
    pyramid = options.get("bframes", 0) > 1 and options.get("b_pyramid") != "none" and options["keyint"] > 3
    assert seen == ({"list", "marking"} if pyramid else set())


def random_types(rng, frames, bframes):
    """Types as an adaptive TypeSource may decide."""
    types = [IDR]
    while len(types) < frames:
        run = rng.integers(0, bframes + 1)
        anchor = rng.choice(["P", "I"], p=[0.9, 0.1])
        types += [*run * ["B"], str(anchor)]
        if rng.random() < 0.03:
            types.append(IDR)
    return types


@pytest.mark.parametrize("bumping", (False, True))
@pytest.mark.parametrize("seed", range(8))
def test_random_types_and_repeated_references(monkeypatch, seed, bumping):
    """The first reference of P frames is repeated at random, as by --weightp 2."""
    rng = np.random.default_rng(seed)
    config = config_of(
        bframes=int(rng.integers(1, 17)), ref=int(rng.integers(1, 6)), keyint=MANY, weightp=2,
        b_pyramid=str(rng.choice(["none", "normal", "dyadic"])), no_cabac=bool(seed % 2),
    )  # fmt: skip
    monkeypatch.setattr(weights, "entries", lambda *_: tuple(rng.integers(0, 3) * [UNWEIGHTED]))
    order, coding = FrameOrder(config), config.coding
    weighting = weights.Weighting((coding.width, coding.height), coding.repeats_references)
    types = random_types(rng, 300, config.coding.bframes)
    specs = [weighting.of(spec, (1,)) for kind in types for spec in order.add(kind)]
    assert all(not spec.duplicates and not spec.weights for spec in specs if spec.frame_type != "P")
    assert any(spec.duplicates for spec in specs)
    check_headers(config, specs, bumping)


@pytest.mark.parametrize("log2", (4, 5))
def test_short_numbers_wrap_often(monkeypatch, log2):
    """Of a few frames: the arithmetic of 8.2.4.1 at each place of a wrap."""
    monkeypatch.setattr(slice_writer, "LOG2_MAX_FRAME_NUM", log2)
    monkeypatch.setattr(slice_writer, "LOG2_MAX_PIC_ORDER_CNT_LSB", log2 + 2)
    for options in ({"bframes": 3, "ref": 4}, {"bframes": 2}, {"bframes": 4, "ref": 3, "b_pyramid": "dyadic"}):
        options = {"keyint": MANY, **options}
        assert check_headers(config_of(**options), specs_of(150, **options)) == {"list", "marking"}


def spec_of(frame_type, held, count, **fields):
    return FrameSpec(
        0, 99, 0, frame_type, False, True, 20, count, 0, 26, 0, fields.pop("list0", ()), fields.pop("after", ()), SLICES,
        references_before=held, **fields,
    )  # fmt: skip


def test_initial_lists():
    held = (
        ReferenceFrame(3, 4, 16, False),
        ReferenceFrame(5, 6, 12, False),
        ReferenceFrame(4, 5, 8, False),
        ReferenceFrame(1, 2, 0, False),
    )
    assert list_syntax.initial_lists(spec_of("P", held, 20)) == ([5, 4, 3, 1], [])
    assert list_syntax.initial_lists(spec_of("B", held, 10)) == ([4, 1, 5, 3], [5, 3, 4, 1])
    assert list_syntax.initial_lists(spec_of("B", held, 20)) == ([3, 5, 4, 1], [5, 3, 4, 1]), "8.2.4.2.3: two are switched"
    assert list_syntax.initial_lists(spec_of("B", held[:1], 20)) == ([3], [3])


def test_modifications_are_no_more_than_needed():
    held = tuple([ReferenceFrame(*numbers, False) for numbers in ((3, 4, 16), (5, 6, 12), (4, 5, 8), (1, 2, 0))])
    # the initial list of a P frame: 5, 4, 3, 1

    def said(*list0):
        entries, other = list_syntax.modifications(spec_of("P", held, 20, list0=list0), 256)
        assert other == []
        return [(entry.modification_of_pic_nums_idc, entry.abs_diff_pic_num_minus1) for entry in entries]

    assert said(5) == said(5, 4) == said(5, 4, 3, 1) == []
    assert said(3) == said(3, 5) == said(3, 5, 4, 1) == [(0, 15)]
    assert said(3, 4) == [(0, 15), (1, 0)]
    assert said(5, 5, 4) == [(0, 13), (0, 255)]
    assert said(3, 3) == [(0, 15), (0, 255)]


@pytest.mark.parametrize(("name", "nothing"), [("modifications", ([], [])), ("marking_operations", [])])
def test_missing_syntax_is_noticed(monkeypatch, name, nothing):
    """By the check of these tests: the defaults of the standard are other lists and other references."""
    monkeypatch.setattr(slice_writer, name, lambda *_: nothing)
    with pytest.raises(AssertionError):
        check_headers(config_of(bframes=3, ref=2), specs_of(30, bframes=3, ref=2))
