"""Planes copied by several threads without the interpreter: parts by ticket, helpers that sleep on a semaphore.

A picture of 1080p is copied in 0.2 ms. Threads of a pool took the longer the more there were (docs/performance.md): each has
to have the interpreter's lock before it begins and before it ends, and whoever asks waits for the last of them. Here who asks
copies as well, part by part, and waits for nobody who came too late; between begin and end it does other things. Whoever
copies the last part opens a gate: what waits there, a GPU perhaps, does not depend on what else the caller has to wait for.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...jit.atomics import fetch_add, give_way, load_acquire, pause, store_release, take_one
from ...jit.kernel import kernel

# The board, int64[BOARD]: tickets taken, tickets given out, parts done, whether it is over, address of the gate, each on a
# cache line of its own; then PLACES parts, by ticket: target, source, bytes of a row, bytes from a row of the source to the
# next, rows
TAKEN, POSTED, DONE, OVER, GATE, PARTS = 0, 8, 16, 24, 32, 40
PLACES, WORDS = 64, 5
BOARD = PARTS + PLACES * WORDS
PART = 1 << 17  # bytes of a part, at least
PENDING, READY = 0, 1  # of a fence: whether what waits for it may go on
LOOKS = 256  # at a counter, before another thread may have the processor


@intrinsic
def copy_bytes(typingctx, target, source, count):
    """memcpy; addresses."""

    def codegen(context, builder, sig, args):
        pointer = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(address, pointer) for address in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_with(typingctx, function, argument):
    """Calls the C function at an address with one pointer; its int."""

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64)])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

    return types.int32(types.int64, types.int64), codegen


@intrinsic
def open_gate(typingctx, address):
    """The int64 at an address is OPEN, after everything that this thread wrote before."""

    def codegen(context, builder, sig, args):
        word = ir.IntType(64)
        builder.store_atomic(ir.Constant(word, READY), builder.inttoptr(args[0], word.as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@kernel
def copy_what_is_ready(job_ring):
    """Copies parts until somebody has the last one."""
    while True:
        ticket = load_acquire(job_ring, TAKEN)
        if ticket >= load_acquire(job_ring, POSTED):
            return
        if not take_one(job_ring, TAKEN, ticket):
            continue
        at = PARTS + WORDS * (ticket % PLACES)
        job = job_ring[at : at + WORDS]
        target, source, width, pitch, rows = job[0], job[1], job[2], job[3], job[4]
        if pitch == width:
            width, rows = width * rows, 1
        for k in range(rows):
            copy_bytes(target + k * width, source + k * pitch, width)
        upload_fence = job_ring[GATE]  # which nobody changes before it is open
        if fetch_add(job_ring, DONE, 1) + 1 == job_ring[POSTED]:
            open_gate(upload_fence)


@kernel
def begin_copy(job_ring, planes, upload_fence, helpers, post, semaphore):
    """As many helpers begin to copy planes. What was begun before has ended. gate: int64[1], shut until all is there.

    planes: int64[n <= 8, 5], address of the target, whose rows follow one another, of the source, 0 if there is nothing to
    copy, bytes of a row, from one of the source to the next, rows; post: address of sem_post; semaphore: int64[8], a sem_t.
    """
    upload_fence[0] = PENDING
    job_ring[GATE] = upload_fence.ctypes.data
    total = 0
    for k in range(planes.shape[0]):
        total += planes[k, 2] * planes[k, 4]
    part = max(PART, total // (PLACES // 4))  # rows of more than half a part make more parts
    ticket = job_ring[POSTED]
    for k in range(planes.shape[0]):
        target, source, width, pitch, left = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3], planes[k, 4]
        while source != 0 and left > 0:
            rows = min(left, max(1, part // width))
            at = PARTS + WORDS * (ticket % PLACES)
            job = job_ring[at : at + WORDS]
            job[0], job[1], job[2], job[3], job[4] = target, source, width, pitch, rows
            target, source, left = target + rows * width, source + rows * pitch, left - rows
            ticket += 1
    if ticket == job_ring[POSTED]:
        upload_fence[0] = READY
    store_release(job_ring, POSTED, ticket)
    for _ in range(min(helpers, ticket - job_ring[TAKEN])):
        call_with(post, semaphore.ctypes.data)


@kernel
def end_copy(job_ring, upload_fence):
    """Copies what is left, and returns when all is there."""
    copy_what_is_ready(job_ring)
    looks = 0
    while load_acquire(upload_fence, 0) != READY:
        looks += 1
        pause()
        if looks % LOOKS == 0:
            give_way()


@kernel
def help_to_copy(job_ring, wait, semaphore):
    """A helper's life. wait: address of sem_wait. It holds what it sleeps on, whoever else lets go of it."""
    while True:
        call_with(wait, semaphore.ctypes.data)
        if load_acquire(job_ring, OVER) != 0:
            return
        copy_what_is_ready(job_ring)
