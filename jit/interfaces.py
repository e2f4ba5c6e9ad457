"""Whether Numba has the private interfaces that numba_free.py and parts.py use; if not, kernels are ordinary njit functions.

They are the same functions with the same results: they only take longer to compile and to load.
"""

from functools import cache
from importlib import import_module

import numba

from .numba_version import BEFORE, SINCE

# By module: what numba_free.py, parts.py and dispatchers.py call or replace
_USED = {
    "numba.core.codegen": (
        "JITCodeLibrary._ensure_finalized", "JITCodeLibrary._finalize_dynamic_globals",
        "JITCodeLibrary._finalize_final_module", "JITCodeLibrary._get_compiled_object",
        "JITCodeLibrary._optimize_final_module", "JITCodeLibrary.enable_object_caching",
    ),
    "numba.core.compiler": (
        "CompilerBase._compile_core", "CompileResult._find_referenced_environments",
        "DefaultPassBuilder.define_nopython_pipeline",
    ),
    "numba.core.compiler_machinery": ("LoweringPass", "PassManager.add_pass_after", "PassManager.finalize", "register_pass"),
    "numba.core.dispatcher": ("Dispatcher._insert", "Dispatcher.get_call_template"),
    "numba.core.typed_passes": ("IRLegalization",),
    "numba.core.types": ("unliteral",),
}  # fmt: skip


@cache
def why_ordinary() -> str:
    """Why kernels are compiled and cached in Numba's ordinary way, as a sentence; empty if they are not."""
    reason = _difference()
    slower = "kernels are compiled and kept in its ordinary way, which takes longer"
    return reason and f"Numba {numba.__version__} {reason}: {slower}"


def _difference() -> str:
    if not SINCE <= numba.version_info.short < BEFORE:
        return f"is outside the tested versions ({_dotted(SINCE)} to below {_dotted(BEFORE)})"
    for module, names in _USED.items():
        for name in names:
            if not _has(module, name):
                return f"has no {module}.{name}"
    return ""


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _has(module: str, name: str) -> bool:
    try:
        value = import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError):
        return False
    return True
