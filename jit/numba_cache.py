"""Numba's own cache, where kernels are not kept by numba_free.py: what is damaged counts as missing, and a failure to write
is reported and not raised, because the compiled kernel is in memory.

Numba reads files without a checksum. A crash of the machine and a full disk leave empty and cut ones, which it cannot read.
"""

import io
import pickletools
import warnings
from contextlib import suppress
from pathlib import Path

from numba.core.caching import FunctionCache

from . import cache_checks


class KernelCache(FunctionCache):
    """The cache of a kernel. Methods: those of Numba's class."""

    def load_overload(self, sig, target_context):
        """See Numba; None, so that the kernel is compiled, also where a file is damaged: then the index begins anew."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # what is no pickle raises anything
            try:
                self.flush()
            except OSError as error:
                self._give_up(error)
            return None

    def save_overload(self, sig, data):
        """See Numba."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error):
        self.disable()
        cache_checks.warn_once(
            "write",
            f"compiled kernels cannot be kept ({self.cache_path}: {cache_checks.error_text(error)}), so every process "
            "compiles them again: set NUMBA_CACHE_DIR to another folder",
        )


def enable(dispatcher):
    """Let Numba keep the versions of a dispatcher in its cache; without a folder for it, they stay in memory."""
    with suppress(RuntimeError):  # Numba finds no folder
        dispatcher.enable_caching()
        if type(getattr(dispatcher, "_cache", None)) is FunctionCache:
            dispatcher._cache = KernelCache(dispatcher.py_func)


def problem_of(path: Path) -> str:
    """Why a file of Numba's cache cannot be read; empty if it can. Its pickles are looked at and not run."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return f"cannot be read ({cache_checks.error_text(error)})"
    file = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of texts with a wrong escape sequence
            while file.tell() < len(data):
                for _ in pickletools.genops(file):
                    pass
    except ValueError:
        return cache_checks.DAMAGED
    return "" if data else cache_checks.DAMAGED
