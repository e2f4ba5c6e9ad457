"""Random settings of rates: refused by name, or encoded with sound numbers of bits, QPs and buffers, and decoded alike."""

import json
import math
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import h264lite
import numpy as np
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.frame_requests import request_of
from h264lite.encoder.statistics import FrameRow
from hypothesis import strategies as st

from .encoder_cases import ffmpeg_samples

UNDERFLOW = "it underflows"  # in the warning of the first frame that comes too late
BROKEN = UNDERFLOW, "it breaks MinCR"  # in warnings that the buffer's promises are not kept
Requests = dict[int, dict[str, Any]]


class Case(NamedTuple):
    """What the encoder gets; contents by their seed. qpfile: its lines; requests: arguments of `encode`, by frame."""

    width: int
    height: int
    frames: int
    content: str
    seed: int
    options: dict[str, Any]
    qpfile: tuple[str, ...]
    requests: Requests


def _zone(draw: st.DrawFn) -> str:
    first = draw(st.integers(0, 9))
    last = first + draw(st.integers(0, 6))
    what = draw(
        st.one_of(st.integers(0, 51).map(lambda qp: f"q={qp}"), st.sampled_from((0.01, 0.5, 1, 2.5, 100)).map("b={}".format))
    )
    return f"{first},{last},{what}"


_ZONES = st.lists(st.composite(_zone)(), min_size=1, max_size=3).map("/".join)
_LINE = st.tuples(st.integers(0, 11), st.sampled_from("IKiPBb"), st.sampled_from(("", " -1", " 0", " 7", " 26", " 51")))
_QPFILE = st.lists(_LINE, max_size=5, unique_by=lambda line: line[0]).map(
    lambda lines: tuple(f"{n} {kind}{qp}" for n, kind, qp in lines)
)
_REQUEST = st.fixed_dictionaries({}, optional={
    "qp": st.integers(0, 51), "frame_type": st.sampled_from(("IDR", "I", "P", "B")), "keyframe": st.just(True),
})  # fmt: skip
_REQUESTS = st.dictionaries(st.integers(0, 11), _REQUEST, max_size=2)
_RATE = st.one_of(  # more or less what such frames have, and limits
    st.integers(1, 2000), st.integers(20, 400), st.integers(20, 400), st.sampled_from((1, 2, 100000, 1000000, 2000000)),
)  # fmt: skip
_FACTOR = st.one_of(st.sampled_from((0, 0.5, 51, 50.75)), st.floats(0, 51), st.integers(15, 35))
_BITRATES = st.fixed_dictionaries(
    {"bitrate": _RATE}, optional={"ratetol": st.one_of(st.sampled_from((0.1, 1, 100)), st.floats(0.1, 100))}
)
_CRFS, _QPS = st.fixed_dictionaries({"crf": _FACTOR}), st.fixed_dictionaries({}, optional={"qp": st.integers(0, 51)})
_HOW = {"vbv_init": st.one_of(st.floats(0, 1), st.floats(1, 400), st.sampled_from((0, 1, 2000000))),
        "nal_hrd": st.sampled_from(("none", "vbr", "cbr")), "filler": st.booleans(),
        "crf_max": st.floats(0, 51), "pic_struct": st.booleans()}  # fmt: skip
_BUFFERS = st.one_of(
    st.fixed_dictionaries({"vbv_maxrate": _RATE, "vbv_bufsize": _RATE}, optional=_HOW),
    st.integers(20, 2000).flatmap(lambda rate: st.fixed_dictionaries(
        {"vbv_maxrate": st.just(rate), "vbv_bufsize": st.integers(-(-rate // 12), 2 * rate + 5)}, optional=_HOW)),
    st.fixed_dictionaries({}, optional={"vbv_maxrate": _RATE, **_HOW}),
)  # fmt: skip
OTHERS = {
    "zones": _ZONES, "aq_mode": st.integers(0, 3), "aq_strength": st.one_of(st.sampled_from((0, 1, 3)), st.floats(0, 3)),
    "no_mbtree": st.booleans(), "psy_rd": st.sampled_from((0, 0.4, 1, "10:0")), "no_psy": st.just(True),
    "qcomp": st.one_of(st.sampled_from((0, 0.6, 1)), st.floats(0, 1)), "qpmin": st.sampled_from((0, 3, 20, 51)),
    "qpmax": st.sampled_from((51, 69, 45, 30, 0)), "ipratio": st.floats(0.25, 4), "pbratio": st.floats(0.25, 4),
    "tune": st.sampled_from(("psnr", "ssim", "film", "animation", "grain", "stillimage", "fastdecode", "zerolatency",
                             "film,zerolatency", "psnr,fastdecode")),
    "rc_lookahead": st.sampled_from((0, 1, 3, 10, 40, 250)), "keyint": st.sampled_from((1, 2, 3, 7, 250, "infinite")),
    "min_keyint": st.sampled_from(("auto", 1, 2)), "bframes": st.integers(0, 5), "scenecut": st.sampled_from((0, 40, 100)),
    "b_pyramid": st.sampled_from(("none", "normal", "dyadic")), "b_adapt": st.integers(0, 2), "weightp": st.integers(0, 2),
    "slices": st.integers(1, 3), "gops": st.integers(1, 3), "ref": st.integers(1, 3), "ssim": st.just(True),
    "fps": st.sampled_from((25, 1, "30000/1001", 0.01, 300, 12)), "level": st.sampled_from(("1", "1.3", "2.1", "4", "6.2")),
    "profile": st.sampled_from(("high", "high", "main", "baseline")), "bits_by_kind": st.just(True), "aud": st.just(True),
    "chroma_qp_offset": st.integers(-12, 12), "subme": st.sampled_from((1, 2, 6)), "trellis": st.integers(0, 1),
}  # fmt: skip
MOST_OTHERS = 14  # of these in a case


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Tiny clips with rates, some of which contradict one another."""
    given = draw(st.sets(st.sampled_from(sorted(OTHERS)), max_size=MOST_OTHERS))
    options = {"threads": draw(st.sampled_from((1, 1, 2, 3)))} | {name: draw(OTHERS[name]) for name in sorted(given)}
    rates = draw(draw(st.sampled_from((_BITRATES, _CRFS, _CRFS, _BITRATES, _CRFS, _QPS))))
    has_rate = bool(rates.keys() & {"crf", "bitrate"})
    options |= rates | (draw(_BUFFERS) if draw(st.integers(0, 9)) < (6 if has_rate else 1) else {})
    if draw(st.integers(0, 9)):  # else most are refused for what contradicts
        _without_contradictions(options)
    size = draw(st.sampled_from((32, 33, 48, 64, 96))), draw(st.sampled_from((32, 47, 48, 80)))
    ways = (_QPFILE, ()), (_REQUESTS, {})
    qpfile, requests = (draw(way) if draw(st.integers(0, 5)) == 0 else empty for way, empty in ways)
    content, seed = draw(st.sampled_from(sorted(CONTENTS))), draw(st.integers(0, 2**32 - 1))
    return Case(*size, draw(st.integers(1, 12)), content, seed, options, qpfile, requests)


def _without_contradictions(options: dict[str, Any]) -> None:
    """Leaves out what the documentation excludes beside other options."""
    if not options.keys() & {"crf", "bitrate"}:
        for name in ("qpmin", "qpmax"):
            options.pop(name, None)
    if options.get("qpmin", 0) > min(51, options.get("qpmax", 51)):
        del options["qpmin"]
    if options.keys() & {"bitrate", "vbv_maxrate", "scenecut", "bframes"} or options.get("b_adapt"):
        options.pop("gops", None)
    if options.get("psy_rd"):
        options.pop("no_psy", None)
    if options.get("profile") == "baseline":
        for name in ("bframes", "weightp"):
            options.pop(name, None)
    if isinstance(options.get("keyint"), int) and options["keyint"] < 3:
        options.pop("min_keyint", None)


def _planes(values: np.ndarray) -> tuple[np.ndarray, ...]:
    luma = np.clip(values, 0, 255).astype(np.uint8)
    return luma, np.ascontiguousarray(luma[::2, ::2]), np.ascontiguousarray(255 - luma[::2, ::2])


def _texture(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Smooth, twice as wide and high."""
    coarse = rng.integers(0, 256, (2 + shape[0] // 8, 2 + shape[1] // 8)).astype(float)
    rows, columns = np.linspace(0, coarse.shape[0] - 1.01, 2 * shape[0]), np.linspace(0, coarse.shape[1] - 1.01, 2 * shape[1])
    y, x = rows.astype(int)[:, None], columns.astype(int)[None, :]
    down, right = rows[:, None] - y, columns[None, :] - x
    above, below = (coarse[y + k, x] * (1 - right) + coarse[y + k, x + 1] * right for k in (0, 1))
    return above * (1 - down) + below * down


def _frames(content: str, rng: np.random.Generator, shape: tuple[int, int], count: int) -> Iterable[np.ndarray]:
    height, width = shape
    scene = _texture(rng, shape)
    for n in range(count):
        if content == "noise" or (content == "bursts" and n % 4 == 3):
            yield rng.integers(0, 256, shape).astype(float)
        elif content == "cuts" and n % 5 == 4:
            scene = _texture(rng, shape)
            yield scene[:height, :width]
        elif content == "pan":
            yield scene[n : n + height, 2 * n : 2 * n + width]
        elif content == "fade":
            yield scene[:height, :width] * (1 - n / count)
        elif content == "black":
            yield np.zeros(shape)
        else:
            yield scene[:height, :width]


CONTENTS = ("noise", "bursts", "cuts", "pan", "fade", "black", "still")


def settings_of(case: Case, device: str = "cpu") -> Config:
    """Its settings, which OptionError may refuse."""
    options = {"device": device, "preset": "ultrafast", "no_cabac": False, **case.options}
    with tempfile.TemporaryDirectory() as folder:
        if case.qpfile:
            options["qpfile"] = str(Path(folder) / "qps")
            Path(options["qpfile"]).write_text("\n".join(case.qpfile))
        return Config.from_options(width=case.width, height=case.height, **options)


def clip_of(case: Case) -> list[tuple[np.ndarray, ...]]:
    """Its frames."""
    rng = np.random.default_rng(case.seed)
    return [_planes(values) for values in _frames(case.content, rng, (case.height, case.width), case.frames)]


def run(case: Case) -> Config | None:
    """Encode, check and decode it; None: it is refused by name."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            encoder = h264lite.Encoder.from_config(settings_of(case), keep_reconstruction=True)
        except h264lite.OptionError as error:
            check_refusal(str(error), {**case.options, "qpfile": case.qpfile})
            return None
        clip = clip_of(case)
        with encoder:
            for n, planes in enumerate(clip):
                of_frame, request = case.requests.get(n, {}), None
                size_in_mbs = ((case.height + 15) // 16, (case.width + 15) // 16)
                try:
                    request = request_of(
                        of_frame.get("keyframe", False), of_frame.get("qp"), of_frame.get("frame_type"),
                        of_frame.get("qp_offsets"), size_in_mbs,
                    )  # fmt: skip
                except h264lite.OptionError as error:
                    check_refusal(str(error), of_frame)
                encoder._session.encode(tuple(planes), request)
            encoder._session.drain()
            pairs = [(frame, encoder.stats.row(frame)) for frame in encoder._session.hand_out()]
            config, summary = encoder.config, encoder.stats.summary()
            lines = encoder.stats.lines() + encoder.stats.why()
    rows = [row for _, row in pairs]
    check_rows(rows, config, [str(one.message) for one in said])
    check_summary(summary, rows, case)
    assert not any("nan" in line or "inf" in line.replace("(infdb)", "") for line in lines), lines  # of an SSIM of 1
    shown = sorted((frame for frame, _ in pairs), key=lambda frame: frame.pts)
    assert [frame.pts for frame in shown] == list(range(case.frames))
    assert all(row.bytes == len(frame.data) for frame, row in pairs)
    expected = b"".join(plane.tobytes() for frame in shown for plane in frame.reconstruction)
    assert ffmpeg_samples(b"".join(frame.data for frame, _ in pairs)) == expected, "FFmpeg shows something else"
    return config


def check_refusal(text: str, given: Mapping[str, Any]) -> None:
    """The message names an option that was given."""
    assert any(name in text or name.replace("_", "-") in text for name in given), (text, given)


def check_rows(rows: list[FrameRow], config: Config, said: list[str]) -> None:
    """Numbers of frames, in coding order: in range, and those of the buffer as Annex C has them."""
    assert [row.coded for row in rows] == list(range(len(rows)))
    assert sorted(row.frame for row in rows) == list(range(len(rows)))
    late = []
    for row in rows:
        least, most = row.qp_range
        assert 0 <= least <= row.qp <= most <= 51, row
        if config.rate.crf is not None:
            assert config.rate.qpmin <= least and most <= config.rate.qpmax, row
        assert row.bytes > 0 and sum(row.mb_counts) == config.coding.n_mb, row
        assert all(0 <= value <= 100 for value in (row.psnr_y, row.psnr_u, row.psnr_v, row.psnr)), row
        assert row.ssim is None or -1 <= row.ssim <= 1, row
        if row.bits_by_kind is not None:
            assert min(row.bits_by_kind) >= 0 and sum(row.bits_by_kind) <= 8 * row.bytes, row
        for name, cell in zip(FrameRow.header(), row.cells(), strict=True):
            assert name in ("type", "qp_by") or not cell or math.isfinite(float(cell)), (name, cell)
        if row.in_buffer is not None and row.in_buffer.left < 0:
            late.append(row)
    assert (config.hrd.buffer is None) == (rows[0].in_buffer is None)
    if config.hrd.buffer is not None:
        check_buffer(rows, config)
    assert bool(late) == any(UNDERFLOW in text for text in said), (late, said)


def check_buffer(rows: list[FrameRow], config: Config) -> None:
    """Fullness from frame to frame by a reckoning of its own; below zero only where no QP is higher, or by --crf-max."""
    buffer = config.hrd.buffer
    assert buffer is not None
    full: Fraction | None = None
    for row in rows:
        in_buffer = row.in_buffer
        assert in_buffer is not None and in_buffer.size == buffer.size
        full = Fraction(buffer.start) if full is None else min(Fraction(buffer.size), full)
        assert abs(in_buffer.there - full) <= 1 + buffer.rate / 90000 * (1 + row.coded), (row, full)
        assert in_buffer.there <= in_buffer.size and in_buffer.left == in_buffer.there - 8 * row.bytes, row
        assert in_buffer.filler >= 0 and 1 <= in_buffer.tries <= 6 and 0 <= in_buffer.filler < row.bytes, row
        assert not in_buffer.filler or buffer.constant, row
        if in_buffer.left < 0:
            assert row.qp_range[0] == config.rate.qpmax or config.hrd.crf_max, row
        full = full - 8 * row.bytes + buffer.rate / config.video.fps
        if buffer.constant:
            assert full <= buffer.size + 1 + buffer.rate / 90000 * (1 + row.coded), row


def check_summary(summary: dict[str, Any], rows: list[FrameRow], case: Case) -> None:
    """The summary adds the rows, and is JSON without NaN."""
    json.dumps(summary, allow_nan=False)
    assert summary["frames"] == case.frames and summary["bytes"] == sum(row.bytes for row in rows)
    assert summary["kbps"] >= 0 and summary["all"]["qp_most"] == max(row.qp_range[1] for row in rows)
    assert summary["all"]["qp_least"] == min(row.qp_range[0] for row in rows)
    if "buffer" in summary:
        assert summary["buffer"]["underflows"] == sum(row.in_buffer.left < 0 for row in rows if row.in_buffer is not None)
        assert summary["buffer"]["tries"] >= case.frames
