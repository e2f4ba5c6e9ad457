"""Intrinsics of kernels, made Numba's when a kernel that calls them is compiled, so that their files import no Numba.

`ir`, `types` and `cgutils` stand for llvmlite.ir, numba.types and numba.core.cgutils within the functions of intrinsics.
"""

import os
import sys
from importlib import import_module
from typing import Any

from .numba_version import import_numba


class _Later:
    """A module that is imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if self._name.startswith("numba"):
            import_numba()
        return getattr(import_module(self._name), attribute)


ir, types, cgutils = _Later("llvmlite.ir"), _Later("numba.core.types"), _Later("numba.core.cgutils")


def setting(name: str) -> Any:
    """A setting of Numba: of its `config` where the environment, its file or the process may have changed it, else None."""
    touched = "numba" in sys.modules or os.path.exists(".numba_config.yaml")
    if not touched and not any(variable.startswith("NUMBA_") for variable in os.environ):
        return None
    import_numba()
    from numba import config

    return getattr(config, name, None)


class Intrinsic:
    """Numba's intrinsic of a typing function. plain: what a call does where kernels are not compiled."""

    def __init__(self, function: Any, plain: Any = None, **options: Any) -> None:
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._function, self._plain, self._options = function, plain, options
        self._registered: Any = None

    @property
    def _numba_type_(self) -> Any:
        """By which Numba resolves a call."""
        import_numba()
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        if self._registered is None:
            decorator = intrinsic(**self._options) if self._options else intrinsic
            self._registered = decorator(self._function)
            cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(self._registered)

    def __call__(self, *args: Any) -> Any:
        if self._plain is None:
            raise NotImplementedError(f"{self.__name__} is for compiled kernels")
        return self._plain(*args)


def intrinsic(function: Any = None, **options: Any) -> Any:
    """The decorator: numba.extending.intrinsic, later."""
    if function is None:
        return lambda function: Intrinsic(function, **options)
    return Intrinsic(function, **options)


# ---- marks for the first line of a kernel: `outlined` (never inlined), `inlined` (always inlined). An outlined function is
# compiled once, not at each call. One with a single caller is better inlined: LLVM mostly does so, but not in a large caller
def _nothing() -> None:
    """The mark with compilation disabled: does nothing."""


def _mark(attribute):  # type: ignore[no-untyped-def]
    def typing(typing_context):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            builder.function.attributes.add(attribute)
            return context.get_dummy_value()

        return types.none(), code

    return Intrinsic(typing, plain=_nothing)


outlined = _mark("noinline")
inlined = _mark("alwaysinline")
