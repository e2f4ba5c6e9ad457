"""One process of a campaign: runs the cases whose numbers come on standard input, and says a line of JSON about each.

Whatever ends it names itself on standard error: SIGSEGV and what hangs by the faulthandler.
"""

import faulthandler
import json
import pickle
import random
import re
import resource
import sys
import time
import traceback
from pathlib import Path

from h264lite.jit.compiling import clock

from . import guard
from .kinds import module_of

HANGS = 120  # seconds of the clock after which a case is ended
EXTRA_MEMORY = 4 << 30  # address space beyond what the process has when it begins


def random_of(kind: str, seed: int, number: int) -> random.Random:
    """The random numbers of a case."""
    return random.Random(f"{kind} {seed} {number}")


def work(kind: str, seed: int, side: str, material_file: str) -> None:
    """All cases that are asked for; the first line says that everything is compiled."""
    faulthandler.enable()
    module, material = module_of(kind), pickle.loads(Path(material_file).read_bytes())
    module.warm(material)
    numpy = guard.install(side, *module.modules())
    used = _kilobytes("VmSize") << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_one(module, material, numpy, random_of(kind, seed, int(line)))), flush=True)


def _one(module, material, numpy: guard.GuardedNumpy, rng: random.Random) -> dict[str, object]:  # type: ignore[no-untyped-def]
    """What became of a case."""
    said: dict[str, object] = {"done": 0, "refused": "", "wrong": ""}
    faulthandler.dump_traceback_later(HANGS, exit=True)
    case = module.build(material, rng)
    start, waited = time.process_time(), time.perf_counter() - clock()
    try:
        said["done"], said["refused"] = module.run(case, numpy)
    except BaseException:
        said["wrong"] = traceback.format_exc(limit=-6)
    compilation = time.perf_counter() - clock() - waited  # by the machine that runs it first, not of the case
    said["seconds"] = max(0.0, time.process_time() - start - compilation)
    faulthandler.cancel_dump_traceback_later()
    said["peak"] = _kilobytes("VmHWM") >> 10  # ru_maxrss begins with that of the process which started this one
    return said


def _kilobytes(name: str) -> int:
    """A figure of this process's memory by its name in Linux."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1])
