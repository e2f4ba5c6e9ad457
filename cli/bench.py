"""`h264lite bench`: measured and predicted frames a second on the CPU, the GPU and both, by size, on this machine."""

import argparse
import json
import random
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from ..console import print_line
from ..encoder.compile_kernels import compile_for
from ..encoder.errors import DeviceError, OptionError
from ..encoder.files.output import ByteSink, check_distinct
from ..encoder.files.video import Planes
from ..encoder.settings.config import Config
from ..encoder.settings.device_prediction import planned
from ..encoder.settings.tuning_lookup import find_tuning
from ..encoder.warm_up import will_compile
from ..scheduler.hybrid.tuning.tuning_file import Machine, now
from .bench_devices import measure_devices, names_devices
from .measuring.budget import Window
from .measuring.measure import frames_for, of_clip, settings, watch

SIZES = ((176, 144), (352, 288), (1280, 720), (1920, 1080))
DEVICES = ("cpu", "cuda", "hybrid")


def run_bench(args: argparse.Namespace, sizes: Sequence[tuple[int, int]] | None, input_res: tuple[int, int] | None) -> int:
    """Measure all sizes and devices; return the exit code."""
    check_distinct({"clip": args.clip, "tuning": args.tuning, "json": args.json})
    scaling = names_devices(args.devices)
    devices, absent = ([], {}) if scaling else choose(args.devices, args.tuning)
    clip: list[Planes] | None = None
    if args.clip is not None:
        if sizes:
            raise OptionError("contradicts --clip, whose size counts: give one of them", "sizes")
        clip = of_clip(args.clip, 24, input_res)
        if len(clip) < 2:
            raise OptionError(f"{args.clip}: has fewer than 2 frames", "clip")
        height, width = clip[0][0].shape
        sizes = ((width, height),)
    for size in sizes or SIZES:
        settings("cpu", *size, args.threads)  # raises if the size exceeds all levels
    with ExitStack() as stack:
        sink = ByteSink(args.json) if args.json is not None else None
        if sink:
            stack.callback(sink.close)
        if scaling:
            rows = measure_devices(args, sizes or SIZES[-1:], clip)
            report = {"made": now(), "machine": vars(Machine.here()), "content": args.clip or "synthetic",
                     "rounds": args.rounds, "scaling": rows}  # fmt: skip
        else:
            report = measure_all(devices, absent, sizes or SIZES, clip, args)
        if sink:
            sink.write((json.dumps(report, indent=2) + "\n").encode())
    return 0


def measure_all(
    devices: Sequence[str], absent: Mapping[str, str], sizes: Sequence[tuple[int, int]], clip: Sequence[Planes] | None,
    args: argparse.Namespace,
) -> dict[str, Any]:  # fmt: skip
    """Print the table; return the contents of --json."""
    if will_compile():
        _log(f"compiled in {compile_for():.0f} s")
    machine = Machine.here()
    _log(f"{machine.processor}, {machine.cores} cores, {machine.simd}; {', '.join(machine.gpus) or 'no GPU'}")
    for name, why in absent.items():
        _log(f"without {name}: {why}")
    tuning, why = find_tuning(args.tuning)
    _log(
        f"predicted from {tuning.path}, made {tuning.measured_at}"
        if tuning
        else f"nothing is predicted: {why or 'this machine was not measured; h264lite tune does it'}"
    )
    rows = []
    for size in sizes:
        rows.append(measure(size, devices, clip or frames_for(*size), args))
        if tuning:
            rows[-1] |= with_predictions(rows[-1]["encode_fps"], predict(size, devices, args))
        _log(line(rows[-1], devices))
    used = {"file": tuning.path, "made": tuning.measured_at} if tuning else None
    results = {"made": now(), "machine": vars(machine), "content": args.clip or "synthetic", "rounds": args.rounds,
             "tuning": used, "sizes": rows, "absent": absent}  # fmt: skip
    for text in table(rows, devices):
        print_line(text)
    return results


def choose(names: str | None, tuning: str | None) -> tuple[list[str], dict[str, str]]:
    """(devices to measure, reason by missing device); DeviceError if a device of `names` is missing."""
    wanted = list(DEVICES) if names is None else names.split(",")
    for name in wanted:
        if name not in DEVICES:
            raise OptionError(f"{name or repr(names)}: not one of {', '.join(DEVICES)}", "devices")
    if len(set(wanted)) < len(wanted):
        raise OptionError(f"{names}: a device is named twice", "devices")
    present, absent = [], {}
    for name in wanted:
        try:
            Config.from_options(width=64, height=64, device=name, tuning=tuning)
            present.append(name)
        except DeviceError as error:
            if names:
                raise
            absent[name] = str(error)
    return present, absent


def measure(
    size: tuple[int, int], devices: Sequence[str], frames: Sequence[Planes], args: argparse.Namespace
) -> dict[str, Any]:
    """Measure one size: rounds of all devices in random order, so that periodic load of the machine affects all of them.

    hybrid_over_better, hybrid_over_sum: the median over rounds of the ratio to the better device's rate, or to the sum of
    both, in the same round, since other load changes all.
    """
    seconds: dict[str, list[float]] = {device: [] for device in devices}
    bits, orders = 0.0, random.Random(1)
    for _ in range(args.rounds):
        for device in orders.sample(list(devices), len(devices)):
            measured = watch(device, frames, args.threads or 0, Window(args.run_seconds), tuning=args.tuning)
            seconds[device].append(measured.frame)
            bits = measured.bits
    fps = {device: 1 / statistics.median(values) for device, values in seconds.items()}
    spread = {device: (max(values) - min(values)) / statistics.median(values) for device, values in seconds.items()}
    by_round = {device: [1 / value for value in values] for device, values in seconds.items()}
    row: dict[str, Any] = {
        "size": f"{size[0]}x{size[1]}", "encode_fps": fps, "spread": spread, "encode_fps_by_round": by_round,
        "bits_a_frame": bits,
    }  # fmt: skip
    single = [device for device in ("cpu", "cuda") if device in fps]
    if "hybrid" in fps and single:
        better = max(single, key=lambda device: fps[device])
        row["hybrid_over_better"] = _ratio(by_round["hybrid"], by_round[better])
        if len(single) == 2:
            row["hybrid_over_sum"] = _ratio(by_round["hybrid"], [a + b for a, b in zip(by_round["cpu"], by_round["cuda"])])
    return row


def _ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(rate / other for rate, other in zip(rates, others, strict=True))


def predict(size: tuple[int, int], devices: Sequence[str], args: argparse.Namespace) -> dict[str, float]:
    """Frames a second predicted by the tuning file, for the devices in it."""
    configs = {device: settings(device, *size, args.threads or 0, tuning=args.tuning) for device in devices}
    plans = {device: planned(config.coding, config.machine) for device, config in configs.items()}
    return {device: 1 / plan.prediction.seconds for device, plan in plans.items() if plan is not None}


def with_predictions(fps: Mapping[str, float], predicted: Mapping[str, float]) -> dict[str, Any]:
    """The predictions of a row, and their error: percent above (+) or below (-) the measured rate."""
    off = {device: 100 * (rate / fps[device] - 1) for device, rate in predicted.items()}
    return {"predicted_encode_fps": dict(predicted), "predicted_off_percent": off}


def line(row: dict[str, Any], devices: Sequence[str]) -> str:
    """The text of one row, printed while other rows are measured."""
    return f"{row['size']}: " + ", ".join(f"{device} {row['encode_fps'][device]:.1f} fps" for device in devices)


def table(rows: Sequence[dict[str, Any]], devices: Sequence[str]) -> list[str]:
    """The table: frames a second, spread of the rounds, and predictions, if there are any."""
    ratios = {"hybrid_over_better": "hybrid/better", "hybrid_over_sum": "hybrid/sum"}
    ratios = {name: f"{head:>15}" for name, head in ratios.items() if any(name in row for row in rows)}
    has_predictions = any("predicted_encode_fps" in row for row in rows)
    heads = "".join(f"{device:>16}" + f"{'predicted':>11}{'off':>9}" * has_predictions for device in devices)
    lines = [f"{'size':>10}" + heads + "".join(ratios.values())]
    for row in rows:
        cells = ""
        for device in devices:
            cells += f"{row['encode_fps'][device]:9.1f} ±{50 * row['spread'][device]:4.1f}%"
            if device in row.get("predicted_encode_fps", {}):
                cells += f"{row['predicted_encode_fps'][device]:11.1f}{row['predicted_off_percent'][device]:+8.1f}%"
            else:
                cells += 20 * " " * has_predictions
        cells += "".join(f"{row[name]:15.2f}" for name in ratios if name in row)
        lines.append(f"{row['size']:>10}{cells}".rstrip())
    return lines


def _log(text: str) -> None:
    print_line(f"h264lite bench: {text}")
