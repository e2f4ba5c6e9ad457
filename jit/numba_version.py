"""The version of Numba by its files, without `import numba`, which takes a fifth to a third of a second; whether its machine
code can be kept and loaded without it. A wheel with compiled kernels brings the files that they need, and no Numba.
"""

import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# Versions of Numba, as in setup.cfg: tests/jit run with the first, all tests with the last
SINCE, BEFORE = (0, 60), (0, 69)
BUNDLE = Path(__file__).resolve().parent / "compiled" / "numba"  # in a wheel (wheel_kernels.py)

TO_INSTALL = "pip install 'h264lite[compile]'"
_MISSING = (
    "kernels have to be compiled which the wheel does not have (for another processor, or for settings of the environment), "
    f"and Numba is not installed: {TO_INSTALL}"
)


def require_numba() -> None:
    """ModuleNotFoundError where Numba is not installed, with what to do."""
    if find_spec("numba") is None:
        raise ModuleNotFoundError(_MISSING, name="numba")


@cache
def numba_folder() -> Path | None:
    """The folder of the installed package, else what the wheel brings; None without either."""
    spec = find_spec("numba")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    return BUNDLE if BUNDLE.is_dir() else None


def numba_version() -> str:
    """As numba.__version__."""
    # another thread may be importing it, so that it has no version yet
    return str(getattr(sys.modules.get("numba"), "__version__", "")) or _version_on_disk() or _imported()


def is_tested(version: str) -> bool:
    """Whether it is from SINCE to below BEFORE."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and SINCE <= (int(match[1]), int(match[2])) < BEFORE


@cache
def is_possible() -> bool:
    """Whether kernels are kept as machine code (numba_free.py); else in Numba's own cache.

    Only on Linux with x86-64, with a tested version of Numba whose settings are in the environment.
    """
    if sys.platform != "linux" or os.uname().machine != "x86_64" or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return False
    return not os.path.exists(".numba_config.yaml") and is_tested(numba_version())


@cache
def _version_on_disk() -> str:
    """The version in the file that `versioneer` writes into a package; empty if it has another form."""
    folder = numba_folder()
    try:
        text = "" if folder is None else (folder / "_version.py").read_text()
    except OSError:
        return ""
    match = re.search(r'"version": "([^"]+)"', text)
    return match[1] if match else ""


def import_numba() -> None:
    """Before parts of it are imported: while one thread imports Numba, and another one a part, the import fails."""
    require_numba()
    import numba  # noqa: F401


def _imported() -> str:
    import_numba()
    import numba

    return str(numba.__version__)
