"""Creates CUDA contexts in a thread while Python imports modules: 0.3 to 0.4 s (H100), without the interpreter's lock."""

import ctypes
import threading
from collections.abc import Iterable

from ...process import start_threads
from . import driver


class ContextWarmup:
    """Retains the primary contexts of some GPUs in a thread until `release`.

    `Device` retains the same contexts and so finds them created. A failure here is silent: it occurs again in `Device`, which
    reports it.
    """

    def __init__(self, ordinals: Iterable[int]) -> None:
        self._ordinals = tuple(ordinals)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._hold, name="h264lite wakes GPUs", daemon=True)
        if self._ordinals and driver.is_real() and driver.installed():
            start_threads([self._thread], [])

    def _hold(self) -> None:
        try:
            library = ctypes.CDLL("libcuda.so.1")
            release = library.cuDevicePrimaryCtxRelease_v2
        except (OSError, AttributeError):
            return
        if library.cuInit(0):
            return
        retained, context = [], ctypes.c_void_p()
        for ordinal in self._ordinals:
            device = ctypes.c_int()
            if not library.cuDeviceGet(ctypes.byref(device), ordinal):
                if not library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
                    retained.append(device)
        self._over.wait()
        for device in retained:
            release(device)

    def release(self) -> None:
        """Release the contexts, once `Device` has retained them or is not going to. The last release ends a context."""
        self._over.set()

    def close(self) -> None:
        """As `release`, and wait until it is done."""
        self.release()
        if self._thread.ident is not None:
            self._thread.join()
