"""The version of Numba by its files, without `import numba`, which takes a fifth to a third of a second."""

import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# Versions of Numba, as in pyproject.toml: tests/jit run with the first, all tests with the last
SINCE, BEFORE = (0, 60), (0, 69)


@cache
def numba_folder() -> Path | None:
    """The folder of the installed package; None without one."""
    spec = find_spec("numba")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def numba_version() -> str:
    """As numba.__version__."""
    return str(sys.modules["numba"].__version__) if "numba" in sys.modules else _version_on_disk() or _imported()


def is_tested(version: str) -> bool:
    """Whether it is from SINCE to below BEFORE."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and SINCE <= (int(found[1]), int(found[2])) < BEFORE


@cache
def _version_on_disk() -> str:
    """The version in the file that `versioneer` writes into a package; empty if it has another form."""
    folder = numba_folder()
    try:
        text = "" if folder is None else (folder / "_version.py").read_text()
    except OSError:
        return ""
    found = re.search(r'"version": "([^"]+)"', text)
    return found[1] if found else ""


def _imported() -> str:
    import numba

    return str(numba.__version__)
