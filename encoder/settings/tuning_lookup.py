"""Finds this machine's tuning file for an encode; device_prediction.py applies it."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...scheduler.devices import why_no_cuda
from ...scheduler.hybrid.tuning.tuning_place import TuningError, cache_file, may_exist
from ..errors import OptionError

if TYPE_CHECKING:
    from ...scheduler.hybrid.tuning.tuning_file import Machine, Tuning


@cache
def this_machine() -> "Machine":
    """This machine, examined once."""
    from ...scheduler.hybrid.tuning.tuning_file import Machine

    return Machine.here()


def find_tuning(name: str | None, device: str = "auto") -> "tuple[Tuning | None, str]":
    """(this machine's tuning, a sentence if the user's cache holds an unusable file or a pinned device is missing).

    device: the requested device; with `auto` a pin may choose it. OptionError for a named file that cannot be used.
    """
    try:
        if name is None and not may_exist(cache_file()):
            return None, ""
        from ...scheduler.hybrid.tuning.tuning_file import find, load  # most encodes have no file

        if name is None:
            tuning, note = find(this_machine())
        else:
            tuning, note = load(Path(name), this_machine()), ""
    except TuningError as error:
        if name is None:
            return None, str(error)
        raise OptionError(str(error), "tuning") from None
    return tuning, note or (unmet(tuning) if tuning is not None and device == "auto" else "")


def unmet(tuning: "Tuning") -> str:
    """A sentence if a pinned device is missing, else empty."""
    from ...scheduler.hybrid.tuning.models import CPU

    pin = tuning.pins.get("device", CPU)
    missing = None if pin == CPU else why_no_cuda()
    return f'{tuning.path}: device = "{pin}" is pinned, and there is no GPU to use ({missing})' if missing else ""
