"""Adaptive quantisation of frames in a thread without the interpreter's lock: jobs of a ring (job_ring.py)."""

import numpy as np

from ...cpu_simd.bundles import Planes
from ...cpu_simd.quantiser.aq_offsets import find_error_weights, find_offsets
from ...cpu_simd.source.ac_energy import energies
from ...jit.atomics import store_release
from ...jit.intrinsics import carray, intrinsic, ir, types
from ...jit.kernel import kernel
from ...standard.sample_format import SUB_HEIGHT_C, SUB_WIDTH_C, Sample
from .job_ring import JOB_FIELDS, RESULT, next_job


@intrinsic
def _pointer(typingctx, address):
    """An address as a pointer."""

    def codegen(context, builder, sig, args):
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@kernel
def _plane(address, height, width, coded_width):
    """Sample[height, coded_width]: the plane, Sample[height, width] at an address; continued by its last samples."""
    plane = carray(_pointer(address), (height, width), Sample)
    if width == coded_width:
        return plane
    padded = np.empty((height, coded_width), Sample)
    padded[:, :width] = plane
    for y in range(height):
        padded[y, width:] = plane[y, width - 1]
    return padded


@kernel
def serve_adaptations(job_ring, wait, semaphore):
    """Main loop of the thread. Jobs: addresses of Y, Cb, Cr; luma height, width and coded width; mode, strength; addresses of
    the offsets int32[n_mb] and of the error weights int32[n_mb], 0 for none. Results: 0.

    wait: address of sem_wait. Keeps a reference to the semaphore, which so outlives its owner.
    """
    while True:
        at = next_job(job_ring, wait, semaphore)
        if at < 0:
            return
        job = job_ring[at : at + JOB_FIELDS]
        height, width, coded_width = job[3], job[4], job[5]
        rows, n_mb = (height + 15) // 16, (height + 15) // 16 * (coded_width // 16)
        luma = _plane(job[0], height, width, coded_width)
        height_c, width_c = -(-height // SUB_HEIGHT_C), -(-width // SUB_WIDTH_C)
        cb = _plane(job[1], height_c, width_c, coded_width // SUB_WIDTH_C)
        cr = _plane(job[2], height_c, width_c, coded_width // SUB_WIDTH_C)
        energy, offsets = np.empty(n_mb, np.int32), carray(_pointer(job[8]), (n_mb,), np.int32)
        energies(Planes(luma, cb, cr), 0, rows, energy)
        find_offsets(energy, job[6], job[7], offsets)
        if job[9] != 0:
            find_error_weights(offsets, carray(_pointer(job[9]), (n_mb,), np.int32))
        store_release(job_ring, at + RESULT, 0)
