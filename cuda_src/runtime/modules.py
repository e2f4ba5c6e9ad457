"""The kernel files of one GPU: a thread gives them to the GPU, or the first launch of one of their kernels."""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any

from ...process import start_threads
from .compiler import is_kept
from .driver_calls import DriverCalls
from .recording import KERNEL

CodeOf = Callable[[list[str], tuple[int, int]], list[bytes]]


class Modules:
    """Kernels by file and name. Any thread may ask for one, in the context of the GPU."""

    def __init__(
        self, calls: DriverCalls, capability: tuple[int, int], code_of: CodeOf, do: Callable[..., Any],
        context: AbstractContextManager,
    ) -> None:  # fmt: skip
        """code_of: see Driver.kernel_code; do: makes a call of the driver, behind what messages say of it, and raises as
        Device's methods do; context: in which a thread gives the GPU kernels.
        """
        self._calls, self._capability, self._code_of, self._do, self._context = calls, capability, code_of, do, context
        self._compiled: dict[str, bytes] = {}  # in this process; the GPU does not have them yet
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def load(self, modules: Iterable[str]) -> None:
        """Compile files that must be compiled. A thread gives all to the GPU while the caller goes on."""
        wanted = [name for name in sorted(modules) if not self._calls.is_loaded(name)]
        missing = [name for name in wanted if name not in self._compiled and not is_kept(name, self._capability)]
        if missing:
            self._compiled |= dict(zip(missing, self._code_of(missing, self._capability)))
        if wanted:
            start_threads([threading.Thread(target=self._give, args=(wanted,), daemon=True)], self._threads)

    def kernel(self, module: str, name: str, shared: int) -> int:
        """Handle of the kernel `name` of `module`.cu, for launches with `shared` bytes of dynamic shared memory."""
        what = f"{KERNEL}{name} of {module}.cu"
        with self._lock:
            self._do(what, self._load, [module])
            function: int = self._do(what, self._calls.function, module, name, shared)
            return function

    def close(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _give(self, modules: list[str]) -> None:
        """A failure is also that of the launch that needs the file, which reports it."""
        with suppress(Exception), self._context, self._lock:
            self._load(modules)

    def _load(self, modules: list[str]) -> None:
        """Give the GPU those of these files that it does not have."""
        code = {name: self._compiled.get(name, b"") for name in modules if not self._calls.is_loaded(name)}
        kept = [name for name in code if not code[name]]
        code |= dict(zip(kept, self._code_of(kept, self._capability))) if kept else {}
        if code:
            self._calls.load(code)
        for name in code:
            self._compiled.pop(name, None)
