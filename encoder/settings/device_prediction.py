"""Applies a tuning file to an encode: compares devices, plans, predicts times. Imports the planner."""

from ...scheduler.arrays import Size
from ...scheduler.coding_settings import CodingSettings
from ...scheduler.hybrid.plan import SPLITTING, WHOLE, Plan
from ...scheduler.hybrid.planner import Planned, complete, make_plan
from ...scheduler.hybrid.route import FrameTraits
from ...scheduler.hybrid.simulate import Prediction, predict
from ...scheduler.hybrid.start import FEWER_TRIES
from ...scheduler.hybrid.tuning.models import CPU, Models, filled
from ...scheduler.hybrid.tuning.tuning_file import Tuning
from ...scheduler.machine_settings import MachineSettings
from ...scheduler.stages import CPU as CPU_ONLY
from ...scheduler.stages import STAGES

MOST_HYBRID_TIME = 0.87  # of the better device's predicted time: `auto` uses hybrid only below that


def on_single_device(device: str, frame_traits: FrameTraits) -> Plan:
    """The plan with everything on one device."""
    rows = dict.fromkeys((*SPLITTING, *WHOLE), (frame_traits.size.mb_height,))
    return complete((device,), rows, frame_traits)


def predict_single_device(models: Models, device: str, frame_traits: FrameTraits) -> Prediction | None:
    """The predicted times of an encode on one device; None if the device was not measured."""
    search = "step_search" if frame_traits.me == "step" else "full_search"
    lacks = device != CPU and any(STAGES[name].only == CPU_ONLY for name in frame_traits.stages)
    if lacks or not models.knows(search, device):
        return None
    return predict(on_single_device(device, frame_traits), frame_traits, filled(models, optional=True))


def frame_traits_of(
    mb_width: int, mb_height: int, ref: int = 1, me: str = "fsbm", pad: int = 48, subme: int = 0, cabac: bool = False,
    bframes: int = 0,
) -> FrameTraits:  # fmt: skip
    """A P frame with `ref` references, and the B frames that follow it, for predictions."""
    return FrameTraits.typical(Size(mb_width, mb_height, pad, bframes > 0), ref, me, subme, cabac, bframes)


def faster(tuning: Tuning, frame_traits: FrameTraits, hybrid: bool = True, gpu: str = "cuda:0") -> tuple[str, str] | None:
    """("cpu", "cuda" or "hybrid", reason) for `auto`; None if the file lacks one of both devices. hybrid: may be chosen."""
    pin = tuning.pins.get("device")
    if pin is not None and (hybrid or pin != "hybrid"):
        return str(pin), f"pinned in {tuning.path}"
    predictions = {device: predict_single_device(tuning.models, device, frame_traits) for device in (CPU, gpu)}
    seconds = {device: prediction.seconds for device, prediction in predictions.items() if prediction is not None}
    if len(seconds) < 2:
        return None
    best = min(seconds, key=lambda device: seconds[device])
    best_name = best.partition(":")[0]
    shared = 1 / sum(1 / spent for spent in seconds.values())
    if hybrid and shared < MOST_HYBRID_TIME * seconds[best]:  # bound: all work shared, at no cost
        try:
            both = make_plan((CPU, gpu), frame_traits, filled(tuning.models, optional=True), tuning.pins, FEWER_TRIES)
        except ValueError:  # not all stages were measured
            return None
        if both.plan.single is None and both.prediction.seconds < MOST_HYBRID_TIME * seconds[best]:
            seconds["hybrid"], best_name = both.prediction.seconds, "hybrid"
    rates = ", ".join(f"{device} {1 / spent:.0f} fps" for device, spent in seconds.items())
    return best_name, f"tuned, predicted {rates}"


def planned(coding: CodingSettings, machine: MachineSettings, devices: tuple[str, ...] | None = None) -> Planned | None:
    """The plan for this encode, with predicted times; None without a tuning file for its devices."""
    if machine.tuning is None:
        return None
    frame_traits = FrameTraits.typical(coding.size, coding.ref, coding.me, coding.subme, coding.cabac, coding.bframes)
    devices = devices or ((CPU, f"cuda:{machine.ordinal}") if machine.device == "hybrid" else machine.devices)
    try:
        models = filled(machine.tuning.models.with_threads(machine.threads), optional=True)
        return make_plan(devices, frame_traits, models, machine.tuning.pins)
    except ValueError:
        return None
