"""Building the package: compiled kernels, if they are asked for; all else is in setup.cfg.

H264LITE_FATBIN: compute capabilities to compile the CUDA kernels for, as 80,90, or 1 for those of ours that nvcc knows.
Default 0: none, since it takes minutes; a GPU's kernels are then compiled where they are first used.
H264LITE_KERNELS: classes of processors, as x86-64-v3,x86-64-v4, or 1 for those that this one has: the CPU's kernels too,
compiled by the Numba of the Python that builds; they serve this version of Python. Default 0: none. Such a wheel needs no
Numba and no SciPy: they are the extra `compile`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

CLASSES = os.environ.get("H264LITE_KERNELS", "0")
FOR_COMPILING = ("numba", "scipy")


class Package(Distribution):
    """With compiled kernels it is of one Python and system, as its name then says, and lacks what compiles."""

    def has_ext_modules(self) -> bool:
        return CLASSES not in ("", "0")

    def parse_config_files(self, *arguments, **options) -> None:
        super().parse_config_files(*arguments, **options)
        if self.has_ext_modules():
            self.install_requires = [name for name in self.install_requires if not name.startswith(FOR_COMPILING)]
            self.metadata.install_requires = self.install_requires


class BuildWithKernels(build_py):
    """Beside the .cu files of the build, never of the checkout: a fatbin each, and what they were made from."""

    def find_package_modules(self, package: str, package_dir: str) -> list:
        """The root is the package, and this file lies there without being part of it."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if module[:2] != ("h264lite", "setup")]

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # files of an earlier build that the sources no longer have
        super().run()
        if not self.editable_mode and CLASSES not in ("", "0"):
            self._compile_for_cpu(CLASSES)
        wanted = os.environ.get("H264LITE_FATBIN", "0")
        if not self.editable_mode and wanted not in ("", "0"):
            self._compile_for_gpus([] if wanted == "1" else ["--arch", wanted])

    def _compile_for_gpus(self, architectures: list[str]) -> None:
        library = Path(self.build_lib).resolve()
        command = [sys.executable, "-m", "h264lite.cuda_src.runtime.compiler", "--if-nvcc", *architectures]
        # pip says by PYTHONPATH where the packages are that building needs
        path = os.pathsep.join(filter(None, (str(library), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        if subprocess.run(command, cwd=library, env=environment).returncode == 0:
            return
        if architectures:
            raise SystemExit(f"the kernels for {' '.join(architectures)} (H264LITE_FATBIN) cannot be compiled")
        print("nvcc fails: the package is built without compiled CUDA kernels", file=sys.stderr)
        for path in library.rglob("*.fatbin"):
            path.unlink()

    def _compile_for_cpu(self, classes: str) -> None:
        library = Path(self.build_lib).resolve()
        # without pip's PYTHONPATH, which hides the packages of this Python
        environment = {**os.environ, "PYTHONPATH": str(library), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "h264lite.jit.wheel_kernels", *([] if classes == "1" else [classes])]
        if subprocess.run(command, cwd=library, env=environment).returncode:
            raise SystemExit(f"H264LITE_KERNELS={classes}: not compiled, which needs NumPy, Numba and SciPy in this Python")


setup(cmdclass={"build_py": BuildWithKernels}, distclass=Package)
