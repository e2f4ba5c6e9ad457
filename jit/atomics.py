"""Atomic operations between threads inside kernels, without the interpreter: tickets, progress counters, waiting."""

from .intrinsics import cgutils, intrinsic, ir, types
from .kernel import kernel

_BYTES = 8  # alignment: the element type is int64


def _element(context, builder, sig, args):
    return builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])


@intrinsic
def fetch_add(typingctx, array, index, value):
    """Atomic array[index] += value, array: int64; returns the value before."""

    def codegen(context, builder, sig, args):
        return builder.atomic_rmw("add", _element(context, builder, sig, args), args[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), codegen


@intrinsic
def take_one(typingctx, array, index, value):
    """Atomic compare-and-swap of array[index] from value to value + 1, array: int64; whether it held `value`."""

    def codegen(context, builder, sig, args):
        more = builder.add(args[2], ir.Constant(ir.IntType(64), 1))
        exchanged = builder.cmpxchg(_element(context, builder, sig, args), args[2], more, "seq_cst", "seq_cst")
        return builder.extract_value(exchanged, 1)

    return types.boolean(array, types.intp, types.int64), codegen


@intrinsic
def load_acquire(typingctx, array, index):
    """array[index], int64, with acquire semantics: earlier writes of the thread that stored it are visible afterwards."""

    def codegen(context, builder, sig, args):
        return builder.load_atomic(_element(context, builder, sig, args), "acquire", _BYTES)

    return types.int64(array, types.intp), codegen


@intrinsic
def store_release(typingctx, array, index, value):
    """array[index] = value, int64, with release semantics: after all earlier writes of this thread."""

    def codegen(context, builder, sig, args):
        builder.store_atomic(args[2], _element(context, builder, sig, args), "release", _BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), codegen


@intrinsic
def pause(typingctx):
    """Spin-wait hint to the processor (x86 `pause`; nothing elsewhere)."""

    def codegen(context, builder, sig, args):
        if builder.module.triple.startswith(("x86_64", "i686")):
            nothing = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, nothing, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def give_way(typingctx):
    """Yields the processor to another thread: sched_yield of the C library."""

    def codegen(context, builder, sig, args):
        number = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, number, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def nap(typingctx, microseconds):
    """Sleeps: usleep of the C library."""

    def codegen(context, builder, sig, args):
        number = ir.IntType(32)
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(number, [number]), "usleep")
        builder.call(function, [builder.trunc(args[0], number)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@kernel
def add(counters, index, count):
    """Atomic counters[index] += count, int64; returns the value before."""
    return fetch_add(counters, index, count)


@kernel
def wait_until(counters, index, value, rounds):
    """Spins until counters[index] >= value, for at most `rounds` checks; returns whether it is."""
    for k in range(rounds):
        if load_acquire(counters, index) >= value:
            return True
        if k & 15 == 15:
            give_way()
        pause()
    return load_acquire(counters, index) >= value
