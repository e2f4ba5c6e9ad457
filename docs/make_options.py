"""Write docs/options.md from the table of options: python docs/make_options.py docs/options.md"""

import sys
from pathlib import Path
from typing import Any

from h264lite.encoder.files.names import IMAGES
from h264lite.encoder.settings.config import Config
from h264lite.encoder.settings.options import ALIASES, API, CLI, MOST_COUNT, OPTIONS, Option
from h264lite.encoder.settings.presets import CAVLC_PRESETS, PRESETS
from h264lite.encoder.settings.tunes import TUNES, TUNES_WITH_RATE, WITH_RATE
from h264lite.encoder.settings.x264_options import DISPENSABLE, HINTS, UNBUILT, VALUES, Unbuilt

# x264's defaults of the options that both encoders have, as the fields of Config have them. x264 --fullhelp (core 165):
# preset medium, a constant rate factor
X264_DEFAULTS: dict[str, Any] = {
    "crf": 23.0, "keyint": 250, "min_keyint": 25, "scenecut": 40, "rc_lookahead": 40, "ref": 3, "bframes": 3,
    "b_pyramid": "normal", "b_adapt": 1, "b_bias": 0, "weightb": True, "weightp": 2, "me": "hex", "merange": 16, "subme": 7,
    "trellis": 1, "psy_rd": 1.0, "partitions": frozenset(("p8x8", "i8x8", "i4x4")), "transform_8x8_mode": True,
    "cabac": True, "deblock": True, "deblock_alpha": 0, "deblock_beta": 0, "deadzone_inter": 21, "deadzone_intra": 11,
    "aq_mode": 1, "aq_strength": 1.0, "mbtree": True, "qcomp": 0.6, "ipratio": 1.4, "pbratio": 1.3, "ratetol": 1.0,
    "qpmin": 0, "vbv_init": 0.9, "cqm": "flat", "chroma_qp_offset": 0, "slices": 1, "info_sei": True, "psnr": False,
}  # fmt: skip
X264_WITH_QP: dict[str, Any] = {"crf": None, "aq_mode": 0, "mbtree": False}  # where --qp changes its defaults
MANY = 10  # values that a table lists
OTHERWISE = (  # what no option says, or not alone: here, in x264
    ("`--stats`", "h264lite_2pass.log", "x264_2pass.log"),
    ("QP of chroma with psy-RD", "as `--chroma-qp-offset` says", "2 lower"),
    ("search for vectors", "luma", "luma and chroma, see `--no-chroma-me`"),
    ("an output without a known ending", "refused, see `--muxer`", "Annex B"),
)
_HEAD = """\
# Options

Made from the table in `encoder/settings/options.py` by `make docs`; a test compares the two. The command line says
`--name-with-dashes`, the Python API `name_with_underscores`. Names and meanings are x264's where x264 has the option.
Names of values may be written in any case, presets also as 0 to 9, ultrafast to placebo.

## IN and OUT

IN is one of these, with samples of 8 bits, 4:2:0, unless they are images:

- `x_352x288_30.yuv`: raw I420. The size comes from the name or `--input-res`; the rate from the name or
  `--fps`, else it is 25. In a name a rate is `_50fps` or `_60Hz` anywhere, or right after the size `_30000_1001`,
  `_29.97` or a usual whole number as `_30`; other numbers may count frames. Options that contradict the name override
  it, with a line.
- `x.y4m`: YUV4MPEG2, progressive.
- `*.png`, `a.png b.png ...`: images ({images}), a frame each, all of one size, 8 bits a sample, by Pillow
  (`'h264lite[images]'`) or PyAV. The shell's list is put in natural order (9 before 10); a list in another order
  keeps it. RGB becomes BT.709 in limited range, which the stream says. Images are turned as their EXIF orientation says
  (Pillow alone); alpha, and pictures of a file after its first one, are left out with a warning.
- `frame_%04d.png`, `'*.png'`: the same, by number and without gaps, or by a pattern that the shell leaves alone.
- `-`: standard input, Y4M or raw with `--input-res`.
- other files: what FFmpeg decodes to such samples, by PyAV (`'h264lite[av]'`).

The ending of OUT, or `--muxer`, says what is written: Annex B (`.264`, `.h264`, `.avc`, `.bin` and others, `-`), `.mp4`,
`.m3u8` (HLS) and `.mpd` (DASH) with segments beside them, and by PyAV `.mkv`, `.mov`. A `.tmp` or `.part` at the end
does not count. Another ending, or none, is refused; devices and pipes need none, they get Annex B.
""".format(images=", ".join(IMAGES))


def option_rows() -> list[str]:
    """The table, group by group."""
    lines: list[str] = []
    group = ""
    for row in OPTIONS:
        if row.group != group:
            group = row.group
            lines += ["", f"## {group}", "", "| option | values | default | what it does | where |"]
            lines.append("|---|---|---|---|---|")
        name = f"`{row.flag}`" if row.scope != API else f"`{row.name}`"
        if row.short:
            name += f", `-{row.short}`"
        if row.is_switch and row.default is True:
            name += f", `--no-{row.flag[2:]}`"
        values = "" if row.is_switch else _values(row)
        default = ("on" if row.default else "off") if row.is_switch else row.default_text
        where = {API: "Python", CLI: "command line"}.get(row.scope, "both")
        lines.append(f"| {name} | {values} | {default} | {row.help} | {where} |")
    return lines


def _values(row: Option) -> str:
    """What an option takes; a range as wide as the type of numbers, and many numbers, by their ends."""
    if row.high == MOST_COUNT:
        return f"from {row.low}"
    choices = list(row.choices or ())
    if len(choices) > MANY and choices[0].isdigit():
        return f"{choices[0]} to {choices[-1]}"
    return row.range_text or row.metavar


def preset_rows() -> list[str]:
    """Presets: each row holds the changes from the one before."""
    lines = ["", "## What the presets are", ""]
    lines += ["Each row changes what the row before says; other options win over a preset. Without CABAC (`--profile "
              "baseline`, `--no-cabac`) the second table is the one."]  # fmt: skip
    for title, presets in (("preset", PRESETS), ("preset without CABAC", CAVLC_PRESETS)):
        lines += ["", f"| {title} | changes |", "|---|---|"]
        lines += [f"| {name} | {_listed(presets[name])} |" for name in PRESETS]
    return lines


def tune_rows() -> list[str]:
    """Tunes: the options that each sets, and what x264's do beside them."""
    lines = ["", "## What the tunes are", ""]
    lines += ["A tune changes what the preset says; other options win over both. zerolatency also returns the packet of each",
              "frame from the call that gets the frame, so that frames are coded one after another.", ""]  # fmt: skip
    lines += ["| tune | options | without `--qp` |", "|---|---|---|"]
    with_rate = {name: _listed(TUNES_WITH_RATE.get(name, {})) for name in TUNES}
    lines += [f"| {name} | {_listed(changes)} | {with_rate[name]} |" for name, changes in TUNES.items()]
    lines += ["", f"Without `--qp` the defaults are {_listed(WITH_RATE)}, as in x264; at a constant QP both are 0.",
              "x264's tunes also set what is not built here: the trellis' part of psy-rd (film, grain, stillimage),",
              "dct-decimate (grain), the slices by threads (zerolatency)."]  # fmt: skip
    return lines


def _listed(changes: dict[str, object]) -> str:
    return ", ".join(f"{key.replace('_', '-')} {value}" for key, value in changes.items())


def differing(**given: int) -> list[tuple[str, str, str]]:
    """(option, its default here, that of x264) of the options whose defaults differ; with options only those that then differ
    and else do not.
    """
    here = Config.from_options(width=352, height=288, device="cpu", **given).values
    if given:
        told = {name for name, *_ in differing()}
        there = X264_DEFAULTS | X264_WITH_QP
        return [
            (f"--{name.replace('_', '-')}", _text(here[name]), _text(value))
            for name, value in there.items()
            if here[name] != value and f"--{name.replace('_', '-')}" not in told
        ]
    return [
        (f"--{name.replace('_', '-')}", _text(here[name]), _text(value))
        for name, value in X264_DEFAULTS.items()
        if here[name] != value
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(sorted(value, reverse=True)) if isinstance(value, frozenset) else str(value)


def differing_rows() -> list[str]:
    """Defaults that are not x264's."""
    lines = ["", "## Defaults that differ from x264's", "",
             "Without options an encode is x264's preset medium at `--crf 23`, but for:", "",
             "| option | default here | in x264 |", "|---|---|---|"]  # fmt: skip
    lines += [f"| `{name}` | {here} | {there} |" for name, here, there in differing()]
    lines += [f"| `{name}` with `--qp` | {here} | {there} |" for name, here, there in differing(qp=26)]
    lines += [f"| {what} | {here} | {there} |" for what, here, there in OTHERWISE]
    return [*lines, "", "`--subme` has a scale of its own, above. Macroblock tree takes 1.3 in place of `--pbratio`. "
            "x264's other presets and its", "tunes set other options than [the presets](#what-the-presets-are) and "
            "[tunes](#what-the-tunes-are) here."]  # fmt: skip


def refused_rows() -> list[str]:
    """x264's options that are not built: accepted values, and the reason why others are refused."""
    lines = [
        "",
        "## Options of x264 that are not built",
        "",
        "Values that describe what the encoder does in any case are accepted. All others are refused, together in one "
        "message: exit code 2, or `OptionError`. With `--lenient` those of the last column are taken, and numbers beyond a "
        "range become the nearest; a line says so, in Python a RuntimeWarning. Each option that x264 lists, "
        "with its values: [x264.md](x264.md).",
        "",
        "| refused | accepted | why | `--lenient` |",
        "|---|---|---|---|",
    ]
    rows: dict[tuple[str, str, str], list[str]] = {}
    for row in UNBUILT.values():
        if True not in row.neutral:
            lenient = "left out" if row.name in DISPENSABLE else ""
            rows.setdefault((accepted(row), row.why, lenient), []).append(f"`{_flag(row.name)}`")
    for (values, why, lenient), names in rows.items():
        lines.append(f"| {', '.join(names)} | {values} | {_cell(why)} | {lenient} |")
    lines += [f"| `{_flag(row.name)}` {', '.join(row.values)} | | {_cell(row.why)} | {row.nearest} |" for row in VALUES]
    lines += ["", "About how the machine works, and so accepted with a line that they have no effect: "
              + ", ".join(f"`{_flag(name)}`" for name in HINTS) + "."]  # fmt: skip
    others = ", ".join(f"`{alias}` for `{name}`" for alias, name in ALIASES.items() if name not in UNBUILT)
    return [*lines, "", f"In Python, {others} is accepted."]


def _cell(why: str) -> str:
    """A reason as it stands in a table, for commands have pipes."""
    return why.replace("|", "\\|")


def accepted(row: Unbuilt) -> str:
    """The accepted values of an option, or the opposite of a switch."""
    special = {
        "no_mixed_refs": "`--mixed-refs`; with `--ref 1` both",
        "direct": "`spatial`, `1`; without B frames `none`, `0`",
    }
    if row.name in special:
        return special[row.name]
    if not row.is_switch:
        return ", ".join(f"`{value}`" for value in row.neutral)
    opposite = UNBUILT.get(row.name[3:] if row.name.startswith("no_") else f"no_{row.name}")
    return f"`{_flag(opposite.name)}`" if opposite is not None and opposite.is_switch else ""


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def text() -> str:
    """The whole document."""
    return _HEAD + "\n".join([*option_rows(), *preset_rows(), *tune_rows(), *differing_rows(), *refused_rows()]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
