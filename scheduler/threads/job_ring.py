"""A ring of jobs for threads without the interpreter's lock: posted by one thread, taken by ticket, each with a result.

The threads sleep on a semaphore. A Python thread takes the interpreter's lock before and after each job, and the thread that
posts jobs waits for it each time.
"""

from ...jit.atomics import fetch_add, load_acquire, store_release
from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import kernel, quick_kernel

# int64[RING_SIZE]: tickets posted, tickets taken, jobs done (copy_kernels.py), stop flag, address of an upload fence
# (copy_kernels.py), each on its own cache line; then MOST_JOBS jobs of JOB_FIELDS, by ticket modulo MOST_JOBS
POSTED, TAKEN, DONE, STOP, FENCE, JOBS = 0, 8, 16, 24, 32, 40
MOST_JOBS, JOB_FIELDS = 64, 11
RESULT = JOB_FIELDS - 1  # of a job's fields
RING_SIZE = JOBS + MOST_JOBS * JOB_FIELDS
NOT_DONE = -1  # a result


@intrinsic
def call_with(typingctx, function, argument):
    """Calls the C function at an address with one pointer; returns its int."""

    def codegen(context, builder, sig, args):
        function_type = ir.FunctionType(ir.IntType(32), [ir.IntType(64)])
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), [args[1]])

    return types.int32(types.int64, types.int64), codegen


@kernel
def place_of(ticket):
    """Index of the first field of a job."""
    return JOBS + JOB_FIELDS * (ticket % MOST_JOBS)


@quick_kernel
def post_job(job_ring, job, post, semaphore):
    """Post a job and wake a thread. Returns the ticket. Only one thread posts, and at most MOST_JOBS are not done.

    job: int64[n < JOB_FIELDS]; post: address of sem_post; semaphore: int64[8], a sem_t.
    """
    ticket = job_ring[POSTED]
    at = place_of(ticket)
    for k in range(job.size):
        job_ring[at + k] = job[k]
    job_ring[at + RESULT] = NOT_DONE
    store_release(job_ring, POSTED, ticket + 1)
    call_with(post, semaphore.ctypes.data)
    return ticket


@quick_kernel
def result_of(job_ring, ticket):
    """The result of a job, or NOT_DONE."""
    return load_acquire(job_ring, place_of(ticket) + RESULT)


@kernel
def next_job(job_ring, wait, semaphore):
    """Sleep until there is a job. Returns the index of its first field; -1: the thread ends. wait: address of sem_wait."""
    while call_with(wait, semaphore.ctypes.data) != 0:  # a signal
        pass
    if load_acquire(job_ring, STOP) != 0:
        return -1
    return place_of(fetch_add(job_ring, TAKEN, 1))  # a job exists, because the semaphore counts jobs
