"""The task of Ray: encodes one chunk, with an encoder that its process keeps."""

import os
import sys
from dataclasses import dataclass
from typing import Any

from ..encoder.encoded_frame import EncodedFrame
from ..encoder.errors import DeviceLost, Error
from ..encoder.workers.chunk import ChunkEncoder, ChunkJob, on_device
from ..version import __version__
from .frames import NotHere
from .resources import assigned, device


@dataclass(frozen=True)
class Stream:
    """What identifies the encoder of a stream: of two streams no two are alike."""

    name: str
    version: str = __version__


@dataclass
class _Kept:
    """The encoder of this process, and what it is for."""

    key: tuple[Any, ...] = ()
    encoder: ChunkEncoder | None = None

    def of(self, stream: Stream, job: ChunkJob) -> ChunkEncoder:
        """The encoder for a chunk, made if the last one was of another stream, or on another GPU."""
        given = assigned()
        where = device(), given[0] if given else 1
        key = stream, where
        if self.encoder is None or key != self.key:
            self.close()
            self.encoder, self.key = ChunkEncoder(on_device(job.config, *where), job.keep_reconstruction), key
        return self.encoder

    def close(self) -> None:
        """Release it."""
        encoder, self.encoder = self.encoder, None
        if encoder is not None:
            encoder.close()


_kept = _Kept()


def encode(stream: Stream, job: ChunkJob) -> list[EncodedFrame] | str:
    """The frames of a chunk in coding order; a text: why its file is not here. Raises the errors of ChunkEncoder but
    DeviceLost, which ends the process: Ray starts another one and gives it the chunk, as after any loss of a process.
    """
    if stream.version != __version__:
        node = os.uname().nodename
        raise Error(f"machine {node} has h264lite {__version__}, and the command is {stream.version}: streams may differ")
    try:
        return _kept.of(stream, job).encode(job.specs, job.frames)
    except NotHere as error:
        return str(error)
    except DeviceLost as error:
        print(f"h264lite: {error}; this process of Ray ends", file=sys.stderr, flush=True)
        os._exit(1)
    except BaseException:
        _kept.close()
        raise
