"""`h264lite compile`: all kernels compiled and kept, so that later processes compile none; for container images."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ..console import print_line
from ..encoder.errors import DeviceError, Error, OptionError
from ..encoder.settings.options import show
from ..jit import compiling
from ..jit.cache_root import ADVICE, ALONE, VARIABLE

Log = Callable[[str], object]


def run_compile(cpu: bool, cuda: bool, arch: str | None, cache: str | None, quiet: bool) -> int:
    """Compile; return the exit code. Without `cpu` and `cuda`: both, the latter if a GPU is there."""
    capabilities = None if arch is None else [read_capability(word) for word in arch.split(",")]
    if cache is not None:
        if not cache:
            raise OptionError("'': not a folder", "cache")
        Path(cache).mkdir(parents=True, exist_ok=True)
        os.environ |= {VARIABLE: str(Path(cache).absolute()), ALONE: "1"}  # before kernels choose folders
    log: Log = (lambda text: None) if quiet else (lambda text: print_line(f"h264lite compile: {text}"))
    with compiling.messages_to(lambda text: None):
        if cpu or not (cuda or capabilities):
            compile_host(log)
        else:
            compile_host_for_gpu(log)
        if cuda or capabilities or not cpu:
            compile_gpu(log, capabilities, cuda)
    if cache is not None:
        log(f"set {VARIABLE}={os.environ[VARIABLE]} where it is used")
    return 0


def read_capability(text: str) -> tuple[int, int]:
    """A compute capability, as 90, 9.0 or sm_90."""
    match = re.fullmatch(r"(?:sm_)?(\d{1,2})\.?(\d)", text.strip())
    if not match:
        raise OptionError(f"{show(text)}: not a compute capability, as 90 or 9.0", "arch")
    return int(match[1]), int(match[2])


def compile_host(log: Log) -> None:
    """The kernels of encoder and decoder on the CPU, and those of the host for a GPU."""
    import numpy as np

    from ..decoder.colour import load_converters
    from ..decoder.decoder import Decoder
    from ..encoder.compile_kernels import compile_all
    from ..encoder.writer import encode

    def work() -> None:
        _load_replay()
        compile_all()
        stream = encode([np.zeros((48, 32), np.uint8)] * 2, format="i420", device="cpu")
        decoder = Decoder()
        frames = [*decoder.decode(stream), *decoder.flush()]
        assert len(frames) == 2
        load_converters(frames[0])

    _counted(log, "CPU", work)


def compile_host_for_gpu(log: Log) -> None:
    """The kernels that the host needs for frames of a GPU."""
    from ..encoder.warm_up import load_writers

    def work() -> None:
        _load_replay()
        load_writers()

    _counted(log, "host", work)


def _load_replay() -> None:
    import numpy as np

    from ..cuda_src.runtime.driver_calls import ARGUMENTS, replay_rows

    replay_rows(np.zeros((0, 1 + ARGUMENTS), np.int64))


def _counted(log: Log, name: str, work: Callable[[], None]) -> None:
    from ..encoder.warm_up import kernel_cache_folder

    cache = kernel_cache_folder()
    if not cache.writable:
        raise Error(f"compiled kernels cannot be kept: set {ADVICE}")
    before, begin = compiling.count(), time.monotonic()
    work()
    count = compiling.count() - before
    log(
        f"{name}: {count} kernel{'s' * (count != 1)} compiled in {time.monotonic() - begin:.0f} s, in {cache.folder}"
        if count
        else f"{name}: all kernels were compiled before, in {cache.folder}"
    )


def compile_gpu(log: Log, capabilities: list[tuple[int, int]] | None, required: bool) -> None:
    """The CUDA kernels for `capabilities`; None: of the GPUs here, else, if `required`, all that nvcc knows of ours."""
    from ..cuda_src.runtime import compiler, facts

    if capabilities is None:
        capabilities = sorted({gpu.capability for gpu in facts.gpus()})
        if not capabilities and required:
            known = compiler.known_architectures() or (compiler.find_nvrtc() and compiler.ARCHITECTURES) or ()
            capabilities = [read_capability(arch) for arch in known]
            if not capabilities:
                raise DeviceError("no GPU, and no compiler that could compile for others: install nvcc or NVRTC")
    for capability in capabilities:
        missing = [name for name in compiler.module_names() if compiler.compiled(name, capability) is None]
        begin = time.monotonic()
        try:
            compiler.load_codes(missing, capability)
        except compiler.CompileError as error:
            raise Error(str(error)) from None
        name = f"sm_{capability[0]}{capability[1]}"
        log(
            f"{name}: {len(missing)} kernel files compiled in {time.monotonic() - begin:.0f} s, in {facts.cache()}"
            if missing
            else f"{name}: all kernel files were compiled before"
        )
