"""Decodes broken versions of streams, in a process of its own: memory bounded, time bounded, the first failure named.

    python tests/support/broken.py SEED PREFIX_STEP FLIPS UNITS RESILIENT STREAM...

Prints one JSON object: cases, frames, errors by cause. Exit code 1 with a traceback for any other end than frames or
one BitstreamError with place and cause; FIRST_CASE in the environment skips the cases before a failure.
"""

import faulthandler
import json
import os
import re
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SECONDS = 60  # for one case, which takes some milliseconds
EXTRA_MEMORY = 1 << 30  # beyond what the process has after decoding the whole streams: a buffer of the largest level
PLACE = re.compile(r"(NAL unit \d+ at byte \d+|at the end of the stream, byte \d+|byte stream, byte \d+)(, bit \d+)?: \w+")


def units_of(stream: bytes) -> list[bytes]:
    """The NAL units with their start codes."""
    starts = [m.start() for m in re.finditer(b"\0?\0\0\1", stream)]
    return [stream[a:b] for a, b in zip(starts, [*starts[1:], len(stream)])]


def prefixes(stream: bytes, step: int) -> Iterator[bytes]:
    """The stream cut at every `step`-th byte."""
    return (stream[:end] for end in range(0, len(stream), step))


def flips(stream: bytes, count: int, rng: np.random.Generator) -> Iterator[bytes]:
    """One bit, or a few, or a burst of bytes changed."""
    for _ in range(count):
        data = np.frombuffer(stream, np.uint8).copy()
        kind, at = rng.integers(0, 4), int(rng.integers(0, len(data)))
        if kind == 3:
            burst = data[at : at + int(rng.integers(1, 9))]
            burst[:] = rng.integers(0, 256, burst.size)
        else:
            for _ in range(1 if kind < 2 else int(rng.integers(2, 6))):
                data[at] ^= 1 << int(rng.integers(0, 8))
                at = int(rng.integers(0, len(data)))
        yield data.tobytes()


def shuffled(stream: bytes, count: int, rng: np.random.Generator) -> Iterator[bytes]:
    """One to three NAL units dropped, doubled or moved."""
    for _ in range(count):
        units = units_of(stream)
        for _ in range(int(rng.integers(1, 4))):
            at, to = (int(n) for n in rng.integers(0, len(units), 2))
            kind = rng.integers(0, 3)
            unit = units[at] if kind == 1 else units.pop(at)
            if kind:
                units.insert(to, unit)
            if not units:
                break
        yield b"".join(units)


def decode(data: bytes, resilient: bool) -> tuple[int, str]:
    """Frames, and the error if there is one; whatever else goes wrong is raised."""
    import h264lite

    decoder, frames, message = h264lite.Decoder(resilient=resilient), 0, ""
    try:
        for _ in decoder.decode(data):
            frames += 1
    except h264lite.BitstreamError as error:
        message = str(error)
    try:
        for _ in decoder.flush():
            frames += 1
    except h264lite.BitstreamError as error:
        assert not message, f"two errors: {message}; {error}"
        message = str(error)
    assert not (resilient and message), f"resilient, but: {message}"
    for line in (message, *decoder.dropped):
        assert not line or PLACE.match(line) or line.split()[1] == "slices", f"no place, or no cause: {line}"
    return frames, message or "; ".join(decoder.dropped[:1])


def main(seed: int, step: int, n_flips: int, n_units: int, resilient: int, *names: str) -> None:
    """All cases of all streams."""
    streams = [Path(name).read_bytes() for name in names]
    for name, stream in zip(names, streams):
        assert decode(stream, bool(resilient))[1] == "", name
    used = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_MEMORY, -1))
    first, case, frames, errors = int(os.environ.get("FIRST_CASE", 0)), 0, 0, Counter()
    for number, (name, stream) in enumerate(zip(names, streams)):
        rng = np.random.default_rng([seed, number])
        share = len(streams)
        for data in (*prefixes(stream, step), *flips(stream, n_flips // share + 1, rng),
                     *shuffled(stream, n_units // share + 1, rng)):
            case += 1
            if case <= first:
                continue
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                count, message = decode(data, bool(resilient))
            except BaseException:
                print(f"case {case} of {name}, seed {seed}", file=sys.stderr)
                Path(name).with_suffix(".broken").write_bytes(data)
                raise
            frames += count
            errors[re.sub(r"-?\d+", "#", message.split(": ", 1)[-1])] += 1
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"cases": case, "frames": frames, "peak_mb": peak, "errors": dict(errors.most_common())}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:6]), *sys.argv[6:])
