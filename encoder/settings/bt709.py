"""What a stream of RGB input says of its colours: BT.709 in limited range."""

from dataclasses import replace
from typing import Any

from ..errors import InputError
from .config import Config


def with_bt709(config: Config, begun: bool) -> Config:
    """The config of a stream of RGB input, or the same one; see FramePipeline.set_bt709. begun: frames were entered."""
    wanted = {"colorprim": 1, "transfer": 1, "colormatrix": 1, "range": 0}
    options = {name: getattr(config, name) for name in wanted}
    for name in ("colormatrix", "range"):
        if options[name] not in (None, wanted[name]):
            raise InputError(f"RGB becomes BT.709 in limited range, which contradicts {name}")
    if options["colormatrix"] is not None and options["range"] is not None:
        return config
    if begun:
        raise InputError("RGB after other frames: set colormatrix='bt709' and range='tv' from the start")
    values: dict[str, Any] = {name: value for name, value in wanted.items() if options[name] is None}
    return replace(config, **values)
