"""Marks for the start of a kernel: whether its code stays a function of its own, or stands where it is called.

A function of its own is compiled once however often it is called, and its calls are not expanded where they stand. What
has one caller is better part of it: LLVM mostly finds that by itself, but not where the caller is large.
"""

from numba import types
from numba.core import config
from numba.core.extending import intrinsic


def _mark(attribute):  # type: ignore[no-untyped-def]
    def typing(typing_context):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            builder.function.attributes.add(attribute)
            return context.get_dummy_value()

        return types.none(), code

    return intrinsic(typing)


def _nothing() -> None:
    """Without compilation there is nothing to mark."""


_JIT = not getattr(config, "DISABLE_JIT", False)
outlined = _mark("noinline") if _JIT else _nothing
inlined = _mark("alwaysinline") if _JIT else _nothing
