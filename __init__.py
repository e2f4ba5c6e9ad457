"""h264lite: an H.264/AVC encoder whose inter loop runs on CUDA streams and SIMD CPU kernels.

Nothing is loaded here: each public name is imported when it is first used, so that `import h264lite` compiles nothing,
takes no CUDA context and costs a millisecond.
"""

import sys
from importlib import import_module

from . import forks as forks  # registers what a fork has to do, before there are locks
from .version import __version__

TYPE_CHECKING = False  # true for a type checker; to import typing takes long enough for Ctrl-C to leave a traceback there
if TYPE_CHECKING:
    from typing import Any

    from .analysis.analyse import analyse as analyse
    from .cuda_src.runtime.idle import release_gpu as release_gpu
    from .decoder.decoder import Decoder as Decoder
    from .decoder.errors import BitstreamError as BitstreamError
    from .decoder.errors import Unsupported as Unsupported
    from .encoder.clips import ClipResult as ClipResult
    from .encoder.clips import write_videos as write_videos
    from .encoder.encoder import Encoder as Encoder
    from .encoder.encoder import Packet as Packet
    from .encoder.errors import Error as Error
    from .encoder.errors import InputError as InputError
    from .encoder.errors import OptionError as OptionError
    from .encoder.writer import VideoWriter as VideoWriter
    from .encoder.writer import encode as encode
    from .encoder.writer import write_video as write_video
    from .reader.video_reader import VideoReader as VideoReader
    from .sound.packets import AudioPackets as AudioPackets

_PUBLIC = {
    "Encoder": ".encoder.encoder",
    "encode": ".encoder.writer",
    "write_video": ".encoder.writer",
    "write_videos": ".encoder.clips",
    "ClipResult": ".encoder.clips",
    "VideoWriter": ".encoder.writer",
    "VideoReader": ".reader.video_reader",
    "AudioPackets": ".sound.packets",
    "Packet": ".encoder.encoder",
    "release_gpu": ".cuda_src.runtime.idle",
    "Error": ".encoder.errors",
    "OptionError": ".encoder.errors",
    "InputError": ".encoder.errors",
    "Decoder": ".decoder.decoder",
    "analyse": ".analysis.analyse",
    "BitstreamError": ".decoder.errors",
    "Unsupported": ".decoder.errors",
}

# h264lite.ray lies in extras/ray.py: a folder ray in the root of a checkout would hide Ray itself from Python there
__path__.append(f"{__path__[0]}/extras")

__all__ = ["__version__", *_PUBLIC]


def _require_interpreter() -> None:
    """ImportError in a build of Python without the GIL, for which kernels' calls are not written, and in a sub-interpreter,
    where the first kernel would wait for ever.
    """
    if "t" in getattr(sys, "abiflags", ""):
        raise ImportError(
            "h264lite needs a build of Python with the GIL (this one is free-threaded): python3.14, not python3.14t"
        )
    for name in ("_interpreters", "_xxsubinterpreters"):  # the latter before Python 3.13
        try:
            interpreters = import_module(name)
        except ModuleNotFoundError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError("h264lite works in the main interpreter of a process only, as Numba does: use processes")
        return


_require_interpreter()


def __getattr__(name: str) -> "Any":
    if name == "ray":
        return import_module(".ray", __name__)
    if name not in _PUBLIC:
        raise AttributeError(f"module 'h264lite' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name], __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
