"""Before the first frame: the kernels that an encode on the CPU needs are listed, and those that are missing compiled.

Other processes do both (compile_kernels.py), as many as there are processors, at most MOST. The list of each set of options
is kept beside the kernels, so that a later encode looks for files only.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from ..jit import cache_checks, compiling
from ..jit.cache_folder import second_best
from ..jit.listing import are_kept
from ..jit.numba_free import host_of_kernels
from ..jit.numba_version import is_possible, numba_version, require_numba
from ..version import __version__
from .settings.config import Config
from .warm_up import choosing, kernel_cache_folder

VARIABLE = "H264LITE_BACKGROUND_COMPILE"  # 0: no other process compiles
MOST = 4  # processes
_EACH = 5.0  # seconds between lines of the counter
# Seconds that a kernel takes, by its name, on one core of a server: the longest begin, and the sum is the first estimate
_SECONDS = {
    "intra": 14.0, "write_slices": 9.0, "rd_candidates": 7.0, "rd_decision": 7.0, "mode_decision": 4.0,
    "rd_candidates_b": 4.0, "inter_residual": 4.0, "inter_residual_qp": 4.0, "mode_decision_b": 3.4, "_search_rows": 2.3,
    "intra_estimate": 2.3, "bipredict": 2.2, "_refine_rows": 2.2, "deblock": 2.0, "lookahead_search": 1.5,
    "lookahead_intra": 1.3, "_rounds": 1.2,
}  # fmt: skip
_OTHERS = 0.5  # seconds of any other
# Kernels that take half the time in a process that has compiled another one, whose helpers they share
_AFTER = {
    "inter_residual": "intra", "inter_residual_qp": "intra", "rd_candidates_b": "rd_candidates",
    "mode_decision_b": "mode_decision", "bipredict": "mode_decision",
}  # fmt: skip
_ready: set[str] = set()  # sets of options, as text, whose kernels were looked for in this process


@dataclass(frozen=True, eq=False, repr=False)
class Kernels:
    """The kernels of an encode, by name (jit/listing.py); those that are in no cache."""

    names: Sequence[str]
    missing: Sequence[str]

    @property
    def seconds(self) -> float:
        """What the missing ones will take, about, on as many processors as this machine has, of that speed."""
        return sum(map(_seconds, self.missing)) / _processes(len(self.missing)) if self.missing else 0.0


def prepare(config: Config) -> bool:
    """Compile what is missing for an encode, with lines about it (jit/compiling.py); False if that was not possible.

    H264LITE_BACKGROUND_COMPILE=0: nothing is done. Looks once for each set of options.
    """
    text = _options(config)
    if text in _ready:
        return True
    if os.environ.get(VARIABLE) == "0" or not is_possible() or not kernel_cache_folder().writable:
        return False
    if _complete_list(text) is None and not _compile(text):
        return False
    _ready.add(text)
    return True


def kernels_of(config: Config) -> Kernels | None:
    """The kernels of an encode; None if they cannot be listed. Compiles nothing."""
    if not is_possible():
        return None
    text = _options(config)
    if (names := _complete_list(text)) is not None:  # another process would take a third of a second
        return Kernels(names, ())
    with suppress(OSError):
        with closing(_Compiler(text)) as compiler:
            return compiler.list()
    return None


def _options(config: Config) -> str:
    """What chooses the kernels of an encode, as JSON."""
    threads = min(2, config.machine.threads)
    return json.dumps({**choosing(config), "threads": threads}, default=str, sort_keys=True)


# ---- the list of a set of options
def _plan_file(text: str) -> str:
    """The name of the file with the list."""
    key = hashlib.sha256(repr((text, host_of_kernels(), numba_version(), sys.version_info[:2], __version__)).encode())
    return f"plan-{key.hexdigest()[:24]}.json"


def _complete_list(text: str) -> list[str] | None:
    """The list of a set of options, if it is in a cache, for these sources, and so are all its kernels; else None."""
    name = _plan_file(text)
    for folder in kernel_cache_folder().readable:
        data = cache_checks.read(folder / name)
        if data is not None and are_kept(names := json.loads(data)) is True:
            return list(names)
    return None


def _keep(text: str, names: Sequence[str]) -> None:
    folder = kernel_cache_folder().folder
    with suppress(OSError):  # it is listed again
        if folder is not None:
            cache_checks.write(folder / _plan_file(text), json.dumps(names).encode())


# ---- other processes
class _Compiler:
    """A process that lists the kernels of a set of options, and compiles those that it is told. OSError if none starts."""

    def __init__(self, text: str) -> None:
        import subprocess  # 2 ms of each start

        code = f"import sys; sys.path[:] = {sys.path!r}; from {__package__}.compile_kernels import serve; serve()"
        environment = os.environ | {VARIABLE: "0"}
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        command = [sys.executable, "-c", code, text]
        self.process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=nothing, text=True, start_new_session=True
        )
        self.at_work = ""  # the kernel that it compiles

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()

    def receive(self) -> Any:
        """Its next message; None: it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None

    def list(self) -> Kernels | None:
        """Its first message."""
        said = self.receive()
        return None if said is None else Kernels(*said)

    def compile(self, name: str) -> None:
        """Let it compile a kernel; its next message follows."""
        assert self.process.stdin is not None
        self.at_work = name
        with suppress(BrokenPipeError):  # its end is noticed
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()


@dataclass(eq=False, repr=False)
class _Work:
    """The kernels that are compiled, with a counter. left: in order; is_kept: false once a compiled one is in no cache."""

    left: list[str]
    say: Callable[[str], object]
    begin: float = field(default_factory=time.monotonic)
    count: int = 0
    done: float = 0.0  # seconds by _SECONDS
    is_kept: bool = True

    def __post_init__(self) -> None:
        self.total, self._said_at = len(self.left), self.begin
        self._by: dict[str, _Compiler] = {}  # the process that compiles or has compiled a function
        self._all = sum(map(_seconds, self.left))
        seconds = self._all / _processes(self.total)
        self.say(f"first run: compiling {self.total} kernels for this processor, once; about {seconds:.0f} s")

    def next(self, compiler: _Compiler) -> None:
        """Give a process its next kernel, if one is left."""
        compiler.at_work = ""
        if self.left:
            others = [function for function, by in self._by.items() if by is not compiler]
            name = next((name for name in self.left if _AFTER.get(_function(name)) not in others), self.left[0])
            self.left.remove(name)
            self._by[_function(name)] = compiler
            compiler.compile(name)

    def has_compiled(self, name: str) -> None:
        """A kernel is done."""
        self.count += 1
        self.done += _seconds(name)

    def show(self) -> None:
        """The counter, unless its last line is recent."""
        now = time.monotonic()
        if now - self._said_at < _EACH or not self.count:
            return
        self._said_at = now
        left = (self._all - self.done) * (now - self.begin) / self.done
        self.say(f"compiling kernels: {self.count} of {self.total}, about {max(1, round(left))} s left")


def _seconds(name: str) -> float:
    return _SECONDS.get(_function(name), _OTHERS)


def _function(name: str) -> str:
    """The kernel's own name."""
    return name.rpartition(":")[2].partition(".")[2].partition("-")[0]


def _processes(kernels: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST, cores, kernels))


def _compile(text: str) -> bool:
    """List the kernels of a set of options and compile those that are missing; False without processes, or if no cache takes
    the kernels: this process then compiles, and says why.
    """
    compilers: list[_Compiler] = []
    with compiling.by_other_processes() as say:
        try:
            compilers.append(_Compiler(text))
            kernels = compilers[0].list()
            if kernels is None:
                return False
            count = 0
            if kernels.missing:
                require_numba()
                work = _Work(sorted(kernels.missing, key=_seconds, reverse=True), say)
                with suppress(OSError):
                    compilers += [_Compiler(text) for _ in range(_processes(work.total) - 1)]
                _run(compilers, work)
                if not work.is_kept:
                    return False
                count = work.count
                say(f"{count} kernel{'s' * (count != 1)} compiled in {time.monotonic() - work.begin:.0f} s")
            _keep(text, kernels.names)
        except OSError:
            return False
        finally:
            for compiler in compilers:
                compiler.close()
    compiling.have_compiled(count)
    if count and (problem := second_best(kernel_cache_folder())):
        cache_checks.warn_once("folder", problem)
    return True


def _run(compilers: Sequence[_Compiler], work: _Work) -> None:
    """Until all kernels are compiled, or one is in no cache, or all processes have ended."""
    import selectors

    with selectors.DefaultSelector() as selector:
        for compiler in compilers:
            assert compiler.process.stdout is not None
            selector.register(compiler.process.stdout, selectors.EVENT_READ, compiler)
        work.next(compilers[0])
        while selector.get_map() and (work.left or any(compiler.at_work for compiler in compilers)):
            for key, _ in selector.select(1.0):
                said = key.data.receive()
                if said is None:
                    key.data.at_work = ""
                    selector.unregister(key.fileobj)
                    continue
                if said is False:
                    work.is_kept = False
                    return
                if key.data.at_work:
                    work.has_compiled(key.data.at_work)
                work.next(key.data)  # a list, as its first message, is known
            work.show()
