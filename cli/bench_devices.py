"""`h264lite bench --devices all`: frames a second of one GPU and of more, up to all that are named."""

import statistics
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from ..console import print_line
from ..encoder.compile_kernels import compile_for
from ..encoder.errors import OptionError
from ..encoder.files.video import Planes
from ..encoder.settings.config import Config
from ..encoder.settings.option_types import read_devices
from ..encoder.warm_up import will_compile
from .measuring.measure import frames_for
from .measuring.measure_gops import devices_rate


def names_devices(names: str | None) -> bool:
    """Whether the option means single devices: all, GPUs by number, or the CPU several times."""
    return names is not None and (names == "all" or "cuda:" in names or names.split(",").count("cpu") > 1)


def counts(devices: int) -> list[int]:
    """Numbers of devices to measure: 1, 2, 4 and so on, and all."""
    return sorted({devices, *(1 << k for k in range(devices.bit_length()))} & set(range(1, devices + 1)))


def measure_devices(args: Namespace, sizes: Sequence[tuple[int, int]], clip: Sequence[Planes] | None) -> list[dict[str, Any]]:
    """Measure all sizes, by turns, and print the table; the rows of --json."""
    try:
        devices = read_devices(args.devices)
    except ValueError as error:
        raise OptionError(f"{args.devices}: {error}", "devices") from None
    names = Config.from_options(width=64, height=64, devices=devices).machine.devices
    if "cpu" in names and will_compile():
        print_line(f"h264lite bench: compiled in {compile_for():.0f} s")
    print_line(f"h264lite bench: {', '.join(names)}; QP 27 without B frames, several GOPs at once, from a raw file")
    rows = []
    for size in sizes:
        frames = clip or frames_for(*size)
        by_count: dict[int, list[float]] = {count: [] for count in counts(len(names))}
        for _ in range(args.rounds):
            for count, rates in by_count.items():
                rates.append(devices_rate(names[:count], frames, args.threads or 0, args.run_seconds))
        one = statistics.median(by_count[1])
        rows.append({
            "size": f"{size[0]}x{size[1]}", "devices": list(names),
            "encode_fps": {str(count): statistics.median(rates) for count, rates in by_count.items()},
            "times_one": {str(count): statistics.median(rates) / one for count, rates in by_count.items()},
            "encode_fps_by_round": {str(count): rates for count, rates in by_count.items()},
        })  # fmt: skip
    for text in table(rows):
        print_line(text)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table: frames a second by number of devices, and times that of one."""
    numbers = list(rows[0]["encode_fps"])
    lines = [f"{'size':>10}" + "".join(f"{number + (' devices' if number != '1' else ' device'):>20}" for number in numbers)]
    for row in rows:
        cells = [f"{row['encode_fps'][number]:11.1f} ({row['times_one'][number]:4.2f})" for number in numbers]
        lines.append(f"{row['size']:>10}" + "".join(f"{cell:>20}" for cell in cells))
    return lines
