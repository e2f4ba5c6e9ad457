"""`python -m h264lite`: the command line."""

import sys


def main() -> int:
    """Run the command line; the exit code is the process's."""
    from .console import open_missing
    from .encoder.cli import main as run

    open_missing()
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
