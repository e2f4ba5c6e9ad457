"""Messages between an encode and a worker process: pickled objects, and descriptors of files, over a socket pair of Unix."""

import array
import os
import pickle
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct("<QB")  # bytes that follow, number of descriptors
ALIVE = "alive"  # name of the message that a worker sends every second, whatever it does
_LOOK_SECONDS = 0.5  # how often to ask how long silence may last
POSSIBLE = hasattr(socket, "AF_UNIX") and hasattr(socket.socket, "sendmsg")  # descriptors cannot be sent on Windows


class Connection:
    """One end. One thread may receive; several may send. Only processes of this user hold the other end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()
        self._readable = select.poll()
        self._readable.register(end, select.POLLIN)

    def send(self, message: object, files: tuple[int, ...] = ()) -> None:
        """Send an object, with descriptors, which the receiver gets as its own. OSError: the other end is gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._sending:
            head = _HEAD.pack(len(data), len(files))
            if files:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
                sent = self._end.sendmsg([head], rights)
                self._end.sendall(head[sent:])
                self._end.sendall(data)
            else:
                self._end.sendall(head + data if len(data) < 1 << 16 else head)
                if len(data) >= 1 << 16:
                    self._end.sendall(data)

    def receive(self, patience: Callable[[], float] | None = None) -> tuple[Any, list[int]]:
        """The next object and the descriptors that came with it. EOFError or OSError: the other end is gone.

        patience: the seconds of silence that are allowed at a time, else TimeoutError; None: any.
        """
        head, files = bytearray(), list[int]()
        while len(head) < _HEAD.size:
            self._wait(patience)
            received, ancillary, _, _ = self._end.recvmsg(_HEAD.size - len(head), socket.CMSG_SPACE(4))
            for level, message_type, rights in ancillary:
                if (level, message_type) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    files += array.array("i", rights[: len(rights) - len(rights) % 4]).tolist()
            if not received:
                for file in files:
                    os.close(file)
                raise EOFError
            head += received
        size, _ = _HEAD.unpack(head)
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            self._wait(patience)
            got = self._end.recv_into(rest)
            if not got:
                raise EOFError
            rest = rest[got:]
        return pickle.loads(data), files

    def _wait(self, patience: Callable[[], float] | None) -> None:
        """Until there is something to read, or the other end is gone."""
        begin = time.monotonic()
        while patience is not None and not self._readable.poll(1000 * _LOOK_SECONDS):
            if time.monotonic() - begin > patience():
                raise TimeoutError(f"no sign of life for {time.monotonic() - begin:.0f} s")

    def shut(self) -> None:
        """End both directions: a thread that receives gets EOFError, and so does the other end."""
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other end is gone
            pass

    def close(self) -> None:
        """Release the socket; no thread may use it."""
        self._end.close()
