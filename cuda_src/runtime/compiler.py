"""From the .cu files to code that a GPU loads: nvcc or NVRTC, the cache of compiled modules, the fatbins of a release.

A module comes from the first of: the fatbin beside its source (made by `python -m h264lite.cuda_src.runtime.compiler`, valid
while the sources are those it was made from), the per-user cache, nvcc, NVRTC (nvrtc.py). So a machine without nvcc runs a
release, and a checkout compiles each kernel file once. H264LITE_CUDA_COMPILER=nvcc|nvrtc allows that compiler only.
"""

import atexit
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from ...jit import cache_checks, compiling
from ...jit.cache_root import ADVICE, cache_root, temporary_root
from . import nvrtc
from .library import DeviceUnavailable, cuda_version

HERE = Path(__file__).resolve().parent.parent  # cuda_src: the .cu files
OTHERS: dict[str, Path] = {}  # folders of kernel files that are not the encoder's, by the first part of the files' names
ARCHITECTURES = ("80", "86", "89", "90", "100")  # compute capabilities; PTX of the first serves later GPUs
ANY_VERSION = "*"  # in the name of a cached file
STAMP = "kernels.fatbin"  # JSON: hashes of the sources of the fatbins
OPTIONS = ("-O3", "-std=c++17", "--expt-relaxed-constexpr")
VARIABLE = "H264LITE_CUDA_COMPILER"
NVCC, NVRTC = "nvcc", "nvrtc"
EACH = 5.0  # seconds between lines of the counter
INSTALL = "pip install nvidia-cuda-nvrtc-cu12"


class CompileError(DeviceUnavailable):
    """No compiler was found, or it refused a kernel file."""


def module_names() -> list[str]:
    """The encoder's kernel files by their path without the ending: `loopfilter/deblock`."""
    return sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.glob("**/*.cu"))


def source_path(name: str, ending: str = ".cu") -> Path:
    """The file of a module."""
    first, _, rest = name.partition("/")
    return OTHERS[first] / f"{rest}{ending}" if first in OTHERS else HERE / f"{name}{ending}"


def sources(name: str) -> dict[str, str]:
    """Texts of one kernel file and of what it includes (directly or not), by the names under which they are included."""
    from .headers import GENERATED  # looks for all launchers

    other = OTHERS.get(name.partition("/")[0])
    pending, texts = [f"{name}.cu"], dict[str, str]()
    while pending:
        file = pending.pop()
        if file not in texts:
            path = source_path(name) if not texts else HERE / file
            if other and (other / file).exists():
                path = other / file
            texts[file], included = (GENERATED[file](), []) if file in GENERATED else _source(path)
            pending += included
    return texts


@cache
def _source(path: Path) -> tuple[str, list[str]]:
    """(text of a source, names that it includes), read once for all kernel files."""
    text = path.read_text()
    return text, re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)


@cache
def module_key(name: str) -> str:
    """SHA-256 over `sources`, and the options of both compilers."""
    digest = hashlib.sha256(" ".join((*OPTIONS, *nvrtc.OPTIONS, *nvrtc.HEADERS.values())).encode())
    for file, text in sources(name).items():
        digest.update(file.encode() + b"\0" + text.encode())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Folder of compiled modules; a temporary one if the user's cannot be made, or other users may write to it."""
    for root in (cache_root(), temporary_root()):
        if root is None:
            continue
        folder = root / "cuda"
        try:
            folder.mkdir(0o755, parents=True, exist_ok=True)
            reason = cache_checks.distrust(folder.stat())
        except OSError:
            continue
        if not reason:
            return folder
        cache_checks.warn_once(
            "cuda folder", f"{folder} {reason}: the GPU's compiled kernels are not kept there; set {ADVICE}"
        )
    return _make_own_folder()


@cache
def _make_own_folder() -> Path:
    import tempfile

    folder = tempfile.mkdtemp(prefix="h264lite-cuda-")
    atexit.register(_remove, folder, os.getpid())
    return Path(folder)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # its forks leave the folder to it
        shutil.rmtree(folder, ignore_errors=True)


def write_headers(folder: Path) -> Path:
    """Write the generated headers into `folder`/include-<hash> and return that folder."""
    from .headers import GENERATED

    texts = {file: header().encode() for file, header in GENERATED.items()}
    include = folder / f"include-{hashlib.sha256(b''.join(texts.values())).hexdigest()[:16]}"
    for file, text in texts.items():
        (include / file).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(include / file, text)
    return include


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that another process sees it whole or not at all."""
    if path.exists() and path.read_bytes() == data:
        return
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)


def _allowed(compiler: str) -> bool:
    """Whether the environment allows a compiler; by default it allows both."""
    return os.environ.get(VARIABLE, "") in ("", compiler)


def find_nvrtc() -> nvrtc.Nvrtc | None:
    """The NVRTC to use: of no later CUDA version than the driver, which could not load its code."""
    version = cuda_version()
    return nvrtc.find(version and version[0]) if _allowed(NVRTC) else None


def find_nvcc() -> str | None:
    """The path of nvcc, if it is to be used."""
    return _find_nvcc() if _allowed(NVCC) else None


@cache
def _find_nvcc() -> str | None:
    named = os.environ.get("NVCC")
    for candidate in (named, shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if candidate and Path(candidate).exists():
            return candidate
    return None


@cache
def nvcc_version(nvcc: str) -> str:
    """Its version number, kept with the compiled modules for this file: a new process need not start nvcc to find them."""
    status = os.stat(nvcc)
    file = f"{os.path.realpath(nvcc)} {status.st_mtime_ns} {status.st_size}"
    kept = cache_folder() / f"nvcc-{hashlib.sha256(file.encode()).hexdigest()[:32]}.version"
    kept_version = cache_checks.read(kept)
    if kept_version is not None:
        return kept_version.decode()
    version = _ask_nvcc(nvcc)
    with suppress(OSError):
        cache_checks.write(kept, version.encode())
    return version


def _ask_nvcc(nvcc: str) -> str:
    import subprocess

    out = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    match = re.search(r"V(\d+\.\d+\.\d+)", out)
    return match[1] if match else out.strip()


def run_nvcc(name: str, target: list[str], output: Path, include: Path, extra: tuple[str, ...] = ()) -> str:
    """Compile one kernel file. Returns the output of nvcc (the resource report, if asked for)."""
    import subprocess

    nvcc = find_nvcc()
    if nvcc is None:
        raise CompileError(_no_compiler())
    folders = ["-I", str(include), "-I", str(HERE)]
    command = [nvcc, *OPTIONS, *extra, *target, *folders, "-o", str(output), str(source_path(name))]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if result.returncode:
        raise CompileError(f"nvcc refused {name}.cu:\n{result.stderr.strip()[-4000:]}")
    return result.stderr + result.stdout


def _no_compiler() -> str:
    """Why kernels cannot be compiled, and the line that installs what is missing."""
    wanted, version = os.environ.get(VARIABLE, ""), cuda_version()
    if wanted not in ("", NVCC, NVRTC):
        return f"{VARIABLE}={wanted}: use {NVCC} or {NVRTC}"
    newer = find_nvrtc() is None and _allowed(NVRTC) and nvrtc.find(None)
    if newer and version:
        return (
            f"NVRTC {newer.version} makes code that this driver, for CUDA {version[0]}.{version[1]}, cannot load: "
            f"{INSTALL if version[0] >= 12 else 'update the driver'}"
        )
    if wanted == NVCC:
        return f"{VARIABLE}={NVCC}, and there is no nvcc: install the CUDA toolkit, or unset {VARIABLE}"
    lacking = "no NVRTC" if wanted else "neither nvcc nor NVRTC"
    return f"the CUDA kernels are not compiled yet, and there is {lacking}: {INSTALL}"


def compiler_version() -> str | None:
    """nvcc's version number, or nvrtc and its version, whichever compiles on this machine; None without a compiler."""
    if nvcc := find_nvcc():
        return nvcc_version(nvcc)
    library = find_nvrtc()
    return None if library is None else f"nvrtc{library.version}"


def _cached_name(name: str, arch: str, version: str) -> str:
    """Name of the file in the cache."""
    return f"{name.replace('/', '-')}-{arch}-{version}-{module_key(name)[:32]}.cubin"


def _version_to_load() -> str:
    """The compiler version whose cached files are valid: without nvcc ANY_VERSION, unless the environment names one."""
    named = os.environ.get(VARIABLE) or find_nvcc()
    return (named and compiler_version()) or ANY_VERSION


def compiled(name: str, capability: tuple[int, int]) -> Path | None:
    """The compiled file of a module for a GPU of this compute capability; None if it must be compiled."""
    return next((path for path in _places(name, capability) if _code_of(path) is not None), None)


def is_kept(name: str, capability: tuple[int, int]) -> bool:
    """Whether there is a file for `compiled`, which is not read: it may be damaged."""
    return any(path.exists() for path in _places(name, capability))


def _places(name: str, capability: tuple[int, int]) -> list[Path]:
    """The fatbin of a module, or else the names of its files in the cache."""
    fatbin, stamp = source_path(name, ".fatbin"), HERE / STAMP
    if fatbin.exists() and _sources_of(stamp).get(name) == module_key(name):
        return [fatbin]
    version = _version_to_load()
    kept = _cached_name(name, f"sm_{capability[0]}{capability[1]}", version)
    return [cache_folder() / kept] if version != ANY_VERSION else sorted(cache_folder().glob(kept), reverse=True)


def _code_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.suffix == ".fatbin" else cache_checks.read(path)


def _sources_of(stamp: Path) -> Mapping[str, str]:
    """Source hashes of the fatbins of a release, by module; empty if unknown."""
    try:
        status = stamp.stat()
        return _read_sources(stamp, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        return {}


@lru_cache(1)
def _read_sources(stamp: Path, *_: int) -> Mapping[str, str]:
    """`_sources_of` a file with these times and sizes."""
    stamps = json.loads(stamp.read_text())
    return stamps if isinstance(stamps, dict) else {}


def load_code(name: str, capability: tuple[int, int]) -> bytes:
    """The compiled module for a GPU of this compute capability: fatbin, cache, nvcc or NVRTC, in this order."""
    for path in _places(name, capability):
        if (code := _code_of(path)) is not None:
            return code
    arch, folder = f"sm_{capability[0]}{capability[1]}", cache_folder()
    library = None if find_nvcc() else find_nvrtc()
    code = _by_nvcc(name, arch) if library is None else _by_nvrtc(name, library, capability)
    try:
        cache_checks.write(folder / _cached_name(name, arch, compiler_version() or ""), code)
    except OSError as error:
        why = f"{folder}: {cache_checks.error_text(error)}"
        cache_checks.warn_once(
            "cuda write",
            f"the GPU's compiled kernels cannot be kept ({why}), so every process compiles them again: set {ADVICE}",
        )
    return code


def _by_nvcc(name: str, arch: str) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "module.cubin"
        run_nvcc(name, ["-cubin", f"-arch={arch}"], output, write_headers(Path(scratch)))
        return output.read_bytes()


def _by_nvrtc(name: str, library: nvrtc.Nvrtc, capability: tuple[int, int]) -> bytes:
    try:
        return library.compile(sources(name), library.target(capability))[0]
    except nvrtc.NvrtcError as error:
        raise CompileError(str(error)) from None


def why_no_kernels(names: Iterable[str], capability: tuple[int, int]) -> str | None:
    """Why a GPU of this compute capability gets no kernels of these files; None if they are compiled or can be."""
    usable = find_nvcc() or all(compiled(name, capability) for name in names) or find_nvrtc()
    return None if usable else _no_compiler()


def load_codes(names: Sequence[str], capability: tuple[int, int]) -> list[bytes]:
    """`load_code` of several kernel files, compiled concurrently if threads can be started."""
    if len(names) == 1:
        return [load_code(names[0], capability)]
    _version_to_load()  # found once, and not by each thread
    if all(is_kept(name, capability) for name in names):
        return [load_code(name, capability) for name in names]
    try:
        codes = _compile_at_once([name for name in names if not is_kept(name, capability)], capability)
    except RuntimeError:  # without threads, one after another
        codes = {}
    return [codes[name] if name in codes else load_code(name, capability) for name in names]


def _compile_at_once(names: Sequence[str], capability: tuple[int, int]) -> dict[str, bytes]:
    """Compile kernel files, as many at once as there are processors, with a counter (jit/compiling.py). The longest begin.

    RuntimeError if no thread can be started.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed  # 10 ms, with the module logging

    begin = said_at = time.monotonic()
    longest_first = sorted(names, key=lambda name: sum(map(len, sources(name).values())), reverse=True)
    with compiling.by_other_processes() as say, ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        waiting = {pool.submit(load_code, name, capability): name for name in longest_first}
        try:
            for count, done in enumerate(as_completed(waiting), 1):
                done.result()  # an error ends the others that have not begun
                now, left = time.monotonic(), len(names) - count
                if left and now - said_at >= EACH:
                    said_at = now
                    seconds = left * (now - begin) / count
                    say(f"compiling GPU kernel files: {count} of {len(names)}, about {seconds:.0f} s left")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: done.result() for done, name in waiting.items()}


def known_architectures() -> tuple[str, ...]:
    """The ARCHITECTURES that the installed nvcc supports."""
    import subprocess

    nvcc = find_nvcc()
    if nvcc is None:
        return ()
    listed = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, timeout=60).stdout.split()
    return tuple(arch for arch in ARCHITECTURES if f"sm_{arch}" in listed)


def build_fatbins(architectures: Sequence[str] = (), names: list[str] | None = None) -> list[Path]:
    """Build one fatbin a kernel file, next to its source: code for each architecture and PTX of the first."""
    architectures = architectures or known_architectures() or ARCHITECTURES
    target = ["-fatbin"]
    for arch in architectures:
        target.append(f"-gencode=arch=compute_{arch},code=sm_{arch}")
    target.append(f"-gencode=arch=compute_{architectures[0]},code=compute_{architectures[0]}")
    names = names or module_names()
    built = [HERE / f"{name}.fatbin" for name in names]
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        include = write_headers(Path(scratch))
        list(pool.map(lambda name, output: run_nvcc(name, target, output, include), names, built))
    stamp = {name: module_key(name) for name in names}
    (HERE / STAMP).write_text(json.dumps(stamp, indent=1))
    return built


def main(arguments: list[str] | None = None) -> int:
    """`python -m h264lite.cuda_src.runtime.compiler`: build the fatbins of a release."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m h264lite.cuda_src.runtime.compiler", description=__doc__)
    default = ",".join(ARCHITECTURES)
    parser.add_argument("--arch", help=f"compute capabilities, as 80,90 (default: those of {default} that nvcc knows)")
    parser.add_argument("--if-nvcc", action="store_true", help="without nvcc say so and leave the kernels to their first use")
    options = parser.parse_args(arguments)
    if options.if_nvcc and find_nvcc() is None:
        print("no nvcc: the CUDA kernels are compiled where they are first used", file=sys.stderr)
        return 0
    try:
        for path in build_fatbins(tuple(options.arch.split(",")) if options.arch else ()):
            print(f"{path.name}: {path.stat().st_size} bytes", file=sys.stderr)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
