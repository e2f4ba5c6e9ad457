"""SEI message that says which encoder made a stream, in which version and with which options (`--info-sei`)."""

from ..standard.syntax import SEI_USER_DATA_UNREGISTERED, write_sei
from ..version import __version__
from .settings.config import Config
from .settings.options import ALL, OPTIONS

ENCODER_UUID = bytes.fromhex("8a1df1fa 1a85 48c6 b56b 628a942a7f35")  # of this encoder's user data
_NOT_OF_THE_STREAM = ("Running", "Reports")  # groups of options that leave its bytes as they are
_SAID_OTHERWISE = (
    "no_deblock", "no_cabac", "no_8x8dct", "no_scenecut", "no_weightb", "no_mbtree", "no_psy", "lenient", "intra_refresh",
)  # fmt: skip
_OF_B_FRAMES = ("b_pyramid", "pbratio", "weightb")
_OF_CRF = ("qcomp", "mbtree", "qpmin", "qpmax")
_OF_BUFFER = ("vbv_maxrate", "vbv_bufsize", "vbv_init", "nal_hrd", "filler")
_OF_BITRATE = ("bitrate", "ratetol")
_OF_PASS = ("pass_", "stats", "slow_firstpass")
_OF_AQ = ("aq_mode", "aq_strength")


def info_sei(config: Config) -> bytes:
    """7.3.2.3, D.1.7: RBSP of a user_data_unregistered message: UUID, then text in ASCII."""
    payload = ENCODER_UUID + info_text(config).encode("ascii", "backslashreplace")
    return write_sei([(SEI_USER_DATA_UNREGISTERED, payload)])


def info_text(config: Config) -> str:
    """Name, version and options. Options that leave the stream as it is are absent: same stream, same text."""
    coding, rate = config.coding, config.rate
    settings = config.values
    values = {row.name: settings[row.name] for row in OPTIONS if _shapes_the_stream(row.name, row.scope, row.group)}
    values["deblock"] = f"{int(coding.deblock)}:{coding.deblock_alpha}:{coding.deblock_beta}"
    values["cqm"] = values["cqm"] if config.stream.cqm == "jvt" else "file" if coding.has_scaling_lists else None
    values |= {"cabac": coding.cabac, "8x8dct": coding.transform_8x8_mode, "weightb": coding.weightb}
    values["mbtree"] = rate.mbtree
    values |= {} if coding.bframes else dict.fromkeys(_OF_B_FRAMES)
    values |= dict.fromkeys(_OF_CRF) if rate.crf is None else {"qp": None}
    values |= {} if config.hrd.buffer else dict.fromkeys(_OF_BUFFER)
    values |= {"crf": None} if rate.bitrate else dict.fromkeys(_OF_BITRATE)
    values |= {**dict.fromkeys(_OF_PASS), "pass": None if rate.first_pass is None else 2}
    values["crf_max"] = config.hrd.crf_max or None
    values |= {} if coding.aq_mode else dict.fromkeys(_OF_AQ)
    values |= {"intra_refresh": True, "keyint": coding.refresh_cycle} if coding.refresh_cycle else {}
    values |= {"qpfile": "file" if config.types.qpfile else None, "zones": _zones(config)}
    options = " ".join(f"{name}={_text(value)}" for name, value in values.items() if value is not None)
    return f"h264lite {__version__} - H.264/AVC encoder - options: {options}"


def _zones(config: Config) -> str | None:
    rates = [f"b={float(zone.rate):g}" if zone.qp is None else f"q={zone.qp}" for zone in config.rate.zones]
    return "/".join(f"{zone.first},{zone.last},{rate}" for zone, rate in zip(config.rate.zones, rates)) or None


def _shapes_the_stream(name: str, scope: str, group: str) -> bool:
    return scope == ALL and group not in _NOT_OF_THE_STREAM and name not in _SAID_OTHERWISE


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, frozenset):
        return ",".join(sorted(value)) or "none"
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return str(value)
