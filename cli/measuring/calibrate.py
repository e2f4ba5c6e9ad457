"""Calibrates the time models of a GPU to the measured frame times of encodes. Pure.

Events between stages separate small kernels and miss how overlapping frames slow each other down: they give the ratios of
stages, and an encode without events gives their sum. The same holds for the host's thread: clocks around its calls miss the
time between them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...encoder.settings.device_prediction import frame_traits_of, on_single_device
from ...scheduler.hybrid.simulate import simulate
from ...scheduler.hybrid.tuning.models import ISSUE, LOAD, Curve, Models
from ...scheduler.stages import STAGES
from .measure import TimedEncode

HOST = (LOAD, ISSUE)  # the work for a frame of the thread that feeds a GPU
NEAR = 0.002  # relative difference of times that count as equal
_ROUNDS = 100
_MIN_STAGE_SHARE = 0.05  # of a frame time: the least share of stages, however long copies are in the model


def calibrated(models: Models, device: str, encodes: Sequence[TimedEncode]) -> Models:
    """The models with all stages of the GPU scaled by one factor at each size, and the work of its host thread by another:
    a frame's loop, simulated with everything on the GPU, takes the measured frame time, or at most that where the thread is
    the bottleneck (TimedEncode.host_binds); the thread takes its own part of it.

    Repeated until it holds: copies have no factor, and curves must not fall, which changes neighbours.
    """
    for _ in range(_ROUNDS):
        gpu = {encode.macroblocks: loop_factor(models, device, encode) for encode in encodes}
        host = {encode.macroblocks: encode.host_time / host_seconds(models, device, encode) for encode in encodes}
        if all(abs(value - 1) < NEAR for value in (*gpu.values(), *host.values())):
            break
        models = scaled(scaled(models, device, STAGES, gpu), device, HOST, host)
    return models


def loop_factor(models: Models, device: str, encode: TimedEncode) -> float:
    """The factor for the GPU's stages at this size."""
    copies = loop_seconds(replace(models, stages={}), device, encode)
    wanted = encode.frame * (1 - 2 * NEAR) if encode.host_binds else encode.frame  # so that the thread is the bottleneck
    value = max(wanted, copies / (1 - _MIN_STAGE_SHARE)) / loop_seconds(models, device, encode)
    return min(1.0, value) if encode.host_binds else value


def loop_seconds(models: Models, device: str, encode: TimedEncode) -> float:
    """Frame time with everything on the GPU, by the models."""
    frame_traits = frame_traits_of(encode.mb_width, encode.mb_height, subme=encode.subme, cabac=encode.cabac)
    return simulate(on_single_device(device, frame_traits), frame_traits, models).seconds


def host_seconds(models: Models, device: str, encode: TimedEncode) -> float:
    """Seconds of the host's thread a frame, by the models."""
    return sum(models.seconds(name, device, encode.mb_height, encode.mb_width) for name in HOST)


def scaled(models: Models, device: str, names: Collection[str], factors: Mapping[int, float]) -> Models:
    """Scale curves `names` of the device, factors by macroblocks; other sizes keep their values unless curves would fall."""
    stages = dict(models.stages)
    for (name, of), curve in models.stages.items():
        if of == device and name in names:
            points = [(n, seconds * factors.get(round(n), 1.0)) for n, seconds in curve.points]
            stages[name, of] = Curve.measured(points, curve.one_thread)
    return replace(models, stages=stages)
