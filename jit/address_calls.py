"""Calls of kernels by address, one after another in compiled code: without the interpreter, or its lock, between them.

A kernel's function takes, after places for its result and for an exception, its arguments as words of 64 bits: a number is
one, None one, an array seven with one dimension and two more for each further one, a tuple those of its members. It takes no
reference to an array whose first word, the owner, is 0, so that who makes the words keeps the arrays.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .intrinsics import cgutils, intrinsic, ir, types
from .kernel import kernel

MOST_WORDS = 288  # of a call; all are passed, so that one function calls every kernel, and take 0.1 us
_CLOCK = getattr(time, "CLOCK_MONOTONIC", 0)
# Elsewhere words may lie on the stack in another way
IS_POSSIBLE = sys.platform == "linux" and sys.maxsize > 1 << 32 and sys.byteorder == "little"


@intrinsic
def call_words(typingctx, address, words, at):  # type: ignore[no-untyped-def]
    """Calls the function at an address with MOST_WORDS words of an array, from the index `at` on; 0, or it has failed."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        word, code, pointer = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
        data = builder.gep(context.make_array(sig.args[1])(context, builder, args[1]).data, [args[2]])
        given = [builder.load(builder.gep(data, [ir.Constant(word, k)])) for k in range(MOST_WORDS)]
        result, error = cgutils.alloca_once(builder, pointer), cgutils.alloca_once(builder, pointer)
        function_type = ir.FunctionType(code, [pointer.as_pointer()] * 2 + [word] * MOST_WORDS)
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), [result, error, *given])

    return types.int32(types.int64, words, types.intp), codegen


@intrinsic
def nanoseconds(typingctx):  # type: ignore[no-untyped-def]
    """The time of time.monotonic() in nanoseconds."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        word = ir.IntType(64)
        pair = ir.ArrayType(word, 2)
        function_type = ir.FunctionType(ir.IntType(32), [ir.IntType(32), pair.as_pointer()])
        now = cgutils.alloca_once(builder, pair)
        function = cgutils.get_or_insert_function(builder.module, function_type, "clock_gettime")
        builder.call(function, [ir.Constant(ir.IntType(32), _CLOCK), now])
        loaded = builder.load(now)
        seconds = builder.mul(builder.extract_value(loaded, 0), ir.Constant(word, 10**9))
        return builder.add(seconds, builder.extract_value(loaded, 1))

    return types.int64(), codegen


@kernel
def run_calls(calls, words, first, end, times):
    """Calls kernels in order, those of [first, end) or up to the first that fails; returns its index, or -1.

    calls: int64[n, 2], the address of each and the index of its first word; words: int64, MOST_WORDS more than used; times
    (out): int64[n, 2], time.monotonic() in nanoseconds at begin and end of each call.
    """
    now = nanoseconds()
    for k in range(first, end):
        times[k, 0] = now
        if call_words(calls[k, 0], words, calls[k, 1]) != 0:
            return k
        now = nanoseconds()
        times[k, 1] = now
    return -1


def words_of(value: Any) -> list[int]:
    """The words of an argument. ValueError for a type of argument that stages have not."""
    if isinstance(value, np.ndarray):
        address = value.__array_interface__["data"][0]
        return [0, 0, value.size, value.itemsize, address, *value.shape, *value.strides]
    if value is None:
        return [0]
    if type(value) in (int, bool):
        return [int(value)]
    if isinstance(value, tuple):
        return [word for member in value for word in words_of(member)]
    raise ValueError(f"{type(value)} is no argument of a stage")


class Prepared:
    """A decorator: the function returns the calls of kernels, (kernel, arguments) each, which a call of it makes."""

    def __init__(self, function: Callable[..., Sequence[tuple[Any, tuple[Any, ...]]]]) -> None:
        self.__name__, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        self.__wrapped__ = self.calls = function

    def __call__(self, *args: Any, **named: Any) -> None:
        for function, arguments in self.calls(*args, **named):
            function(*arguments)


def calls_of(function: Any, arguments: Iterable[Any]) -> Sequence[tuple[Any, tuple[Any, ...]]]:
    """(kernel, arguments) of the calls that a kernel or Prepared function makes."""
    given = tuple(arguments)
    return function.calls(*given) if isinstance(function, Prepared) else [(function, given)]


def address_of(called: Any, arguments: tuple[Any, ...]) -> int:
    """Where the code of a kernel for arguments of these types lies; 0: it has no address."""
    return called.address(*arguments) if IS_POSSIBLE and hasattr(type(called), "address") else 0
