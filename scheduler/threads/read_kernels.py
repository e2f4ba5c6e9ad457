"""Reads frames from files in threads without the interpreter's lock: jobs of a ring (job_ring.py)."""

from ...jit.atomics import store_release
from ...jit.intrinsics import intrinsic, ir, types
from ...jit.kernel import kernel
from .job_ring import RESULT, next_job


@intrinsic
def read_at(typingctx, function, file, target, count, offset):
    """Calls pread at an address. Returns the bytes read, 0 at the end of the file, -1 on failure."""

    def codegen(context, builder, sig, args):
        int64 = ir.IntType(64)
        function_type = ir.FunctionType(int64, [ir.IntType(32), int64, int64, int64])
        descriptor = builder.trunc(args[1], ir.IntType(32))
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), [descriptor, *args[2:]])

    return types.int64(*[types.int64] * 5), codegen


@kernel
def serve_reads(job_ring, read, wait, semaphore):
    """Main loop of a thread. Jobs: file descriptor, offset in the file, target address, bytes to read. Results: bytes read,
    fewer if the file ended or could not be read.

    read, wait: addresses of pread and sem_wait. Keeps a reference to the semaphore, which so outlives its owner.
    """
    while True:
        at = next_job(job_ring, wait, semaphore)
        if at < 0:
            return
        filled, count = 0, job_ring[at + 3]
        while filled < count:
            got = read_at(read, job_ring[at], job_ring[at + 2] + filled, count - filled, job_ring[at + 1] + filled)
            if got <= 0:
                break
            filled += got
        store_release(job_ring, at + RESULT, filled)
