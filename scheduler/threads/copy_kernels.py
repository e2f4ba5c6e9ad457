"""Copies planes in several threads without the interpreter's lock: parts by ticket, helpers that sleep on a semaphore.

A 1080p frame is copied in 0.2 ms. A pool of Python threads became slower with more threads (docs/tried.md): each
thread needs the interpreter's lock at its start and end, and the caller waits for the last thread. Here the caller copies
parts too, never waits for a helper that woke late, and does other work between `begin_copy` and `end_copy`. The thread that
copies the last part sets the upload fence to READY, so that a GPU waiting for it does not depend on the caller.
"""

from ...jit.atomics import fetch_add, give_way, load_acquire, pause, store_release, take_one
from ...jit.intrinsics import cgutils, intrinsic, ir, types
from ...jit.kernel import kernel, quick_kernel
from .job_ring import DONE, FENCE, MOST_JOBS, POSTED, STOP, TAKEN, call_with, place_of

# A part is a job: target, source, bytes of a row, source pitch, rows
PART_FIELDS = 5
PART = 1 << 17  # minimum bytes of a part
PENDING, READY = 0, 1  # values of an upload fence
LOOKS = 256  # reads of a counter before the thread yields the processor


@intrinsic
def copy_bytes(typingctx, target, source, count):
    """memcpy of `count` bytes between addresses."""

    def codegen(context, builder, sig, args):
        pointer = ir.IntType(8).as_pointer()
        target, source = (builder.inttoptr(address, pointer) for address in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def set_ready(typingctx, address):
    """Store READY in the int64 at an address, with release order."""

    def codegen(context, builder, sig, args):
        int64 = ir.IntType(64)
        builder.store_atomic(ir.Constant(int64, READY), builder.inttoptr(args[0], int64.as_pointer()), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@kernel
def copy_parts(job_ring):
    """Copy parts until all are taken."""
    while True:
        ticket = load_acquire(job_ring, TAKEN)
        if ticket >= load_acquire(job_ring, POSTED):
            return
        if not take_one(job_ring, TAKEN, ticket):
            continue
        at = place_of(ticket)
        job = job_ring[at : at + PART_FIELDS]
        target, source, width, pitch, rows = job[0], job[1], job[2], job[3], job[4]
        if pitch == width:
            width, rows = width * rows, 1
        for k in range(rows):
            copy_bytes(target + k * width, source + k * pitch, width)
        upload_fence = job_ring[FENCE]  # read before the part counts as done: it changes only after READY
        if fetch_add(job_ring, DONE, 1) + 1 == job_ring[POSTED]:
            set_ready(upload_fence)


@quick_kernel
def set_source(plane, part):
    """Sets address and pitch of the source in a row of `planes` of begin_copy. plane: uint8[H, W]."""
    part[1], part[3] = plane.ctypes.data, plane.strides[0]


@kernel
def begin_copy(job_ring, planes, upload_fence, helpers, post, semaphore):
    """Post the parts of planes and wake up to `helpers` helpers. The previous copy must have ended.

    planes: int64[n <= 8, 5]: address of the target, whose rows are contiguous; address of the source, 0 for nothing to copy;
    bytes of a row; source pitch in bytes; rows. upload_fence: int64[1], PENDING until all is copied. post: address of
    sem_post; semaphore: int64[8], a sem_t.
    """
    upload_fence[0] = PENDING
    job_ring[FENCE] = upload_fence.ctypes.data
    total = 0
    for k in range(planes.shape[0]):
        total += planes[k, 2] * planes[k, 4]
    part = max(PART, total // (MOST_JOBS // 4))  # long rows give more parts than the quotient
    ticket = job_ring[POSTED]
    for k in range(planes.shape[0]):
        target, source, width, pitch, rows_left = planes[k, 0], planes[k, 1], planes[k, 2], planes[k, 3], planes[k, 4]
        while source != 0 and rows_left > 0:
            rows = min(rows_left, max(1, part // width))
            at = place_of(ticket)
            job = job_ring[at : at + PART_FIELDS]
            job[0], job[1], job[2], job[3], job[4] = target, source, width, pitch, rows
            target, source, rows_left = target + rows * width, source + rows * pitch, rows_left - rows
            ticket += 1
    if ticket == job_ring[POSTED]:
        upload_fence[0] = READY
    store_release(job_ring, POSTED, ticket)
    for _ in range(min(helpers, ticket - job_ring[TAKEN])):
        call_with(post, semaphore.ctypes.data)


@kernel
def end_copy(job_ring, upload_fence):
    """Copy the remaining parts. Returns when all is copied."""
    copy_parts(job_ring)
    looks = 0
    while load_acquire(upload_fence, 0) != READY:
        looks += 1
        pause()
        if looks % LOOKS == 0:
            give_way()


@kernel
def help_to_copy(job_ring, wait, semaphore):
    """Main loop of a helper. wait: address of sem_wait. Keeps a reference to the semaphore, which so outlives its owner."""
    while True:
        call_with(wait, semaphore.ctypes.data)
        if load_acquire(job_ring, STOP) != 0:
            return
        copy_parts(job_ring)
