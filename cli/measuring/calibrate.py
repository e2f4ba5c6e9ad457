"""Time models of a GPU that say what encodes took there. Pure.

Events between stages keep small kernels apart, and know nothing of what pictures that overlap take from each other: they say
what stages take beside each other, and an encode without them what all of them take together. The same holds for the host's
thread: clocks around its calls miss what passes between them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...encoder.settings.tuned import alone, picture_of
from ...scheduler.planning.models import ISSUE, LOAD, Curve, Models
from ...scheduler.planning.simulate import simulate
from ...scheduler.stages import STAGES
from .measure import TimedEncode

HOST = (LOAD, ISSUE)  # what the thread that keeps a GPU busy does for a picture
NEAR = 0.002  # of a time: then it is the same
_ROUNDS = 100
_BESIDE_COPIES = 0.05  # of a frame that stages keep at least, whatever copies are believed to take


def calibrated(models: Models, device: str, encodes: Sequence[TimedEncode]) -> Models:
    """The models with all stages of the GPU multiplied by one factor at each size, and what its host's thread does by
    another: a picture's loop, simulated with everything on the GPU, takes as long as a frame took, or no longer than that
    where the thread binds (Watched.host_binds); the thread takes its own part of it.

    Again until it is so: copies have no factor, and curves must not fall, which moves neighbours.
    """
    for _ in range(_ROUNDS):
        gpu = {found.macroblocks: loop_factor(models, device, found) for found in encodes}
        host = {found.macroblocks: found.own / host_seconds(models, device, found) for found in encodes}
        if all(abs(value - 1) < NEAR for value in (*gpu.values(), *host.values())):
            break
        models = scaled(scaled(models, device, STAGES, gpu), device, HOST, host)
    return models


def loop_factor(models: Models, device: str, found: TimedEncode) -> float:
    """What the GPU's stages are to be multiplied by at this size."""
    copies = loop_seconds(replace(models, stages={}), device, found)
    wanted = found.frame * (1 - 2 * NEAR) if found.host_binds else found.frame  # so that it is the thread that binds
    value = max(wanted, copies / (1 - _BESIDE_COPIES)) / loop_seconds(models, device, found)
    return min(1.0, value) if found.host_binds else value


def loop_seconds(models: Models, device: str, found: TimedEncode) -> float:
    """From picture to picture with everything on the GPU, as the models say."""
    picture = picture_of(found.mb_width, found.mb_height)
    return simulate(alone(device, found.mb_height), picture, models).seconds


def host_seconds(models: Models, device: str, found: TimedEncode) -> float:
    """Of the host's thread for a picture, as the models say."""
    return sum(models.seconds(name, device, found.mb_height, found.mb_width) for name in HOST)


def scaled(models: Models, device: str, names: Collection[str], factors: Mapping[int, float]) -> Models:
    """These of the device by size in macroblocks; what was measured at other sizes stays, as far as curves do not fall."""
    stages = dict(models.stages)
    for (name, of), curve in models.stages.items():
        if of == device and name in names:
            points = [(n, seconds * factors.get(round(n), 1.0)) for n, seconds in curve.points]
            stages[name, of] = Curve.measured(points, curve.alone)
    return replace(models, stages=stages)
