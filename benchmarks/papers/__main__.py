"""`python -m h264lite.benchmarks.papers`: the same as `h264lite papers`."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
