"""Presets: options for a speed, in the order of their time."""

from .option_types import OptionValues

# Each row holds the changes from the row before. With CABAC "medium" equals the defaults of the table.
PRESETS: dict[str, OptionValues] = {
    "ultrafast": {"ref": 1, "merange": 4, "subme": 1, "partitions": "p8x8", "trellis": 0, "no_8x8dct": True, "bframes": 0,
                  "weightp": 0},
    "superfast": {"subme": 2, "bframes": 3, "weightp": 1},
    "veryfast": {"merange": 8, "subme": 3, "partitions": "p8x8,i8x8", "no_8x8dct": False, "trellis": 1},
    "faster": {"subme": 4, "partitions": "all"},
    "fast": {"subme": 6, "partitions": "p8x8,i8x8"},
    "medium": {"merange": 16, "partitions": "all", "weightp": 2},
    "slow": {"ref": 3, "subme": 7, "bframes": 5},
    "slower": {"ref": 4, "bframes": 8, "b_adapt": 2, "subme": 9},
    "veryslow": {"ref": 6, "b_pyramid": "dyadic", "subme": 10},
    "placebo": {"ref": 8, "merange": 32},
}
# Those of a preset or a tune give way to x264's --cabac, --8x8dct, --weightb, --mbtree
TOOLS_OF_PRESETS = ("no_cabac", "no_8x8dct", "no_weightb", "no_mbtree")
# Streams without CABAC (Baseline profile, --no-cabac), whose decisions by bits cost more and are for the CPU alone
CAVLC_PRESETS: dict[str, OptionValues] = {
    "ultrafast": {"ref": 1, "merange": 4, "subme": 1, "partitions": "none", "no_deblock": True,
                  "trellis": 0, "bframes": 0, "weightp": 0},
    "superfast": {"partitions": "p8x8,i8x8", "no_deblock": False, "bframes": 3, "weightp": 1},
    "veryfast": {"merange": 8, "subme": 2, "partitions": "p8x8,i8x8,i4x4"},
    "faster": {"subme": 3},
    "fast": {"subme": 4, "partitions": "all", "trellis": 1},
    "medium": {"merange": 16, "weightp": 2},
    "slow": {"ref": 2},
    "slower": {"ref": 3, "subme": 5, "merange": 24},
    "veryslow": {"ref": 6},
    "placebo": {"ref": 8, "merange": 32, "subme": 6},
}


def preset(name: str, cavlc: bool = False) -> OptionValues:
    """The options of a preset: its row and all rows before it. cavlc: of streams without CABAC."""
    changes: OptionValues = {}
    for row, values in (CAVLC_PRESETS if cavlc else PRESETS).items():
        changes |= values
        if row == name:
            break
    return changes
