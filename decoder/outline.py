"""A mark for kernels that stay functions of their own in the compiled code, which then is smaller and sooner compiled."""

from numba import types
from numba.core import config
from numba.core.extending import intrinsic


def _mark(typing_context):  # type: ignore[no-untyped-def]
    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), code


def _nothing() -> None:
    """Without compilation there is nothing to mark."""


# Called at the start of a kernel: the kernel's calls are not expanded where they stand.
outlined = _nothing if getattr(config, "DISABLE_JIT", False) else intrinsic(_mark)
