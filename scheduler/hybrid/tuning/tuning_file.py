"""Tuning files: measurements of `h264lite tune` as TOML that users can read and edit; docs/tuning.md.

A file is valid for one machine and one version. A file of another machine or version, or a damaged one, is an error if the
user named it, and is skipped with a message if it is in the user's cache.
"""

import os
import platform
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ....cpu_simd.simd.vector import SIMD_LEVEL
from ....cuda_src.runtime.facts import driver_version, gpus
from ....files import is_special, replace_file, small_file
from ....version import __version__
from ...coding_settings import CodingSettings
from ...stages import D2H, H2D, STAGES
from .models import CPU, ENTROPY, ISSUE, LOAD, Curve, Link, Models, as_table
from .rates import BY_NAME, EncodeTraits, Points, Rates
from .tuning_place import TuningError, cache_file, cores, may_exist

FORMAT = 5
MOST_BYTES, MOST_LINE = 1 << 18, 2048  # of a file; of a line that is no comment, because a key of many parts takes TOML long
SIMD = ("portable", "avx2", "avx512")
MOST_ROWS, MOST_THREADS, MOST_GOPS = 4096, 256, 64  # threads and GOPs as the options of an encode allow
# stages and copies that a device may have times for
TIMED = (*(name for name, stage in STAGES.items() if not stage.unplanned), H2D, D2H, LOAD, ISSUE, ENTROPY)
# stages that each device must have times for; of deferred ones the CPU has ENTROPY
EVERYWHERE = tuple(
    name for name in TIMED if name in STAGES and not (STAGES[name].only or STAGES[name].deferred or STAGES[name].optional)
)
# pins: (lowest, highest) of a number, or the legal words
PINS: dict[str, tuple[Any, ...]] = {
    "rows_gpu": (0, MOST_ROWS), "rows_cpu": (0, MOST_ROWS), "whole": ("cpu", "gpu"), "device": ("cpu", "cuda", "hybrid"),
    "threads": (1, MOST_THREADS), "gops": (1, MOST_GOPS), "streams": (1, 4), "tile_rows": (1, 4),
}  # fmt: skip
CHOSEN = {name: PINS[name] for name in ("threads", "gops", "streams", "tile_rows")}


@dataclass(frozen=True)
class Machine:
    """The machine of a tuning file: if a field differs, the measurements do not apply."""

    version: str = __version__
    processor: str = ""
    cores: int = 1
    simd: str = SIMD[0]
    gpus: tuple[str, ...] = ()
    driver: str = ""

    @classmethod
    def here(cls) -> "Machine":
        """This machine. Creates no GPU context."""
        labels = tuple(gpu.label for gpu in gpus())
        return cls(__version__, processor(), cores(), SIMD[SIMD_LEVEL], labels, driver_version())

    def difference(self, other: "Machine") -> str:
        """Text of the first field in which `other` differs; empty if none does."""
        for row in fields(self):
            here, there = getattr(self, row.name), getattr(other, row.name)
            if here != there:
                return f"{row.name} {_show(there)} there, {_show(here)} here"
        return ""


@dataclass
class Tuning:
    """Contents of a tuning file. chosen: see CHOSEN; pins: fixed by the user, see PINS."""

    machine: Machine
    models: Models
    measured_at: str = ""  # when it was measured, UTC
    chosen: dict[str, int] = field(default_factory=dict)
    pins: dict[str, Any] = field(default_factory=dict)
    path: str = ""  # the file's name
    report: tuple[str, ...] = ()  # comment lines for the reader of the file
    rates: Rates = field(default_factory=Rates)

    def rate(self, device: str, coding: CodingSettings) -> float | None:
        """Frames a second of an encode of one GOP at a time on this device ("cpu": with all its threads), by `rates`.

        None if nothing near was measured: no encode of the device with B frames, CABAC and decisions by bits as this one, or
        all of them of fewer than a quarter or more than three times its macroblocks; or if this one searches otherwise than
        preset medium (me, merange, ref). QP and content are those of the measured encodes.
        """
        traits = EncodeTraits.of(coding)
        return None if traits is None else self.rates.rate(device, traits, coding.n_mb)

    def value(self, name: str) -> Any:
        """The pinned value, else the chosen value, else None."""
        return self.pins.get(name, self.chosen.get(name))

    @property
    def choices(self) -> dict[str, int]:
        """Pinned or chosen values of the names in CHOSEN."""
        return {name: self.value(name) for name in CHOSEN if self.value(name) is not None}

    @property
    def age(self) -> float | None:
        """Seconds since it was measured."""
        try:
            return time.time() - _seconds_of(self.measured_at)
        except ValueError:
            return None


def processor() -> str:
    """The processor's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.lower().startswith("model name"):
                    return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def now() -> str:
    """The current time (UTC) in the format of tuning files."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())


def _seconds_of(text: str) -> float:
    import calendar

    return float(calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S")))


# ---- writing
_HEAD = """\
# What h264lite measured on this machine; made by `h264lite tune`, read with --tuning FILE or from the user's cache.
# It may be edited: the section "pins" wins over all that is measured or planned. See docs/tuning.md.
"""
_PINS = """\
# Fixed by hand; take away the # of a line to use it.
# device = "cuda"   # the choice of --device auto: cpu, cuda or hybrid
# rows_gpu = 52     # macroblock rows that the first GPU takes of every stage that splits; the processor takes the rest
# rows_cpu = 16     # the same, said for the processor
# whole = "gpu"     # the device of the stages that do not split: gpu or cpu
# threads = 16      # threads where --threads does not say
# gops = 4          # GOPs at once for --gops auto on one device, cpu or cuda
# streams = 1       # 1: a GPU does everything in order; 4: copies, and stages outside the loop, run concurrently
# tile_rows = 2     # macroblock rows that blocks of threads of a GPU share out among them in mode decision: 1, 2 or 4
"""
_RATES = """\
# Frames a second of encodes of one GOP at a time, [macroblocks, frames a second], by what slows them down: B frames, CABAC,
# decisions by bits; plain: none of them.
"""
_STAGES = """\
# Microseconds of a stage on a device by macroblocks (120 x 68 in a 1080p frame); between the points a straight line.
# alone: microseconds a macroblock of one thread, since a macroblock row goes to one thread. Besides stages there are
# load and issue, the host's thread that keeps the device busy, and entropy, one thread that writes the bits of a frame.
# Those of a GPU are calibrated: their sum is the measured time from frame to frame.
"""


def to_toml(tuning: Tuning) -> str:
    """The file's contents."""
    machine, lines = tuning.machine, [_HEAD, f"format = {FORMAT}", f'made = "{tuning.measured_at}"  # UTC', ""]
    lines += ["[machine]  # the file is used nowhere else"]
    lines += [f"{row.name} = {_toml(getattr(machine, row.name))}" for row in fields(machine)]
    lines += ["", "[chosen]  # the fastest in measured encodes"]
    lines += [f"{name} = {value}" for name, value in tuning.chosen.items()]
    lines += ["", "[pins]", _PINS.rstrip()]
    lines += [f"{name} = {_toml(value)}" for name, value in tuning.pins.items()]
    lines += ["", "[links]  # copies between devices: latency in microseconds, rate in GB/s; meeting: microseconds from a",
              "# copy's end until the other device goes on, where both encode rows of one frame"]  # fmt: skip
    lines += [f"meeting = {_number(1e6 * tuning.models.meeting)}"] if tuning.models.meeting else []
    for (source, target), link in sorted(tuning.models.links.items()):
        values = f"latency = {_number(1e6 * link.latency)}, rate = {_number(1e-9 * link.rate)}"
        lines.append(f'"{source} to {target}" = {{{values}}}')
    for k, device in enumerate(tuning.rates.devices):
        lines += ["", f'[rates."{device}"]', *([] if k else [_RATES.rstrip()])]
        rows = sorted((traits.name, points) for (of, traits), points in tuning.rates.points.items() if of == device)
        lines += [f"{name} = [{', '.join(f'[{n:.10g}, {_number(fps)}]' for n, fps in points)}]" for name, points in rows]
    for device, curves in as_table(tuning.models).items():
        lines += ["", f'[stages."{device}"]', _STAGES.rstrip()] if device == CPU else ["", f'[stages."{device}"]']
        for name, curve in curves.items():
            points = ", ".join(f"[{n:.10g}, {_number(1e6 * seconds)}]" for n, seconds in curve.points)
            one_thread = f", alone = {_number(1e6 * curve.one_thread)}" if curve.one_thread else ""
            lines.append(f"{name} = {{points = [{points}]{one_thread}}}")
    lines += ["", *(f"# {_escaped(line)}".rstrip() for line in tuning.report)]
    return "\n".join(lines).rstrip() + "\n"


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return '"' + _escaped(value, '"\\') + '"'
    return str(value)


def _escaped(text: str, special: str = "") -> str:
    """Text in one line, with unprintable characters and `special` as TOML escapes."""
    return "".join(c if c.isprintable() and c not in special else f"\\U{ord(c):08x}" for c in text)


def _number(value: float) -> str:
    return f"{value:.5g}" if value < 1e5 else f"{value:.0f}"


def _show(value: object) -> str:
    return ", ".join(value) or "none" if isinstance(value, tuple) else repr(value) if isinstance(value, str) else str(value)


# ---- reading
def read(text: str, path: str) -> Tuning:
    """Parse a tuning file; TuningError names file, key and fault."""
    tuning: Tuning = _parsed(text, path, _checked)
    return tuning


def _parsed(text: str, path: str, check: Callable[["_Reader", dict[str, Any]], object]) -> Any:
    """The result of `check` for the TOML table of the text."""
    try:
        return check(_Reader(path), tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # besides TOMLDecodeError: numbers of too many digits, brackets too deep
        raise TuningError(f"{path}: damaged, no TOML: {error}") from None


def _checked(reader: "_Reader", table: dict[str, Any]) -> Tuning:
    """The contents of a TOML table, checked."""
    path = reader.path
    if table.get("format") != FORMAT:
        raise TuningError(f"{path}: format {table.get('format')!r}; this version reads {FORMAT}: run h264lite tune")
    reader.only(table, "", ("format", "made", "machine", "chosen", "pins", "links", "rates", "stages"))
    machine = reader.machine(reader.section(table, "machine"))
    links = dict(reader.section(table, "links"))
    models = Models({}, meeting=1e-6 * reader.number("links.meeting", links.pop("meeting", 0)))
    models.links = reader.links(links)
    for device, curves in reader.section(table, "stages").items():
        reader.device(f"stages.{device}", device)
        if not isinstance(curves, dict):
            raise reader.error(f"stages.{device}", "no table")
        reader.only(curves, f"stages.{device}", TIMED)
        for name in EVERYWHERE:
            if name not in curves:
                raise reader.error(f"stages.{device}.{name}", "is missing: run h264lite tune")
        for name, value in curves.items():
            models.stages[name, device] = reader.curve(f"stages.{device}.{name}", value)
    chosen = reader.values(reader.section(table, "chosen"), "chosen", CHOSEN)
    pins = reader.pins(table)
    models.threads = pins.get("threads", chosen.get("threads", machine.cores))
    models.streams = pins.get("streams", chosen.get("streams", models.streams))
    rates = reader.rates(reader.section(table, "rates"))
    return Tuning(machine, models, str(table.get("made", "")), chosen, pins, path, rates=rates)


@dataclass
class _Reader:
    path: str

    def error(self, key: str, text: str) -> TuningError:
        return TuningError(_escaped(f"{self.path}: {key}: {text}"))

    def only(self, table: Mapping[str, Any], key: str, legal: Any) -> None:
        for name in table:
            if name not in legal:
                raise self.error(f"{key}.{name}".lstrip("."), f"unknown; there are {', '.join(legal)}")

    def section(self, table: Mapping[str, object], name: str) -> dict[str, Any]:
        value = table.get(name, {} if name in ("pins", "links", "rates") else None)
        if not isinstance(value, dict):
            raise self.error(name, "is missing" if value is None else "no table")
        return value

    def number(self, key: str, value: object, low: float = 0.0) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < 1e15:
            raise self.error(key, f"{value!r}: not a number from {low:g} on")
        return float(value)

    def values(self, table: dict[str, Any], key: str, rows: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        self.only(table, key, rows)
        for name, value in table.items():
            legal = rows[name]
            if isinstance(legal[0], str):
                if value not in legal:
                    raise self.error(f"{key}.{name}", f"{value!r}: not one of {', '.join(legal)}")
            elif isinstance(value, bool) or not isinstance(value, int) or not legal[0] <= value <= legal[1]:
                raise self.error(f"{key}.{name}", f"{value!r}: not in {legal[0]}..{legal[1]}")
        return table

    def pins(self, table: Mapping[str, object]) -> dict[str, Any]:
        pins = self.values(self.section(table, "pins"), "pins", PINS)
        if "rows_gpu" in pins and "rows_cpu" in pins:
            raise self.error("pins", "rows_gpu and rows_cpu say the same thing twice: keep one")
        return pins

    def device(self, key: str, name: str) -> None:
        gpu, _, number = name.partition(":")
        if name != CPU and not (gpu == "cuda" and number.isdecimal()):
            raise self.error(key, f"{name!r}: no device; there are {CPU}, cuda:0, cuda:1 and so on")

    def machine(self, table: dict[str, Any]) -> Machine:
        self.only(table, "machine", [row.name for row in fields(Machine)])
        for row in fields(Machine):
            value = table.get(row.name)
            expected_type = list if row.name == "gpus" else int if row.name == "cores" else str
            if not isinstance(value, expected_type):
                raise self.error(f"machine.{row.name}", "is missing" if value is None else f"{value!r}: of the wrong type")
        return Machine(**{**table, "gpus": tuple(map(str, table["gpus"]))})

    def links(self, table: dict[str, Any]) -> dict[tuple[str, str], Link]:
        links = {}
        for name, value in table.items():
            source, to, target = name.partition(" to ")
            if not to or not isinstance(value, dict):
                raise self.error(f"links.{name}", 'not of the form "cpu to cuda:0" = {latency = 8.0, rate = 50.0}')
            for device in (source, target):
                self.device(f"links.{name}", device)
            self.only(value, f"links.{name}", ("latency", "rate"))
            latency = self.number(f"links.{name}.latency", value.get("latency"))
            links[source, target] = Link(1e-6 * latency, 1e9 * self.number(f"links.{name}.rate", value.get("rate"), 1e-6))
        return links

    def rates(self, table: dict[str, Any]) -> Rates:
        """The section of rates, checked."""
        rates = Rates()
        for device, rows in table.items():
            self.device(f"rates.{device}", device)
            if not isinstance(rows, dict):
                raise self.error(f"rates.{device}", "no table")
            self.only(rows, f"rates.{device}", BY_NAME)
            for name, value in rows.items():
                key = f"rates.{device}.{name}"
                points = self.points(key, value, "frames a second", 1e-9)
                if any(b[0] <= a[0] for a, b in zip(points, points[1:])) or points[0][0] < 1:
                    raise self.error(key, "points must rise in macroblocks, from 1 on")
                rates.points[device, BY_NAME[name]] = points
        return rates

    def points(self, key: str, value: Any, unit: str, low: float = 0.0) -> Points:
        if not isinstance(value, list) or not value or not all(isinstance(p, list) and len(p) == 2 for p in value):
            raise self.error(key, f"no points [macroblocks, {unit}]")
        return [(self.number(key, n), self.number(key, number, low)) for n, number in value]

    def curve(self, key: str, value: Any) -> Curve:
        points = self.points(key, value.get("points") if isinstance(value, dict) else None, "microseconds")
        self.only(value, key, ("points", "alone"))
        read = [(n, 1e-6 * micro) for n, micro in points]
        if any(b[0] <= a[0] or b[1] < a[1] for a, b in zip(read, read[1:])) or (len(read) == 1 and not read[0][0]):
            raise self.error(key, "points must rise in macroblocks, and not fall in time")
        return Curve(tuple(read), 1e-6 * self.number(f"{key}.alone", value.get("alone", 0.0)))


def _text(path: Path) -> str:
    try:
        text = small_file(path, MOST_BYTES).decode("utf-8-sig")  # an editor may have added a byte order mark
    except UnicodeDecodeError:
        raise TuningError(f"{path}: damaged, no text") from None
    except (OSError, ValueError) as error:
        raise TuningError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if any(len(line) > MOST_LINE and not line.startswith("#") for line in text.splitlines()):
        raise TuningError(f"{path}: damaged, a line of more than {MOST_LINE} characters")
    return text


def load(path: Path, machine: Machine) -> Tuning:
    """Load a file for this machine; TuningError if it cannot be used."""
    text = _text(path)
    tuning = read(text, str(path))
    if tuning.machine.version != machine.version:
        file_version = tuning.machine.version
        raise TuningError(f"{path}: made by version {file_version}, this is {machine.version}: run h264lite tune", True)
    differs = machine.difference(tuning.machine)
    if differs:
        raise TuningError(f"{path}: of another machine ({differs}): run h264lite tune", True)
    return tuning


def find(machine: Machine) -> tuple[Tuning | None, str]:
    """(tuning from the user's cache for this machine or None, reason if a file there cannot be used)."""
    try:
        path = cache_file()
        return (load(path, machine) if may_exist(path) else None), ""
    except TuningError as error:
        return None, str(error)


def pins_of(path: Path) -> dict[str, Any]:
    """Pins of a file of any machine and version; TuningError if it cannot be read."""
    pins: dict[str, Any] = _parsed(_text(path), str(path), _Reader.pins)
    return pins


def save(tuning: Tuning, path: Path) -> None:
    """Write the file, or the target of a link, whole or not at all; a device or a pipe is written directly.

    OSError if it cannot be written.
    """
    if not is_special(path):
        Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
    replace_file(os.fspath(path), to_toml(tuning).encode())
