"""The loop of a closed encoder on a GPU, kept with its frames, recordings and graphs for the next one with equal settings."""

from collections.abc import Hashable

from ...cuda_src.runtime.device import Device, GpuLost
from ...cuda_src.runtime.idle import is_keeping, keep_user, take_user
from ..coding_settings import CodingSettings
from ..cuda_executor import CudaExecutor
from ..machine_settings import MachineSettings
from .cuda_loop import CudaLoop
from .gpu_sources import GpuSourcePool
from .loop import FrameLoop
from .ring import FrameRing


class KeptLoop:
    """A loop with what has been made for it."""

    def __init__(self, loop: CudaLoop, ring: FrameRing, sources: GpuSourcePool | None) -> None:
        self.loop, self.ring, self.sources = loop, ring, sources

    @property
    def gpu(self) -> Device:
        """See User (idle.py)."""
        return self.loop.executor.gpu

    def close(self) -> None:
        """See User (idle.py)."""
        self.loop.executor.close()


def take_loop(settings: CodingSettings, machine: MachineSettings, *limits: int) -> KeptLoop | None:
    """A kept loop for these settings, as new, if there is one. limits: as of `keep_loop`."""
    if machine.device != "cuda" or not is_keeping():
        return None
    kept = take_user(_key(settings, machine, limits), KeptLoop)
    if kept is not None:
        kept.loop.renew()
        kept.ring.renew()
        if kept.sources is not None:
            kept.sources.renew()
    return kept


def keep_loop(
    loop: FrameLoop, ring: FrameRing, sources: GpuSourcePool | None, settings: CodingSettings, machine: MachineSettings,
    *limits: int,
) -> bool:  # fmt: skip
    """Keep a loop whose encoder is closed, the ring too; False if it cannot be kept. limits: other numbers of its frames."""
    if type(loop) is not CudaLoop or not loop.executor.records or not is_keeping() or loop.executor.gpu.lost:
        return False
    try:
        loop.executor.pause()
    except GpuLost:
        return False
    keep_user(_key(settings, machine, limits), KeptLoop(loop, ring, sources))
    return True


def _key(settings: CodingSettings, machine: MachineSettings, limits: tuple[int, ...]) -> Hashable:
    choices = tuple(sorted(machine.choices.items()))
    numbers = machine.ordinal, machine.may_change_device, machine.threads, machine.waits_for_packets, choices
    return CudaExecutor, settings, numbers, limits
