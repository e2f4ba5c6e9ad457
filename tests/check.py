"""The tests of one file of the encoder, by its name: of its definition, of its CUDA twin, and of one small stream.

    make check K=mode_decision        or: python tests/check.py mode_decision [arguments of pytest]

Chosen are the tests that import a module of this name, in the folders of the arithmetic: these take seconds, and only the
kernels that they call are compiled.
"""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FOLDERS = "cpu_simd", "cuda_src", "decoder", "jit", "mp4", "standard"
STREAM = HERE / "encoder" / "test_small_stream.py"


def tests_of(name: str) -> list[Path]:
    """The files of tests that import a module of this name, or are named after it."""
    imports = re.compile(rf"^\s*(from|import) .*\b{re.escape(name)}\b", re.MULTILINE)
    files = [path for folder in FOLDERS for path in sorted((HERE / folder).glob("test_*.py"))]
    return [path for path in files if path.stem.endswith(f"_{name}") or imports.search(path.read_text())]


def main() -> int:
    """The exit code of pytest."""
    if len(sys.argv) < 2 or not re.fullmatch(r"\w+", sys.argv[1]):
        print(f"usage: make check K=NAME, the name of a file of {', '.join(FOLDERS)}", file=sys.stderr)
        return 2
    chosen = tests_of(sys.argv[1])
    if not chosen:
        print(f"no test imports a module named {sys.argv[1]}", file=sys.stderr)
        return 2
    print(f"{', '.join(path.stem for path in chosen)}, a small stream; the first time their kernels are compiled", flush=True)
    return int(pytest.main(["-q", "-x", "-m", "not slow and not gpu", *map(str, [*chosen, STREAM]), *sys.argv[2:]]))


if __name__ == "__main__":
    sys.exit(main())
