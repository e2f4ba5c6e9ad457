"""Runs many fuzz cases in several processes, and says which went wrong.

    python tests/fuzz/campaign.py KIND --cases N [--seed S] [--first F] [--jobs J] [--align right|left|none] [--boundscheck]

KIND: those of kinds.py. A case is known by kind, seed and number: --first NUMBER --cases 1 runs it again. What
went wrong is told with its case, and its input lies in out/fuzz. Wrong is: any exception but those that name a broken
input, the end of the process (SIGSEGV: arrays lie between pages without access), more than 5 seconds of processor time,
more than 1.5 GB of memory. --boundscheck: kernels compiled with checked bounds, in a cache of their own; three times as
slow. Exit code 1 where anything is wrong.
"""

import argparse
import functools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
if not __package__:  # run as a program
    _tests = types.ModuleType("tests")
    _tests.__path__ = [str(HERE.parent)]
    sys.modules["tests"] = _tests
    __package__ = "tests.fuzz"

from . import worker  # noqa: E402
from .guard import SIDES  # noqa: E402
from .kinds import KINDS, module_of  # noqa: E402

OUT = HERE.parent.parent / "out" / "fuzz"
MOST_SECONDS, MOST_MEGABYTES = 5, 1536
PROGRESS = 15  # seconds between lines
SHOWN = 3000  # characters of what a process said at its end


@dataclass
class Campaign:
    """Cases first to first + cases - 1 of a kind and a seed, and what has become of them."""

    kind: str
    cases: int
    seed: int = 1
    first: int = 0
    jobs: int = 1
    side: str = "right"
    boundscheck: bool = False
    shown: bool = True  # progress and findings as they come
    run: int = 0
    refused: int = 0
    slowest: tuple[float, int] = (0.0, -1)  # seconds, case
    peak: int = 0  # MB of a process
    findings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = iter(range(self.first, self.first + self.cases))
        self._said = self._start = time.monotonic()

    def go(self) -> None:
        """Run all cases."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "material"
            path.write_bytes(material(self.kind))
            if self.shown:
                print(f"{self.kind}, seed {self.seed}: {getattr(pickle.loads(path.read_bytes()), 'said', '')}", flush=True)
            first = Process(self, path)  # compiles what the others load
            with ThreadPoolExecutor(self.jobs) as pool:
                lanes = [pool.submit(self._lane, path, process) for process in (first, *[None] * (self.jobs - 1))]
                for lane in lanes:
                    lane.result()

    def _lane(self, path: Path, process: "Process | None") -> None:
        """Cases one after another in a process, which is replaced when one ends it."""
        process = process or Process(self, path)
        while (number := self._next()) is not None:
            said, end = process.run(number)
            self._note(number, said, end)
            if end:
                process = Process(self, path)
        process.stop()

    def _next(self) -> int | None:
        with self._lock:
            return next(self._numbers, None)

    def _note(self, number: int, said: dict, end: str) -> None:
        with self._lock:
            self.run += 1
            self.refused += bool(said.get("refused"))
            self.slowest = max(self.slowest, (said.get("seconds", 0.0), number))
            over = said.get("peak", 0) > MOST_MEGABYTES >= self.peak
            self.peak = max(self.peak, said.get("peak", 0))
            limit = MOST_SECONDS * (4 if self.boundscheck else 1)
            for wrong in (end, said.get("wrong", ""), said.get("seconds", 0) > limit and f"takes {said['seconds']:.1f} s",
                          over and f"the process takes {self.peak} MB"):  # fmt: skip
                if wrong:
                    self._finding(number, wrong)
            if self.shown and time.monotonic() > self._said + PROGRESS:
                self._said = time.monotonic()
                print(self.summary(), flush=True)

    def _finding(self, number: int, wrong: str) -> None:
        OUT.mkdir(parents=True, exist_ok=True)
        module = module_of(self.kind)
        case = module.build(pickle.loads(material(self.kind)), worker.random_of(self.kind, self.seed, number))
        path = OUT / f"{self.kind}-{self.seed}-{number}.bin"
        path.write_bytes(module.dump(case))
        again = f"{self.kind} --seed {self.seed} --first {number} --cases 1 --align {self.side}"
        self.findings.append(f"WRONG: {again}{' --boundscheck' * self.boundscheck} ({path}):\n{wrong}")
        if self.shown:
            print(self.findings[-1], flush=True)

    def summary(self) -> str:
        """One line of counts."""
        minutes = (time.monotonic() - self._start) / 60
        how = f"{self.side}{', bounds checked' * self.boundscheck}"
        return (
            f"{self.kind}, seed {self.seed}, {how}: {self.run} of {self.cases} cases,"
            f" {self.run - self.refused} without an error, {self.refused} refused, slowest {self.slowest[0]:.2f} s"
            f" (case {self.slowest[1]}), peak {self.peak} MB, {minutes:.1f} minutes, {len(self.findings)} wrong"
        )


class Process:
    """A worker, and what passes between it and the campaign."""

    def __init__(self, campaign: Campaign, path: Path) -> None:
        environment = dict(os.environ)
        if campaign.boundscheck:
            environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(OUT / "boundscheck")}
            environment["H264LITE_SIMD"] = "portable"
        words = ["--worker", str(path), campaign.kind, "--cases", "0", "--seed", str(campaign.seed), "--align", campaign.side]
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen([sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, text=True, env=environment)  # fmt: skip
        if not self._process.stdout.readline():
            raise RuntimeError(f"a worker does not start: {self._end()}")

    def run(self, number: int) -> tuple[dict, str]:
        """What the worker says of a case, and how it ended if it has."""
        try:
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline()
        return (json.loads(line), "") if line.endswith("\n") else ({}, self._end())

    def stop(self) -> None:
        """No more cases."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _end(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return f"the process ended with {code}\n{self._errors.read()[-SHOWN:]}"


@functools.cache
def material(kind: str) -> bytes:
    """What the cases of a kind are made of, pickled: made once in a process."""
    return pickle.dumps(module_of(kind).material())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--align", choices=SIDES, default="right")
    parser.add_argument("--boundscheck", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker.work(args.kind, args.seed, args.align, args.worker)
        return 0
    campaign = Campaign(args.kind, args.cases, args.seed, args.first, args.jobs, args.align, args.boundscheck)
    campaign.go()
    print(campaign.summary())
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
