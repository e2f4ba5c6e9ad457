"""A worker process encodes the chunks that its parent sends, on one device.

It ends when its parent does, however that ends.
"""

import gc
import os
import pickle
import signal
import socket
import threading
import time
import traceback
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import Error
from .connection import ALIVE, Connection

if TYPE_CHECKING:
    from ...scheduler.context_warmup import ContextWarmup
    from ...scheduler.trace import Trace
    from .chunk import ChunkEncoder

_LOOK_SECONDS = 1.0  # how often to say that this process is alive, and to look whether the parent is


def main(descriptor: int, device: str) -> None:
    """Serve the parent, at the other end of a socket, until it closes that. Messages: see RemoteLanes."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # sent to all processes of a terminal or service: the parent ends this one
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        _run(descriptor, device)
    except (BrokenPipeError, ConnectionResetError):  # the parent is gone
        pass
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # threads may be in kernels


def _run(descriptor: int, device: str) -> None:
    parent = Connection(socket.socket(fileno=descriptor))
    threading.Thread(target=show_life, args=(parent,), name="h264lite alive", daemon=True).start()
    from ...scheduler.context_warmup import begin_warmup

    warmup = begin_warmup(device)  # while Python imports
    gc.disable()
    from ...jit import compiling
    from .. import pipeline  # noqa: F401
    from . import chunk

    gc.enable()
    gc.freeze()
    with compiling.messages_to(lambda text: None):  # the parent says so
        _work(parent, warmup, chunk)


def show_life(parent: Connection) -> None:
    """Say every second that this process is alive, until the parent is gone; the function of a thread."""
    ancestor = os.getppid()
    try:
        while os.getppid() == ancestor:  # a fork of the parent may hold its end of the socket
            parent.send((ALIVE,))
            time.sleep(_LOOK_SECONDS)
    except OSError:
        pass
    os._exit(0)


def _work(parent: Connection, warmup: "ContextWarmup", chunk: ModuleType) -> None:
    """With the modules imported: make the encoder, and serve."""
    try:
        (config, keep, lanes, traced), _ = parent.receive()
        from ...scheduler.trace import Trace

        trace = Trace() if traced else None
        encoder = chunk.ChunkEncoder(config, keep, lambda text: parent.send(("warn", text)), trace, lanes)
    except EOFError:
        return
    except BaseException as error:
        parent.send(("failed", 0, sendable(error)))
        return
    finally:
        warmup.release()
    parent.send(("ready",))
    threading.Thread(target=_report, args=(parent, encoder, trace), name="h264lite reports", daemon=True).start()
    _serve(parent, encoder)


def _serve(parent: Connection, encoder: "ChunkEncoder") -> None:
    """Pass on what the parent sends."""
    from ..files.read_ahead import FileRead, FileReader

    files: dict[int, tuple[int, FileReader]] = {}  # own descriptors by those of the parent
    while True:
        try:
            (message_type, *rest), received = parent.receive()
        except (EOFError, OSError):
            return
        if message_type == "frames":
            number, frames, closed = rest
            reads = [(spec, FileRead(files[file][0], at, k, files[file][1])) for spec, file, at, k in frames]
            encoder.enter(number, reads, closed)
        elif message_type == "file":
            files[rest[0]] = received[0], FileReader(received[0], rest[1])
        elif message_type == "cut":
            encoder.queue.cut(rest[0])
        elif message_type == "bt709":
            for lane in encoder.lanes:
                lane.set_bt709()


def _report(parent: Connection, encoder: "ChunkEncoder", trace: "Trace | None") -> None:
    """Send finished frames, and once they are, that nothing is left to do; the function of a thread."""
    queue, told = encoder.queue, 0
    try:
        while True:
            try:
                done, entered = queue.fetch(_LOOK_SECONDS)
            except BaseException as error:
                parent.send(("failed", queue.failed_in, sendable(error)))
                continue
            if done:
                spans = trace.spans[:] if trace is not None else []
                if trace is not None:
                    del trace.spans[: len(spans)]
                parent.send(("done", done, spans))
            if entered is not None and entered != told:
                told = entered
                parent.send(("idle", entered))
            elif entered is not None:
                queue.wait_for_work(entered, _LOOK_SECONDS)
    except OSError:
        pass
    os._exit(0)  # the parent is gone


def sendable(error: BaseException) -> BaseException:
    """An exception that can be pickled, with the traceback of unexpected ones as a note; its text alone for others."""
    try:
        if not isinstance(error, Error):
            error.add_note("".join(traceback.format_exception(error)))
        pickle.loads(pickle.dumps(error))
        return error.with_traceback(None)
    except Exception:
        return Error(f"{type(error).__name__}: {error}")
