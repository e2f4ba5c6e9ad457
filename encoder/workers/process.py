"""Starts and ends worker processes; imports little, so that a command can start them before all else."""

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .connection import ALIVE, POSSIBLE, Connection

VARIABLE = "H264LITE_WORKERS"  # 0: no worker processes, 1: always where there are several devices
LARGE = 1 << 30  # bytes of an input whose encode surely takes longer than the start of processes
_LONGEST_SEND = 60  # seconds in which a process reads nothing: it is stopped
_early: "list[Process]" = []  # started, and not taken


def command(descriptor: int, device: str) -> list[str]:
    """The command line of a worker process, which finds its modules where this process does."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__package__}.worker import main; main({descriptor}, {device!r})"
    return [sys.executable, "-c", code, "h264lite worker", device]


class Process:
    """A worker process, and the connection to it. OSError if it cannot be started."""

    def __init__(self, device: str) -> None:
        here, there = socket.socketpair()
        with there:
            try:
                environment = os.environ | {"H264LITE_BACKGROUND_COMPILE": "0"}  # this process does it
                self._child = subprocess.Popen(
                    command(there.fileno(), device),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(there.fileno(),),
                    process_group=0,  # Ctrl-C is for this process, which ends the worker
                )
            except BaseException:
                here.close()
                raise
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", _LONGEST_SEND, 0))
        self.device = device
        self.connection = Connection(here)
        self.number = self._child.pid

    def receive(self, patience: Callable[[], float], alive: Callable[[], object]) -> Any:
        """The next message that says more than that the process is alive, at which `alive` is called. See Connection."""
        while True:
            message, _ = self.connection.receive(patience)
            if message[0] != ALIVE:
                return message
            alive()

    def end(self) -> str:
        """End it, if it has not ended; how it has ended."""
        self.connection.shut()
        try:
            self._child.wait(0.5)
        except subprocess.TimeoutExpired:
            self._child.kill()
        code = self._child.wait()
        self.connection.close()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def start_early(devices: Iterable[str], inputs: Iterable[str], first: int = 0) -> bool:
    """Start the processes of an encode that will take them, before its modules are imported; whether they were started.

    first: of the devices that have one.
    """
    names = list(devices)
    try:
        large = sum(os.path.getsize(name) for name in inputs) >= LARGE
        if len(names) > 1 and POSSIBLE and large and os.environ.get(VARIABLE) != "0":
            for name in names[first:]:
                _early.append(Process(name))
    except OSError:  # the encode says why, or does without
        return False
    return bool(_early)


def take_process(device: str) -> Process:
    """A process for a device, which may have been started before."""
    for process in _early:
        if process.device == device:
            _early.remove(process)
            return process
    return Process(device)


def end_early() -> None:
    """End the processes that were not taken."""
    while _early:
        _early.pop().end()
