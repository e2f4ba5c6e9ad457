"""Options that depend on others: each step turns some of them into fields of Config and refuses contradictions.

A step takes `values`, every option with its value or default, which it changes, and `options`, what the user has given.
"""

from collections.abc import Mapping
from itertools import product

from ...scheduler.stages import BY_QP
from ...standard.levels import Level
from ..errors import OptionError
from .levels import choose_level
from .option_types import ENDLESS, OptionValues
from .options import ALIASES, BY_NAME
from .scaling_lists import LISTS_OF_OPTION, scaling_lists, with_options

_SCENECUT = 40  # default where frames are looked at anyway
_MOST_QP = 51
_FACTOR = 23.0  # QPs of a bit rate begin with it; the control of the rate shifts them
SHORTEST_CYCLE = 2  # frames from one cycle of intra refresh to the next
_QP_OF_HEADERS = 26  # pic_init_qp with a rate factor, whose QPs are not known in advance


def resolve_deblocking(values: OptionValues, options: OptionValues) -> None:
    """Turn no_deblock and deblock into `deblock`, `deblock_alpha`, `deblock_beta`; refuse both at once.

    Offsets of the user override no_deblock of a preset.
    """
    offsets, off = values["deblock"], values.pop("no_deblock")
    is_requested = options.get("deblock") is not None
    if is_requested and options.get("no_deblock") and offsets is not False:
        raise OptionError("contradicts --deblock: give one of them", "no-deblock")
    if is_requested:
        off = offsets is False
    if isinstance(offsets, bool):
        offsets = BY_NAME["deblock"].default_value
    values["deblock"] = not off
    values["deblock_alpha"], values["deblock_beta"] = offsets


def _is_given(name: str, options: Mapping[str, object]) -> bool:
    """Whether the user has set an option, under any of its names."""
    return any(options.get(given) is not None for given in (name, *(alias for alias in ALIASES if ALIASES[alias] == name)))


def resolve_refresh(values: OptionValues, options: OptionValues) -> None:
    """Turn intra_refresh into `refresh_cycle`, 0 without; there are then no IDR frames but the first, and no scene cuts.

    A preset's B frames and further references are left out; the user's are refused.
    """
    values["refresh_cycle"] = 0
    if not values.pop("intra_refresh"):
        return
    if not SHORTEST_CYCLE <= values["keyint"] < ENDLESS:
        text = f"needs --keyint, the frames from one cycle to the next: {SHORTEST_CYCLE} or more, not infinite"
        raise OptionError(text, "intra-refresh")
    for name, most, why in (
        ("bframes", 0, "the bar wanders over P frames"), ("ref", 1, "older frames are not clean where the last one is"),
        ("scenecut", 0, "there are no IDR frames but the first"), ("gops", 1, "the stream is one GOP"),
    ):  # fmt: skip
        if _is_given(name, options) and values[name] > most:
            raise OptionError(f"{values[name]}: contradicts --intra-refresh ({why}); use {most}", name.replace("_", "-"))
        values[name] = most
    if len(values["devices"] or ()) > 1:
        raise OptionError("contradicts --intra-refresh (the stream is one GOP); use --device", "devices")
    if values["nal_hrd"] != "none":
        text = f"{values['nal_hrd']}: contradicts --intra-refresh (times of a buffer begin at IDR frames); leave it out"
        raise OptionError(text, "nal-hrd")
    values["refresh_cycle"], values["keyint"] = values["keyint"], ENDLESS


def resolve_level(values: OptionValues, options: OptionValues, rates: tuple[int, int, int]) -> Level:
    """The level to declare; rates: see choose_level.

    A preset's B frames are left out where each frame is an IDR frame. Where the level, the highest or the user's, has no room
    for the references of a preset, there are fewer; where it has none for those of a pyramid either, the pyramid is lower or
    missing.
    """
    given = _is_given("bframes", options)
    if values["keyint"] == 1 and not given:
        values["bframes"] = 0
    counts = [values["ref"]] if _is_given("ref", options) else range(values["ref"], 0, -1)
    pyramids = [values["b_pyramid"]]
    if values["bframes"] and options.get("b_pyramid") is None:
        pyramids = list(dict.fromkeys([*pyramids, "normal", *([] if given else ["none"])]))
    last: OptionError | None = None
    for pyramid, ref in product(pyramids, counts):
        size, references = (values["width"], values["height"]), (ref, values["bframes"], pyramid)
        try:
            level = choose_level(
                *size, values["fps"], *references, values["merange"], values["slices"], values["level"], rates
            )
        except OptionError as error:
            last = error
            continue
        values["ref"], values["b_pyramid"] = ref, pyramid
        return level
    assert last is not None
    raise last


def check_slices(values: OptionValues, mb_height: int) -> None:
    """OptionError for more slices than rows of macroblocks, or both kinds of slices."""
    if values["slices"] > mb_height:
        size, most = f"{values['width']}x{values['height']}", mb_height
        text = f"{values['slices']}: not in 1..{most} (a slice is at least one macroblock row, and {size} has {most})"
        raise OptionError(text, "slices")
    if not values["slice_max_size"]:
        return
    if values["slices"] > 1:
        raise OptionError(f"{values['slices']}: contradicts --slice-max-size (sizes say where slices begin); use 1", "slices")
    if values["devices"] is None and values["device"] == "hybrid":
        text = f"{values['slice_max_size']}: not on device hybrid, whose plans know slices of rows; use --device cpu or cuda"
        raise OptionError(text, "slice-max-size")


def check_sar(values: OptionValues) -> None:
    """OptionError for a sample aspect ratio by which a side on the display is shorter than a sample: no player takes it."""
    if values["sar"] is None:
        return
    across, down = values["sar"]
    width, height = (size + size % 2 for size in (values["width"], values["height"]))  # as decoders crop them
    if (width * across < down) if across < down else (height * down < across):
        text = f"not in 1:{width}..{height}:1 (a side of {width}x{height} would be shorter than a sample)"
        raise OptionError(f"{across}:{down}: {text}", "sar")


def resolve_profile(values: OptionValues, options: OptionValues) -> None:
    """Turn no_cabac and no_8x8dct into `cabac` and `transform_8x8_mode`: tools of the profile (A.2), not switched off.

    Intra 8x8 needs the 8x8 transform. cqm and LISTS_OF_OPTION are read into `scaling_lists`. A preset's weightp and bframes
    give way to the profile, weightp also to IDR frames alone; the user's are refused by the profile.
    """
    if values["keyint"] == 1 and not _is_given("weightp", options):
        values["weightp"] = 0
    for name, tool in (("weightp", "weighted prediction is a tool"), ("bframes", "B frames are a tool")):
        if values["profile"] == "baseline" and values[name]:
            if _is_given(name, options):
                raise OptionError(f"{values[name]}: {tool} of Main and High profile", name)
            values[name] = 0
    for name in ("cqm", *LISTS_OF_OPTION):
        if values["profile"] != "high" and values[name] not in ("flat", None):
            raise OptionError(f"{values[name]}: scaling matrices are a tool of High profile", name)
    values["scaling_lists"] = with_options(scaling_lists(values["cqm"]), values)
    without_cabac, without_8x8 = values.pop("no_cabac"), values.pop("no_8x8dct")
    values["cabac"] = values["profile"] != "baseline" and not without_cabac
    values["transform_8x8_mode"] = values["profile"] == "high" and not without_8x8
    if not values["transform_8x8_mode"]:
        values["partitions"] -= {"i8x8"}


def resolve_subme(values: OptionValues) -> None:
    """QPs by rate and distortion need CABAC, the trellis, and QPs of macroblocks; without these subme is BY_QP - 1."""
    if not (values["cabac"] and values["trellis"] and (values["aq_mode"] or values["mbtree"])):
        values["subme"] = min(values["subme"], BY_QP - 1)


def resolve_types(values: OptionValues, options: OptionValues) -> None:
    """Turn no_scenecut and the default of scenecut into `scenecut`, no_weightb into `weightb`; resolve min_keyint.

    At a constant QP without B frames the default is no scene cuts. Without B frames b_adapt decides nothing.
    """
    values["weightb"] = not values.pop("no_weightb") and values["bframes"] > 0
    if values.pop("no_scenecut"):
        if values["scenecut"]:
            raise OptionError("contradicts --scenecut: give one of them", "no-scenecut")
        values["scenecut"] = 0
    if values["scenecut"] is None:
        values["scenecut"] = _SCENECUT if values["bframes"] or values["crf"] is not None else 0
    if not values["bframes"]:
        values["b_adapt"] = 0
    keyint, least = values["keyint"], values["min_keyint"]
    if least > keyint:
        raise OptionError(f"{least}: not in 0..{keyint} (IDR frames are at most --keyint {keyint} apart)", "min-keyint")
    values["min_keyint"] = least or max(1, min(keyint // 10, int(values["fps"])))


def resolve_qps(values: OptionValues, options: OptionValues) -> None:
    """Turn no_mbtree into `mbtree`, of rate factors with frames ahead; resolve qp, crf and qpmax.

    Refuse a constant QP beside a rate factor, limits of a constant QP unless they limit nothing, and limits that leave no QP.
    """
    values["qpmax"] = min(_MOST_QP, values["qpmax"])
    if options.get("qp") is None:
        values["qp"] = _QP_OF_HEADERS
    elif options.get("crf") is None:
        values["crf"] = None
    has_tree = values["crf"] is not None and values["rc_lookahead"] > 0 and values["qcomp"] < 1 and values["keyint"] > 1
    values["mbtree"] = not values.pop("no_mbtree") and has_tree
    if values["crf"] is not None:
        if options.get("qp") is not None:
            raise OptionError("contradicts --qp: give one of them", "crf")
    elif values["qpmin"] > 0 or values["qpmax"] < _MOST_QP:
        raise OptionError("has no effect with --qp", "qpmin" if values["qpmin"] > 0 else "qpmax")
    if values["qpmin"] > values["qpmax"]:
        raise OptionError(f"{values['qpmin']}: not in 0..{values['qpmax']} (--qpmax)", "qpmin")


def resolve_psy(values: OptionValues, options: OptionValues) -> None:
    """Turn no_psy into a psy_rd of 0."""
    if values.pop("no_psy"):
        if options.get("psy_rd") is not None and values["psy_rd"]:
            raise OptionError("contradicts --psy-rd: give one of them", "no-psy")
        values["psy_rd"] = 0.0


def gops_for(gops: int, devices: tuple[str, ...]) -> int:
    """The number of GOPs at once, at least one for each device; 0 = auto."""
    if 0 < gops < len(devices):
        raise OptionError(f"{gops}: not in {len(devices)}.. (each of {len(devices)} devices takes at least one)", "gops")
    return gops


def with_rate_factor(options: OptionValues, is_second_pass: bool) -> OptionValues:
    """Options with the rate factor whose QPs a bit rate shifts; OptionError for what contradicts."""
    for name in ("qp", "crf"):
        if options.get(name) is not None:
            raise OptionError(f"contradicts --{name}: give one of them", "bitrate")
    if not is_second_pass and options.get("gops") not in (None, 0, 1, "0", "1", "auto"):
        raise OptionError(f"{options['gops']}: sizes are known of one GOP after another; use 1", "gops")
    return {**options, "crf": _FACTOR}
