"""Reads frames from files in threads without the interpreter's lock: jobs by ticket, threads that sleep on a semaphore.

A Python thread needs the interpreter's lock before and after each read, and the encoding thread waits for it each time: about
half of the host time of a frame when the GPU takes no time (docs/how/threads.md).
"""

from ...jit.atomics import fetch_add, load_acquire, store_release
from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import kernel, quick_kernel
from .copy_kernels import call_with

# The job ring, int64[RING_SIZE]: jobs posted, jobs taken, stop flag, each on its own cache line; then MAX_JOBS jobs, by
# ticket modulo MAX_JOBS: file descriptor, offset in the file, target address, bytes to read, bytes read
POSTED, TAKEN, STOP, JOBS = 0, 8, 16, 24
MAX_JOBS, JOB_FIELDS = 64, 5
RING_SIZE = JOBS + MAX_JOBS * JOB_FIELDS
NOT_DONE = -1


@intrinsic
def read_at(typingctx, function, file, target, count, offset):
    """Calls pread at an address. Returns the bytes read, 0 at the end of the file, -1 on failure."""

    def codegen(context, builder, sig, args):
        int64 = ir.IntType(64)
        function_type = ir.FunctionType(int64, [ir.IntType(32), int64, int64, int64])
        descriptor = builder.trunc(args[1], ir.IntType(32))
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), [descriptor, *args[2:]])

    return types.int64(*[types.int64] * 5), codegen


@quick_kernel
def post_read(job_ring, file, offset, target, count, post, semaphore):
    """Post a job and wake a thread. Returns the ticket. Only one thread posts jobs, at most MAX_JOBS at once.

    target: an address; post: address of sem_post; semaphore: int64[8], a sem_t.
    """
    ticket = job_ring[POSTED]
    at = JOBS + JOB_FIELDS * (ticket % MAX_JOBS)
    job = job_ring[at : at + JOB_FIELDS]
    job[0], job[1], job[2], job[3], job[4] = file, offset, target, count, NOT_DONE
    store_release(job_ring, POSTED, ticket + 1)
    call_with(post, semaphore.ctypes.data)
    return ticket


@quick_kernel
def bytes_done(job_ring, ticket):
    """Bytes read by a job, or NOT_DONE; fewer than requested if the file ended or could not be read."""
    return load_acquire(job_ring, JOBS + JOB_FIELDS * (ticket % MAX_JOBS) + 4)


@kernel
def serve_reads(job_ring, read, wait, semaphore):
    """Main loop of a thread. read, wait: addresses of pread and sem_wait. Keeps a reference to the semaphore."""
    while True:
        if call_with(wait, semaphore.ctypes.data) != 0:  # a signal
            continue
        if load_acquire(job_ring, STOP) != 0:
            return
        ticket = fetch_add(job_ring, TAKEN, 1)  # a job exists, because the semaphore counts jobs
        at = JOBS + JOB_FIELDS * (ticket % MAX_JOBS)
        filled, count = 0, job_ring[at + 3]
        while filled < count:
            got = read_at(read, job_ring[at], job_ring[at + 2] + filled, count - filled, job_ring[at + 1] + filled)
            if got <= 0:
                break
            filled += got
        store_release(job_ring, at + 4, filled)
