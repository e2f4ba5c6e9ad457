"""Whether Numba has the private interfaces that cache.py and parts.py use; if not, kernels are ordinary njit functions.

They are the same functions with the same results: they only take longer to compile and to load.
"""

from functools import cache
from importlib import import_module

import numba

from .numba_version import BEFORE, SINCE

# By module: what cache.py, parts.py and dispatchers.py call or replace
_USED = {
    "numba.core.caching": (
        "CompileResultCacheImpl.rebuild", "FunctionCache._index_key", "FunctionCache._load_overload",
        "FunctionCache._save_overload", "FunctionCache.disable", "_CacheLocator",
    ),
    "numba.core.codegen": (
        "JITCPUCodegen.magic_tuple",
        "JITCodeLibrary._ensure_finalized", "JITCodeLibrary._finalize_dynamic_globals",
        "JITCodeLibrary._get_compiled_object",
        "JITCodeLibrary._finalize_final_module", "JITCodeLibrary._get_module_for_linking",
        "JITCodeLibrary._optimize_final_module", "JITCodeLibrary._set_compiled_object",
        "JITCodeLibrary.enable_object_caching",
    ),
    "numba.core.compiler": (
        "CompilerBase._compile_core", "CompileResult._find_referenced_environments",
        "DefaultPassBuilder.define_nopython_pipeline",
    ),
    "numba.core.compiler_machinery": ("LoweringPass", "PassManager.add_pass_after", "PassManager.finalize", "register_pass"),
    "numba.core.dispatcher": ("Dispatcher._compile_for_args", "Dispatcher._insert", "Dispatcher.get_call_template"),
    "numba.core.runtime": ("rtsys.initialize",),
    "numba.core.serialize": ("dumps",),
    "numba.core.typed_passes": ("IRLegalization",),
    "numba.core.types": ("unliteral",),
}  # fmt: skip

# What a cache file of Numba holds, in this order: the parameters of CompileResult._rebuild
_SAVED = (
    "libdata", "fndesc", "env", "signature", "objectmode", "lifted", "typeann", "reload_init", "referenced_envs",
)  # fmt: skip


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
    if _saved() != _SAVED:
        return f"has cache files of {len(_saved())} fields, where {len(_SAVED)} others are expected"
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


def _saved() -> tuple[str, ...]:
    """Names of the fields of a cache file of Numba; empty if unknown."""
    try:
        code = import_module("numba.core.compiler").CompileResult._rebuild.__func__.__code__
    except (ImportError, AttributeError):
        return ()
    return code.co_varnames[2 : code.co_argcount]  # without cls, target_context
