"""`h264lite encode --ray`: what it refuses, and the pipeline that encodes on a cluster."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..encoder.errors import OptionError
from ..encoder.files.video import RawSource, Source
from ..encoder.settings.config import Config

if TYPE_CHECKING:
    from ..cluster.pipeline import RayPipeline

_REFUSED = {
    "devices": "names GPUs of this machine; on a cluster --ray-gpus says what tasks take",
    "gops": "follows on a cluster from its processors and GPUs",
    "trace": "is for one machine; `ray timeline` shows the tasks of a cluster",
    "trace_png": "is for one machine; `ray timeline` shows the tasks of a cluster",
}


def check_options(texts: Mapping[str, Any]) -> None:
    """OptionError for options that --ray does not go with. texts: the user's by name."""
    if texts.get("ray") is None:
        if texts.get("ray_gpus") is not None:
            raise OptionError("is for a cluster: give --ray as well", "ray-gpus")
        return
    for name, why in _REFUSED.items():
        if texts.get(name) is not None:
            raise OptionError(f"with --ray: it {why}", name.replace("_", "-"))
    if texts.get("device") == "hybrid":
        raise OptionError("hybrid with --ray: tasks run on CPUs or GPUs", "device")


def check_config(config: Config) -> None:
    """OptionError for a stream whose GOPs cannot be coded at once."""
    if config.machine.gops == 1:
        name, instead = ("vbv-maxrate", "") if config.hrd.vbv_maxrate else ("bitrate", "; with --pass 2 they can")
        raise OptionError(
            f"with --ray: QPs depend on the sizes of all frames before, so that chunks cannot be encoded at once{instead}",
            name,
        )


def connect(
    config: Config, texts: Mapping[str, Any], reports: Mapping[str, Any], source: Source, name: str, length: int | None,
    stack: ExitStack, info: Callable[[str], None], warn: Callable[[str], None],
) -> "Callable[[Config, bool], RayPipeline]":  # fmt: skip
    """Connect to the cluster until `stack` ends; what makes the pipeline. name: of the input; length: in frames."""
    from ..cluster.connection import choose_share, connected, nodes
    from ..cluster.pipeline import RayPipeline, file_input

    ray = stack.enter_context(connected(reports["ray"], quiet=not reports["verbose"]))
    machines = nodes(ray)
    threads = config.machine.threads if texts.get("threads") not in (None, "0", "auto") else 0
    share = choose_share(machines, config, texts.get("device", "auto"), threads, reports["ray_gpus"], length)
    several = f"{len(machines)} machines" if len(machines) > 1 else "one machine"
    info(f"Ray {ray.__version__}: {several}, {share.slots(machines)} tasks at once of {share}")
    is_raw = isinstance(source, RawSource) and source.any_order
    file = file_input(name, source.later, config.video.seek) if is_raw else None  # type: ignore[attr-defined]
    return lambda settings, keep: RayPipeline(ray, settings, share, file, keep, warn)
