"""Random options, sizes and contents through the encoder: what two decoders show is the reconstruction."""

import io
import random
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import h264lite
import numpy as np
from h264lite.encoder import slice_writer
from h264lite.encoder.settings.options import ALL, API, OPTIONS, Option
from h264lite.scheduler import executor
from h264lite.scheduler.frames import constants, frame, sized_slices

from .guard import GuardedNumpy
from .kinds import Result

LARGEST = 80  # samples
CHANCE = 0.3  # that an option is given
GIVEN = {  # chosen here, of a machine, or in test_second_pass.py
    "width", "height", "device", "devices", "tuning", "threads", "gops", "pass_", "stats", "slow_firstpass",
}  # fmt: skip
_OF_4X4 = ("cqm4", "cqm4i", "cqm4iy", "cqm4ic", "cqm4p", "cqm4py", "cqm4pc")
VALUES = {  # of options that are no number and no choice, or whose edges matter more than what is between
    "fps": (1, 25, "30000/1001", 0.01, 10000), "keyint": (1, 2, 3, 5, 8, "infinite"),
    "qp": (0, 1, 2, 4, 10, 20, 30, 40, 44, 47, 49, 50, 51),
    "deblock": ((0, 0), (-6, -6), (6, 6), (0, 3), (-6, 6)), "sar": ("1:1", "16:11", "65535:65534"),
    "partitions": ("none", "all", "p8x8", "p8x8,p4x4", "i8x8", "p8x8,i4x4"), "slices": (1, 2, 3, 5),
    "slice_max_size": (0, 20, 60, 150, 400, 1200),
    "crf": (0, 4.5, 20, 33.3, 51), "qpmin": (0, 3, 20), "qpmax": (20, 45, 51, 69),
    "bitrate": (1, 20, 100, 1000, 2000000), "ratetol": (0.1, 1, 100),
    "zones": ("0,3,q=0", "1,2,b=0.5/2,9,q=51", "0,0,b=100", "1,9,b=0.1"),
    "vbv_maxrate": (10, 100, 1000, 50000), "vbv_bufsize": (10, 100, 1000, 50000), "vbv_init": (0, 0.5, 0.9, 1, 50),
    "qpfile": ("", "0 K 20\n3 P", "1 b 51\n2 B -1\n4 i 0"),  # what is in the file
    "psy_rd": (0, 1, "10:0"), "cqm": ("flat", "jvt"),
    **dict.fromkeys(_OF_4X4, (",".join(16 * ["9"]), ",".join(map(str, range(1, 17))), "1,2")),
    **dict.fromkeys(("cqm8", "cqm8i", "cqm8p"), (",".join(64 * ["255"]), ",".join(map(str, range(9, 73))), "0")),
    "bframes": (*range(1, 8), 16), "b_pyramid": ("none", "normal", "dyadic"), "min_keyint": ("auto", 1, 2, 4),
    "scenecut": (0, 10, 40, 100), "rc_lookahead": (0, 1, 3, 10, 40), "cll": ("1000,400", "0,65535", "undef"),
    "mastering_display": ("G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)", "undef", "G(1,2)"),
}  # fmt: skip
B_TOOLS = {"b_pyramid", "b_adapt", "b_bias", "scenecut", "min_keyint", "rc_lookahead", "no_weightb", "pbratio"}
OF_BUFFER = ("vbv_maxrate", "vbv_bufsize", "vbv_init", "nal_hrd", "filler", "crf_max")
MATRICES = (*_OF_4X4, "cqm8", "cqm8i", "cqm8p")
COMPILED_APART = [  # of each combination kernels of its own
    {"bframes": bframes, "subme": subme, "no_cabac": no_cabac, "no_8x8dct": no_8x8dct, "cqm": cqm}
    for bframes in (0, 2) for subme in (2, 6)
    for no_cabac in (False, True) for no_8x8dct in (False, True) for cqm in ("flat", "jvt")
]  # fmt: skip
Planes = tuple[np.ndarray, ...]


class Case(NamedTuple):
    """What the encoder gets; contents by their seed."""

    width: int
    height: int
    frames: int
    content: str
    seed: int
    options: dict[str, object]
    own: bool  # the project's decoder looks as well


def _two_values(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    return draw.choice(np.array([0, 255], np.uint8), shape)


def _noise(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    return draw.integers(0, 256, shape, np.uint8)


def _flat(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    return np.full(shape, draw.integers(0, 256), np.uint8)


def _black_and_white(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    return np.full(shape, 255 * (n % 2), np.uint8)


def _checkers(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    cell = 1 + 3 * (shape[0] % 2)
    rows, columns = (np.arange(size) // cell for size in shape)
    return ((np.add.outer(rows, columns) + n) % 2 * 255).astype(np.uint8)


def _chroma(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    return _two_values(draw, shape, k, n) if k else np.full(shape, 128, np.uint8)


def _extremes(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    return draw.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), shape)


def _moving(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    return (128 + 90 * np.sin((rows + 5 * n) / 7) * np.cos((columns - 11 * n) / 5)).astype(np.uint8)


def _impulse(draw: np.random.Generator, shape: tuple[int, int], k: int, n: int) -> np.ndarray:
    plane = np.zeros(shape, np.uint8)
    plane[draw.integers(shape[0]), draw.integers(shape[1])] = 255
    return plane


CONTENTS: dict[str, Callable[[np.random.Generator, tuple[int, int], int, int], np.ndarray]] = {
    function.__name__.strip("_"): function
    for function in (_two_values, _noise, _flat, _black_and_white, _checkers, _chroma, _extremes, _moving, _impulse)
}


def material() -> None:
    """Nothing: contents are made from seeds."""


def modules() -> tuple[ModuleType, ...]:
    """All that make arrays which kernels of the encoder get."""
    return constants, executor, frame, sized_slices, slice_writer


def warm(given: None) -> None:
    """Every kernel once: each device path by its options."""
    for options in ({}, {"preset": "placebo", "slices": 2}, {"me": "step", "preset": "slower"}, {"preset": "ultrafast"},
                    {"qp": 0, "threads": 2}, {"ssim": True, "gops": 2, "keyint": 2, "threads": 2},
                    {"bframes": 2, "b_adapt": 2, "me": "step", "bits_by_kind": True}, {"bframes": 1, "weightp": 2},
                    {"bframes": 2, "crf": 28, "aq_mode": 3}, {"crf": 28, "rc_lookahead": 2}, {"bitrate": 50},
                    {"crf": 28, "vbv_maxrate": 100, "vbv_bufsize": 100, "zones": "0,1,b=2"},
                    *COMPILED_APART):  # fmt: skip
        for content in ("noise", "moving"):
            run(Case(49, 35, 3, content, 1, {"device": "cpu", "threads": 1, **options}, True), GuardedNumpy("none"))


def build(given: None, rng: random.Random) -> Case:
    """Any size up to LARGEST, long ones too; each option with CHANCE."""
    sizes = [(1, 1), (2, 2), (1, 17), (17, 1), (16, 16), (rng.randint(1, 4 * LARGEST), rng.randint(1, 20)),
             (rng.randint(1, 20), rng.randint(1, 4 * LARGEST))]  # fmt: skip
    sizes += [(rng.randint(1, LARGEST), rng.randint(1, LARGEST)) for _ in range(7)]
    options: dict[str, object] = {"device": "cpu", "threads": rng.choice((1, 1, 1, 2, 3))}
    for row in OPTIONS:
        if row.scope in (ALL, API) and row.name not in GIVEN and rng.random() < (0.8 if row.name == "qp" else CHANCE):
            options[row.name] = _value(row, rng)
    _draw_b_frames(options, rng)
    for name in MATRICES:
        if rng.random() < 0.8:  # else few cases have none that is wrong
            options.pop(name, None)
    if rng.random() < 0.9:  # one of them, or most would be refused
        _agree_on_rates(options, rng)
    if options.get("slice_max_size") and rng.random() < 0.95:
        options.pop("slices", None)  # which it contradicts
    if options.get("me") != "step" and rng.random() < 0.9:
        options.pop("step_grid", None)  # which most of the rest would be refused for
    if rng.random() < 0.15:
        options["gops"] = rng.randint(1, 3)
        if rng.random() < 0.9:
            options["scenecut"] = 0  # scene cuts exclude several GOPs at once
            for name in ("bitrate", *OF_BUFFER):  # and so do these
                options.pop(name, None)
    width, height = rng.choice(sizes)
    frames = rng.choice((1, 2, 3, 4, 6, 12 if "bframes" in options else 6))
    content, seed = rng.choice(sorted(CONTENTS)), rng.getrandbits(32)
    return Case(width, height, frames, content, seed, options, rng.random() < 0.5)


def _agree_on_rates(options: dict[str, object], rng: random.Random) -> None:
    """A constant QP, a rate factor or a bit rate, and a buffer only beside the last two and complete."""
    rates = [name for name in ("crf", "bitrate") if name in options]
    rate = rng.choice(rates) if rates else "qp"
    for name in {"qp", "crf", "bitrate"} - {rate}:
        options.pop(name, None)
    if rate == "qp":
        for name in ("qpmin", "qpmax"):
            options.pop(name, None)
    if rate == "qp" or "vbv_maxrate" not in options:
        for name in OF_BUFFER:
            options.pop(name, None)
    else:
        options.setdefault("vbv_bufsize", rng.choice(VALUES["vbv_bufsize"]))
        if rate == "bitrate":
            options.pop("crf_max", None)


def _draw_b_frames(options: dict[str, object], rng: random.Random) -> None:
    """Half of the streams have B frames; their tools are then given as often as not, and what excludes them seldom is."""
    options.pop("bframes", None)
    if rng.random() < 0.5:
        return
    options["bframes"] = rng.choice(VALUES["bframes"])
    for row in OPTIONS:
        if row.name in B_TOOLS and rng.random() < 0.5:
            options[row.name] = _value(row, rng)
    if rng.random() < 0.95:
        if options.get("profile") == "baseline":
            del options["profile"]
        if options.get("scenecut") and options.get("no_scenecut"):
            del options["no_scenecut"]
        if isinstance(options.get("keyint"), int) and options["keyint"] < 4:
            options.pop("min_keyint", None)


def _value(row: Option, rng: random.Random) -> object:
    """A value that the row may have; the level may still forbid it."""
    if row.name in VALUES:
        return rng.choice(VALUES[row.name])
    if row.choices is not None:
        return rng.choice(sorted(row.choices))
    if row.is_switch:
        return rng.random() < 0.5
    assert row.low is not None and row.high is not None, f"{row.name}: VALUES has none for it"
    middle = rng.uniform(row.low, row.high) if isinstance(row.default, float) else rng.randint(int(row.low), int(row.high))
    return rng.choice((row.low, row.high, middle, middle))


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Encode and decode it."""
    guard_frames(numpy)
    try:
        encoder = _open(case)
    except h264lite.OptionError as error:
        return Result(0, str(error))
    with encoder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # frames that do not fit, types that are not possible
        packets = [packet for planes in clip(case) for packet in encoder.encode(planes)] + encoder.flush()
    check_times(packets, case.frames, encoder.config.coding.max_num_reorder_frames)
    stream = b"".join(packet.data for packet in packets)
    shown = sorted(packets, key=lambda packet: packet.pts)
    expected = b"".join(plane.tobytes() for packet in shown for plane in packet.reconstruction)
    assert ffmpeg_samples(stream) == expected, "FFmpeg shows something else"
    if case.own:
        decoder = h264lite.Decoder()
        decoded = b"".join(picture.to_bytes() for picture in [*decoder.decode(stream), *decoder.flush()])
        assert decoded == expected, "the project's decoder shows something else"
    return Result(case.frames)


def guard_frames(numpy: GuardedNumpy) -> None:
    """Arrays of frames by the stand-in for NumPy: defaults were bound before it was."""
    frame.Frame.__init__.__defaults__ = (numpy.zeros, *frame.Frame.__init__.__defaults__[1:])


def _open(case: Case) -> h264lite.Encoder:
    """The encoder of a case."""
    options = dict(case.options)
    with tempfile.TemporaryDirectory() as folder:
        if "qpfile" in options:
            file = Path(folder) / "qps"
            file.write_text(str(options["qpfile"]))
            options["qpfile"] = str(file)
        return h264lite.Encoder(case.width, case.height, keep_reconstruction=True, **options)


def check_times(packets: Sequence[h264lite.Packet], frames: int, delay: int) -> None:
    """All frames are there, in coding order: B frames behind the later frames they need, nothing across a keyframe."""
    pts = [packet.pts for packet in packets]
    assert sorted(pts) == list(range(frames)), "packets are missing"
    assert [packet.dts for packet in packets] == list(range(-delay, frames - delay)), "dts"
    assert all(packet.dts <= packet.pts for packet in packets), "dts after pts"
    others = [packet.pts for packet in packets if packet.frame_type != "B"]
    assert others == sorted(others), "frames other than B frames change places"
    for n, packet in enumerate(packets):
        if packet.is_keyframe:
            assert max(pts[:n], default=-1) < packet.pts == min(pts[n:]), "a GOP is open"
        if packet.frame_type == "B":
            assert any(pts[k] > packet.pts for k in range(n)), "no later frame before a B frame"


def clip(case: Case) -> list[Planes]:
    """Its frames: y, u, v; some turned over or in another order of memory."""
    draw, make = np.random.default_rng(case.seed), CONTENTS[case.content]
    luma, chroma = (case.height, case.width), ((case.height + 1) // 2, (case.width + 1) // 2)
    frames = []
    for n in range(case.frames):
        planes = [make(draw, shape, k, n) for k, shape in enumerate((luma, chroma, chroma))]
        how = draw.random()
        if how < 0.15:
            planes = [plane[::-1] for plane in planes]
        elif how < 0.3:
            planes = [np.asfortranarray(plane) for plane in planes]
        frames.append(tuple(planes))
    return frames


def ffmpeg_samples(stream: bytes) -> bytes:
    """All samples by FFmpeg's decoder."""
    import av

    shown = bytearray()
    with av.open(io.BytesIO(stream), format="h264") as container:
        container.streams.video[0].codec_context.thread_count = 1
        for picture in container.decode(video=0):
            for plane in picture.planes:
                shown += np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width].tobytes()
    return bytes(shown)


def dump(case: Case) -> bytes:
    """Its settings as text."""
    return repr(case).encode()
