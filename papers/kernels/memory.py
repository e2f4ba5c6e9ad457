"""Paper 003: full search of 16x16 blocks, frames and SADs in one memory or another; launches memory.cu."""

from dataclasses import dataclass

import numpy as np
from h264lite.cuda_src.runtime.array import DType
from h264lite.cuda_src.runtime.device import Device

from .texture import Texture, pitched

MODULE = "papers/memory"
LARGEST_REACH = 32


@dataclass(frozen=True)
class Variant:
    """inside: candidates that leave the picture are left out, else its edges repeat."""

    title: str
    kernel: str
    inside: bool
    texture: bool = False
    pinned: bool = False
    figure: str = ""


MEMORY = {
    "local": Variant("SADs in local memory", "local_inside", True, figure="1"),
    "shared": Variant("SADs in shared memory (global memory, pageable)", "shared_inside", True, figure="1, 2, 3"),
    "texture": Variant("frames in textures", "texture_repeat", False, texture=True, figure="2"),
    "pinned": Variant("shared memory, pinned", "shared_inside", True, pinned=True, figure="3"),
    "local-repeat": Variant("local memory, edges repeated", "local_repeat", False),
    "shared-repeat": Variant("shared memory, edges repeated", "shared_repeat", False),
    "texture-inside": Variant("textures, inside the picture", "texture_inside", True, texture=True),
}


class Search:
    """One variant for pictures of one shape (H, W); candidates -reach .. reach - 1."""

    def __init__(self, gpu: Device, variant: Variant, shape: tuple[int, int], reach: int = 16) -> None:
        if not 1 <= reach <= LARGEST_REACH:
            raise ValueError(f"reach {reach}: 1 to {LARGEST_REACH}")
        self.gpu, self.variant, self.reach = gpu, variant, reach
        self.height, self.width = shape
        self.stream = gpu.stream()
        self.n_mb = -(-self.width // 16) * -(-self.height // 16)
        stride = pitched(np.empty((1, self.width), np.uint8)).shape[1]
        self.planes = [gpu.array((self.height, stride), np.uint8) for _ in range(2)]
        self.textures = [Texture(gpu, plane, self.width) for plane in self.planes] if variant.texture else []
        self.best, self.got = gpu.array((self.n_mb,), np.uint32), self._host((self.n_mb,), np.uint32)

    def _host(self, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
        return self.gpu.pinned(shape, dtype) if self.variant.pinned else np.empty(shape, dtype)

    def stage(self, frame: np.ndarray) -> np.ndarray:
        """The frame as `run` takes it: in pageable or pinned memory."""
        return pitched(frame, self._host(self.planes[0].shape, np.uint8))

    def search(self) -> None:
        """The kernel alone, on what lies on the GPU."""
        self.best.fill(0xFF, self.stream)
        sizes = [self.width, self.height, self.reach, self.best]
        frames: list[object] = [*self.planes, self.planes[0].shape[1]]
        if self.variant.texture:
            frames = [texture.handle for texture in self.textures]
        grid = (-(-self.width // 16), (self.height + 3) // 4)
        self.gpu.launch(MODULE, self.variant.kernel, grid, (16, 4), [*frames, *sizes], self.stream)

    def run(self, current: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Two staged frames up, the search, the keys down: uint32[n_mb]."""
        for plane, frame in zip(self.planes, (current, reference)):
            plane.put(frame, self.stream)
        self.search()
        self.best.get(self.got, self.stream)
        self.gpu.synchronize(self.stream)
        return self.got

    def vectors(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors int16[n_mb, 2] and SADs int32[n_mb] of keys."""
        number, n = (keys & 0xFFF).astype(np.int32), 2 * self.reach
        return np.stack([number % n, number // n], 1).astype(np.int16) - np.int16(self.reach), (keys >> 12).astype(np.int32)

    def close(self) -> None:
        """Gives arrays and textures back."""
        for texture in self.textures:
            texture.close()
        self.gpu.release(*self.planes, self.best)


def predicted(reference: np.ndarray, vectors: np.ndarray, wide: int = 16, high: int = 16) -> np.ndarray:
    """The picture uint8[H, W] that vectors int[n, 2] of wide x high blocks predict; edges repeat."""
    height, width = reference.shape
    across = -(-width // wide)
    y, x = np.indices((height, width))
    v = vectors[(y // high) * across + x // wide].astype(int)
    return reference[np.clip(y + v[..., 1], 0, height - 1), np.clip(x + v[..., 0], 0, width - 1)]


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    """dB; infinite where both are equal."""
    error = float(np.mean((a.astype(np.float64) - b) ** 2))
    return 10 * np.log10(255**2 / error) if error else float("inf")
