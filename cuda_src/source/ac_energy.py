"""AC energy of source macroblocks on the GPU, for adaptive quantisation: launches ac_energy.cu."""

from ...cpu_simd.bundles import Planes
from ..runtime.array import DeviceArray, Stream

WARPS = 4


def ac_energies(
    source: Planes,  # of display or coded size: the last column and row go on
    energy: DeviceArray,  # int32[n_mb]
    stream: Stream | None = None,
) -> None:
    """Not part of the standard: twin of cpu_simd.source.ac_energy.ac_energies."""
    height, width = source.y.shape
    mb_width, count = -(-width // 16), energy.shape[0]
    arguments = [*source, width, height, mb_width, count, energy]
    energy.device.launch("source/ac_energy", "ac_energies", (-(-count // WARPS),), (32 * WARPS,), arguments, stream)
