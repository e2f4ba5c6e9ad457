"""`h264lite doctor`: reports the machine, the choices of an encode and their reasons."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ..cuda_src.runtime import facts as gpu_facts
from ..encoder.errors import Error, OptionError
from ..encoder.prepare_kernels import kernels_of
from ..encoder.settings.config import Config
from ..encoder.settings.tuning_lookup import unmet
from ..encoder.warm_up import kernel_cache_folder, will_compile
from ..jit import cache_checks
from ..jit.cache_folder import CacheFolder, second_best
from ..jit.cache_root import ADVICE
from ..jit.numba_free import unusable_files
from ..scheduler.devices import why_no_cuda
from ..scheduler.hybrid.tuning.tuning_file import Machine, Tuning, TuningError, cache_file, load, may_exist
from .libraries import as_lines, basic_facts, basic_rows, report

MOST_FILES = 3  # file names in a message
# folders beside those of cpu_simd
OTHER_KERNELS = ("cuda_src/runtime", "decoder", "jit", "scheduler/lookahead", "scheduler/threads")
ROOM_FOR_KERNELS = 16 << 20  # bytes: all of the CPU take about as many
SIZES = ((176, 144), (1920, 1080))  # whose choices are reported


def run_doctor(tuning: str | None, as_json: bool) -> int:
    """Print the report; 1 if something is broken."""
    if tuning == "":
        raise OptionError("'': not a file name", "tuning")
    facts = examine(tuning)
    return report(facts, lines(facts), as_json)


def examine(tuning_file: str | None = None) -> dict[str, Any]:
    """The report, with all problems. Creates no GPU context."""
    problems: list[str] = []
    with cache_checks.messages_to(problems.append):
        return _examine(tuning_file, problems)


def _examine(tuning_file: str | None, problems: list[str]) -> dict[str, Any]:
    machine = Machine.here()
    facts: dict[str, Any] = {
        **basic_facts(),
        "processor": {"name": machine.processor, "cores": machine.cores, "simd": machine.simd,
                      "simd_forced": os.environ.get("H264LITE_SIMD", ""), **_kernels(),
                      "kernel_folder": str(kernel_cache_folder().folder or ""), "why_ordinary": _why_ordinary()},
        "cuda": _cuda(problems),
        "tuning": _tuning(tuning_file, machine, problems),
        "would_use": {f"{w}x{h}": _would_use(w, h, tuning_file) for w, h in SIZES},
        "problems": problems,
    }  # fmt: skip
    _caches(problems)
    why = _why_ordinary()
    if why and why not in problems:  # the first kernel that was imported may have told it before
        problems.append(why)
    return facts


def _kernels() -> dict[str, Any]:
    """The CPU's kernels that an encode with default options needs: whether all are compiled, how many, the rest's time.

    kernels: 0 where they cannot be listed; seconds: about.
    """
    kernels = kernels_of(Config.from_options(width=32, height=32, device="cpu")) if kernel_cache_folder().readable else None
    if kernels is None:
        return {"compiled": not will_compile(), "kernels": 0, "kernels_compiled": 0, "seconds_to_compile": 0}
    count, missing = len(kernels.names), len(kernels.missing)
    return {"compiled": not missing, "kernels": count, "kernels_compiled": count - missing,
            "seconds_to_compile": round(kernels.seconds)}  # fmt: skip


def _why_ordinary() -> str:
    """See interfaces.why_ordinary. Kernels that are loaded without Numba were compiled by a version that is in order."""
    if "numba" not in sys.modules:
        return ""
    from ..jit.interfaces import why_ordinary

    return why_ordinary()


def _cuda(problems: list[str]) -> dict[str, Any]:
    missing = why_no_cuda()
    gpus = []
    for gpu in gpu_facts.gpus():
        compiled, files = gpu_facts.kernels(gpu.capability)
        gpus.append(
            {
                "name": gpu.name,
                "capability": "{}.{}".format(*gpu.capability),
                "memory_mib": gpu.memory >> 20,
                "multiprocessors": gpu.multiprocessors,
                "kernels_compiled": compiled,
                "kernel_files": files,
            }
        )
    driver = gpu_facts.driver_version()
    if missing and (gpus or driver):
        problems.append(f"there is an NVIDIA driver ({driver or 'version unknown'}), but {missing}")
    return {"usable": not missing, "why_not": missing or "", "driver": driver, "way": gpu_facts.way(), "gpus": gpus,
            "nvcc": gpu_facts.nvcc(), "nvrtc": gpu_facts.nvrtc(), "cache": gpu_facts.cache()}  # fmt: skip


def _tuning(name: str | None, machine: Machine, problems: list[str]) -> dict[str, Any]:
    state: dict[str, Any] = {"file": "", "used": False}
    try:
        path = Path(name) if name else cache_file()
        state["file"] = str(path)
        if not name and not may_exist(path):
            return state | {"why_not": "there is none: h264lite tune makes it"}
        tuning: Tuning = load(path, machine)
    except TuningError as error:
        problems.append(str(error))
        return state | {"why_not": str(error)}
    if note := unmet(tuning):
        problems.append(note)
    age = tuning.age
    return state | {"used": True, "made": tuning.measured_at, "age_days": None if age is None else round(age / 86400, 2),
                    "chosen": tuning.chosen, "pins": tuning.pins, "devices": tuning.models.devices()}  # fmt: skip


def _would_use(width: int, height: int, tuning: str | None) -> dict[str, Any]:
    try:
        config = Config.from_options(width=width, height=height, tuning=tuning)
    except Error as error:
        return {"device": "", "why": str(error)}
    machine, measured = config.machine, config.machine.tuning
    rates = {} if measured is None else {name: measured.rate(name, config.coding) for name in measured.rates.devices}
    fps = {name: round(rate, 1) for name, rate in rates.items() if rate is not None}
    return {"device": machine.device, "why": machine.device_reason, "threads": machine.threads, "fps": fps}


def _caches(problems: list[str]) -> None:
    """Whether compiled kernels can be stored, and stored ones loaded."""
    kernels = kernel_cache_folder()
    problems += [f"{folder}: no compiled kernels are loaded from there: set {ADVICE}" for folder in kernels.refused]
    if will_compile() and not kernels.writable:
        unusable = f"{kernels.folder} cannot be written" if kernels.folder else "no folder for kernels can be written"
        problems.append(f"{unusable}, so every process compiles again: set {ADVICE}")
    elif will_compile() and (said := second_best(kernels)):
        problems.append(said)
    problems += _full_disk(kernels)
    damaged = kernel_problems()
    problems += [f"{text}: not loaded, and compiled again when it is needed" for text in damaged[:MOST_FILES]]
    if len(damaged) > MOST_FILES:
        problems.append(f"{len(damaged) - MOST_FILES} more files of compiled kernels are not loaded either")


def _full_disk(kernels: CacheFolder) -> list[str]:
    """Whether there is room for kernels: what the cache lacks is not known before it is needed."""
    if kernels.folder is None or not kernels.writable:
        return []
    usage = shutil.disk_usage(kernels.folder)
    if usage.free >= ROOM_FOR_KERNELS or not usage.total:  # which some network disks do not say
        return []
    return [f"{kernels.folder}: {usage.free >> 10} KiB of the disk are free, too little for all compiled kernels: every "
            f"process compiles again those that are not kept: set {ADVICE}"]  # fmt: skip


def lines(facts: dict[str, Any]) -> list[str]:
    """The report as text."""
    processor, cuda, tuning = facts["processor"], facts["cuda"], facts["tuning"]
    rows = [
        *basic_rows(facts),
        ("processor", f"{processor['name']}, {processor['cores']} cores"),
        ("SIMD", processor["simd"] + (f" (H264LITE_SIMD={processor['simd_forced']})" if processor["simd_forced"] else "")),
        ("CPU kernels", _kernels_line(processor)),
        ("Numba", processor["why_ordinary"] or "kernels are linked from parts and loaded without the compiler"),
        ("driver", cuda["driver"] or "no NVIDIA driver"),
    ]
    for k, gpu in enumerate(cuda["gpus"]):
        rows.append((f"GPU {k}", f"{gpu['name']}, sm_{gpu['capability'].replace('.', '')}, {gpu['memory_mib']} MiB, "
                     f"{gpu['multiprocessors']} multiprocessors; {gpu['kernels_compiled']} of {gpu['kernel_files']} "
                     "kernel files compiled"))  # fmt: skip
    through = f", through {cuda['way']}" if cuda["way"] else ""
    rows.append(("CUDA", f"usable{through}" if cuda["usable"] else f"not usable: {cuda['why_not']}"))
    rows += [("nvcc", cuda["nvcc"] or "none"), ("NVRTC", cuda["nvrtc"] or "none"), ("cache", cuda["cache"]),
             ("tuning", _tuning_line(tuning))]  # fmt: skip
    for size, choice in facts["would_use"].items():
        threads = f", {choice['threads']} threads" if "threads" in choice else ""
        threads += "".join(f", {device} {rate:g} fps" for device, rate in choice.get("fps", {}).items())
        why = choice["why"].replace(f" ({cuda['why_not']})", "")  # "CUDA:" says it
        rows.append((f"{size}", f"device {choice['device'] or 'none'}: {why}{threads}"))
    return as_lines(rows, facts["problems"])


def _kernels_line(processor: dict[str, Any]) -> str:
    count, compiled, folder = processor["kernels"], processor["kernels_compiled"], processor["kernel_folder"]
    if processor["compiled"]:
        return f"compiled, {f'all {count} of the defaults, ' if count else ''}in {folder}"
    if not count:
        return "not compiled yet: the first encode does it, in a minute"
    seconds = max(1, processor["seconds_to_compile"])
    return f"{compiled} of {count} of the defaults compiled; the first encode compiles the rest, in about {seconds} s"


def _tuning_line(tuning: dict[str, Any]) -> str:
    if not tuning["used"]:
        return f"none in use; {tuning['why_not']}"
    age = "" if tuning["age_days"] is None else f", {tuning['age_days']:g} days old"
    pins = "; pinned: " + ", ".join(f"{k} = {v}" for k, v in tuning["pins"].items()) if tuning["pins"] else ""
    chosen = ", ".join(f"{k} {v}" for k, v in tuning["chosen"].items())
    return f"{tuning['file']}{age}; {', '.join(tuning['devices'])}; {chosen}{pins}"


__all__ = ["examine", "lines", "run_doctor"]


def kernel_problems() -> list[str]:
    """Stored kernels that are not loaded, and why."""
    root = Path(__file__).resolve().parent.parent
    folders = [*(path.parent for path in root.glob("cpu_simd/*/__init__.py")), *(root / name for name in OTHER_KERNELS)]
    return sorted(problem for folder in folders for problem in unusable_files(folder))
