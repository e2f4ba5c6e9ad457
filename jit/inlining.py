"""Inlining marks for the first line of a kernel: `outlined` (never inlined), `inlined` (always inlined).

An outlined function is compiled once, not at each call. A function with one caller is better inlined: LLVM mostly
does so, but not in a large caller.
"""

from .intrinsics import Intrinsic, types


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
