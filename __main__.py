"""`python -m h264lite`: the command line."""

import gc
import os
import sys


def main() -> int:
    """Run the command line; the exit code is the process's."""
    try:
        from .console import let_text_wait, open_missing

        open_missing()
        let_text_wait()
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's, not used here; it ends the process if they cannot start
        from .cli.cli import main as run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # during these imports
        return 130
    finally:
        gc.freeze()  # all files are closed, and to look for garbage in all of Numba takes a fifth of a second


if __name__ == "__main__":
    sys.exit(main())
