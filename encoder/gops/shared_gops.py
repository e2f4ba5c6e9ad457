"""Encodes the GOPs of a file on a GPU and the CPU at once (device "hybrid"): no frame is exchanged between them."""

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...process import start_threads
from ...scheduler.trace import Trace
from ..prepare_kernels import prepare
from ..settings.config import Config
from .gops import Gops, NoThreads, count_lanes, lane_settings, lanes_by_thread, reads_again, work
from .lane import Lane
from .sharing import SLOWEST, CpuQueue, DeviceQueue

if TYPE_CHECKING:
    from ..pipeline import Pipeline

THREADS_OF_THE_GPU = 2  # which the CPU's lane leaves: one decides, one starts the GPU's work
# Of a GPU for each thread of the CPU: with more the CPU would encode less than one part in SLOWEST of the GPU's frames
MULTIPROCESSORS_A_THREAD = 2.5
SLOWEST_UNASKED = 4  # as SLOWEST, where the user named no device
# Values pinned in a tuning file that ask for rows of each frame, or for one device
PINNED_ROWS, PINNED_DEVICE = {"rows_gpu", "rows_cpu", "whole"}, {"device", "gops"}
GOPS_AHEAD = 32  # that the GPU may begin while the CPU encodes one


def shares_gops(config: Config) -> bool:
    """Whether the GOPs of an input that can be read in any order go to a GPU and the CPU.

    With device hybrid, named or pinned, in place of rows of each frame; where the encode has chosen the GPU itself, if
    measurements of this machine say that it pays.
    """
    machine, pins = config.machine, {} if config.machine.tuning is None else config.machine.tuning.pins
    in_order = machine.waits_for_packets or config.rate.first_pass is not None
    if in_order or machine.gops or machine.threads <= THREADS_OF_THE_GPU:
        return False
    chosen = machine.device == "cuda" and machine.may_change_device
    if machine.device == "hybrid" or (chosen and pins.get("device") == "hybrid"):
        return machine.split is None and not pins.keys() & PINNED_ROWS
    may = chosen and not pins.keys() & PINNED_DEVICE
    return may and (rates := _measured(config)) is not None and rates[0] * SLOWEST_UNASKED >= rates[1]


def _measured(config: Config) -> tuple[float, float] | None:
    """Frames a second of such an encode on the CPU and on the GPU, by the tuning file."""
    tuning, gpu = config.machine.tuning, f"cuda:{config.machine.ordinal}"
    if tuning is None:
        return None
    rates = tuning.rate("cpu", config.coding), tuning.rate(gpu, config.coding)
    return None if rates[0] is None or rates[1] is None else (rates[0], rates[1])


class SharedGops(Gops):
    """As Gops. The CPU takes GOPs beside a GPU that is not too fast for it."""

    _ahead = GOPS_AHEAD
    _queues: "dict[str, DeviceQueue]"  # by the device's name

    def __init__(
        self, config: Config, frames: int, keep_reconstruction: bool = False, warn: Callable[[str], None] | None = None,
        trace: Trace | None = None,
    ) -> None:  # fmt: skip
        """frames: to be encoded."""
        self._frames = frames
        gpu = _on_device(config, "cuda", config.machine.threads)
        in_any_order = not gpu.decides_by_samples or reads_again(gpu)
        super().__init__(gpu, 1 + count_lanes(gpu, frames if in_any_order else None), keep_reconstruction, warn, trace)

    def _start(self, lanes: int, longest: int, keep: bool, say: Callable[[str], None], trace: Trace | None) -> None:
        make = partial(_pipeline, self.lanes, keep, say, trace)
        on_gpu = DeviceQueue(self.queue, lanes - 1, self._frames, longest)
        on_cpu = CpuQueue(self.queue, self._frames, longest)
        on_gpu.other, on_cpu.other = on_cpu, on_gpu
        self._queues = {self.config.machine.devices[0]: on_gpu, "cpu": on_cpu}
        on_cpu.add_idle(1)
        for k in range(lanes - 1):
            make(lane_settings(self.config, k, lanes - 1))
        threads = [
            threading.Thread(target=work, args=(on_gpu, some), name=f"h264lite-gop-{k}", daemon=True)
            for k, some in enumerate(lanes_by_thread(self.lanes, on_gpu))
        ]
        spare, rates = self.config.machine.threads - THREADS_OF_THE_GPU, _measured(self.config)
        on_gpu.rate.value = rates and rates[1]
        multiprocessors = self.lanes[0].executor.multiprocessors
        pays = multiprocessors <= MULTIPROCESSORS_A_THREAD * spare if rates is None else rates[0] * SLOWEST >= rates[1]
        if multiprocessors and pays:
            cpu = _on_device(self.config, "cpu", spare)
            prepare(cpu)
            helper = partial(_help, on_cpu, partial(make, cpu), rates and rates[0], say)
            threads.append(threading.Thread(target=helper, name="h264lite-gop-cpu", daemon=True))
        if not start_threads(threads, self._threads):
            raise NoThreads("no threads can be started for GOPs on two devices")

    @property
    def rates(self) -> dict[str, tuple[int, float]]:
        rates = {name: queue.rate for name, queue in self._queues.items()}
        return {name: (rate.frames, rate.frames / max(1e-9, rate.seconds)) for name, rate in rates.items()}


def _on_device(config: Config, device: str, threads: int) -> Config:
    """The settings of one of the devices."""
    machine = config.machine
    name = f"cuda:{machine.ordinal}" if device == "cuda" else device
    return config._replace(machine=machine._replace(device=device, devices=(name,), threads=threads))


def _pipeline(
    pipelines: "list[Pipeline]", keep: bool, say: Callable[[str], None], trace: Trace | None, config: Config
) -> "Pipeline":  # fmt: skip
    """The next pipeline, added to the others."""
    from ..pipeline import Pipeline

    view = trace.with_prefix(f"gop lane {len(pipelines)}, ") if trace is not None else None
    pipelines.append(Pipeline(config, keep, say, view))
    return pipelines[-1]


def _help(queue: CpuQueue, make: "Callable[[], Pipeline]", rate: float | None, say: Callable[[str], None]) -> None:
    """The function of the CPU's thread: makes its lane, which takes GOPs then.

    rate: frames a second of it by the tuning file. The GPU leaves GOPs to a faster CPU, so it is told none before.
    """
    try:
        pipeline = make()
    except Exception as error:
        say(f"{error}; the GPU encodes all GOPs")
        return
    queue.rate.value = rate
    queue.add_idle(-1)
    work(queue, [Lane(pipeline, queue)])
