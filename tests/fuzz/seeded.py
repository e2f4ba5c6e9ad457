"""Runs seeded cases of headers, options and misuse, one after another: each within seconds, all of them within a memory.

    python tests/fuzz/seeded.py headers 1 2000          # kind, seed, cases
    python tests/fuzz/seeded.py headers 1 1 1234        # case 1234 of that seed alone

A kind is a module beside this one: `build(rng)` makes a case, the same for the same seed; `run(case, folder)` says in a word
what it came to, and raises whatever is wrong; `warm()`, if defined, does once what later cases need.
"""

import faulthandler
import random
import resource
import sys
import tempfile
from collections import Counter
from importlib import import_module
from pathlib import Path

SECONDS, MEMORY = 5, 512 << 20  # of a case; beyond what is taken before the first, bytes


def limit_memory() -> None:
    """From now on an allocation beyond MEMORY fails."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def run(kind: str, seed: int, count: int, first: int = 0) -> Counter[str]:
    """What the cases came to; the first that is wrong ends it, by the exception or by the end of the process."""
    module, outcomes = import_module(kind), Counter[str]()
    warm = getattr(module, "warm", None)
    if warm:
        warm()
    limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            case = module.build(random.Random(f"{seed} {number}"))
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                outcomes[module.run(case, Path(folder))] += 1
            except BaseException:
                print(f"{kind}, seed {seed}, case {number}: {case!r}"[:3000], file=sys.stderr, flush=True)
                raise
            finally:
                faulthandler.cancel_dump_traceback_later()
    return outcomes


if __name__ == "__main__":
    print(dict(run(sys.argv[1], *map(int, sys.argv[2:]))))
