"""x264's tunes: options for some content or use. They win over the preset and give way to the user's options."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from .option_types import OptionValues

_MOST_FRAMES = 16  # of --ref, --bframes


class Change(NamedTuple):
    """A value that depends on the one before. text: for the documentation."""

    text: str
    of: Callable[[int], int]

    def __str__(self) -> str:
        return self.text


_DOUBLED = Change("twice that of the preset if it is not 1", lambda ref: min(_MOST_FRAMES, 2 * ref) if ref > 1 else ref)
_TWO_MORE = Change("2 more than in the preset if it is not 0", lambda count: min(_MOST_FRAMES, count + 2) if count else 0)

TUNES: dict[str, OptionValues] = {
    "psnr": {"psy_rd": 0},
    "ssim": {"psy_rd": 0},
    "film": {"deblock": "-1:-1"},
    "animation": {"deblock": "1:1", "ref": _DOUBLED, "bframes": _TWO_MORE},
    "grain": {"deblock": "-2:-2", "ipratio": 1.1, "pbratio": 1.1, "deadzone_inter": 6, "deadzone_intra": 6,
              "qcomp": 0.8},
    "stillimage": {"deblock": "-3:-3"},
    "fastdecode": {"no_cabac": True, "no_deblock": True, "no_weightb": True, "weightp": 0},
    "zerolatency": {"bframes": 0, "rc_lookahead": 0, "scenecut": 0, "no_mbtree": True},
}
# With a rate factor, under the tune: QPs that rate control chooses anyway may follow what is seen
WITH_RATE: OptionValues = {"aq_mode": 1, "psy_rd": 1.0}
TUNES_WITH_RATE: dict[str, OptionValues] = {
    "psnr": {"aq_mode": 0, "psy_rd": 0},
    "ssim": {"aq_mode": 2, "psy_rd": 0},
    "animation": {"aq_strength": 0.6, "psy_rd": 0.4},
    "grain": {"aq_strength": 0.5},
    "stillimage": {"aq_strength": 1.2, "psy_rd": 2.0},
}
OF_USE = ("fastdecode", "zerolatency")  # may be given beside one of the others, which say what is judged
ZERO_LATENCY = "zerolatency"


def split(tune: str | None) -> list[str]:
    """The tunes of an option's normal form."""
    return tune.split(",") if tune else []


def tuned(tunes: Iterable[str], values: Mapping[str, object], with_rate: bool) -> OptionValues:
    """The options that `tunes` set, one after another. values: those without them, of the options that a Change is of;
    with_rate: whether QPs are chosen by rate control.
    """
    changes: OptionValues = dict(WITH_RATE) if with_rate else {}
    for tune in tunes:
        for name, value in (TUNES[tune] | (TUNES_WITH_RATE.get(tune, {}) if with_rate else {})).items():
            changes[name] = value.of(changes.get(name, values[name])) if isinstance(value, Change) else value
    return changes
