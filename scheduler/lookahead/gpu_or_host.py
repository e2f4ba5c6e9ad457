"""The lookahead of an encode: on its first GPU as long as there is one, else on the host; the same integers."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ...cuda_src.runtime.device import Device, DeviceMemoryError, DeviceUnavailable, GpuLost
from ...cuda_src.runtime.idle import is_keeping, keep_user, take_user
from ..frames.device_frame import GpuSource
from .costs import NOTHING_READ, CostPending, CostQuery, LookaheadCosts, Source, TreeFrame, UsedMotion
from .gpu_costs import GpuCosts

HostCosts = Callable[[int], LookaheadCosts]


class GpuOrHostCosts:
    """Costs of a GPU until that is lost, then of the host, which begins with the frames that are kept.

    All methods raise GpuLost or DeviceMemoryError if the user named the GPU.
    """

    def __init__(
        self,
        ordinal: int,
        width: int,
        height: int,
        may_change_device: bool,
        host: HostCosts,
        copies: bool = True,
        quick: bool = False,
        aq: tuple[int, int] | None = None,
        with_sharpness: bool = True,
    ) -> None:
        """ordinal: of the GPU; width, height: of the display, luma samples; host(n): the host's, whose next frame is n;
        copies, quick, aq, with_sharpness: see GpuCosts.
        """
        self._ordinal, self._size, self._may_change_device, self._host = ordinal, (width, height), may_change_device, host
        self._settings = copies, quick, aq, with_sharpness
        self._is_whole = True  # no exception has cut a call
        self._gpu: GpuCosts | None = None
        self._costs: LookaheadCosts | None = None  # of the host, without a GPU
        self._known: Mapping[CostQuery, int | None] = {}  # by the GPU

    def add(self, source: Source) -> None:
        """See LookaheadCosts. Without the GPU, a frame there is downloaded."""
        if self._gpu is None and self._costs is None:
            self._start()
        self._call("add", source)

    def expect(self, number: int, luma: np.ndarray) -> None:
        """See LookaheadCosts: a GPU begins in `add`."""

    def ahead(self, queries: list[CostQuery]) -> None:
        """See LookaheadCosts."""
        self._call("ahead", queries)

    def wait(self) -> None:
        """See LookaheadCosts."""
        self._call("wait")

    def forget(self, before: int) -> None:
        """See LookaheadCosts."""
        self._call("forget", before)

    @property
    def reads_from(self) -> int:
        """See LookaheadCosts."""
        if self._gpu is not None:
            try:
                return self._gpu.reads_from
            except (GpuLost, DeviceMemoryError) as error:
                self._without_gpu(error)
        return NOTHING_READ

    def intra(self, frame: int) -> int:
        """See LookaheadCosts."""
        known = self._known.get((frame,))
        return int(self._call("intra", frame)) if known is None else known

    def sharpness(self, frame: int) -> int:
        """See LookaheadCosts."""
        return int(self._call("sharpness", frame))

    def p(self, reference: int, frame: int) -> int:
        """See LookaheadCosts."""
        known = self._known.get((reference, frame))
        return int(self._call("p", reference, frame)) if known is None else known

    def b(self, earlier: int, later: int, frame: int) -> int:
        """See LookaheadCosts."""
        known = self._known.get((earlier, later, frame))
        return int(self._call("b", earlier, later, frame)) if known is None else known

    def p_of_levels(self, reference: int, frame: int) -> int:
        """See LookaheadCosts."""
        return int(self._call("p_of_levels", reference, frame))

    def brightness(self, frame: int) -> np.ndarray:
        """See LookaheadCosts."""
        means: np.ndarray = self._call("brightness", frame)
        return means

    def aq_offsets(self, frame: int) -> np.ndarray | None:
        """See LookaheadCosts."""
        offsets: np.ndarray | None = self._call("aq_offsets", frame)
        return offsets

    def intra_costs(self, frame: int) -> np.ndarray:
        """See LookaheadCosts; without a GPU alone."""
        costs: np.ndarray = self._call("intra_costs", frame)
        return costs

    def used_of_p(self, reference: int, frame: int) -> UsedMotion:
        """See LookaheadCosts; without a GPU alone."""
        motion: UsedMotion = self._call("used_of_p", reference, frame)
        return motion

    def used_of_b(self, earlier: int, later: int, frame: int) -> UsedMotion:
        """See LookaheadCosts; without a GPU alone."""
        motion: UsedMotion = self._call("used_of_b", earlier, later, frame)
        return motion

    @property
    def has_tree(self) -> bool:
        """See LookaheadCosts."""
        return self._gpu is not None

    in_batches = has_tree

    def start_tree(self, frames: list[TreeFrame], count: int, strength: int) -> bool:
        """See LookaheadCosts."""
        return bool(self._call("start_tree", frames, count, strength))

    def tree(self, wait: bool) -> list[np.ndarray] | None:
        """See LookaheadCosts."""
        offsets: list[np.ndarray] | None = self._call("tree", wait)
        return offsets

    def close(self) -> None:
        """See LookaheadCosts. Frees the GPU's memory."""
        gpu, self._gpu, self._known = self._gpu, None, {}
        if gpu is not None and not self._keep(gpu):
            gpu.close()
        if self._costs is not None:
            self._costs.close()

    def _call(self, name: str, *given: object) -> Any:
        """A method of the GPU's costs, or, without one or after its loss, of the host's."""
        if self._gpu is not None:
            self._is_whole = False
            try:
                answer = getattr(self._gpu, name)(*given)
            except CostPending:
                self._is_whole = True
                raise
            except (GpuLost, DeviceMemoryError) as error:
                self._without_gpu(error)
            else:
                self._is_whole = True
                return answer
        return getattr(self._costs, name)(*([one.host_luma()] if isinstance(one, GpuSource) else one for one in given))

    def _start(self) -> None:
        """Take the GPU; where that cannot be used, the executor, which uses it too, says so."""
        gpu = None
        try:
            self._gpu = take_user(self._key, GpuCosts) if is_keeping() else None
            if self._gpu is None:
                gpu = Device(self._ordinal)
                copies, quick, aq, with_sharpness = self._settings
                self._gpu = GpuCosts(gpu, *self._size, copies, quick, aq, with_sharpness)
            self._known = self._gpu.known
        except (DeviceUnavailable, DeviceMemoryError, GpuLost):
            if gpu is not None:
                gpu.close()
            if not self._may_change_device:
                raise
            self._costs = self._host(0)

    @property
    def _key(self) -> Hashable:
        """Equal for costs of which one can take the place of another."""
        return GpuCosts, self._ordinal, *self._size, *self._settings

    def _keep(self, costs: GpuCosts) -> bool:
        """Keep the costs for a later encoder; False if they cannot be kept."""
        if not is_keeping() or costs.gpu.lost or not self._is_whole:
            return False
        try:
            costs.renew()
        except GpuLost:
            return False
        keep_user(self._key, costs)
        return True

    def _without_gpu(self, error: Exception) -> None:
        """The GPU is lost: go on on the host, or raise."""
        gpu = self._gpu
        assert gpu is not None
        if not self._may_change_device:
            raise error
        if not gpu.is_on_host:
            raise GpuLost(f"{error}; source frames on it are lost too") from None
        self._gpu, self._known = None, {}
        self._costs = self._host(gpu.first)
        for number in range(gpu.first, gpu.count):
            self._costs.add([gpu.luma(number)])
        gpu.close()
