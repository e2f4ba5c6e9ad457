"""Random encodes as users ask for them: presets, rates, buffers, two passes, zones, requests of frames, any content and size.

The stream is the same with other numbers of threads. FFmpeg, and the project's decoder in half of the cases, show the
reconstruction; what the stream says of its buffer (Annex C) and level (Annex A) holds.
"""

import random
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import h264lite
import numpy as np
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.presets import PRESETS

from ..support import hrd_model, level_limits
from . import encoder_cases, rate_cases
from .encoder_cases import Planes, check_times, ffmpeg_samples
from .guard import GuardedNumpy
from .kinds import Result

dump, material, modules = encoder_cases.dump, encoder_cases.material, encoder_cases.modules  # are this kind's too
VALUES: dict[str, tuple[float, tuple[Any, ...]]] = {  # how often an option is given, and its values
    "preset": (0.9, tuple(PRESETS)),
    "tune": (0.25, ("psnr", "ssim", "film", "animation", "grain", "stillimage", "fastdecode", "zerolatency",
                    "film,zerolatency", "fastdecode,zerolatency,ssim")),
    "profile": (0.3, ("baseline", "main", "high")),
    "level": (0.15, ("1", "1.1", "1.3", "2.1", "3", "3.1", "4", "5.2", "6.2")),
    "fps": (0.5, (25, 30, "30000/1001", 1, 0.5, 240, 1000, 23.976, 59.94)),
    "keyint": (0.5, (1, 2, 3, 4, 5, 7, 10, "infinite", 250)), "min_keyint": (0.2, (0, 1, 2, 3, "auto")),
    "ref": (0.3, (1, 2, 3, 4, 8, 16)), "bframes": (0.4, (0, 1, 2, 3, 5, 8, 16)), "b_bias": (0.2, (-100, -20, 50, 100)),
    "b_pyramid": (0.3, ("none", "strict", "normal", "dyadic")), "b_adapt": (0.3, (0, 1, 2)),
    "scenecut": (0.3, (0, 1, 40, 100)), "rc_lookahead": (0.3, (0, 1, 2, 5, 17, 40, 250)), "slices": (0.3, (1, 2, 3, 5)),
    "no_deblock": (0.05, (True,)), "deblock": (0.25, ((-6, -6), (6, 6), (-6, 6), (3, -2), (0, 6))),
    "deblock_within_slices": (0.15, (True,)), "no_cabac": (0.2, (True,)), "no_8x8dct": (0.15, (True,)),
    "no_weightb": (0.15, (True,)), "weightp": (0.4, (0, 1, 2)), "me": (0.4, ("dia", "hex", "umh", "fsbm", "step")),
    "merange": (0.2, (4, 5, 16, 33, 64)), "subme": (0.3, tuple(range(11))), "trellis": (0.3, (0, 1)),
    "psy_rd": (0.2, (0, 0.5, 1, 10)), "partitions": (0.3, ("none", "all", "p8x8", "p4x4,p8x8", "i8x8", "i4x4", "p8x8,i8x8")),
    "deadzone_inter": (0.15, (0, 6, 32)), "deadzone_intra": (0.15, (0, 6, 32)), "aq_mode": (0.4, (0, 1, 2, 3)),
    "aq_strength": (0.2, (0.0, 0.5, 3.0)), "chroma_qp_offset": (0.2, (-12, -5, 3, 12)),
    "cqm": (0.1, ("jvt",)), "cqm4": (0.05, (",".join(["9"] * 16), ",".join(map(str, range(1, 17))))),
    "cqm8i": (0.05, (",".join(["255"] * 64), ",".join(map(str, range(9, 73))))),
    "ipratio": (0.2, (0.25, 1.0, 4.0)), "pbratio": (0.2, (0.25, 1.0, 4.0)), "pic_struct": (0.15, (True,)),
    "info_sei": (0.1, (True,)), "aud": (0.1, (True,)), "sar": (0.1, ("1:1", "4:3", "16:11", "1:2", "65535:65534")),
    "range": (0.1, ("pc", "tv")), "colormatrix": (0.1, ("bt709",)),
}  # fmt: skip
OF_RATES = {  # beside crf and bitrate
    "qcomp": (0.2, (0.0, 0.3, 1.0)), "no_mbtree": (0.2, (True,)), "ratetol": (0.1, (0.1, 1, 100)),
    "qpmin": (0.15, (0, 5, 20)), "qpmax": (0.15, (30, 40, 51, 69)),
}  # fmt: skip
OF_BUFFERS = {
    "vbv_init": (0.3, (0, 0.1, 0.5, 1, 3)), "nal_hrd": (0.6, ("vbr", "cbr")), "filler": (0.2, (True,)),
}  # fmt: skip
CONTENTS = (*sorted(encoder_cases.CONTENTS), "still", "alternating", "jumps", "pan", "smooth pan", "fade", "fade in",
            "flashes", "cuts", "noisy fade")  # fmt: skip
LONG, NARROW, LARGEST = 300, 20, 80  # samples
FRAMES = (1, 2, 3, 5, 8, 13, 24, 40)
MOST_BLOCKS = 500  # macroblocks of all frames, so that a case takes its time
MOST_ARRIVING = 100_000_000  # bits of the buffer's rate in the time of all frames: filler data may fill it


class Case(NamedTuple):
    """What the encoder gets. threads: of the second encode. passes: 1, or 2 with the tools of the preset or fast ones."""

    clip: encoder_cases.Case
    qpfile: tuple[str, ...]
    requests: dict[int, dict[str, Any]]
    threads: int
    passes: int
    slow_firstpass: bool


def warm(given: None) -> None:
    """Every kernel once."""
    encoder_cases.warm(given)


def build(given: None, rng: random.Random) -> Case:
    """Any of VALUES, one way to say the rate, seldom what contradicts."""
    sizes = [(rng.randint(1, LARGEST), rng.randint(1, LARGEST)), (16 * rng.randint(1, 5), 16 * rng.randint(1, 5)),
             (rng.randint(1, LONG), rng.randint(1, NARROW)), (rng.randint(1, NARROW), rng.randint(1, LONG))]  # fmt: skip
    width, height = rng.choice(sizes)
    blocks = -(-width // 16) * -(-height // 16)
    frames = min(rng.choice(FRAMES), max(2, MOST_BLOCKS // blocks))
    options: dict[str, object] = {"device": "cpu", **_drawn(VALUES, rng), **_rate(rng)}
    if rng.random() < 0.9:
        _without_contradictions(options, height)
    if "vbv_maxrate" in options:
        frames = min(frames, max(1, int(MOST_ARRIVING * Fraction(options.get("fps", 25)) / (1000 * options["vbv_maxrate"]))))
    qpfile = tuple(f"{n} {rng.choice('IKiPBb')}{rng.choice(('', ' -1', f' {rng.randint(0, 51)}'))}"
                   for n in sorted(rng.sample(range(frames + 2), rng.randint(1, frames))))  # fmt: skip
    requestable = [{"keyframe": True}, {"frame_type": rng.choice("IPB")}, {"qp": rng.randint(0, 51)},
             {"frame_type": rng.choice("IPB"), "qp": rng.randint(0, 51)}]  # fmt: skip
    requests = {n: rng.choice(requestable) for n in rng.sample(range(frames), min(frames, 3))}
    if rng.random() < 0.2:
        first = rng.randint(0, 3)
        options["zones"] = f"{first},{first + rng.randint(0, 5)},{rng.choice(('q=0', 'q=51', 'b=0.1', 'b=10', 'q=20'))}"
    clip = encoder_cases.Case(width, height, frames, rng.choice(CONTENTS), rng.getrandbits(32), options, rng.random() < 0.5)
    return Case(clip, qpfile if rng.random() < 0.2 else (), requests if rng.random() < 0.2 else {}, rng.choice((2, 5, 16)),
                1 + ("bitrate" in options and rng.random() < 0.4), rng.random() < 0.5)  # fmt: skip


def _drawn(values: dict[str, tuple[float, tuple[Any, ...]]], rng: random.Random) -> dict[str, object]:
    return {name: rng.choice(choices) for name, (chance, choices) in values.items() if rng.random() < chance}


def _rate(rng: random.Random) -> dict[str, object]:
    """A constant QP, a rate factor, a bit rate; the last two with a buffer or without; or nothing."""
    kind = rng.choice(("qp", "crf", "crf", "bitrate", "buffer", "buffer", ""))
    if kind == "qp":
        return {"qp": rng.choice((0, 1, 3, 5, 10, 18, 27, 33, 40, 48, 51))}
    options = _drawn(OF_RATES, rng)
    if kind == "bitrate" or (kind == "buffer" and rng.random() < 0.4):
        options["bitrate"] = rng.choice((1, 10, 60, 500, 5000, 100000))
    elif kind:
        options["crf"] = rng.choice((0, 1.5, 10, 23, 30.3, 45, 51))
    if kind == "buffer":
        rate = max(rng.choice((8, 32, 100, 400, 3000, 20000)), options.get("bitrate", 0))
        options |= {"vbv_maxrate": rate, "vbv_bufsize": max(1, int(rate * rng.choice((0.05, 0.2, 0.5, 1, 3))))}
        options |= _drawn(OF_BUFFERS, rng)
        if "crf" in options and rng.random() < 0.2:
            options["crf_max"] = min(51, options["crf"] + rng.choice((0, 2, 10)))
    return options


def _without_contradictions(options: dict[str, Any], height: int) -> None:
    """Leaves out what the documentation excludes beside other options."""
    options["slices"] = min(options.get("slices", 1), -(-height // 16))
    if options.get("profile") == "baseline":
        for name in ("bframes", "weightp"):
            options.pop(name, None)
    if options.get("profile") in ("baseline", "main"):
        for name in ("cqm", "cqm4", "cqm8i"):
            options.pop(name, None)
    if options.get("no_deblock"):
        options.pop("deblock", None)
    if isinstance(options.get("keyint"), int) and options["keyint"] < 4:
        options.pop("min_keyint", None)
    if "vbv_maxrate" in options:
        least = -(-options["vbv_maxrate"] // Fraction(options.get("fps", 25)))  # of a frame
        options["vbv_bufsize"] = max(options["vbv_bufsize"], 1 + int(least))


def run(case: Case, numpy: GuardedNumpy) -> Result:
    """Encode it twice, decode and check it."""
    encoder_cases.guard_frames(numpy)
    options = {**case.clip.options, "threads": 1}
    with tempfile.TemporaryDirectory() as folder:
        if case.qpfile:
            options["qpfile"] = str(Path(folder) / "qps")
            Path(options["qpfile"]).write_text("\n".join(case.qpfile))
        try:
            if case.passes == 2:
                options["stats"] = str(Path(folder) / "stats")
                _encode(case, {**options, "pass_": 1, "slow_firstpass": case.slow_firstpass})
                options["pass_"] = 2
            packets, config, said = _encode(case, options)
        except h264lite.OptionError as error:
            rate_cases.check_refusal(str(error), {**options, "qpfile": ""})
            return Result(0, str(error))
        stream = b"".join(packet.data for packet in packets)
        again, _, _ = _encode(case, {**options, "threads": case.threads})
        assert b"".join(packet.data for packet in again) == stream, f"{case.threads} threads give other bytes"
    check_times(packets, case.clip.frames, config.coding.max_num_reorder_frames)
    expected = b"".join(plane.tobytes() for packet in sorted(packets, key=lambda p: p.pts) for plane in packet.reconstruction)
    assert ffmpeg_samples(stream) == expected, "FFmpeg shows something else"
    if case.clip.own:
        decoder = h264lite.Decoder(macroblocks=True)
        frames = [*decoder.decode(stream), *decoder.flush()]
        assert b"".join(frame.to_bytes() for frame in frames) == expected, "the project's decoder shows something else"
        kept = config.hrd.buffer is not None and not any(text in one for text in rate_cases.BROKEN for one in said)
        problems = level_limits.problems(stream, frames, kept)
        assert not problems, problems
    if config.hrd.buffer is not None:
        check_bucket(packets, stream, config, any(rate_cases.UNDERFLOW in text for text in said))
    return Result(case.clip.frames)


def _encode(case: Case, options: dict[str, Any]) -> tuple[list[h264lite.Packet], Config, list[str]]:
    """The packets, the settings and all warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with h264lite.Encoder(case.clip.width, case.clip.height, keep_reconstruction=True, **options) as encoder:
            packets = []
            for n, planes in enumerate(frames_of(case.clip)):
                packets += encoder.encode(planes, **case.requests.get(n, {}))
            packets += encoder.flush()
    return packets, encoder.config, [str(one.message) for one in said]


def check_bucket(packets: list[h264lite.Packet], stream: bytes, config: Config, warned: bool) -> None:
    """The buffer by sizes alone, and by what the stream says of itself; it runs empty with a warning alone."""
    buffer = config.hrd.buffer
    assert buffer is not None
    full, arriving, late = Fraction(buffer.start), buffer.rate / config.video.fps, []
    for n, packet in enumerate(packets):
        slack = 2 + Fraction(buffer.rate, 90000) * (2 + n)  # initial delays are whole clocks
        if 8 * len(packet.data) > full + slack:
            late.append(n)
        full = full - 8 * len(packet.data) + arriving
        assert not buffer.constant or full <= buffer.size + slack, f"overflow after frame {n}"
        full = min(full, Fraction(buffer.size))
    assert warned or not late, f"frames {late} come too late"
    if config.hrd.nal_hrd != "none":
        problems = hrd_model.check(stream).problems
        assert all("underflow" in text or "removal_delay" in text for text in problems) if warned else not problems, problems


def frames_of(case: encoder_cases.Case) -> list[Planes]:
    """Its frames: y, u, v."""
    if case.content in encoder_cases.CONTENTS:
        return encoder_cases.clip(case)
    rng, shape = np.random.default_rng(case.seed), (case.height, case.width)
    noise = rng.integers(0, 256, (shape[0] + 64, shape[1] + 64))
    blocks = np.kron(rng.integers(0, 256, (shape[0] // 8 + 9, shape[1] // 8 + 9)), np.ones((8, 8), int))
    rows, columns = np.ogrid[: shape[0] + 64, : shape[1] + 64]
    smooth = 128 + 60 * np.sin(columns / 9) + 60 * np.cos(rows / 7)
    clip = []
    for n in range(case.frames):
        part, down, right = (n + 1) / case.frames, *rng.integers(0, 60, 2)
        if case.content == "cuts" and n % 4 == 0:
            noise = rng.integers(0, 256, noise.shape)
        whole = {
            "still": noise, "alternating": noise if n % 2 else smooth, "jumps": blocks[down:, right:],
            "pan": np.roll(noise, (3 * n, 5 * n), (0, 1)), "smooth pan": np.roll(smooth, (2 * n, n), (0, 1)),
            "fade": blocks * (1 - part), "fade in": blocks * part + 16 * (1 - part), "cuts": noise,
            "flashes": smooth + 100 * (n % 3 == 1) - 50 * (n % 5 == 2),
            "noisy fade": smooth * (0.3 + 0.7 * part) + rng.normal(0, 3, smooth.shape),
        }[case.content]  # fmt: skip
        luma = np.clip(whole[: shape[0], : shape[1]], 0, 255).astype(np.uint8)
        half = np.ascontiguousarray(luma[::2, ::2])
        clip.append((np.ascontiguousarray(luma), half, 255 - half))
    return clip
