"""Runs a command of h264lite and says how many functions Numba compiled: count_compilations.py encode IN OUT ..."""

import sys

from h264lite.cli.cli import main
from numba.core import event

with event.install_recorder("numba:compile") as recorder:
    code = main(sys.argv[1:])
print(f"{sum(entry.is_start for _, entry in recorder.buffer)} compilations", file=sys.stderr)
sys.exit(code)
