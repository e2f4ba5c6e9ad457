"""Settings of rate control that change between two frames of an encode: which may, and what of the stream forbids others."""

from collections.abc import Mapping

from ...standard.levels import LEVELS, limits_exceeded
from ..errors import OptionError
from .buffer import average_rate, nal_factor, requested_buffer
from .config import Config
from .options import BY_NAME
from .scaling_lists import FLAT

CHANGEABLE = ("bitrate", "crf", "vbv_maxrate", "vbv_bufsize")


def reconfigured(config: Config, changes: Mapping[str, object]) -> Config:
    """The settings with other numbers of CHANGEABLE; those that are None stay. OptionError for what cannot change."""
    changed = {name: BY_NAME[name].value(value) for name, value in changes.items() if value is not None}
    _check_mode(config, changed)
    values = {**config.values, **changed}
    rate, size = requested_buffer(values, {})
    high = config.coding.transform_8x8_mode or config.coding.scaling_lists != FLAT
    _check_level(config, rate or average_rate(values["bitrate"], bool(high)), size, nal_factor(bool(high)))
    buffer = config.hrd.buffer
    if buffer is not None:
        buffer = buffer._replace(rate=rate, size=size, start=min(size, buffer.start))
    hrd = config.hrd._replace(vbv_maxrate=values["vbv_maxrate"], vbv_bufsize=values["vbv_bufsize"], buffer=buffer)
    return config._replace(rate=config.rate._replace(bitrate=values["bitrate"], crf=values["crf"]), hrd=hrd)


def _check_mode(config: Config, changed: Mapping[str, object]) -> None:
    """OptionError for another mode than the encoder's, and for what the stream has said about itself."""
    rate, hrd = config.rate, config.hrd
    mode = "--bitrate" if rate.bitrate else "--qp" if rate.crf is None else "--crf"
    for name in ("bitrate", "crf"):
        if name in changed and (mode != f"--{name}" or (name == "bitrate" and not changed[name])):
            raise OptionError(
                f"cannot change: the encoder was made with {mode}, and another mode needs another encoder", name
            )
    for name in ("vbv_maxrate", "vbv_bufsize"):
        if name not in changed:
            continue
        if hrd.buffer is None or not changed[name]:
            text = "cannot change: a buffer is there from the first frame to the last, or not at all"
            raise OptionError(text, name.replace("_", "-"))
        if hrd.nal_hrd != "none":
            text = f"cannot change: the stream says its buffer (--nal-hrd {hrd.nal_hrd})"
            raise OptionError(text, name.replace("_", "-"))
    if changed and rate.pass_:
        raise OptionError(f"{rate.pass_}: the passes count over the whole stream, so that no rate can change", "pass")


def _check_level(config: Config, rate: int, size: int, factor: int) -> None:
    """OptionError for bits a second, or a buffer, beyond the level that the stream says."""
    level = next(row for row in LEVELS if row.level_idc == config.stream.level_idc)
    mb_width, mb_height = config.coding.mb_width, config.coding.mb_height
    if reasons := limits_exceeded(level, mb_width, mb_height, bitrate=rate, nal_factor=factor, cpb_size=size):
        raise OptionError(f"{level.name}, which the stream says, has no room for {', '.join(reasons)}", "level")
