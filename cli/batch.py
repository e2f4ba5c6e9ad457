"""`h264lite encode --batch LIST`: many videos, some at once; each as by a command of its own, in processes that go on."""

import gc
import os
import select
import shlex
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from ..console import INFO, print_line
from ..encoder.clips import MOST_ON_CPU, is_for_gpu
from ..encoder.errors import InputError, OptionError
from ..encoder.files.output import check_distinct
from ..encoder.settings.options import API, BY_NAME, OPTIONS
from ..encoder.settings.user_options import read_options
from ..files import opened, shown
from ..scheduler.devices import count_gpus
from ..scheduler.hybrid.tuning.tuning_place import cores
from . import encode as _encode  # noqa: F401  once for all processes
from .encode_frames import FAILED
from .interrupt import INTERRUPTED, Interrupted, StopSignals

_MOST_BYTES = 1 << 26  # of LIST
_OF_ONE_VIDEO = ("audio", "tcfile_in", "pass_", "stats", "qpfile", "dump_yuv", "csv", "mb_csv", "mb_npz", "json", "trace",
                 "trace_png", "rate_png", "ray", "ray_gpus", "verbose", "progress")  # fmt: skip
_OF_THE_BATCH = "batch", "workers", "devices", "quiet", "log_level"  # processes keep the level of messages
ALL = "all"  # GPUs
ON_A_GPU = 2  # processes; more are slower (docs/tried.md)
_DONE = bytes([0])
Job = tuple[str, str]  # names of input and output


def run_batch(texts: dict[str, Any], encode: Callable[[list[str]], int]) -> int:
    """Encode the videos of a list; return the exit code: 1 if any has failed. texts: the user's options by name; encode: runs
    a command, prints what is wrong and returns the exit code.
    """
    if not hasattr(os, "fork"):
        raise OptionError("needs a system with fork", "batch")
    values = read_options(texts, [row for row in OPTIONS if row.scope != API])
    for name in (name for name in _OF_ONE_VIDEO if texts.get(name) is not None):
        raise OptionError("with --batch: it is for one video", BY_NAME[name].flag[2:])
    jobs = read_jobs(texts["batch"])
    devices = _devices(values)
    at_once = min(values["workers"] or _pays(devices), len(jobs))
    words = [BY_NAME[name].word(value) for name, value in texts.items() if name not in _OF_THE_BATCH]
    if not values["threads"] and not is_for_gpu(values["device"], values["devices"]):
        words.append(f"--threads={max(1, cores() // at_once)}")
    gc.freeze()  # what all processes share

    def run(process: int, job: int) -> int:
        device = [] if values["devices"] is None else [f"--devices={devices[process % len(devices)]}"]
        return encode(["encode", *jobs[job], *words, *device, "--quiet"])

    return _hand_out(jobs, _fork(at_once, run))


def read_jobs(name: str) -> list[Job]:
    """The lines INPUT OUTPUT of a file, or of standard input ("-"); InputError, OptionError for a file that is written twice,
    or read and written.
    """
    with opened(name) as file:
        data = file.read(_MOST_BYTES + 1)
    where = shown(name, "standard input")
    if len(data) > _MOST_BYTES:
        raise InputError(f"{where}: larger than {_MOST_BYTES >> 20} MiB, so no list of videos")
    jobs: list[Job] = []
    for number, line in enumerate(os.fsdecode(data).split("\n"), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise InputError(f"{where}, line {number}: {str(error).lower()}") from None
        if len(words) not in (0, 2) or "-" in words:
            raise InputError(f"{where}, line {number}: not INPUT OUTPUT, two names of files")
        jobs += [(words[0], words[1])] if words else []
    if not jobs:
        raise InputError(f"{where}: no videos to encode")
    named: dict[str, str | None] = {f"input {k}": job[0] for k, job in enumerate(jobs, 1)}
    check_distinct(named | {f"output {k}": job[1] for k, job in enumerate(jobs, 1)})
    return jobs


def _devices(values: dict[str, Any]) -> Sequence[str]:
    """Those that the processes take in turn; ("all",) without a GPU, for an error that says so."""
    named, device = values["devices"], values["device"]
    if named == (ALL,):
        return [f"cuda:{number}" for number in range(_count_gpus())] or named
    if named is not None:
        return named
    return ("cuda:0",) if device in ("cuda", "hybrid") or (device == "auto" and _count_gpus()) else ("cpu",)


def _count_gpus() -> int:
    """Counted in a process of its own: a driver that this one had loaded would not work in its forks."""
    process = os.fork()
    if not process:
        count = 0
        try:
            count = min(count_gpus(), 255)
        finally:
            os._exit(count)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _pays(devices: Sequence[str]) -> int:
    """Videos at once: two on a GPU, of which one is read and begun while the other is encoded."""
    gpus = sum(name != "cpu" for name in devices)
    return ON_A_GPU * gpus or max(len(devices), min(MOST_ON_CPU, cores()))


def _fork(count: int, encode: Callable[[int, int], int]) -> dict[socket.socket, int]:
    """Processes that encode the jobs whose numbers they get, and answer by exit codes: link -> process. encode: gets the
    numbers of process and job.
    """
    links: dict[socket.socket, int] = {}
    for k in range(count):
        mine, its = socket.socketpair()
        process = os.fork()
        if not process:
            try:
                os.setpgid(0, 0)  # Ctrl-C of the terminal comes by the first process, once
                for link in (mine, *links):  # else it would not see the end of the first process
                    link.close()
                while number := its.recv(4):
                    code = encode(k, int.from_bytes(number))
                    gc.collect()  # cycles hold frames
                    its.send(bytes([code]))
            finally:
                os._exit(0)
        its.close()
        links[mine] = process
    return links


def _hand_out(jobs: Sequence[Job], links: dict[socket.socket, int]) -> int:
    """Give each process a job whenever it has none, and report; return the exit code."""
    begin, finished, rest, to_tell = time.monotonic(), 0, list(range(len(jobs)))[::-1], list(links.values())
    busy: dict[socket.socket, int] = {}

    def give(link: socket.socket) -> None:
        if rest:
            busy[link] = rest.pop()
            with suppress(OSError):  # the process has ended: so says the answer
                link.send(busy[link].to_bytes(4))

    with StopSignals() as stop:
        for link in links:
            give(link)
        while busy:
            for link in _answering(busy, stop):
                answer, output = _answer(link), jobs[busy.pop(link)][1]
                finished += answer == _DONE
                if answer:
                    give(link)
                elif not stop.is_requested:
                    print_line(f"h264lite encode: error: {output}: its process has ended")
                if answer == _DONE:
                    seconds = time.monotonic() - begin
                    print_line(f"h264lite [info]: {finished} of {len(jobs)}, {seconds:.1f} s: {output}", level=INFO)
            if stop.is_requested:
                rest.clear()
                while to_tell:
                    os.kill(to_tell.pop(), signal.SIGTERM)
        for link, process in links.items():
            link.close()
            os.waitpid(process, 0)
    if finished < len(jobs) or stop.is_requested:
        words = "interrupted; finished" if stop.is_requested else "error: finished"
        print_line(f"h264lite encode: {words} {finished} of {len(jobs)} videos")
    return INTERRUPTED if stop.is_requested else FAILED if finished < len(jobs) else 0


def _answering(busy: Iterable[socket.socket], stop: StopSignals) -> list[socket.socket]:
    """Wait for answers, or a signal."""
    try:
        with nullcontext() if stop.is_requested else stop.waiting():
            return select.select(list(busy), [], [])[0]
    except Interrupted:
        return []


def _answer(link: socket.socket) -> bytes:
    """The exit code of a job; empty if the process has ended."""
    try:
        return link.recv(1)
    except OSError:
        return b""
