"""What an average bit rate makes of the other options."""

from typing import Any

from ..errors import OptionError

_FACTOR = 23.0  # QPs begin with it; the control of the rate shifts them


def with_rate_factor(options: dict[str, Any], is_second_pass: bool) -> dict[str, Any]:
    """Options with the rate factor whose QPs a bit rate shifts; OptionError for what contradicts."""
    for name in ("qp", "crf"):
        if options.get(name) is not None:
            raise OptionError(f"contradicts {name}: give one of them", "bitrate")
    if not is_second_pass and options.get("gops") not in (None, 0, 1, "0", "1", "auto"):
        raise OptionError(f"{options['gops']}: sizes are known of one GOP after another; use 1", "gops")
    return {**options, "crf": _FACTOR}
