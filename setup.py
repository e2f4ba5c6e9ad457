"""Building the package: kernels of the GPU are compiled into it where nvcc is; all else stands in setup.cfg.

H264LITE_FATBIN: compute capabilities to compile for, as 80,90 (default: those that nvcc knows of ours); 0: none.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithKernels(build_py):
    """Beside the .cu files of the build, never of the checkout: a fatbin each, and what they were made from."""

    def find_package_modules(self, package: str, package_dir: str) -> list:
        """The root is the package, and this file lies there without being part of it."""
        return [found for found in super().find_package_modules(package, package_dir) if found[:2] != ("h264lite", "setup")]

    def run(self) -> None:
        super().run()
        wanted = os.environ.get("H264LITE_FATBIN", "")
        if self.editable_mode or wanted == "0":
            return
        library = Path(self.build_lib).resolve()
        architectures = ["--arch", wanted] if wanted else []
        command = [sys.executable, "-m", "h264lite.cuda_src.runtime.compiler", "--if-nvcc", *architectures]
        # pip says by PYTHONPATH where the packages are that building needs
        path = os.pathsep.join(filter(None, (str(library), os.environ.get("PYTHONPATH"))))
        subprocess.run(command, check=True, cwd=library, env={**os.environ, "PYTHONPATH": path})


setup(cmdclass={"build_py": BuildWithKernels})
