"""Which axis of an array is what: layouts as said by the caller, or found where the shape allows one reading only.

A layout is a word of the letters B (batch, of one), T (frames), C (colours), H (rows), W (columns), one for each axis.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..errors import InputError, OptionError
from ..settings.option_types import show

COLOURS = {"rgb": 3, "bgr": 3, "rgba": 4, "bgra": 4, "gray": 1}  # formats with the size of axis C
PACKED = ("i420", "nv12")  # formats of 8 bits with H * 3 // 2 rows: chroma after luma
FORMATS = (*COLOURS, *PACKED)
SMALLEST = 5  # rows and columns of a frame whose layout is not said: fewer may be colours
_READINGS = {2: ("HW",), 3: ("HWC", "CHW", "THW"), 4: ("THWC", "TCHW", "CTHW")}  # by the number of axes


class Steps(NamedTuple):
    """Distances in an array. frame: from frame to frame; rgb: of the first red, green and blue from the first sample, from
    column to column, from row to row.
    """

    frame: int
    rgb: tuple[int, int, int, int, int]


class Layout(NamedTuple):
    """axes: the layout, a letter an axis; format: one of FORMATS."""

    axes: str
    format: str

    def size(self, shape: Sequence[int]) -> tuple[int, int]:
        """(width, height) of the frames of an array."""
        height, width = shape[self.axes.index("H")], shape[self.axes.index("W")]
        return width, height * 2 // 3 if self.format in PACKED else height

    def frames(self, shape: Sequence[int]) -> int:
        """The number of frames of an array."""
        return shape[self.axes.index("T")] if "T" in self.axes else 1


@lru_cache(64)  # frames of a loop are alike
def steps_of(layout: Layout, strides: tuple[int, ...]) -> Steps:
    """Distances in an array, in the unit of its strides."""
    by_axis = dict(zip(layout.axes, strides))
    colour = 0 if layout.format == "gray" else by_axis.get("C", 0)
    red, blue = (2 * colour, 0) if layout.format.startswith("bgr") else (0, 2 * colour)
    return Steps(by_axis.get("T", 0), (red, colour, blue, by_axis["W"], by_axis["H"]))


class Known(NamedTuple):
    """What earlier frames, or the encoder, say about the next ones. format: "" for any; axes: layouts of earlier arrays."""

    format: str
    width: int
    height: int
    axes: frozenset[str] = frozenset()


def read_format(value: object) -> str | None:
    """A format by name, None for none; OptionError."""
    name = value
    if isinstance(value, str):
        name = {"grey": "gray", "rgb24": "rgb", "bgr24": "bgr"}.get(value.lower(), value.lower())
    if name is not None and name not in FORMATS:
        raise OptionError(f"{show(value)}: not one of {', '.join(FORMATS)}", "format")
    return name  # type: ignore[return-value]


def read_layout(value: object) -> str | None:
    """A layout by name, None for none; OptionError."""
    if value is None:
        return None
    name = value.upper() if isinstance(value, str) else ""
    if not {"H", "W"} <= set(name) <= set("BTCHW") or len(set(name)) < len(name):
        raise OptionError(
            f"{show(value)}: not a word such as THWC, TCHW, CTHW, HWC (B batch, T frames, C colours, H rows, W columns)",
            "layout",
        )
    return name


@lru_cache(256)  # frames of a loop are alike
def find_layout(
    shape: tuple[int, ...],
    is_uint8: bool,
    layout: str | None = None,
    format: str | None = None,
    known: Known | None = None,
    whole: bool = False,
) -> Layout:
    """The layout of an array of this shape; InputError if none fits, or several do.

    layout, format: as said. whole: the array is a whole video; else it came from a loop over frames or chunks, where three
    colours are meant rather than three grey frames.
    """
    readings = _readings(shape, layout, format, SMALLEST if layout is None and known is None else 1)
    if format is None:  # NV12 is not found by shape; I420 of floating-point samples does not exist
        readings = [r for r in readings if r.format != "nv12" and (is_uint8 or r.format != "i420")]
    if known is not None:
        large = [r for r in readings if layout is not None or min(r.size(shape)) >= SMALLEST]
        readings = [r for r in readings if _fits(r, shape, known)] or large
        readings = [r for r in readings if _was_before(r, shape, known)] or readings
    if not readings:
        raise InputError(_no_reading(shape, layout, format))
    different: dict[tuple[bool, str], Layout] = {}
    for reading in readings:
        different.setdefault(_meaning(reading, shape), reading)
    coloured = [r for r in different.values() if COLOURS.get(r.format) == 3]
    if (
        len(different) > 1
        and not whole
        and len(coloured) == 1
        and all(r.format in ("gray", "i420") for r in different.values() if r not in coloured)
    ):
        return coloured[0]
    if len(different) > 1:
        raise InputError(_several(different, shape))
    return readings[0]


def _readings(shape: Sequence[int], layout: str | None, format: str | None, least: int) -> list[Layout]:
    """All readings of a shape that layout and format allow; least: rows and columns of a frame."""
    if 0 in shape:
        raise InputError(f"an array of shape {tuple(shape)}: no samples")
    if layout is not None:
        words = [
            layout,
            *(word for word in (layout.replace("B", ""), layout.replace("T", ""), layout.strip("BT")) if word != layout),
        ]
        axes = [word for word in dict.fromkeys(words) if len(word) == len(shape)]
    elif len(shape) == 5:
        axes = ["B" + word for word in _READINGS[4]]
    else:
        axes = [*_READINGS.get(len(shape), ()), *(["BTHW"] if len(shape) == 4 and shape[0] == 1 else [])]
    if axes and "B" in axes[0] and (batch := shape[axes[0].index("B")]) != 1:
        raise InputError(f"an array of shape {tuple(shape)} is a batch of {batch} videos: write one at a time")
    readings = []
    for word in axes:
        for name in FORMATS:
            if (format is None and name in ("bgr", "bgra")) or (format is not None and name != format):
                continue
            if _possible(word, name, shape, least):
                readings.append(Layout(word, name))
    return readings


def _possible(axes: str, format: str, shape: Sequence[int], least: int) -> bool:
    """Whether an array of this shape may be of this layout and format."""
    height, width = shape[axes.index("H")], shape[axes.index("W")]
    if min(height, width) < least:
        return False
    if format in PACKED:
        return "C" not in axes and height % 3 == 0 and width % 2 == 0
    return shape[axes.index("C")] == COLOURS[format] if "C" in axes else format == "gray"


def _fits(reading: Layout, shape: Sequence[int], known: Known) -> bool:
    """Whether a reading gives frames of the known size and format."""
    if reading.size(shape) != (known.width, known.height):
        return False
    return known.format in ("", reading.format) or {reading.format, known.format} <= {"rgb", "bgr", "rgba", "bgra"}


def _was_before(reading: Layout, shape: Sequence[int], known: Known) -> bool:
    return reading.axes in known.axes


def _meaning(reading: Layout, shape: Sequence[int]) -> tuple[bool, str]:
    """Equal for readings that give the same frames: (packed, axes of more than one)."""
    return reading.format in PACKED, "".join(axis for axis, n in zip(reading.axes, shape) if n > 1 or axis in "HW")


def _several(different: dict[tuple[bool, str], Layout], shape: Sequence[int]) -> str:
    if len({axes for _, axes in different}) == 1:
        sizes = ", or ".join(f"{r.format} of {'x'.join(map(str, r.size(shape)))}" for r in different.values())
        return f"an array of shape {tuple(shape)} may be {sizes}: say format='gray' or format='i420'"
    words = sorted({reading.axes for reading in different.values()})
    return f"an array of shape {tuple(shape)} may be {' or '.join(words)}: say " + " or ".join(
        f"layout={word!r}" for word in words
    )


def _no_reading(shape: Sequence[int], layout: str | None, format: str | None) -> str:
    text = f"an array of shape {tuple(shape)}"
    if layout is not None or format is not None:
        said = [f"layout={layout!r}"] * (layout is not None) + [f"format={format!r}"] * (format is not None)
        return f"{text} does not fit {' and '.join(said)}"
    return (
        f"{text} is no known frame or video: an axis of 3 colours (or 4, with alpha), at least {SMALLEST} rows and "
        "columns; or grey; say layout= (THWC, TCHW, CTHW, HWC, CHW) or format="
    )
