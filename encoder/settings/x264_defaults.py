"""x264's defaults of the options that both encoders have, for the table of those that differ (docs/options.md)."""

from typing import Any

from .config import Config

# As the fields of Config have them. x264 --fullhelp (core 165): preset medium, a constant rate factor
X264_DEFAULTS: dict[str, Any] = {
    "crf": 23.0, "keyint": 250, "min_keyint": 25, "scenecut": 40, "rc_lookahead": 40, "ref": 3, "bframes": 3,
    "b_pyramid": "normal", "b_adapt": 1, "b_bias": 0, "weightb": True, "weightp": 2, "me": "hex", "merange": 16, "subme": 7,
    "trellis": 1, "psy_rd": 1.0, "partitions": frozenset(("p8x8", "i8x8", "i4x4")), "transform_8x8_mode": True,
    "cabac": True, "deblock": True, "deblock_alpha": 0, "deblock_beta": 0, "deadzone_inter": 21, "deadzone_intra": 11,
    "aq_mode": 1, "aq_strength": 1.0, "mbtree": True, "qcomp": 0.6, "ipratio": 1.4, "pbratio": 1.3, "ratetol": 1.0,
    "qpmin": 0, "vbv_init": 0.9, "cqm": "flat", "chroma_qp_offset": 0, "slices": 1, "info_sei": True, "psnr": False,
}  # fmt: skip


def differing() -> list[tuple[str, str, str]]:
    """(option, its default here, that of x264) of the options whose defaults differ."""
    here = Config.from_options(width=352, height=288, device="cpu")
    return [
        (f"--{name.replace('_', '-')}", _text(getattr(here, name)), _text(value))
        for name, value in X264_DEFAULTS.items()
        if getattr(here, name) != value
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(sorted(value, reverse=True)) if isinstance(value, frozenset) else str(value)
