"""From the options of a user to normal forms: x264's words, unknown names, presets, tunes and defaults."""

from collections.abc import Callable, Container, Iterable, Mapping
from itertools import chain
from typing import Any

from ..errors import OptionError
from .option_types import OptionValues, show
from .options import ALIASES, ALL, API, BY_NAME, OPTIONS, Option
from .presets import TOOLS_OF_PRESETS, preset
from .translation import translate, value_of_x264
from .tunes import TUNES, split, tuned
from .x264_options import DISPENSABLE, UNBUILT


def check_names(options: Mapping[str, object], known: Container[str], legal: Iterable[str]) -> None:
    """One OptionError for all options of `options` that are unknown, or of x264 and not built.

    known: names that are options; legal: names to propose, as users write them.
    """
    refused: dict[str, list[tuple[str, str]]] = {}  # by reason: names, and values where others are accepted
    unknown, candidates = [], list(legal)
    for name, value in options.items():
        why, wrong_value = _why_not(name, value, lambda option: _in_use(options, option))
        if why:
            refused.setdefault(why, []).append((name.replace("_", "-"), f" {show(value)}" if wrong_value else ""))
        elif name not in known and name not in UNBUILT:
            unknown.append(unknown_option(name, candidates))
    problems = [*chain(*refused.values()), *unknown]
    if len(problems) == 1 and unknown:
        raise unknown[0]
    if len(problems) == 1:
        ((why, ((name, text),)),) = refused.items()
        raise OptionError(f"{text.lstrip()} is not available: {why}".lstrip(), name)
    if problems:
        texts = [f"{', '.join(f'--{name}{text}' for name, text in names)} ({why})" for why, names in refused.items()]
        raise OptionError(("not available: " if texts else "") + "; ".join([*texts, *map(str, unknown)]))


def check_keywords(options: Mapping[str, object]) -> None:
    """OptionError for keyword arguments that are unknown, or of x264 and not built; values are not read."""
    legal = [row.name for row in OPTIONS if row.scope in (ALL, API)]
    check_names(translated(options, legal)[0], legal, legal)


def _why_not(name: str, value: object, other: Callable[[str], object]) -> tuple[str, bool]:
    """Why `name` with `value` is refused, "" if it is not; whether another value is accepted. None: not set."""
    row = UNBUILT.get(name)
    if row is not None:
        if value is None or row.accepts(value, other):
            return "", False
        offer = "; --lenient leaves it out" if name in DISPENSABLE else ""
        return row.why + offer, not row.is_switch and bool(row.neutral)
    of_x264 = value_of_x264(name, value)
    if of_x264 is None:
        return "", False
    return of_x264.why + (f"; --lenient takes {of_x264.nearest}" if of_x264.nearest else ""), True


def translated(options: Mapping[str, object], known: Container[str] = frozenset(BY_NAME)) -> tuple[OptionValues, list[str]]:
    """Options in x264's words as those of the table, under their first names; and lines on what acts otherwise than in x264.

    See translation.py. OptionError for an option that is given twice, under two names.
    """
    named: OptionValues = {}
    for raw_name, value in options.items():
        name = ALIASES.get(raw_name, raw_name)
        if name in named:
            raise OptionError(f"{raw_name}: {name} is given twice, under two names")
        named[name] = value

    def refusal(name: str, value: object) -> str:
        return _why_not(name, value, lambda option: _in_use(named, option))[0].partition("; --lenient")[0]

    return translate(named, BY_NAME, known, refusal)


def _in_use(options: Mapping[str, object], name: str) -> Any:
    """The value of an option that is built: the user's if it is legal, else the preset's or the default."""
    try:
        if name in TOOLS_OF_PRESETS and options.get(name[3:]) is True and options.get(name) is not True:
            return False
        wanted = {key: BY_NAME[key].value(options[key]) for key in ("preset", "tune") if options.get(key) is not None}
        changes = _preset_and_tune({**options, **wanted})
        return BY_NAME[name].value(options.get(name, changes.get(name, BY_NAME[name].default)))
    except OptionError:
        return BY_NAME[name].default_value


def unknown_option(name: str, legal: Iterable[str]) -> OptionError:
    """The error for an unknown name, with a legal one that begins alike and differs by a letter or two."""
    plain = {_plain(one): one for one in reversed(list(legal))}
    typed = _plain(name[:60])
    import difflib  # few need it

    near = difflib.get_close_matches(typed, [one for one in plain if len(one) > 2 and one[0] == typed[:1]], 1, 0.75)
    proposal = f"; did you mean {plain[near[0]]!r}?" if near else ""
    return OptionError(f"unknown option {name[:60]!r}{proposal}")


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()


def read_options(options: OptionValues, legal: Iterable[Option] = OPTIONS) -> OptionValues:
    """Normal forms of all `legal` options: the user's value, else the tune's, else the preset's, else the default.

    Refuses unknown names with a near match and unbuilt ones with the reason, all in one message; values of unbuilt ones that
    ask for nothing are accepted. None stands for "not set".
    """
    table = {option.name: option for option in legal}
    named, _ = translated(options, table)
    check_names(named, table, table)
    values = {name: table[name].value(value) for name, value in named.items() if name in table and value is not None}
    merged = {name: option.default_value for name, option in table.items()}
    if "preset" in table:
        changes = _preset_and_tune({**named, **values})
        merged |= {name: BY_NAME[name].value(value) for name, value in changes.items()}
        merged |= {name: False for name in TOOLS_OF_PRESETS if named.get(name[3:]) is True}
    return merged | values


def _preset_and_tune(options: Mapping[str, Any]) -> OptionValues:
    """The options of the preset and of the tune over it. options: preset and tune in their normal forms."""
    tunes = split(options.get("tune"))
    changes = preset(options.get("preset") or "medium", _without_cabac(options, tunes))
    changes |= tuned(tunes, changes, with_rate=options.get("qp") is None)
    return fast_first_pass(changes) if options.get("pass_") == 1 and not options.get("slow_firstpass") else changes


def fast_first_pass(changes: Mapping[str, Any]) -> OptionValues:
    """The options of a preset with tools that find sizes, and not how small they can be."""
    faster = dict(changes)
    for name, most in (("ref", 1), ("merange", 8), ("subme", 2), ("trellis", 0)):
        faster[name] = min(most, faster.get(name, BY_NAME[name].default))
    if faster.get("partitions") != "none":
        faster["partitions"] = "p8x8"
    return faster | {"no_8x8dct": True}


def _without_cabac(options: Mapping[str, object], tunes: Iterable[str]) -> bool:
    """Whether the user's options and tunes exclude CABAC, whatever the preset."""
    wants = options.get("cabac") is True or options.get("no_cabac") is False
    tuned_off = not wants and any(TUNES[tune].get("no_cabac") for tune in tunes)
    return options.get("profile") == "baseline" or options.get("no_cabac") is True or tuned_off
