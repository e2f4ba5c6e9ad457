"""Finds this machine's tuning file for an encode; predicted.py applies it."""

from functools import cache
from pathlib import Path

from ...scheduler.devices import why_no_cuda
from ...scheduler.planning.models import CPU
from ...scheduler.planning.tuning_file import Machine, Tuning, TuningError, cache_file, find, load, may_exist
from ..errors import OptionError


@cache
def this_machine() -> Machine:
    """This machine, examined once."""
    return Machine.here()


def find_tuning(name: str | None, asked: str = "auto") -> tuple[Tuning | None, str]:
    """(this machine's tuning, a sentence if the user's cache holds an unusable file or a pinned device is missing).

    asked: the requested device; with `auto` a pin may choose it. OptionError for a named file that cannot be used.
    """
    try:
        if name is None:
            tuning, note = find(this_machine()) if may_exist(cache_file()) else (None, "")
        else:
            tuning, note = load(Path(name), this_machine()), ""
    except TuningError as error:
        if name is None:
            return None, str(error)
        raise OptionError(str(error), "tuning") from None
    return tuning, note or (unmet(tuning) if tuning is not None and asked == "auto" else "")


def unmet(tuning: Tuning) -> str:
    """A sentence if a pinned device is missing, else empty."""
    pin = tuning.pins.get("device", CPU)
    missing = None if pin == CPU else why_no_cuda()
    return f'{tuning.path}: device = "{pin}" is pinned, and there is no GPU to use ({missing})' if missing else ""
