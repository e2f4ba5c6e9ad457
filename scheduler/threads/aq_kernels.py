"""Adaptive quantisation of frames in a thread without the interpreter's lock: jobs by ticket, see
adaptive_quantisation_async.py.

A Python thread takes that lock four times a frame, and the thread of the calls waits for it each time.
"""

import numpy as np

from ...cpu_simd.ac_energy import energies
from ...cpu_simd.aq_offsets import find_error_weights, find_offsets
from ...cpu_simd.bundles import Planes
from ...jit.atomics import load_acquire, store_release
from ...jit.intrinsics import carray, intrinsic, ir, types
from ...jit.kernel import kernel, quick_kernel
from .copy_kernels import call_with

# The job ring, int64[RING_SIZE]: jobs posted, jobs done, stop flag, each on its own cache line; then MOST_JOBS jobs, by
# ticket modulo MOST_JOBS: addresses of Y, Cb, Cr; luma height, width and coded width; mode, strength; addresses of the
# offsets int32[n_mb] and of the worths int64[n_mb], 0 for none
POSTED, DONE, STOP, JOBS = 0, 8, 16, 24
MOST_JOBS, JOB_FIELDS = 16, 10
RING_SIZE = JOBS + MOST_JOBS * JOB_FIELDS


@intrinsic
def _pointer(typingctx, address):
    """An address as a pointer."""

    def codegen(context, builder, sig, args):
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@kernel
def _plane(address, height, width, coded_width):
    """uint8[height, coded_width]: the plane, uint8[height, width] at an address; continued by its last samples."""
    plane = carray(_pointer(address), (height, width), np.uint8)
    if width == coded_width:
        return plane
    padded = np.empty((height, coded_width), np.uint8)
    padded[:, :width] = plane
    for y in range(height):
        padded[y, width:] = plane[y, width - 1]
    return padded


@quick_kernel
def post_adaptation(job_ring, job, post, semaphore):
    """Post a job, int64[JOB_FIELDS], and wake the thread. Returns the ticket; -1 if MOST_JOBS are not done.

    post: address of sem_post; semaphore: int64[8], a sem_t.
    """
    ticket = job_ring[POSTED]
    if ticket >= load_acquire(job_ring, DONE) + MOST_JOBS:
        return -1
    at = JOBS + JOB_FIELDS * (ticket % MOST_JOBS)
    for k in range(JOB_FIELDS):
        job_ring[at + k] = job[k]
    store_release(job_ring, POSTED, ticket + 1)
    call_with(post, semaphore.ctypes.data)
    return ticket


@quick_kernel
def adaptations_done(job_ring):
    """Jobs that have ended: they end in order."""
    return load_acquire(job_ring, DONE)


@kernel
def serve_adaptations(job_ring, wait, semaphore):
    """Main loop of the thread. wait: address of sem_wait. Keeps a reference to the semaphore."""
    while True:
        if call_with(wait, semaphore.ctypes.data) != 0:  # a signal
            continue
        if load_acquire(job_ring, STOP) != 0:
            return
        ticket = job_ring[DONE]
        at = JOBS + JOB_FIELDS * (ticket % MOST_JOBS)
        job = job_ring[at : at + JOB_FIELDS]
        height, width, coded_width = job[3], job[4], job[5]
        rows, n_mb = (height + 15) // 16, (height + 15) // 16 * (coded_width // 16)
        luma = _plane(job[0], height, width, coded_width)
        cb = _plane(job[1], (height + 1) // 2, (width + 1) // 2, coded_width // 2)
        cr = _plane(job[2], (height + 1) // 2, (width + 1) // 2, coded_width // 2)
        energy, offsets = np.empty(n_mb, np.int32), carray(_pointer(job[8]), (n_mb,), np.int32)
        energies(Planes(luma, cb, cr), 0, rows, energy)
        find_offsets(energy, job[6], job[7], offsets)
        if job[9] != 0:
            find_error_weights(offsets, carray(_pointer(job[9]), (n_mb,), np.int64))
        store_release(job_ring, DONE, ticket + 1)
