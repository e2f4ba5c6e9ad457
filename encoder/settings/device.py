"""Chooses the device of an encode and gives the reason: once, before any allocation; how many threads and GOPs at once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...scheduler.devices import count_gpus, gpu_name, why_no_cuda
from ...scheduler.hybrid.tuning.tuning_place import cores
from ...scheduler.stages import BY_BITS
from ..errors import DeviceError, OptionError
from .option_types import OptionValues
from .resolve import gops_for
from .tunes import ZERO_LATENCY, split
from .tuning_lookup import find_tuning

if TYPE_CHECKING:
    from ...scheduler.hybrid.route import FrameTraits
    from ...scheduler.hybrid.tuning.tuning_file import Tuning

SMALLEST_FOR_CUDA = 396  # macroblocks (352x288): smaller frames have too few parallel ones to fill a GPU


def missing_on_gpus(me: str, subme: int, cabac: bool) -> tuple[str, str, str] | None:
    """(option, its value, the alternative) if an option needs stages that GPUs lack."""
    if subme >= BY_BITS and not cabac:
        return "subme", str(subme), f"at most {BY_BITS - 1}"
    return ("me", "step", "fsbm") if me == "step" else None


def choose_device(
    requested: str, n_mb: int, me: str = "fsbm", tuning: "Tuning | None" = None, frame_traits: "FrameTraits | None" = None,
    subme: int = 0, cabac: bool = False, bframes: int = 0,
    aq_mode: int = 0, mbtree: bool = False, has_buffer: bool = False,
) -> tuple[str, str]:  # fmt: skip
    """(device, reason) for `auto` or a named device; DeviceError if a named one is missing, OptionError if it lacks stages.

    n_mb: macroblocks of a frame; me, subme, cabac, bframes, aq_mode, mbtree: the options; has_buffer: with --vbv-maxrate;
    tuning: measurements of this machine, by which `auto` chooses for such a `frame_traits`; hybrid has the stages of both.
    Creates no GPU context: the executor does.
    """
    if requested == "cpu":
        return "cpu", "as requested"
    needs_cpu = None if requested == "hybrid" else missing_on_gpus(me, subme, cabac)
    if needs_cpu:
        option, value, instead = needs_cpu
        if requested == "auto":
            return "cpu", f"--{option} {value} exists for the CPU only"
        only = f"{value} exists for the CPU only, not for device {requested}"
        raise OptionError(f"{only}; use {instead}, or device cpu", option)
    missing = why_no_cuda()
    if requested == "auto":
        if missing:
            return "cpu", f"no usable GPU ({missing})"
        tuned = None
        if tuning is not None and frame_traits is not None:
            from .device_prediction import faster  # the planner

            # stages of these frames are not measured by tune
            tuned = faster(tuning, frame_traits, not (bframes or aq_mode or mbtree or has_buffer))
        if tuned is not None:
            return tuned[0], f"{gpu_name()}, {tuned[1]}" if tuned[0] != "cpu" else tuned[1]
        if n_mb < SMALLEST_FOR_CUDA:
            return "cpu", "the frames are too small to fill a GPU"
        return "cuda", gpu_name()
    if missing:
        raise DeviceError(f"device {requested}: {missing}; use --device cpu or auto")
    return requested, f"as requested, {gpu_name()}"


def all_gpus() -> tuple[str, ...]:
    """The name of each GPU that is there."""
    return tuple([f"cuda:{ordinal}" for ordinal in range(count_gpus())])


def choose_devices(
    names: tuple[str, ...], me: str = "fsbm", subme: int = 0, cabac: bool = False
) -> tuple[tuple[str, ...], str]:  # fmt: skip
    """(names, reason) for named devices, or ("all",): every GPU that is there. DeviceError if one is missing, or there is
    none; OptionError if GPUs lack stages.
    """
    every = names == ("all",)
    gpus = [0] if every else [int(name.partition(":")[2]) for name in names if name != "cpu"]
    needs_cpu = missing_on_gpus(me, subme, cabac)
    if gpus and needs_cpu:
        option, value, instead = needs_cpu
        raise OptionError(f"{value} exists for the CPU only, not for GPUs; use {instead}, or devices cpu", option)
    missing = why_no_cuda() if gpus else None
    if missing:
        raise DeviceError(f"devices {','.join(names)}: {missing}; use --device cpu or auto")
    if gpus and max(gpus) >= count_gpus():
        raise DeviceError(f"devices {','.join(names)}: there is no cuda:{max(gpus)}; the driver reports {count_gpus()}")
    if every:
        names = all_gpus()
    return names, f"as requested, with {', '.join(names)}"


def resolve_machine(values: OptionValues, options: Mapping[str, object], has_buffer: bool) -> None:
    """Turn device, devices, threads, gops and tuning into the fields of MachineSettings; see resolve.py. has_buffer: with
    --vbv-maxrate.
    """
    requested, named = values["device"], values["devices"]
    tuning, note = find_tuning(values["tuning"], requested if named is None else "")
    if named is not None and options.get("device") is not None:
        raise OptionError("contradicts --device: give one of them", "devices")
    if named is None:
        mb_width, mb_height = -(-values["width"] // 16), -(-values["height"] // 16)
        frame_traits, tools = None, (values["subme"], values["cabac"])
        if tuning is not None:
            from .device_prediction import frame_traits_of  # the planner

            frame_traits = frame_traits_of(mb_width, mb_height, values["ref"], values["me"], 48, *tools, values["bframes"])
        device, reason = choose_device(
            requested,
            mb_width * mb_height,
            values["me"],
            tuning,
            frame_traits,
            *tools,
            values["bframes"],
            values["aq_mode"],
            values["mbtree"],
            has_buffer,
        )
        devices: tuple[str, ...] = ({"cuda": "cuda:0"}.get(device, device),)
    else:
        devices, reason = choose_devices(named, values["me"], values["subme"], values["cabac"])
        device = devices[0].partition(":")[0]
        values["gops"] = gops_for(values["gops"], devices)
    values |= {
        "device": device,
        "devices": devices,
        "ordinal": int(devices[0].partition(":")[2] or 0),
        "device_reason": reason,
        "may_change_device": named is None and requested in ("auto", "hybrid"),
        "threads_by_user": values["threads"] > 0,
        "threads": values["threads"] or (tuning and tuning.value("threads")) or cores(),
        "waits_for_packets": ZERO_LATENCY in split(values["tune"]) or has_buffer,
        "tuning": tuning,
        "tuning_note": note,
    }
