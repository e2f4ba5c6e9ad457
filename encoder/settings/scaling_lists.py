"""Scaling lists: of --cqm, flat, the default ones of the standard or those of a file in JM's format; of --cqm4 to --cqm8p."""

import re
from collections.abc import Mapping, Sequence

from ...files import small_file
from ...standard.syntax_sps import ScalingMatrix, default_lists
from ...standard.tables import ZIGZAG_4x4, ZIGZAG_8x8
from ...uninterrupted import check_of_file
from ..errors import OptionError

# Intra Y, Cb, Cr, Inter Y, Cb, Cr of 4x4 blocks, Intra Y, Inter Y of 8x8 blocks, in scan order
ScalingLists = tuple[tuple[int, ...], ...]

FLAT: ScalingLists = ((16,) * 16,) * 6 + ((16,) * 64,) * 2
DEFAULT: ScalingLists = tuple(map(tuple, default_lists()[:8]))
NAMES = (
    "INTRA4X4_LUMA", "INTRA4X4_CHROMAU", "INTRA4X4_CHROMAV", "INTER4X4_LUMA", "INTER4X4_CHROMAU", "INTER4X4_CHROMAV",
    "INTRA8X8_LUMA", "INTER8X8_LUMA",
)  # fmt: skip
# Options with one list, and which lists it stands for; later ones win
LISTS_OF_OPTION: dict[str, Sequence[int]] = {
    "cqm4": range(6), "cqm4i": range(3), "cqm4iy": (0,), "cqm4ic": (1, 2), "cqm4p": range(3, 6), "cqm4py": (3,),
    "cqm4pc": (4, 5), "cqm8": (6, 7), "cqm8i": (6,), "cqm8p": (7,),
}  # fmt: skip
MOST_BYTES = 100_000  # of a file


def scaling_lists(cqm: str) -> ScalingLists:
    """The lists that --cqm names; OptionError with file and line."""
    if cqm in ("flat", "jvt"):
        return FLAT if cqm == "flat" else DEFAULT
    try:
        data = small_file(cqm, MOST_BYTES, may_wait=True)
    except (OSError, ValueError) as error:
        check_of_file(error)
        reason = getattr(error, "strerror", None) or error
        raise OptionError(f"{cqm}: not flat or jvt, and as a file: {reason}", "cqm") from None
    return parse_lists(data.decode("ascii", "replace"), cqm)


def with_options(lists: ScalingLists, options: Mapping[str, str | None]) -> ScalingLists:
    """The lists, some replaced by options: numbers in raster order, by the names in LISTS_OF_OPTION; OptionError."""
    replaced = list(lists)
    for option, indices in LISTS_OF_OPTION.items():
        text = options.get(option)
        for index in indices if text is not None else ():
            replaced[index] = _of_numbers(str(text), ZIGZAG_4x4.tolist() if index < 6 else ZIGZAG_8x8.tolist(), option)
    return tuple(replaced)


def _of_numbers(text: str, scan: Sequence[int], option: str) -> tuple[int, ...]:
    """A list in scan order, from numbers in raster order."""
    words = re.findall(r"[^\s,]+", text)
    wrong = next((word for word in words if not re.fullmatch("[0-9]{1,3}", word) or not 0 < int(word) < 256), None)
    if wrong is not None:
        raise OptionError(f"{wrong[:40]}: not in 1..255", option)
    if len(words) != len(scan):
        raise OptionError(f"has {len(words)} numbers, not {len(scan)}", option)
    return tuple(int(words[position]) for position in scan)


def parse_lists(text: str, name: str) -> ScalingLists:
    """The lists of a file's text: NAME = and rows of numbers 1..255 of a block, # begins a comment; a missing list is flat.

    A list that begins with 0 is the default one. name: of the file, for the OptionError.
    """
    lists: dict[str, tuple[int, list[int]]] = {}  # by name: line, values in raster order
    values: list[int] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"[^\s,=]+", line.partition("#")[0]):
            where = f"{name}, line {number}: {word[:40]}"
            if word in NAMES:
                if word in lists:
                    raise OptionError(f"{where} is there twice", "cqm")
                values = []
                lists[word] = number, values
            elif not re.fullmatch("[0-9]{1,3}", word):
                raise OptionError(f"{where}: not a number or one of {', '.join(NAMES)}", "cqm")
            elif values is None:
                raise OptionError(f"{where}: a number before the name of a list", "cqm")
            elif int(word) > 255 or (int(word) == 0 and values and values[0]):
                raise OptionError(f"{where}: not in 1..255", "cqm")
            else:
                values.append(int(word))
    return tuple(_list(list_name, index, lists, name) for index, list_name in enumerate(NAMES))


def _list(list_name: str, index: int, lists: dict[str, tuple[int, list[int]]], name: str) -> tuple[int, ...]:
    """One list in scan order."""
    if list_name not in lists:
        return FLAT[index]
    number, values = lists[list_name]
    if values[:1] == [0]:
        return DEFAULT[index]
    scan = ZIGZAG_4x4 if index < 6 else ZIGZAG_8x8
    if len(values) != len(scan):
        raise OptionError(f"{name}, line {number}: {list_name} has {len(values)} numbers, not {len(scan)}", "cqm")
    return tuple(values[position] for position in scan)


def scaling_syntax(lists: ScalingLists) -> ScalingMatrix | None:
    """7.4.2.1.1: what the sequence parameter set says of the lists; None: nothing, they are flat.

    A list is absent where fall-back rule set A (Table 7-2) gives it.
    """
    if lists == FLAT:
        return None
    fallback = [DEFAULT[i] if i in (0, 3, 6, 7) else lists[i - 1] for i in range(8)]
    return ScalingMatrix([None if own == other else list(own) for own, other in zip(lists, fallback, strict=True)])
