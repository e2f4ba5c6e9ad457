"""Choosing the level: the smallest of Table A-1 whose limits hold for size, rate, references and vectors."""

from dataclasses import dataclass
from fractions import Fraction

from .errors import OptionError


@dataclass(frozen=True)
class LevelChoice:
    """What the rest of the encoder needs to know of a level."""

    level_idc: int
    max_mv_y: int  # luma samples


def choose_level(
    mb_width: int, mb_height: int, fps: Fraction, ref: int, merange: int, asked: str | None
) -> LevelChoice:
    """Provisional until Table A-1 is in standard/levels.py."""
    if asked is not None or mb_width * mb_height > 8192:
        raise OptionError("level: not here yet")
    return LevelChoice(40, 512)
