"""The cluster: connecting to it or starting one on this machine, and how many chunks it encodes at once."""

import logging
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..encoder.decisions.second_pass import sections_of
from ..encoder.errors import DeviceError, OptionError
from ..encoder.gops.gops import SMALL
from ..encoder.settings.config import Config
from ..encoder.settings.device import missing_on_gpus

OLDEST = (2, 40)  # version of Ray


def import_ray() -> Any:
    """The library; DeviceError if it is not installed, or too old."""
    try:
        import ray
    except ImportError as error:
        raise DeviceError(f"Ray is not installed ({error}): pip install 'h264lite[ray]'") from None
    version = tuple(map(int, re.findall(r"\d+", ray.__version__)[:2]))
    if version < OLDEST:
        raise DeviceError(f"Ray {ray.__version__} is older than {'.'.join(map(str, OLDEST))}")
    return ray


@contextmanager
def connected(address: str, quiet: bool = True) -> Iterator[Any]:
    """Ray, connected to a cluster. address: HOST:PORT or auto; local: a new one on this machine; empty: as ray.init() finds
    one (RAY_ADDRESS, or one that runs on this machine), else a new one. A connection of the caller is used and left open.
    DeviceError.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        ray.init(
            address or None,
            logging_level=logging.ERROR if quiet else logging.INFO,
            log_to_driver=not quiet,
            include_dashboard=None if address else False,
        )
    except Exception as error:  # a plain one where a node does not start in time
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise DeviceError(f"Ray at {address or 'this machine'}: {first}") from None
    finally:
        for number, handler in handlers.items():  # Ray has its own for SIGTERM, which would leave the file unfinished
            signal.signal(number, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


@dataclass(frozen=True)
class Share:
    """What a task asks Ray for: processors, each for one thread, and GPUs, maybe a part of one."""

    cpus: int
    gpus: float = 0.0

    def slots(self, nodes: Sequence[dict[str, float]]) -> int:
        """How many tasks run at once. nodes: CPU and GPU of each machine."""
        return sum(self._on(node) for node in nodes)

    def _on(self, node: dict[str, float]) -> int:
        by_cpus = int(node.get("CPU", 0) / self.cpus)
        return min(by_cpus, int(node.get("GPU", 0) / self.gpus + 1e-6)) if self.gpus else by_cpus

    def __str__(self) -> str:
        gpus = f" and {self.gpus:g} GPU{'s' if self.gpus > 1 else ''}" if self.gpus else ""
        return f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}{gpus}"


def nodes(ray: Any) -> list[dict[str, float]]:
    """The resources of all machines that are there."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def choose_share(
    machines: Sequence[dict[str, float]], config: Config, device: str, threads: int, gpus: float | None, length: int | None
) -> Share:
    """What each task takes of a cluster with these machines.

    device: as asked, auto, cpu or cuda; threads: of a task, 0: one, more if there are fewer GOPs than processors; gpus: of a
    task, None: one if the cluster has some and the device may be one; length: frames of the input, None: unknown.
    DeviceError if no machine has as much.
    """
    needed = missing_on_gpus(config.coding.me, config.coding.subme, config.coding.cabac)
    has_gpus = any(machine.get("GPU", 0) for machine in machines)
    if gpus and needed:
        raise OptionError(f"{needed[1]} exists for the CPU only; use {needed[2]}, or ray-gpus 0", needed[0])
    if gpus is None:
        wanted = device == "cuda" or (device == "auto" and has_gpus and not needed)
        gpus = 1.0 if wanted else 0.0
    if not threads:
        cpus = int(sum(machine.get("CPU", 0) for machine in machines))
        most = int(max((machine.get("CPU", 0) for machine in machines), default=0))
        threads = 1 if gpus else max(1, min(most, cpus // _units(config, length)))
        if config.coding.n_mb <= SMALL:
            threads = 1  # rows of small frames are too few for several threads
    share = Share(threads, gpus)
    if not share.slots(machines):
        raise DeviceError(f"a task takes {share}, and no machine of the cluster has so much")
    return share


def _units(config: Config, length: int | None) -> int:
    """How many chunks there are at least; many if the length is unknown."""
    if config.rate.first_pass is not None:
        return len(sections_of(config.rate.first_pass))
    return 1 << 30 if length is None else max(1, -(-length // config.types.keyint))
