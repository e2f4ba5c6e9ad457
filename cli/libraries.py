"""The libraries beside Python that are installed, found without an import of them; what `doctor` says without NumPy."""

import importlib.util
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..console import folded, one_line
from ..version import __version__

GPU_LIBRARIES = ("pycuda", "cuda-bindings")
_LIBRARIES = ("numpy", "numba", "scipy", *GPU_LIBRARIES, "av", "matplotlib")
Facts = dict[str, Any]


def basic_facts() -> Facts:
    """Versions of h264lite, Python and the libraries, as docs/json.md has them."""
    return {
        "version": __version__,
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "there, version unknown" if importlib.util.find_spec(name) else ""


def basic_rows(facts: Facts) -> list[tuple[str, str]]:
    """The same as rows of the report."""
    libraries = ", ".join(f"{name} {text}" for name, text in facts["libraries"].items() if text)
    optional = [name for name in facts["libraries"] if name not in GPU_LIBRARIES]  # "CUDA:" says what a GPU needs
    lacking = ", ".join(name for name in optional if not facts["libraries"][name])
    return [
        ("h264lite", f"{facts['version']}, Python {facts['python']}"),
        ("libraries", libraries + (f"; not installed: {lacking}" if lacking else "")),
    ]


def as_lines(rows: list[tuple[str, str]], problems: list[str]) -> list[str]:
    """A report as lines, with its end."""
    end = [f"problem: {problem}" for problem in problems] or ["all is well"]
    return [*(f"{name + ':':<13}{value}" for name, value in rows), "", *end]


def report(facts: Facts, lines: list[str], as_json: bool) -> int:
    """Print a report to standard output in any encoding; flushed, so that the command reports failures. 1: something is
    broken.
    """
    text = json.dumps(facts, indent=2) if as_json else folded("\n".join(map(one_line, lines)), sys.stdout)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    return 1 if facts["problems"] else 0


def report_without_numpy(error: ImportError, as_json: bool) -> int:
    """The report where NumPy cannot be imported, without which nothing else can be looked at."""
    facts = basic_facts()
    lacks = isinstance(error, ModuleNotFoundError) and error.name == "numpy"
    why = "is not installed" if lacks else f"cannot be imported ({' '.join(str(error).split())})"
    facts["problems"] = [f"NumPy {why}, without which nothing can be encoded or decoded: pip install numpy"]
    return report(facts, as_lines(basic_rows(facts), facts["problems"]), as_json)
